#include "cli/run/run_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/outputs.h"
#include "cli/standard_output.h"
#include "import/chakra/chakra_export.h"
#include "import/goal/goal.h"
#include "import/goal/goal_export.h"
#include "sim/base/error.h"
#include "traces/output_file.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostExportedRanks = 4096;
constexpr std::size_t kFilesAtOnce = 64;

void make_folder(const std::string& path) {
  if (const std::string why = make_output_folder(path); !why.empty()) {
    throw ConfigError({Problem{"--export", why}});
  }
}

ExitStatus write_goal(const RunExport& asked, const OpGraph& graph, const Cluster& cluster) {
  const GoalExport made = export_goal(graph, cluster);
  std::vector<Problem> problems;
  const std::string text = goal_text(made.job, problems);
  throw_if_any(std::move(problems));
  Outputs outputs;
  outputs.write(asked.path, text);
  outputs.commit();
  for (const std::string& loss : made.losses) print_error("note: " + loss + "\n");
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

std::optional<RunExport> take_export(std::vector<std::string>& arguments) {
  const auto is_export = [](const std::string& word) {
    return word == "--export" || word.starts_with("--export=");
  };
  const auto found = std::ranges::find_if(arguments, is_export);
  if (found == arguments.end()) return std::nullopt;
  if (*found != "--export" || arguments.end() - found < 3) {
    throw ConfigError({Problem{
        "--export",
        "must be: --export chakra FOLDER, --export kineto FOLDER, or --export goal FILE"}});
  }
  RunExport asked{.kind = *(found + 1), .path = *(found + 2)};
  arguments.erase(found, found + 3);
  if (std::ranges::any_of(arguments, is_export)) {
    throw ConfigError({Problem{"--export", "can be given once"}});
  }
  if (asked.kind == "kineto") {
    const auto is_trace = [](const std::string& word) {
      return word == "--trace" || word.starts_with("--trace=") ||
             word.starts_with("--trace-format");
    };
    if (std::ranges::any_of(arguments, is_trace)) {
      throw ConfigError(
          {Problem{"--export", "kineto writes the trace, so --trace can't be given"}});
    }
    make_folder(asked.path);
    for (const std::string& word : {std::string("--trace"), asked.path + "/stepsim.json",
                                    std::string("--trace-format"), std::string("kineto")}) {
      arguments.push_back(word);
    }
    return std::nullopt;
  }
  if (asked.kind != "chakra" && asked.kind != "goal") {
    throw ConfigError(
        {Problem{"--export", "must be chakra, goal or kineto, is \"" + asked.kind + "\""}});
  }
  return asked;
}

void prepare_export(const RunExport& asked, std::int64_t ranks) {
  if (asked.kind == "goal") {
    std::vector<Problem> problems = check_writable(asked.path);
    for (Problem& problem : problems) problem.field = "--export goal " + problem.field;
    return throw_if_any(std::move(problems));
  }
  if (ranks > kMostExportedRanks) {
    throw ConfigError(
        {Problem{"--export", fmt::format("writes a file a rank, at most {}; there are {}",
                                         kMostExportedRanks, ranks)}});
  }
  make_folder(asked.path);
}

ExitStatus write_export(const RunExport& asked, const OpGraph& graph, const Cluster& cluster) {
  if (asked.kind == "goal") return write_goal(asked, graph, cluster);
  Outputs outputs;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    outputs.write(fmt::format("{}/stepsim.{}.et", asked.path, rank),
                  chakra_file(graph, cluster.chip, rank));
    if (rank % kFilesAtOnce == kFilesAtOnce - 1) outputs.commit();
  }
  outputs.commit();
  for (const std::string& loss : chakra_losses(graph)) {
    print_error("note: " + loss + "\n");
  }
  return outputs.end(ExitStatus::kDone);
}

}  // namespace stepsim
