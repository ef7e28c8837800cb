#include "cli/run/export_option.h"

#include <algorithm>
#include <utility>

#include "cli/session/standard_output.h"
#include "sim/base/suggestion.h"
#include "traces/files/output_file.h"

namespace stepsim {
namespace {

bool is_export(const std::string& word) {
  return word == "--export" || word.starts_with("--export=");
}

[[noreturn]] void not_exported(std::string why) {
  throw ConfigError({Problem{"--export", std::move(why)}});
}

void put_under(const AskedExport& asked, std::vector<Problem>& problems) {
  for (Problem& problem : problems) {
    problem.field = "--export " + asked.kind + ": " + problem.field;
  }
}

}  // namespace

std::optional<AskedExport> take_export(std::vector<std::string>& arguments,
                                       const std::vector<std::string>& kinds) {
  const auto found = std::ranges::find_if(arguments, is_export);
  if (found == arguments.end()) return std::nullopt;
  if (*found != "--export" || arguments.end() - found < 3) {
    not_exported("must be a kind and a path, as in --export " + kinds.front() +
                 " PATH; kinds are " + comma_separated(kinds));
  }
  AskedExport asked{.kind = *(found + 1), .path = *(found + 2)};
  arguments.erase(found, found + 3);
  if (std::ranges::any_of(arguments, is_export)) not_exported("can be given once");
  if (std::ranges::find(kinds, asked.kind) == kinds.end()) {
    not_exported("must be one of " + comma_separated(kinds) + "; is \"" + asked.kind + "\"" +
                 did_you_mean(asked.kind, kinds));
  }
  return asked;
}

std::vector<std::string> trainer_kinds() {
  std::vector<std::string> kinds;
  for (const TrainerExporter& exporter : trainer_exporters()) kinds.emplace_back(exporter.kind);
  return kinds;
}

void require_writable(const AskedExport& asked) {
  std::vector<Problem> problems = check_writable(asked.path);
  put_under(asked, problems);
  throw_if_any(std::move(problems));
}

TrainerExport settings_for(const AskedExport& asked, const Experiment& experiment,
                           const ExperimentRecord& record) {
  try {
    return export_settings(*find_trainer_exporter(asked.kind), experiment, record);
  } catch (const ConfigError& error) {
    std::vector<Problem> problems = error.problems();
    put_under(asked, problems);
    throw ConfigError(std::move(problems));
  }
}

void say_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_error("note: " + note + "\n");
}

void write_settings(const AskedExport& asked, const TrainerExport& made, Outputs& outputs) {
  outputs.write(asked.path, made.text);
  outputs.commit();
  say_notes(made.notes);
}

}  // namespace stepsim
