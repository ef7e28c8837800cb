// The page of a run: `stepsim run --html`, and `stepsim view` of its result.

#pragma once

#include <string>

#include "cli/run/run_options.h"
#include "cli/run/run_outputs.h"
#include "experiment/finished_run.h"
#include "experiment/step/step_report.h"

namespace stepsim {

// Returns the options with everything recorded that a page shows. The result stays the same.
ExperimentOptions recording_for_page(ExperimentOptions options);

// Returns whether a page of this run has a section on what would change it, which simulates it some
// 20 times more.
bool affords_sensitivity(const FinishedRun& run);

// REQUIRES: `request` is complete.
Sensitivity sensitivity_of(const RunRequest& request);

// Runs what was asked for, as `stepsim run` does, and returns its page and its step time.
struct PageOfRun {
  std::string html;
  Duration step{};
};
PageOfRun page_of_request(RunRequest request);

// REQUIRES: `run` was recorded as above.
std::string run_html(const FinishedRun& run, const AskedExperiment& asked,
                     const WhatIfFindings& what_if);

}  // namespace stepsim
