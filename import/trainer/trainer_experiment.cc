#include "import/trainer/trainer_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "import/input_bytes.h"
#include "import/settings/settings_files.h"
#include "import/trainer/cluster_choice.h"
#include "proto/catalog/trainer_names.h"
#include "proto/load_experiment.h"
#include "proto/messages/message_file.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostRanksOfJob = 1 << 20;

std::string values_of(const std::vector<const Setting*>& settings) {
  std::string text;
  for (const Setting* const setting : settings) {
    text += (text.empty() ? "" : ", ") + setting->name + " " + setting->shown();
  }
  return text;
}

Json setting_json(const Setting& setting) {
  return {{"key", setting.name}, {"value", setting.value}, {"place", setting.place}};
}

// Fields of a path, in the order of the file: "plan.tp" and "cluster" for "cluster.catalog".
std::string comment(const std::string& text) {
  std::string lines;
  for (const std::string_view line : split_text(text, '\n')) {
    if (!line.empty()) lines += "# " + std::string(line) + "\n";
  }
  return lines;
}

// Reads [0]*3+[1]*58 and (..)*n.
class LayerListReader {
 public:
  explicit LayerListReader(std::string_view text) : text_(text) {}

  std::optional<std::vector<std::int64_t>> read() {
    auto list = sum(0);
    return list && at_ == text_.size() ? list : std::nullopt;
  }

 private:
  static constexpr std::size_t kMostElements = 10'000;
  static constexpr int kMostDepth = 20;
  using List = std::optional<std::vector<std::int64_t>>;

  char next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  List sum(int depth) {
    List list = product(depth);
    while (list && next() == '+') {
      ++at_;
      const List more = product(depth);
      if (!more || list->size() + more->size() > kMostElements) return std::nullopt;
      list->insert(list->end(), more->begin(), more->end());
    }
    next();
    return list;
  }

  List product(int depth) {
    List list = atom(depth);
    while (list && next() == '*') {
      ++at_;
      const std::optional<std::int64_t> times = number();
      if (!times || *times < 0 || *times > static_cast<std::int64_t>(kMostElements) ||
          list->size() * static_cast<std::size_t>(*times) > kMostElements) {
        return std::nullopt;
      }
      const std::vector<std::int64_t> once = *list;
      list->clear();
      for (std::int64_t i = 0; i < *times; ++i) list->insert(list->end(), once.begin(), once.end());
    }
    return list;
  }

  List atom(int depth) {
    if (depth > kMostDepth) return std::nullopt;
    const char open = next();
    if (open == '(') {
      ++at_;
      List list = sum(depth + 1);
      if (next() != ')') return std::nullopt;
      ++at_;
      return list;
    }
    if (open != '[') return std::nullopt;
    ++at_;
    std::vector<std::int64_t> list;
    while (next() != ']') {
      const std::optional<std::int64_t> element = number();
      if (!element || list.size() >= kMostElements) return std::nullopt;
      list.push_back(*element);
      if (next() == ',') ++at_;
    }
    ++at_;
    return list;
  }

