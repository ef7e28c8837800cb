#include <functional>
#include <utility>

#include "traces/results/goodput_report.h"

namespace stepsim {
namespace {

constexpr double kHoursOfDay = 24;

std::int64_t paid_nodes(const GoodputOutcome& outcome) {
  return outcome.setup.nodes + outcome.setup.spares;
}

// A row of a list that refers to the whole.
template <class T>
struct OfOutcome {
  const GoodputOutcome* outcome;
  T value;
};

template <class T>
std::vector<OfOutcome<T>> with_outcome(const GoodputOutcome& outcome,
                                       const std::vector<T>& values) {
  std::vector<OfOutcome<T>> rows;
  for (const T& value : values) rows.push_back({&outcome, value});
  return rows;
}

const ResultTable<GoodputResult>& days_results() {
  static const ResultTable<GoodputResult> kTable = [] {
    ResultTable<GoodputResult> table;
    table.add("mean", &GoodputResult::mean_days, {"mean of all runs", "days"});
    table.add("p10", &GoodputResult::p10_days, {"a tenth of the runs take less", "days"});
    table.add("p90", &GoodputResult::p90_days, {"a tenth take more", "days"});
    table.add("standard_error", &GoodputResult::standard_error_days, {"of the mean", "days"});
    return table;
  }();
  return kTable;
}

const ResultTable<std::pair<std::string, double>>& class_results() {
  static const ResultTable<std::pair<std::string, double>> kTable = [] {
    using Class = std::pair<std::string, double>;
    ResultTable<Class> table;
    table.add("name", &Class::first, {"of the class of the table of failures"});
    table.add("count", &Class::second, {"failures of a run, mean"});
    return table;
  }();
  return kTable;
}

const ResultTable<GoodputOutcome>& energy_of_run_results() {
  static const ResultTable<GoodputOutcome> kTable = [] {
    const auto energy = [](auto member) {
      return [member](const GoodputOutcome& outcome) { return (*outcome.energy).*member; };
    };
    const auto power = [](auto member) {
      return [member](const GoodputOutcome& outcome) { return outcome.power.*member; };
    };
    ResultTable<GoodputOutcome> table;
    table.add("kwh", energy(&RunEnergy::kilowatt_hours), {"of the whole run", "kWh"});
    table.add("standing_kwh", energy(&RunEnergy::standing_kilowatt_hours),
              {"while no progress was made, and of spares", "kWh"});
    table.add("mean_watts", energy(&RunEnergy::mean_watts), {"of all chips", "W"});
    table.add("step_watts_per_chip", power(&RunPower::step_watts), {"in a step", "W"});
    table.add("idle_watts_per_chip", power(&RunPower::idle_watts), {"without work", "W"});
    table.add("pue", power(&RunPower::pue), {"power of the facility over that of the chips"});
    table.add(
        "carbon_kg",
        [](const GoodputOutcome& outcome) { return OrNull{outcome.energy->carbon_kilograms}; },
        {"CO2; null without --carbon", "kg"});
    return table;
  }();
  return kTable;
}

const ResultTable<AssumedField>& assumed_results() {
  static const ResultTable<AssumedField> kTable = [] {
    ResultTable<AssumedField> table;
    table.add("field", &AssumedField::field, {"what was not asked for"});
    table.add("value", &AssumedField::value, {"what was taken"});
    table.add("why", &AssumedField::why, {"where it comes from"});
    return table;
  }();
  return kTable;
}

const ResultTable<GoodputOutcome>& checkpoint_results() {
  static const ResultTable<GoodputOutcome> kTable = [] {
    const auto seconds = [](Ticks CheckpointCosts::*member) {
      return [member](const GoodputOutcome& outcome) {
        return seconds_of(outcome.setup.checkpoint.*member);
      };
    };
    ResultTable<GoodputOutcome> table;
    table.add("bytes", [](const GoodputOutcome& outcome) { return outcome.trained.checkpoint; },
              {"of one checkpoint", "bytes"});
    table.add("storage_interval_s",
              [](const GoodputOutcome& outcome) {
                const CheckpointCosts& costs = outcome.setup.checkpoint;
                return seconds_of(costs.interval * costs.per_storage);
              },
              {"between checkpoints that go to storage", "s"});
    table.add("copy_stall_s", seconds(&CheckpointCosts::copy_stall),
              {"training stands for a copy to the host", "s"});
    table.add("storage_stall_s", seconds(&CheckpointCosts::storage_stall),
              {"training stands for storage", "s"});
    table.add("storage_flush_s", seconds(&CheckpointCosts::storage_flush),
              {"until it is safe in storage, beside training", "s"});
    return table;
  }();
  return kTable;
}

// `x`: name and meaning of the curve's axis.
ResultTable<CurvePoint> make_curve_results(std::string_view x, ResultDoc doc) {
  ResultTable<CurvePoint> table;
  table.add(x, &CurvePoint::x, doc);
  table.add("days", [](const CurvePoint& point) { return point.result.mean_days; },
            {"mean", "days"});
  table.add("goodput", [](const CurvePoint& point) { return point.result.goodput; },
            {"productive share of the time", "0 to 1"});
  return table;
}

const ResultTable<CurvePoint>& interval_results() {
  static const auto kTable = make_curve_results("interval_s", {"between checkpoints", "s"});
  return kTable;
}

const ResultTable<CurvePoint>& spares_results() {
  static const auto kTable = make_curve_results("spares", {"nodes that stand by"});
  return kTable;
}

const ResultTable<OfOutcome<ClassSensitivity>>& rate_results() {
  static const ResultTable<OfOutcome<ClassSensitivity>> kTable = [] {
    using Row = OfOutcome<ClassSensitivity>;
    ResultTable<Row> table;
    table.add("name", [](const Row& row) { return row.outcome->table.classes[row.value.of].name; },
              {"of a class of failures"});
    table.add("half_days", [](const Row& row) { return row.value.half_days; },
              {"mean with half of them", "days"});
    table.add("twice_days", [](const Row& row) { return row.value.twice_days; },
              {"mean with twice as many", "days"});
    return table;
  }();
  return kTable;
}

const ResultTable<SmallerStep>& smaller_results() {
  static const ResultTable<SmallerStep> kTable = [] {
    ResultTable<SmallerStep> table;
    table.add("missing", &SmallerStep::missing, {"replicas fewer"});
    table.add("step_time_s", &SmallerStep::step, {"of such a step", "s"});
    table.add("slowdown", &SmallerStep::slowdown,
              {"time of the same tokens, over the whole step's"});
    return table;
  }();
  return kTable;
}

const ResultTable<OfOutcome<RunSpan>>& span_results() {
  static const ResultTable<OfOutcome<RunSpan>> kTable = [] {
    using Row = OfOutcome<RunSpan>;
    ResultTable<Row> table;
    table.add("phase", [](const Row& row) { return name_of(row.value.phase); },
              {"what the job did"});
    table.add("begin_s", [](const Row& row) { return seconds_of(row.value.begin); }, {"from", "s"});
    table.add("end_s", [](const Row& row) { return seconds_of(row.value.end); }, {"to", "s"});
    table.add("replicas", [](const Row& row) { return row.value.replicas; }, {"that trained"});
    table.add("failure",
              [](const Row& row) {
                const auto& failure = row.value.failure;
                return OrNull{failure ? std::optional(row.outcome->table.classes[*failure].name)
                                      : std::nullopt};
              },
              {"class of the failure that began it; null: none"});
    return table;
  }();
  return kTable;
}

const ResultTable<GoodputOutcome>& cost_results() {
  static const ResultTable<GoodputOutcome> kTable = [] {
    ResultTable<GoodputOutcome> table;
    table.add("events", [](const GoodputOutcome& outcome) { return outcome.result.events; },
              {"of all runs"});
    table.add("wall_s", &GoodputOutcome::wall_s, {"wall clock", "s"});
    table.add("cpu_s", &GoodputOutcome::cpu_s, {"CPU clock", "s"});
    table.add("peak_rss_bytes", &GoodputOutcome::peak_rss_bytes, {"peak memory", "bytes"});
    return table;
  }();
  return kTable;
}

std::vector<std::pair<std::string, double>> failures_by_class(const GoodputOutcome& outcome) {
  std::vector<std::pair<std::string, double>> classes;
  for (std::size_t i = 0; i < outcome.table.classes.size(); ++i) {
    classes.emplace_back(outcome.table.classes[i].name, outcome.result.failures_by_class[i]);
  }
  return classes;
}

ByName<double> parts_days(const GoodputOutcome& outcome) {
  ByName<double> parts;
  for (std::size_t i = 0; i < kRunParts; ++i) {
    parts.emplace_back(name_of(static_cast<RunPart>(i)), outcome.result.parts_days[i]);
  }
  return parts;
}

void add_outcome(ResultTable<GoodputOutcome>& table) {
  const auto result = [](auto member) {
    return [member](const GoodputOutcome& outcome) { return outcome.result.*member; };
  };
  table.add("asked",
            [](const GoodputOutcome& outcome) {
              return RawJson{outcome.asked.empty() ? "{}" : outcome.asked};
            },
            {"the command's words and options"});
  table.object("days", days_results(), &GoodputOutcome::result, {"how long the run takes", "days"});
  table.add("goodput", result(&GoodputResult::goodput), {"productive share of the time", "0 to 1"});
  table.add("effective_mfu",
            [](const GoodputOutcome& outcome) { return OrNull{effective_mfu(outcome)}; },
            {"goodput x MFU of a step; null where the step is given", "0 to 1"});
  table.add("parts_days", parts_days,
            {"where the time goes: productive, checkpoint, lost, "
             "restart, repair, degraded",
             "days"});
  table.add(
      "checkpoint_interval_s",
      [](const GoodputOutcome& outcome) { return seconds_of(outcome.setup.checkpoint.interval); },
      {"between checkpoints", "s"});
  table.add("failures", result(&GoodputResult::failures), {"of a run, mean"});
  table.list("failures_by_class", class_results(), failures_by_class, {"the same by class"});
  table.add("restarts", result(&GoodputResult::restarts), {"of a run, mean"});
  table.add("undetected_corruptions", result(&GoodputResult::undetected), {"of a run, mean"});
  table.add("tokens_per_day",
            [](const GoodputOutcome& outcome) { return OrNull{tokens_per_day(outcome)}; },
            {"null where the step is given", "1/day"});
  table.add("cost", [](const GoodputOutcome& outcome) { return OrNull{cost_of(outcome)}; },
            {"price x chips with spares x hours; null without --chip-hour"});
  table.object("energy", energy_of_run_results(),
               [](const GoodputOutcome& outcome) {
                 return OrNull{outcome.energy ? std::optional(&outcome) : std::nullopt};
               },
               {"null where the chip doesn't say its power"});
  table.list("assumed", assumed_results(), &GoodputOutcome::assumed,
             {"what was not asked for, and not of this cluster"});
}

void add_setup(ResultTable<GoodputOutcome>& table) {
  table.add("runs", [](const GoodputOutcome& outcome) { return outcome.result.runs; },
            {"simulated"});
  table.add("chips", [](const GoodputOutcome& outcome) { return outcome.trained.job.chips; },
            {"of the job"});
  table.add("nodes", [](const GoodputOutcome& outcome) { return outcome.setup.nodes; },
            {"of the job"});
  table.add("spares", [](const GoodputOutcome& outcome) { return outcome.setup.spares; },
            {"nodes that stand by"});
  table.add("step_time_s", [](const GoodputOutcome& outcome) { return outcome.trained.step; },
            {"of a step without failures", "s"});
  table.object("checkpoint", checkpoint_results(), std::identity{}, {"what checkpoints take"});
  table.add("best_checkpoint_interval_s",
            [](const GoodputOutcome& outcome) -> std::optional<double> {
              const auto& points = outcome.by_interval;
              return points.empty() ? std::nullopt : std::optional(points[best_point(points)].x);
            },
            {"the interval of by_interval with most goodput", "s", "unless --no-curves"});
  table.add("best_spares",
            [](const GoodputOutcome& outcome) -> std::optional<double> {
              const auto& points = outcome.by_spares;
              if (points.empty()) return std::nullopt;
              return points[best_spares(points, outcome.setup.nodes)].x;
            },
            {"the number of by_spares with most goodput for each node that is paid for", "",
             "unless --no-curves"});
  table.list("by_interval", interval_results(), &GoodputOutcome::by_interval,
             {"other intervals of checkpoints"});
  table.list("by_spares", spares_results(), &GoodputOutcome::by_spares,
             {"other numbers of spares"});
  table.list(
      "sensitivity", rate_results(),
      [](const GoodputOutcome& outcome) { return with_outcome(outcome, outcome.sensitivity); },
      {"with half and twice the failures of a class"});
  table.list("smaller_steps", smaller_results(),
             [](const GoodputOutcome& outcome) { return outcome.trained.smaller; },
             {"steps with fewer replicas (--shrink)"});
  table.add("spare_groups",
            [](const GoodputOutcome& outcome) { return outcome.trained.job.spare_groups; },
            {"groups of nodes that spares lie in"});
  table.add("far_spare_slowdown",
            [](const GoodputOutcome& outcome) { return outcome.trained.job.far_slowdown; },
            {"a step's time with a spare of another group, over the usual"});
  table.list(
      "timeline", span_results(),
      [](const GoodputOutcome& outcome) { return with_outcome(outcome, outcome.sample.spans); },
      {"one run, span by span"});
  table.object("simulator", cost_results(), std::identity{}, {"the simulation alone"});
}

}  // namespace

double seconds_of(Ticks ticks) {
  return static_cast<double>(ticks) / kTicksPerSecond;
}

std::optional<double> cost_of(const GoodputOutcome& outcome) {
  if (!outcome.price) return std::nullopt;
  const auto chips = static_cast<double>(paid_nodes(outcome) * outcome.trained.job.chips_per_node);
  return *outcome.price * chips * outcome.result.mean_days * kHoursOfDay;
}

std::optional<double> effective_mfu(const GoodputOutcome& outcome) {
  if (outcome.experiment.empty()) return std::nullopt;
  return outcome.result.goodput * outcome.trained.model_flops_utilization;
}

std::optional<double> tokens_per_day(const GoodputOutcome& outcome) {
  if (outcome.experiment.empty()) return std::nullopt;
  const double steps = seconds_of(outcome.setup.work) / seconds_of(outcome.trained.job.step);
  return steps * outcome.trained.tokens_per_step / outcome.result.mean_days;
}

const ResultTable<GoodputOutcome>& goodput_results() {
  static const ResultTable<GoodputOutcome> kTable = [] {
    ResultTable<GoodputOutcome> table;
    add_outcome(table);
    add_setup(table);
    return table;
  }();
  return kTable;
}

}  // namespace stepsim
