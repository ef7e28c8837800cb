#include "import/trainer/trainer_fields.h"

#include <algorithm>
#include <optional>

#include "proto/catalog/trainer_names.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/base/small_letters.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

bool is_omitted(const TrainerField& field, std::string_view value) {
  if (field.omit.empty() || value == field.omit) return !field.omit.empty();
  const auto number = number_in<double>(value);
  const auto least = number_in<double>(field.omit);
  return number && least && *number <= *least;
}

// What the key says here; nullopt: nothing.
std::optional<std::string> said_by(const TrainerField& field, Settings& settings) {
  if (field.kind == "truth") {
    const auto truth = settings.truth(field.key);
    return truth ? std::optional(*truth ? "true" : "false") : std::nullopt;
  }
  if (field.kind == "number") {
    const auto number = settings.number(field.key);
    return number ? std::optional(write_double(*number)) : std::nullopt;
  }
  if (field.values.empty()) {
    const auto number = settings.integer(field.key);
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
  }
  // Of a list, as layers may have one each, the first counts.
  const Setting* const setting = settings.find(field.key);
  const bool is_list = setting != nullptr && setting->value.is_array() && !setting->value.empty();
  std::string word = is_list ? settings.words(field.key).value_or(std::vector<std::string>{""})[0]
                             : settings.text(field.key).value_or("");
  word = in_small_letters(word);
  for (const auto& [theirs, here] : field.values) {
    if (in_small_letters(theirs) == word) return here;
  }
  return std::nullopt;
}

// The value of the key; nullopt: the software has no word for it.
std::optional<Json> written(const TrainerField& field, const std::string& value) {
  std::string word = value;
  if (!field.values.empty()) {
    const auto known =
        std::ranges::find(field.values, value, &std::pair<std::string, std::string>::second);
    if (known == field.values.end()) return std::nullopt;
    word = known->first;
  }
  if (word == "true" || word == "false") return word == "true";
  if (!field.values.empty()) return word;
  if (field.kind == "number") return number_in<double>(word).value_or(0);
  return number_in<std::int64_t>(word).value_or(0);
}

}  // namespace

void read_fields(std::string_view software, std::string_view group, TrainerExperiment& made) {
  for (const TrainerField& field : fields_of_trainer(software, group)) {
    const bool is_there = made.settings().has(field.key);
    const auto value = said_by(field, made.settings());
    if (value && !is_omitted(field, *value)) made.set(field.path, *value, field.key);
    if (!is_there && !field.absent.empty()) made.set(field.path, field.absent, field.key);
  }
}

ExperimentValues values_of(const Experiment& experiment) {
  ExperimentValues values;
  for (const FieldValue& value : model_fields().in_force(experiment.model)) {
    values["model." + value.path] = value.text;
  }
  for (const FieldValue& value : keys_in_force(experiment.plan)) {
    values[path_of_key(value.path)] = value.text;
  }
  return values;
}

void write_fields(std::string_view software, std::string_view group, const ExperimentValues& values,
                  ExportedSettings& made) {
  for (const TrainerField& field : fields_of_trainer(software, group)) {
    if (field.key.empty()) made.explain(field.path, field.why);
    const auto value = values.find(field.path);
    if (field.key.empty() || value == values.end() || is_omitted(field, value->second)) continue;
    if (std::optional<Json> word = written(field, value->second)) made.set(field.key, *word);
  }
}

}  // namespace stepsim