  std::optional<std::int64_t> number() {
    next();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return number_in<std::int64_t>(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

TrainerExperiment::TrainerExperiment(std::string_view kind, Settings& settings,
                                     const ImportRequest& request, std::vector<Problem>& problems)
    : kind_(kind), settings_(&settings), request_(&request), problems_(&problems) {}

void TrainerExperiment::set(std::string_view path, std::string_view value, std::string_view from) {
  const std::optional<std::string> problem = draft_.set(path, value);
  const Setting* const setting = from.empty() ? nullptr : settings_->find(from);
  if (setting != nullptr) origins_[std::string(path)] = setting->where();
  if (problem) {
    problems_->push_back({setting == nullptr ? std::string(path) : setting->where(),
                          fmt::format("gives {}, which {}", path, *problem)});
  }
}

void TrainerExperiment::set(std::string_view path, std::int64_t value, std::string_view from) {
  set(path, std::string_view(std::to_string(value)), from);
}

void TrainerExperiment::set(std::string_view path, bool value, std::string_view from) {
  set(path, std::string_view(value ? "true" : "false"), from);
}

void TrainerExperiment::set_integer(std::string_view path, std::string_view key) {
  if (const auto value = settings_->integer(key)) set(path, *value, key);
}

void TrainerExperiment::start_from_model(const std::string& catalog_name, std::string_view from) {
  set("model.catalog", catalog_name, from);
}

void TrainerExperiment::set_model_file(const std::string& path) {
  for (Problem& problem : draft_.set_hugging_face(path)) problems_->push_back(std::move(problem));
}

ModelSpec TrainerExperiment::based_model(const std::string& name) {
  try {
    return load_model(name);
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) fail("--model", problem.message);
    return {};
  }
}

void TrainerExperiment::leave(std::string_view key, std::string_view why) {
  settings_->use(key);
  if (const Setting* const setting = settings_->find(key)) {
    left_.push_back({setting, std::string(why)});
  }
}

void TrainerExperiment::leave_unless(std::string_view key, std::string_view harmless_value,
                                     std::string_view why) {
  settings_->use(key);
  const Setting* const setting = settings_->find(key);
  if (setting == nullptr) return;
  const std::string value = in_small_letters(setting->shown());
  if (value == harmless_value || value == "false" || value == "0" || value == "[]") return;
  left_.push_back({setting, std::string(why)});
}

void TrainerExperiment::leave_if_true(std::string_view key, std::string_view why) {
  leave_unless(key, "false", why);
}

void TrainerExperiment::leave_listed(std::string_view reader) {
  for (const TrainerChoice& choice : trainer_choices()) {
    const bool is_listed = choice.reader == reader && choice.notes;
    if (is_listed) leave_unless(choice.key, choice.accepts.front(), choice.why);
  }
}

std::optional<std::int64_t> TrainerExperiment::chips_of_cluster() {
  if (request_->cluster.empty()) return std::nullopt;
  try {
    const ClusterSpec spec = load_cluster(request_->cluster);
    return static_cast<std::int64_t>(
        build_topology(spec.topology, spec.faults).places.chips.size());
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems_->push_back(problem);
    return std::nullopt;
  }
}

void TrainerExperiment::place(TrainerHardware hardware, std::int64_t ranks, const std::string& hint,
                              std::string_view why) {
  if (!request_->cluster_record.empty()) {
    for (Problem& problem : draft_.set_cluster_of_record(request_->cluster_record)) {
      problems_->push_back(std::move(problem));
    }
    return set("plan.allow_idle_chips", true);
  }
  std::string name = request_->cluster;
  if (name.empty() && !hint.empty()) {
    name = hint;
    if (!why.empty()) assume(fmt::format("cluster {}: {}; --cluster C gives another", hint, why));
  }
  if (name.empty()) {
    const auto chosen =
        hardware == TrainerHardware::kGpu ? gpu_cluster(ranks) : tpu_cluster("v5p", ranks);
    if (!chosen) {
      problems_->push_back(
          {"--cluster",
           fmt::format("must be given: no cluster of {} chips can be assumed", ranks)});
      return;
    }
    name = *chosen;
    assume(
        fmt::format("cluster {}: no file says on what it runs; --cluster C gives another", name));
  }
  if (looks_like_file(name)) {
    // The file is written into the experiment, which names no other file.
    for (Problem& problem : draft_.set_cluster_file(name)) {
      problems_->push_back(std::move(problem));
    }
  } else {
    set("cluster.catalog", name);
  }
  if (!request_->chip.empty()) set("cluster.chip.catalog", request_->chip);
  if (!request_->library.empty()) set("cluster.library.catalog", request_->library);
  if (has_problems()) return;
  std::int64_t chips = 0;
  try {
    const ClusterSpec spec = load_cluster(name);
    chips =
        static_cast<std::int64_t>(build_topology(spec.topology, spec.faults).places.chips.size());
  } catch (const ConfigError& error) {
    for (const Problem& problem : error.problems()) problems_->push_back(problem);
    return;
  }
  if (chips > ranks) {
    set("plan.allow_idle_chips", true);
    if (!request_->cluster.empty()) {
      assume(fmt::format("{} of the {} chips of {} idle: the job has {} ranks", chips - ranks,
                         chips, name, ranks));
    }
  }
}

void TrainerExperiment::apply_sets() {
  for (const std::string& change : request_->sets) {
    const std::size_t equals = change.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems_->push_back({"--set " + change, "must be path=value, as in plan.tp=8"});
      continue;
    }
    const std::string path = change.substr(0, equals);
    if (const auto problem = draft_.set(path, change.substr(equals + 1))) {
      problems_->push_back({"--set " + path, *problem});
    }
    origins_["" + path] = "--set " + path;
  }
}

// Loads the experiment, and puts its problems where they come from.
void TrainerExperiment::check(const std::string& text) {
  try {
    load_experiment({.experiment = kind_, .text = text});
  } catch (const ConfigError& error) {
    for (Problem problem : error.problems()) {
      const auto origin = origins_.find(problem.field);
      if (origin != origins_.end()) {
        problem.message = fmt::format("gives {}, which {}", problem.field, problem.message);
        problem.field = origin->second;
      }
      problems_->push_back(std::move(problem));
    }
  }
}

std::string TrainerExperiment::harmless_text() const {
  return fmt::format("{} keys that change no step's time{}", harmless_.size(),
                     request_->verbose ? ": " + values_of(harmless_) : "; --verbose lists them");
}

std::string TrainerExperiment::heading() const {
  std::string text = fmt::format("Read by stepsim import {}.\n", kind_);
  if (!assumed_.empty()) {
    text += "Not told by the files, and assumed:\n";
    for (const std::string& line : assumed_) text += "  " + line + "\n";
  }
  if (!left_.empty()) {
    text += "Without a counterpart here:\n";
    for (const Left& left : left_) {
      text += fmt::format("  {} {} ({}): {}\n", left.setting->name, left.setting->shown(),
                          left.setting->place, left.why);
    }
  }
  if (!unknown_.empty()) {
    text += fmt::format("Not known here, {} keys: {}\n", unknown_.size(), values_of(unknown_));
  }
  if (!harmless_.empty()) text += harmless_text() + "\n";
  return comment(text);
}

Imported TrainerExperiment::finish(const std::function<bool(const Setting&)>& changes_no_time) {
  for (const Setting* const setting : settings_->unused()) {
    if (changes_no_time(*setting)) {
      harmless_.push_back(setting);
    } else if (!is_blank_value(setting->value)) {
      unknown_.push_back(setting);
    }
  }
  apply_sets();
  const std::string text = draft_.text();
  if (!has_problems()) check(text);
  throw_if_any(*problems_);

  Imported imported;
  imported.text = heading() + text;
  for (const std::string& line : assumed_) imported.notes.push_back("assumed: " + line);
  Json left = Json::array();
  for (const Left& each : left_) {
    imported.notes.push_back(fmt::format("no counterpart: {} {} ({}): {}", each.setting->name,
                                         each.setting->shown(), each.setting->place, each.why));
    Json value = setting_json(*each.setting);
    value["why"] = each.why;
    left.push_back(std::move(value));
  }
  if (!unknown_.empty()) {
    imported.notes.push_back(
        fmt::format("not known here, {} keys: {}", unknown_.size(), values_of(unknown_)));
  }
  if (!harmless_.empty()) {
    imported.notes.push_back(harmless_text());
  }
  Json unknown = Json::array();
  for (const Setting* const setting : unknown_) unknown.push_back(setting_json(*setting));
  Json harmless = Json::array();
  for (const Setting* const setting : harmless_) harmless.push_back(setting->name);
  imported.facts["assumed"] = assumed_;
  imported.facts["no_counterpart"] = std::move(left);
  imported.facts["not_known"] = std::move(unknown);
  imported.facts["changes_no_time"] = std::move(harmless);
  imported.facts["experiment"] = text;
  return imported;
}

TrainerFiles trainer_files(const ImportRequest& request, std::vector<Problem>& problems) {
  TrainerFiles files;
  for (const std::string& word : request.files) {
    (is_override(word) ? files.overrides : files.paths).push_back(word);
  }
  if (files.paths.empty()) {
    problems.push_back({"FILE", "must be given beside KEY=VALUE"});
  }
  return files;
}

std::optional<std::string> settings_text(const ImportRequest& request, const std::string& path,
                                         std::vector<Problem>& problems) {
  return request.text.empty() ? read_settings_text(path, problems) : std::optional(request.text);
}

TrainerFiles read_trainer_files(
    const ImportRequest& request, std::string_view instead, std::vector<Problem>& problems,
    const std::function<void(const std::string& text, const std::string& name)>& read) {
  TrainerFiles files = trainer_files(request, problems);
  throw_if_any(problems);
  for (const std::string& path : files.paths) {
    const std::optional<std::string> text = settings_text(request, path, problems);
    if (!text) continue;
    if (path.ends_with(".py")) {
      problems.push_back({path, fmt::format("is Python, which is not read: {}", instead)});
    } else {
      read(*text, short_name(path));
    }
  }
  throw_if_any(problems);
  return files;
}

std::int64_t ranks_times(std::int64_t a, std::int64_t b) {
  if (a < 1 || b < 1 || a > kMostRanksOfJob / b) return 0;
  return a * b;
}

std::int64_t common_ranks(std::int64_t a, std::int64_t b) {
  if (a < 1 || b < 1) return 0;
  return ranks_times(a, b / std::gcd(a, b));
}

std::string layout_text(const std::vector<std::int64_t>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    if (!text.empty()) text += ",";
    const std::size_t times = end - i;
    text += times == 1 ? std::to_string(layers[i]) : fmt::format("{}*{}", layers[i], times);
    i = end;
  }
  return text;
}

std::optional<std::vector<std::int64_t>> layer_list(std::string_view text) {
  return LayerListReader(text).read();
}

}  // namespace stepsim
