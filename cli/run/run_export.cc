#include "cli/run/run_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/outputs.h"
#include "cli/standard_output.h"
#include "import/chakra/chakra_export.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostExportedRanks = 4096;
constexpr std::size_t kFilesAtOnce = 64;

}  // namespace

std::optional<RunExport> take_export(std::vector<std::string>& arguments) {
  const auto is_export = [](const std::string& word) {
    return word == "--export" || word.starts_with("--export=");
  };
  const auto found = std::ranges::find_if(arguments, is_export);
  if (found == arguments.end()) return std::nullopt;
  if (*found != "--export" || arguments.end() - found < 3) {
    throw ConfigError({Problem{"--export", "must be: --export chakra FOLDER"}});
  }
  RunExport asked{.kind = *(found + 1), .path = *(found + 2)};
  arguments.erase(found, found + 3);
  if (std::ranges::any_of(arguments, is_export)) {
    throw ConfigError({Problem{"--export", "can be given once"}});
  }
  if (asked.kind != "chakra") {
    throw ConfigError({Problem{"--export", "must be chakra, is \"" + asked.kind + "\""}});
  }
  return asked;
}

ExitStatus write_export(const RunExport& asked, const OpGraph& graph, const ChipSpec& chip) {
  if (graph.ranks.size() > kMostExportedRanks) {
    throw ConfigError(
        {Problem{"--export", fmt::format("writes a file a rank, at most {}; there are {}",
                                         kMostExportedRanks, graph.ranks.size())}});
  }
  std::error_code error;
  std::filesystem::create_directories(asked.path, error);
  if (!std::filesystem::is_directory(asked.path)) {
    throw ConfigError({Problem{"--export", "can't make the folder " + asked.path}});
  }
  Outputs outputs;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    outputs.write(fmt::format("{}/stepsim.{}.et", asked.path, rank),
                  chakra_file(graph, chip, rank));
    if (rank % kFilesAtOnce == kFilesAtOnce - 1) outputs.commit();
  }
  outputs.commit();
  for (const std::string& loss : chakra_losses(graph)) {
    print_error("note: " + loss + "\n");
  }
  return outputs.end(ExitStatus::kDone);
}

}  // namespace stepsim
