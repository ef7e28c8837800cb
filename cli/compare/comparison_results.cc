#include "cli/compare/comparison_results.h"

#include <functional>
#include <optional>

#include "traces/results/result_table.h"

namespace stepsim {
namespace {

RawJson value_of(const std::optional<double>& value, LineUnit unit) {
  if (!value) return {"null"};
  if (unit == LineUnit::kSeconds) return {json_of(Duration(static_cast<std::int64_t>(*value)))};
  return {json_of(*value)};
}

struct WholeComparison {
  const std::vector<ComparedRun>* runs;
  const RunComparison* comparison;
};

struct RunOfComparison {
  const WholeComparison* whole;
  std::size_t at = 0;

  const ComparedRun& run() const { return (*whole->runs)[at]; }
  // From the first run. REQUIRES: at > 0.
  const RunDifference& difference() const { return whole->comparison->differences[at - 1]; }
};

std::vector<RunOfComparison> runs_from(const WholeComparison& whole, std::size_t first) {
  std::vector<RunOfComparison> runs;
  for (std::size_t at = first; at < whole.runs->size(); ++at) runs.push_back({&whole, at});
  return runs;
}

const ResultTable<RunOfComparison>& compared_run_results() {
  static const ResultTable<RunOfComparison> kTable = [] {
    using Run = RunOfComparison;
    ResultTable<Run> table;
    table.add("name", [](const Run& one) { return one.run().name; }, {"of the experiment"});
    table.add("source", [](const Run& one) { return one.run().source; }, {"as it was asked for"});
    table.add("step_time_s",
              [](const Run& one) {
                return value_of(one.whole->comparison->lines.front().values[one.at],
                                LineUnit::kSeconds);
              },
              {"of a step", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<InputDifference>& compared_input_results() {
  static const ResultTable<InputDifference> kTable = [] {
    ResultTable<InputDifference> table;
    table.add("path", &InputDifference::path, {"as for --set"});
    table.add("values",
              [](const InputDifference& input) {
                std::vector<OrNull<std::string>> values;
                for (const auto& value : input.values) values.push_back({value});
                return values;
              },
              {"by run; null: it has no such field"});
    return table;
  }();
  return kTable;
}

const ResultTable<ComparedLine>& compared_line_results() {
  static const ResultTable<ComparedLine> kTable = [] {
    ResultTable<ComparedLine> table;
    table.add("section", &ComparedLine::section,
              {"step, breakdown, memory, traffic, critical path"});
    table.add("name", &ComparedLine::name, {"of the line"});
    table.add("unit", [](const ComparedLine& line) { return unit_name(line.unit); },
              {"s, B, share or number"});
    table.add("values",
              [](const ComparedLine& line) {
                std::vector<RawJson> values;
                for (const auto& value : line.values) values.push_back(value_of(value, line.unit));
                return values;
              },
              {"by run; null: it has no such line"});
    table.add("differences",
              [](const ComparedLine& line) {
                std::vector<RawJson> changes;
                for (std::size_t run = 1; run < line.values.size(); ++run) {
                  changes.push_back(value_of(change_of(line, run), line.unit));
                }
                return changes;
              },
              {"from the first run"});
    return table;
  }();
  return kTable;
}

const ResultTable<ExplainedDifference>& part_of_difference_results() {
  static const ResultTable<ExplainedDifference> kTable = [] {
    ResultTable<ExplainedDifference> table;
    table.add("part", &ExplainedDifference::part, {"of the breakdown"});
    table.add("difference_s",
              [](const ExplainedDifference& part) { return Duration(part.picoseconds); },
              {"from the first run", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<NamedCause>& cause_of_difference_results() {
  static const ResultTable<NamedCause> kTable = [] {
    ResultTable<NamedCause> table;
    table.add("text", &NamedCause::text, {"a sentence"});
    table.add("link", &NamedCause::link, {"that is waited for; empty: none"});
    table.add("ranks", &NamedCause::ranks, {"that it is about"});
    table.add("difference_s", [](const NamedCause& cause) { return Duration(cause.picoseconds); },
              {"of the traffic or the rank alone, a step; not a part of the sum", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<RunOfComparison>& explained_run_results() {
  static const ResultTable<RunOfComparison> kTable = [] {
    using Run = RunOfComparison;
    ResultTable<Run> table;
    table.add("run", [](const Run& one) { return one.run().name; }, {"its name"});
    table.add("step_difference_s",
              [](const Run& one) { return Duration(one.difference().step_ps); },
              {"from the first run", "s"});
    table.list("parts", part_of_difference_results(),
               [](const Run& one) { return one.difference().parts; },
               {"largest first; they add up to step_difference_s"});
    table.list("behind", cause_of_difference_results(),
               [](const Run& one) { return one.difference().causes; },
               {"links and ranks that the two runs don't share"});
    return table;
  }();
  return kTable;
}

const ResultTable<WholeComparison>& comparison_results() {
  static const ResultTable<WholeComparison> kTable = [] {
    using Whole = WholeComparison;
    ResultTable<Whole> table;
    table.list("runs", compared_run_results(),
               [](const Whole& whole) { return runs_from(whole, 0); },
               {"in the order of the command"});
    table.list("inputs", compared_input_results(),
               [](const Whole& whole) { return whole.comparison->inputs; },
               {"fields that are not the same in all"});
    table.list("lines", compared_line_results(),
               [](const Whole& whole) { return whole.comparison->lines; }, {"of the report"});
    table.list("explained", explained_run_results(),
               [](const Whole& whole) { return runs_from(whole, 1); },
               {"how each run differs from the first"});
    return table;
  }();
  return kTable;
}

}  // namespace

std::optional<double> change_of(const ComparedLine& line, std::size_t run) {
  if (!line.values[run] && !line.values[0]) return std::nullopt;
  return line.values[run].value_or(0) - line.values[0].value_or(0);
}

std::string_view unit_name(LineUnit unit) {
  switch (unit) {
    case LineUnit::kSeconds:
      return "s";
    case LineUnit::kBytes:
      return "B";
    case LineUnit::kShare:
      return "share";
    case LineUnit::kNumber:
      break;
  }
  return "number";
}

std::string comparison_json_of(const std::vector<ComparedRun>& runs,
                               const RunComparison& comparison) {
  return comparison_results().json({&runs, &comparison}) + '\n';
}

std::vector<CommandResult> compare_command_results() {
  return {{"", &comparison_results()}};
}

}  // namespace stepsim
