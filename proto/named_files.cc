#include "proto/named_files.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "proto/messages/message_file.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

bool is_beside(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const fs::path home = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, error);
  const fs::path target =
      fs::weakly_canonical(folder.empty() ? "." / fs::path(name) : folder / name, error);
  if (error) return true;  // there is no such file, as who reads it will say
  const fs::path way = target.lexically_relative(home);
  return !way.empty() && *way.begin() != "..";
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Returns the file's name from here; nullopt, with a problem, if it leads out of the folder.
std::optional<std::string> placed(const fs::path& folder, const std::string& name,
                                  std::string_view field, std::string_view instead,
                                  ProblemList& problems) {
  if (is_beside(folder, name)) return (folder / name).string();
  problems.add(std::string(field),
               "must be a file in the folder of the file that names it, or below that, is \"" +
                   shortened(name) +
                   "\"; name others on the command line: " + std::string(instead));
  return std::nullopt;
}

// Only what is no schedule's name is a file.
std::optional<std::string> placed_schedule(const fs::path& folder, const std::string& name,
                                           std::string_view field, ProblemList& problems) {
  const bool is_text = name.find('\n') != std::string::npos;
  if (name.empty() || is_text || name == "optimal" || schedule_named(name)) return name;
  const bool may_be_name = name.find('/') == std::string::npos && !is_there(name);
  if (may_be_name && !is_there(folder / name)) return name;
  if (!is_beside(folder, name) || is_there(folder / name)) {
    return placed(folder, name, field, "--set plan.schedule=FILE", problems);
  }
  problems.add(std::string(field), "must be a schedule or a file, and there is no file \"" +
                                       (folder / name).string() + "\"");
  return std::nullopt;
}

// Places the files in a text such as "file:trace.csv,count=10" or
// "rate=4,input=empirical:trace.csv".
void place_requests(const fs::path& folder, std::string_view field, std::string& text,
                    ProblemList& problems) {
  std::string result;
  for (const std::string_view part : split_text(text, ',')) {
    result += (result.empty() ? "" : ",") + std::string(part);
    for (const std::string_view prefix : {"file:", "empirical:"}) {
      const std::size_t at = part.find(prefix);
      if (at == part.npos || (at > 0 && part[at - 1] != '=' && part[at - 1] != ':')) continue;
      const std::string name(part.substr(at + prefix.size()));
      const auto path = placed(folder, name, field, "--requests", problems);
      if (!path) return;
      result.replace(result.size() - name.size(), name.size(), *path);
      break;
    }
  }
  text = result;
}

// Places schedules in keys of a plan, such as "tp=8,schedule=order.txt", and in axes of a sweep.
void place_keys(const fs::path& folder, std::string_view field, std::string& text,
                ProblemList& problems) {
  std::string result;
  bool is_schedule = false;
  for (const std::string_view part : split_text(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::size_t value = equals == part.npos ? 0 : equals + 1;
    if (equals != part.npos) {
      const std::string_view key = part.substr(0, equals);
      is_schedule = key == "schedule" || key == "plan.schedule";
    }
    result += (result.empty() ? "" : ",") + std::string(part.substr(0, value));
    const std::string name(part.substr(value));
    if (!is_schedule && !looks_like_file(name)) {
      result += name;
      continue;
    }
    const auto path = is_schedule ? placed_schedule(folder, name, field, problems)
                                  : placed(folder, name, field, "--over", problems);
    if (!path) return;
    result += *path;
  }
  text = result;
}

}  // namespace

void place_files(const fs::path& folder, file::Cluster& cluster, ProblemList& problems) {
  const std::string chip = cluster.chip().catalog();
  if (looks_like_file(chip)) {
    if (const auto path = placed(folder, chip, "cluster.chip.catalog", "--chip FILE", problems)) {
      cluster.mutable_chip()->set_catalog(*path);
    }
  }
  const std::string library = cluster.library().catalog();
  if (looks_like_file(library)) {
    const auto path =
        placed(folder, library, "cluster.library.catalog", "--library FILE", problems);
    if (path) cluster.mutable_library()->set_catalog(*path);
  }
}

void place_files(const fs::path& folder, file::Plan& plan, ProblemList& problems) {
  if (!plan.has_schedule()) return;
  const auto path = placed_schedule(folder, plan.schedule(), "plan.schedule", problems);
  path ? plan.set_schedule(*path) : plan.clear_schedule();
}

void place_files(const fs::path& folder, file::Experiment& experiment, ProblemList& problems) {
  if (experiment.has_cluster()) place_files(folder, *experiment.mutable_cluster(), problems);
  if (experiment.has_plan()) place_files(folder, *experiment.mutable_plan(), problems);
  if (experiment.model().has_huggingface()) {
    // It is placed where it is read, as --model and --set name others.
    placed(folder, experiment.model().huggingface(), "model.huggingface", "--model FILE", problems);
  }
  for (int i = 0; i < experiment.over_size(); ++i) {
    place_keys(folder, "over", *experiment.mutable_over(i), problems);
  }
  if (!experiment.has_serve()) return;
  for (int i = 0; i < experiment.serve().requests_size(); ++i) {
    place_requests(folder, "serve.requests", *experiment.mutable_serve()->mutable_requests(i),
                   problems);
  }
  if (experiment.serve().has_decode_plan()) {
    place_keys(folder, "serve.decode_plan", *experiment.mutable_serve()->mutable_decode_plan(),
               problems);
  }
}

}  // namespace stepsim
