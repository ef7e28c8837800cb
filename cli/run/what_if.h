// What if the hardware were another: simulates an experiment again with one lever changed at a time
// (cli/run/levers.h).
//
// The slope of a lever is d ln(step) / d ln(lever) along the critical path of the run as it is. It
// is not found by simulating again, but from what the path is made of
// (experiment/explained/path_bill.h, which says where that is exact). Along one path a step is a +
// b / lever for bandwidths and throughputs, and a + b x lever for times. Where a change of 10 %
// gives something else, the path has changed.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/levers.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"

namespace stepsim {

struct WhatIfRun {
  Duration step{};
  bool fits = true;
};

struct LeverEffect {
  Lever lever;
  WhatIfRun less;                 // 10 % less
  WhatIfRun more;                 // 10 % more
  std::optional<double> slope{};  // unset: Sensitivity::no_slopes
  bool less_changes_path = false;
  bool more_changes_path = false;
};

struct Sensitivity {
  WhatIfRun now{};
  std::vector<LeverEffect> effects;  // largest first
  double shared = 0;      // fraction of the path: transfers whose share of their links is held
  std::string no_slopes;  // why there are no slopes; empty: there are
};

// Breakeven says where more of something no longer helps: from `factor` on, a step is within 1 % of
// what endlessly much would give.
struct Breakeven {
  Lever lever;
  double factor = 1;
  WhatIfRun now{};
  WhatIfRun there{};
  WhatIfRun endless{};  // a thousand times as much; of times, a thousandth
};

// An experiment that is run again and again. `options` are those of its run, without recordings.
class WhatIf {
 public:
  WhatIf(ExperimentSource source, ExperimentOptions options);

  // Several threads can call it. Throws ConfigError if the changed experiment can't run.
  WhatIfRun with(const Lever& lever, double factor) const;

  // The derivatives of the step's critical path with respect to the ln of each lever, in seconds.
  struct Slopes {
    WhatIfRun now{};
    std::vector<double> seconds;  // by lever; empty: `why_not`
    double shared = 0;            // as Sensitivity::shared
    std::string why_not;
  };
  Slopes slopes(const std::vector<Lever>& levers, std::size_t threads) const;

 private:
  LoadedExperiment loaded_with(const Lever& lever, double factor) const;

  ExperimentSource source_;
  ExperimentOptions options_;
};

Sensitivity find_sensitivity(const WhatIf& what_if, const std::vector<Lever>& levers,
                             std::size_t threads);

// Some 20 simulations.
Breakeven find_breakeven(const WhatIf& what_if, const Lever& lever);

}  // namespace stepsim
