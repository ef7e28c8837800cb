// StepReport is a finished run and all that was found out about it: what the reports and the JSON
// of traces/ write down. It is made in one go and doesn't change.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/step/explain.h"
#include "analysis/step/finished_run.h"
#include "analysis/step/placement.h"
#include "analysis/step/published_comparison.h"

namespace stepsim {

struct StepReport {
  FinishedRun run;
  std::vector<PlacementNote> placement{};    // what the places of the ranks cost
  std::optional<Explanation> explanation{};  // not given: it was not asked for
  std::vector<std::string> settings{};       // lines for the title: settings_of()
  std::string experiment_json{};             // JSON object that says what was run; empty: not known
  std::vector<PublishedComparison> published{};  // what others measured of it
};

// A record of what was asked.
struct AskedExperiment {
  std::string json;                    // StepReport::experiment_json
  std::vector<std::string> overrides;  // "path=value" of --set
  Publication publication{};           // what was published about it
};

// REQUIRES for `explains`: a timeline of at least one rank of each program was recorded.
StepReport report_on(const FinishedRun& run, const AskedExperiment& asked, bool explains);

}  // namespace stepsim
