#include "cli/run/run_results.h"

#include <functional>

#include "traces/results/result_json.h"

namespace stepsim {
namespace {

struct RunResult {
  const StepReport& report;
  const WhatIfFindings& what_if;
};

std::vector<std::string> paths_of(const LeverEffect& effect) {
  std::vector<std::string> paths;
  for (const LeverField& field : effect.lever.fields) paths.push_back(field.path);
  return paths;
}

const ResultTable<LeverEffect>& effect_results() {
  static const ResultTable<LeverEffect> kTable = [] {
    ResultTable<LeverEffect> table;
    table.add("name", [](const LeverEffect& effect) { return effect.lever.name; },
              {"what is varied"});
    table.add("fields", paths_of, {"paths as for --set"});
    table.add("value", [](const LeverEffect& effect) { return effect.lever.fields.front().value; },
              {"what the first of them is now"});
    table.add("less_10_percent_step_time_s",
              [](const LeverEffect& effect) { return effect.less.step; },
              {"a step with 10 % less of it, simulated", "s"});
    table.add("more_10_percent_step_time_s",
              [](const LeverEffect& effect) { return effect.more.step; },
              {"a step with 10 % more of it, simulated", "s"});
    table.add(
        "slope",
        [](const LeverEffect& effect) {
          // -0 is written as 0.
          return OrNull{effect.slope ? std::optional(*effect.slope + 0.0) : std::nullopt};
        },
        {"derivative of the critical path as it is: percent of the step for each percent more; "
         "null where it isn't known"});
    table.add("path_changes",
              [](const LeverEffect& effect) {
                return std::vector<bool>{effect.less_changes_path, effect.more_changes_path};
              },
              {"[less, more]: whether the critical path changes on the way"});
    table.add("fits",
              [](const LeverEffect& effect) {
                return std::vector<bool>{effect.less.fits, effect.more.fits};
              },
              {"[less, more]: whether the plan fits in memory"});
    return table;
  }();
  return kTable;
}

const ResultTable<Breakeven>& breakeven_results() {
  static const ResultTable<Breakeven> kTable = [] {
    ResultTable<Breakeven> table;
    table.add("name", [](const Breakeven& found) { return found.lever.name; }, {"what is varied"});
    table.add("factor", &Breakeven::factor,
              {"of what it is now, where more helps by less than 1 %"});
    table.add("value", [](const Breakeven& found) { return found.lever.text(found.factor); },
              {"what it is there"});
    table.add("step_time_s", [](const Breakeven& found) { return found.now.step; }, {"now", "s"});
    table.add("step_time_there_s", [](const Breakeven& found) { return found.there.step; },
              {"there", "s"});
    table.add("step_time_endless_s", [](const Breakeven& found) { return found.endless.step; },
              {"with a thousand times as much; of times, a thousandth", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<RunResult>& run_results() {
  static const ResultTable<RunResult> kTable = [] {
    ResultTable<RunResult> table;
    const auto report = [](const RunResult& run) { return &run.report; };
    const auto effects = [](const RunResult& run) {
      const auto& found = run.what_if.sensitivity;
      return found ? std::optional(found->effects) : std::nullopt;
    };
    table.include(step_results(), report);
    table.list(
        "sensitivity", effect_results(), effects,
        {"what a step would be on other hardware, largest change first", "", "with --sensitivity"});
    table.add(
        "slopes_held",
        [](const RunResult& run) -> std::optional<double> {
          const auto& found = run.what_if.sensitivity;
          if (!found || !found->no_slopes.empty()) return std::nullopt;
          return found->shared;
        },
        {"share of the critical path that is transfers whose part of their links is held in the "
         "slopes",
         "0 to 1", "where slopes are known"});
    table.object("breakeven", breakeven_results(),
                 [](const RunResult& run) { return run.what_if.breakeven; },
                 {"where more of something helps no more", "", "with --breakeven"});
    table.object("simulator", simulator_results(),
                 [](const RunResult& run) { return &run.report.run.result.statistics; },
                 {"the simulation alone: two equal runs differ in nothing else"});
    return table;
  }();
  return kTable;
}

using Reports = std::vector<StepReport>;

const ResultTable<Reports>& runs_results() {
  static const ResultTable<Reports> kTable = [] {
    ResultTable<Reports> table;
    table.add("name", [](const Reports& reports) { return reports.front().run.experiment.name; },
              {"of the experiment"});
    table.add(
        "granularity",
        [](const Reports& reports) { return name_of(reports.front().run.options.granularity); },
        {"of collectives: stepped, so that only the network model differs"});
    table.add("experiment",
              [](const Reports& reports) {
                const std::string& json = reports.front().experiment_json;
                return json.empty() ? std::nullopt : std::optional(RawJson{json});
              },
              {"what was run"});
    table.add("runs",
              [](const Reports& reports) {
                std::string runs;
                for (StepReport report : reports) {
                  report.experiment_json.clear();  // it stands before the runs
                  runs += (runs.empty() ? "" : ",\n") + run_results().json({report, {}}, 0);
                }
                return RawJson{"[\n" + runs + "\n]"};
              },
              {"a run of each network model: latency-bandwidth, flow, packet"});
    return table;
  }();
  return kTable;
}

}  // namespace

std::string run_json(const StepReport& report, const WhatIfFindings& what_if) {
  return run_results().json({report, what_if}) + '\n';
}

std::string runs_json(const std::vector<StepReport>& reports) {
  return runs_results().json(reports) + '\n';
}

std::vector<CommandResult> run_command_results() {
  return {{"a run", &run_results()}, {"--fidelity all", &runs_results()}};
}

}  // namespace stepsim
