// What a whole training run takes from the grid, and the carbon of it.
//
//   joules = chips x (working x watts of a step + standing x idle watts) + spares x all x idle
//   watts grid   = joules x PUE carbon = grid x mean grams of a kilowatt-hour over the run
//   (carbon_table.h)
//
// Working: productive time and work that is done again. In all other time (checkpoints, restarts,
// repairs, what slow nodes and missing replicas cost) chips draw their idle watts: the work of a
// step takes the same joules however long it takes. Nodes under repair count as if they idled.
//
// Not modelled: hosts, switches and storage, unless the PUE has them; it is that of the mean run,
// whose power is spread evenly over its time.

#pragma once

#include <optional>

#include "goodput/energy/carbon_table.h"
#include "goodput/goodput.h"

namespace stepsim {

struct RunPower {
  double step_watts = 0;  // of a chip, the mean over a step
  double idle_watts = 0;  // of a chip
  double pue = 1;         // power of the whole facility over that of the chips
};

struct RunEnergy {
  double kilowatt_hours = 0;
  double standing_kilowatt_hours = 0;  // of these: while the job made no progress, and of spares
  double mean_watts = 0;               // of everything
  std::optional<double> carbon_kilograms{};
};

// `carbon` may be nullptr. Throws ConfigError under --carbon if it ends before the run does.
RunEnergy energy_of_run(const RunPower& power, const RunSetup& setup, const JobShape& job,
                        const GoodputResult& result, const CarbonTable* carbon);

}  // namespace stepsim
