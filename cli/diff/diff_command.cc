#include "cli/diff/diff_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/command_line.h"
#include "cli/html_option.h"
#include "cli/outputs.h"
#include "import/trace/diff_trace.h"
#include "import/trace/read_trace.h"
#include "import/trace/step_diff.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description diff_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("simulated-step", text("N"),
      "step of SIMULATED, counted from 0 (default: the median inner one)");
  add("real-step", text("N"), "the same of REAL");
  add("trace", text("FILE"),
      "write both steps as one Chrome trace: each rank's simulated timeline above its real one");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

std::vector<std::string> paths_in(const std::string& word) {
  std::vector<std::string> paths;
  for (const std::string_view path : split_text(word, ',')) paths.emplace_back(path);
  return paths;
}

Duration time_of(std::int64_t nanoseconds) {
  return Duration(1000) * nanoseconds;
}

// Of the simulated and of the recorded side.
template <class T>
auto both(T value) {
  return [value](const auto& one) {
    return std::vector{value(one, std::size_t{0}), value(one, std::size_t{1})};
  };
}

const ResultTable<OpDifference>& op_results() {
  static const ResultTable<OpDifference> kTable = [] {
    ResultTable<OpDifference> table;
    table.add("rank", &OpDifference::rank, {"that ran it"});
    table.add("kind", [](const OpDifference& op) { return name_of(op.kind); }, {"of the op"});
    table.add("layer",
              [](const OpDifference& op) {
                return OrNull{op.layer < 0 ? std::nullopt : std::optional(op.layer)};
              },
              {"null where the trace doesn't tell"});
    table.add("direction",
              [](const OpDifference& op) {
                return OrNull{op.direction == SliceDirection::kUnknown
                                  ? std::nullopt
                                  : std::optional(std::string_view(name_of(op.direction)))};
              },
              {"forward or backward; null where the trace doesn't tell"});
    table.add("name", both([](const OpDifference& op, std::size_t side) {
                return OrNull{op.name[side].empty() ? std::nullopt : std::optional(op.name[side])};
              }),
              {"[simulated, recorded]; null on the side that lacks it"});
    table.add("time_s", both([](const OpDifference& op, std::size_t side) {
                return time_of(op.nanoseconds[side]);
              }),
              {"[simulated, recorded]", "s"});
    table.add("difference_s", [](const OpDifference& op) { return time_of(op.difference()); },
              {"simulated less recorded", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<KindDifference>& kind_results() {
  static const ResultTable<KindDifference> kTable = [] {
    ResultTable<KindDifference> table;
    table.add("kind", &KindDifference::kind, {"of ops; idle and waiting are kinds"});
    table.add("count",
              both([](const KindDifference& kind, std::size_t side) { return kind.count[side]; }),
              {"ops, [simulated, recorded]"});
    table.add("time_s",
              both([](const KindDifference& kind, std::size_t side) { return kind.time[side]; }),
              {"[simulated, recorded]", "s"});
    table.add("difference_s", &KindDifference::difference,
              {"they add up to the difference of the steps", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<StepDiff>& unmatched_results() {
  static const ResultTable<StepDiff> kTable = [] {
    ResultTable<StepDiff> table;
    table.add("count", both([](const StepDiff& diff, std::size_t side) {
                return diff.unmatched_count[side];
              }),
              {"ops, [simulated, recorded]"});
    table.add("time_s", both([](const StepDiff& diff, std::size_t side) {
                return time_of(diff.unmatched_nanoseconds[side]);
              }),
              {"their time", "s"});
    table.list("ops", op_results(), &StepDiff::unmatched, {"the longest"});
    return table;
  }();
  return kTable;
}

const ResultTable<StepDiff>& diff_results() {
  static const ResultTable<StepDiff> kTable = [] {
    ResultTable<StepDiff> table;
    table.add("step_s",
              both([](const StepDiff& diff, std::size_t side) { return diff.step[side]; }),
              {"[simulated, recorded]", "s"});
    table.add("step",
              both([](const StepDiff& diff, std::size_t side) { return diff.step_name[side]; }),
              {"which step of each trace"});
    table.add("ranks", &StepDiff::ranks, {"that both have"});
    table.add("tells_waiting", &StepDiff::tells_waits,
              {"whether both traces tell waiting from moving"});
    table.list("by_kind", kind_results(), &StepDiff::by_kind, {"partitions the step"});
    table.add("matched", &StepDiff::matched, {"ops that have a partner"});
    table.add("matched_by", [](const StepDiff& diff) { return diff.by_name ? "name" : "kind"; },
              {"name or kind"});
    table.add("matched_by_layer", &StepDiff::by_layer, {"whether layers helped"});
    table.add("layers_told",
              both([](const StepDiff& diff, std::size_t side) { return diff.with_layer[side]; }),
              {"share of ops whose layer is known", "0 to 1"});
    table.add("score", &StepDiff::score, {"how alike the traces are", "0 to 1"});
    table.list("ops", op_results(), &StepDiff::ops, {"largest differences first"});
    table.object("unmatched", unmatched_results(), std::identity{}, {"ops without a partner"});
    table.add("notes", &StepDiff::notes, {"what could not be said"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> diff_command_results() {
  return {{"", &diff_results()}};
}

// "+1.23 ms": to_text() of a difference.
std::string signed_text(Duration difference) {
  return difference < Duration() ? "-" + to_text(Duration() - difference)
                                 : "+" + to_text(difference);
}

std::string share_of(Duration part, Duration whole) {
  if (whole == Duration()) return "";
  return fmt::format("{:.1f} %",
                     100 * static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}

std::string ops_table(const std::vector<OpDifference>& ops, std::string_view title) {
  if (ops.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (const OpDifference& op : ops) {
    const std::string& name = op.name[0].empty() ? op.name[1] : op.name[0];
    const std::string layer = op.layer < 0 ? "" : fmt::format("layer {}", op.layer);
    text += fmt::format("  {:>12}  rank {:<5} {:<10} {:<9} {:<15} {}\n",
                        signed_text(Duration(1000) * op.difference()), op.rank, layer,
                        name_of(op.direction), name_of(op.kind), shortened(name, 60));
  }
  return text;
}

std::string diff_table(const StepDiff& diff) {
  const Duration whole = diff.step[0] - diff.step[1];
  std::string text = fmt::format(
      "step: {} ({}) and {} ({}): {}\n{} ranks; {} ops match by {}{}, {:.1f} % of both; {} and {} "
      "don't\n\n  {:<32} {:>13} {:>13} {:>13} {:>13} {:>10}\n",
      to_text(diff.step[0]), diff.step_name[0], to_text(diff.step[1]), diff.step_name[1],
      signed_text(whole), diff.ranks.size(), diff.matched, diff.by_name ? "name" : "kind",
      diff.by_layer ? " and layer" : "", 100 * diff.score, diff.unmatched_count[0],
      diff.unmatched_count[1], "kind", "count", "simulated", "real", "difference", "share");
  for (const KindDifference& kind : diff.by_kind) {
    text += fmt::format("  {:<32} {:>13} {:>13} {:>13} {:>13} {:>10}\n", kind.kind,
                        fmt::format("{} / {}", kind.count[0], kind.count[1]), to_text(kind.time[0]),
                        to_text(kind.time[1]), signed_text(kind.difference()),
                        share_of(kind.difference(), whole));
  }
  text += ops_table(diff.ops, "matched ops that differ most");
  text += ops_table(diff.unmatched, "longest ops without a match");
  for (const std::string& note : diff.notes) text += "note: " + note + "\n";
  return text;
}

std::optional<std::uint32_t> step_option(const CommandLine& line, const std::string& option,
                                         std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const auto number = read_whole_number(line, option, 0, 1 << 20, problems);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

ExitStatus run_diff_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, diff_option_list(), problems);
  StepDiffOptions options;
  options.steps = {step_option(line, "simulated-step", problems),
                   step_option(line, "real-step", problems)};
  const std::string json = read_output_path(line, "json", OutputFormat::kJson, problems);
  const std::string trace = read_output_path(line, "trace", OutputFormat::kChromeTrace, problems);
  refuse_same_output(line, "trace", "json", problems);
  const std::string html = read_html_path(line, {"json", "trace"}, problems);
  if (line.words.size() != 2) {
    problems.push_back({"SIMULATED REAL",
                        "must be two traces, each a file, files with commas between "
                        "them, or a folder"});
  }
  throw_if_any(problems);
  const DeviceTrace simulated = read_device_trace(paths_in(line.words[0]), problems);
  const DeviceTrace real = read_device_trace(paths_in(line.words[1]), problems);
  throw_if_any(problems);
  const StepDiff diff = diff_steps(simulated, real, options, problems);
  throw_if_any(std::move(problems));
  Outputs outputs;
  const std::string text = json.empty() && html.empty() ? "" : diff_results().json(diff) + '\n';
  outputs.write(json, text);
  if (!html.empty()) outputs.write(html, html_of_result(text));
  outputs.write(trace, [&](OutputFile& file) {
    write_diff_trace(simulated, real, diff, [&](std::string_view part) { file.write(part); });
  });
  outputs.commit();
  outputs.print(json == "-" ? text : diff_table(diff));
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kDiffSubcommand = {
    .name = "diff",
    .arguments = "SIMULATED REAL",
    .summary = "lay a simulated step beside a real one, op by op",
    .description =
        R"(stepsim diff lays a step of one trace beside a step of another: by kind of work, and op by op.

Usage:
  stepsim diff SIMULATED REAL [--trace BOTH.json.gz] [--json F]

Each is a trace of PyTorch's profiler (Kineto) or of stepsim run --trace, also compressed: a file a
rank, files with commas between them, or a folder. The times by kind, idle and waiting among them,
add up to the step. docs/import.md says how ops match.
)",
    .options = diff_option_list,
    .run = run_diff_command,
    .results = diff_command_results,
};

}  // namespace stepsim
