// StepReport is a finished run with all findings about it. The reports and the JSON of traces/
// write it down. It is built in one go and does not change.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/energy.h"
#include "experiment/explained/explain.h"
#include "experiment/finished_run.h"
#include "experiment/step/fault_effects.h"
#include "experiment/step/placement.h"
#include "experiment/step/published_comparison.h"
#include "experiment/uncertainty.h"

namespace stepsim {

struct StepReport {
  FinishedRun run;
  std::vector<PlacementNote> placement{};    // costs of the ranks' placement
  FaultEffects faults{};                     // what links that are slow or down do to the step
  std::optional<Explanation> explanation{};  // unset: it was not asked for
  std::vector<std::string> settings{};       // lines for the title: settings_of()
  std::string experiment_json{};  // JSON object that describes the experiment; empty: not known
  std::vector<PublishedComparison> published{};  // published figures beside simulated ones
  // Where 8 of 10 measured figures would lie: step time in seconds, peak memory in bytes.
  std::optional<Interval> step_time_s{};
  std::optional<Interval> peak_bytes{};
  std::optional<StepEnergy> energy{};  // unset: the chip doesn't say its power
};

// AskedExperiment records the user's request.
struct AskedExperiment {
  std::string json;                        // StepReport::experiment_json
  std::vector<std::string> overrides;      // "path=value" of --set
  Publication publication{};               // published figures of the experiment
  std::vector<IntervalEntry> intervals{};  // how far predictions were off
};

// REQUIRES, if `explains`: a timeline of at least one rank of each program was recorded.
StepReport report_on(const FinishedRun& run, const AskedExperiment& asked, bool explains);

}  // namespace stepsim
