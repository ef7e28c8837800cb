#include "cli/run/run_html.h"

#include <cstdint>

#include "cli/run/what_if_text.h"
#include "pages/run/run_drawings.h"
#include "pages/run_page.h"
#include "proto/json_value.h"
#include "traces/result_json.h"

namespace stepsim {

ExperimentOptions recording_for_page(ExperimentOptions options) {
  options.explains = true;
  options.record_each_role = true;
  options.share_timelines = true;
  options.record_links = true;
  return options;
}

bool affords_sensitivity(const FinishedRun& run) {
  constexpr std::uint64_t kMostOps = 1'000'000;
  return run.result.statistics.ops <= kMostOps && run.options.fidelity != Fidelity::kPacket;
}

std::string run_html(const FinishedRun& run, const AskedExperiment& asked,
                     const WhatIfFindings& what_if) {
  std::vector<std::string> members;
  if (what_if.sensitivity) members.push_back(sensitivity_json(*what_if.sensitivity));
  if (what_if.breakeven) members.push_back(breakeven_json(*what_if.breakeven));
  const std::string json = result_json(report_on(run, asked, true), members);
  return run_page(parse_json(json).value.value(), run_drawings(run));
}

}  // namespace stepsim
