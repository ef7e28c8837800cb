#include "goodput/energy/run_energy.h"

#include <fmt/format.h>

namespace stepsim {
namespace {

constexpr double kHoursOfDay = 24;
constexpr double kWattsOfKilowatt = 1000;

double carbon_of_run(const CarbonTable& carbon, double days, double kilowatt_hours) {
  const double hours = days * kHoursOfDay;
  if (hours > hours_of(carbon)) {
    throw ConfigError({Problem{
        "--carbon", fmt::format("must last as long as the run, {:.2f} days; ends after {:.2f}",
                                days, hours_of(carbon) / kHoursOfDay)}});
  }
  constexpr double kGramsOfKilogram = 1000;
  return kilowatt_hours * mean_grams(carbon, hours) / kGramsOfKilogram;
}

}  // namespace

RunEnergy energy_of_run(const RunPower& power, const RunSetup& setup, const JobShape& job,
                        const GoodputResult& result, const CarbonTable* carbon) {
  const auto days_in = [&](RunPart part) {
    return result.parts_days[static_cast<std::size_t>(part)];
  };
  const double working = days_in(RunPart::kProductive) + days_in(RunPart::kLost);
  const auto chips = static_cast<double>(job.chips);
  const auto spares = static_cast<double>(setup.spares * job.chips_per_node);
  const auto kilowatt_hours = [&](double chip_days, double watts) {
    return chip_days * kHoursOfDay * watts / kWattsOfKilowatt * power.pue;
  };
  RunEnergy energy;
  energy.standing_kilowatt_hours = kilowatt_hours(
      chips * (result.mean_days - working) + spares * result.mean_days, power.idle_watts);
  energy.kilowatt_hours =
      energy.standing_kilowatt_hours + kilowatt_hours(chips * working, power.step_watts);
  energy.mean_watts = energy.kilowatt_hours * kWattsOfKilowatt / (result.mean_days * kHoursOfDay);
  if (carbon != nullptr) {
    energy.carbon_kilograms = carbon_of_run(*carbon, result.mean_days, energy.kilowatt_hours);
  }
  return energy;
}

}  // namespace stepsim
