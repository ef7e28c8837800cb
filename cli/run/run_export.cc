#include "cli/run/run_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/outputs.h"
#include "cli/session/standard_output.h"
#include "import/chakra/chakra_export.h"
#include "import/goal/goal.h"
#include "import/goal/goal_export.h"
#include "sim/base/error.h"
#include "traces/files/output_file.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostExportedRanks = 4096;
constexpr std::size_t kFilesAtOnce = 64;

void make_folder(const std::string& path) {
  if (const std::string why = make_output_folder(path); !why.empty()) {
    throw ConfigError({Problem{"--export", why}});
  }
}

ExitStatus write_goal(const AskedExport& asked, const OpGraph& graph, const Cluster& cluster) {
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

RunExport take_run_export(std::vector<std::string>& arguments) {
  std::vector<std::string> kinds = {"chakra", "goal", "kineto"};
  for (std::string& kind : trainer_kinds()) kinds.push_back(std::move(kind));
  RunExport result{.asked = take_export(arguments, kinds)};
  if (!result.asked || result.asked->kind != "kineto") return result;
  const auto is_trace = [](const std::string& word) {
    return word == "--trace" || word.starts_with("--trace=") || word.starts_with("--trace-format");
  };
  if (std::ranges::any_of(arguments, is_trace)) {
    throw ConfigError({Problem{"--export", "kineto writes the trace, so --trace can't be given"}});
  }
  make_folder(result.asked->path);
  for (const std::string& word : {std::string("--trace"), result.asked->path + "/stepsim.json",
                                  std::string("--trace-format"), std::string("kineto")}) {
    arguments.push_back(word);
  }
  return {};
}

void prepare_export(const Experiment& experiment, const ExperimentRecord& record,
                    RunExport& result) {
  const AskedExport& asked = *result.asked;
  if (asked.kind != "chakra") require_writable(asked);
  if (find_trainer_exporter(asked.kind) != nullptr) {
    result.settings = settings_for(asked, experiment, record);
  }
  if (asked.kind != "chakra") return;
  if (experiment.plan.mesh.ranks() > kMostExportedRanks) {
    throw ConfigError(
        {Problem{"--export", fmt::format("writes a file a rank, at most {}; there are {}",
                                         kMostExportedRanks, experiment.plan.mesh.ranks())}});
  }
  make_folder(asked.path);
}

ExitStatus write_export(const RunExport& result, const OpGraph& graph, const Cluster& cluster) {
  const AskedExport& asked = *result.asked;
  if (asked.kind == "goal") return write_goal(asked, graph, cluster);
  Outputs outputs;
  if (result.settings) {
    write_settings(asked, *result.settings, outputs);
    return outputs.end(ExitStatus::kDone);
  }
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
