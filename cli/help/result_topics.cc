#include "cli/help/result_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/subcommands.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

std::vector<const Subcommand*> subcommands_with_results() {
  std::vector<const Subcommand*> found;
  for (const Subcommand* subcommand : subcommands()) {
    if (subcommand->results != nullptr) found.push_back(subcommand);
  }
  return found;
}

// "[]": a list of objects; ".NAME": members that the run names; "{}": JSON that is described
// elsewhere.
std::string path_of(const ResultPath& path) {
  switch (path.field->shape) {
    case ResultShape::kList:
      return path.path + "[]";
    case ResultShape::kByName:
      return path.path + ".NAME";
    case ResultShape::kFree:
      return path.path + "{}";
    case ResultShape::kValue:
    case ResultShape::kObject:
      break;
  }
  return path.path;
}

std::string meaning_of(const ResultDoc& doc) {
  std::string text(doc.help);
  if (!doc.when.empty()) text += fmt::format("; {}", doc.when);
  return text;
}

std::string heading_of(const Subcommand& subcommand, const CommandResult& result) {
  return fmt::format("stepsim {} --json{}{}", subcommand.name, result.of.empty() ? "" : ": ",
                     result.of);
}

std::string text_of(const Subcommand& subcommand) {
  ReportText text(false);
  for (const CommandResult& result : subcommand.results()) {
    text.section(heading_of(subcommand, result));
    for (const ResultPath& path : result_paths(*result.table)) {
      const std::string unit(path.field->doc.unit);
      text.line("  {}{}", path_of(path), unit.empty() ? "" : "  [" + unit + "]");
      text.wrapped(6, meaning_of(path.field->doc));
    }
  }
  return text.text();
}

// A bar ends a cell of a table.
std::string cell(std::string text) {
  std::ranges::replace(text, '|', '/');
  return text;
}

std::string markdown() {
  std::string text;
  for (const Subcommand* subcommand : subcommands_with_results()) {
    for (const CommandResult& result : subcommand->results()) {
      text += fmt::format("\n## {}\n\n| member | unit | meaning |\n|---|---|---|\n",
                          heading_of(*subcommand, result));
      for (const ResultPath& path : result_paths(*result.table)) {
        text += fmt::format("| `{}` | {} | {} |\n", path_of(path), path.field->doc.unit,
                            cell(meaning_of(path.field->doc)));
      }
    }
  }
  return text;
}

}  // namespace

std::string results_help(std::span<const std::string> words) {
  std::vector<std::string> names;
  for (const Subcommand* subcommand : subcommands_with_results()) {
    names.emplace_back(subcommand->name);
  }
  if (words.empty()) {
    return "Subcommands that write JSON: " + comma_separated(names) +
           "\nstepsim help results run lists the members of one.\n";
  }
  if (words.size() > 1) throw ConfigError({{words[1], "there can be only one subcommand"}});
  if (words[0] == "--markdown") return markdown();
  for (const Subcommand* subcommand : subcommands_with_results()) {
    if (subcommand->name == words[0]) return text_of(*subcommand);
  }
  throw ConfigError({{words[0], "writes no JSON" + did_you_mean(words[0], names,
                                                                "These do: " +
                                                                    comma_separated(names))}});
}

}  // namespace stepsim
