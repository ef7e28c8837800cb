#include "proto/catalog/trainer_names.h"

#include <algorithm>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/trainer_names.pb.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

struct TrainerFields {
  std::string software;
  std::string group;
  std::vector<TrainerField> fields;
};

struct TrainerTables {
  std::vector<RematPolicy> policies;
  std::vector<RecomputedModule> modules;
  std::vector<TrainerModel> models;
  std::vector<TrainerKeys> keys;
  std::vector<TrainerChoice> choices;
  std::vector<TrainerPreset> presets;
  std::vector<TrainerFields> fields;
};

std::vector<std::pair<std::string, std::string>> pairs_in(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view pair : split_text(text, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    pairs.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return pairs;
}

TrainerKeys trainer_keys(const file::TrainerKeys& of_file) {
  TrainerKeys keys{.name = of_file.trainer(), .keys = {}, .defaults = {}, .no_effect = {}};
  for (const file::TrainerKey& key : of_file.key()) {
    keys.keys.push_back({key.name(), key.becomes(), pairs_in(key.values())});
  }
  for (const file::TrainerDefault& each : of_file.default_()) {
    keys.defaults.push_back({each.key(), each.value(), each.why()});
  }
  for (const std::string& words : of_file.no_effect()) keys.no_effect += words + " ";
  return keys;
}

TrainerChoice trainer_choice(const file::TrainerChoice& choice) {
  const std::vector<std::string_view> words = words_of(choice.accepts());
  return {
      choice.reader(), choice.key(), {words.begin(), words.end()}, choice.why(), choice.notes()};
}

TrainerTables load_trainer_names() {
  ProblemList problems;
  TrainerTables tables;
  const auto message = catalog_table<file::TrainerNames>("trainers", problems);
  for (const file::RematPolicy& policy : message.remat_policy()) {
    tables.policies.push_back({policy.name(), policy.keep(), policy.offload()});
  }
  for (const file::RecomputedModule& module : message.recomputed_module()) {
    tables.modules.push_back({module.name(), module.module(), module.needs()});
  }
  for (const file::TrainerModel& model : message.model()) {
    tables.models.push_back({model.trainer(), model.name(), model.catalog(), model.fields()});
  }
  for (const file::TrainerKeys& keys : message.keys()) {
    tables.keys.push_back(trainer_keys(keys));
  }
  for (const file::TrainerChoice& choice : message.choice()) {
    tables.choices.push_back(trainer_choice(choice));
  }
  for (const file::TrainerPreset& preset : message.preset()) {
    const std::vector<std::string_view> settings = words_of(preset.settings());
    tables.presets.push_back({preset.trainer(), preset.name(), {settings.begin(), settings.end()}});
  }
  for (const file::TrainerFields& group : message.fields()) {
    TrainerFields& made = tables.fields.emplace_back();
    made = {group.software(), group.group(), {}};
    for (const file::TrainerField& field : group.field()) {
      made.fields.push_back({field.key(), field.path(), field.kind(), pairs_in(field.values()),
                             field.absent(), field.omit(), field.why()});
    }
  }
  throw_if_any(problems.all());
  return tables;
}

const TrainerTables& trainer_tables() {
  static const TrainerTables kTables = load_trainer_names();
  return kTables;
}

template <class Entry>
const Entry* entry_named(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace

const RematPolicy* find_remat_policy(std::string_view name) {
  return entry_named(trainer_tables().policies, name);
}

std::vector<std::string> remat_policies() {
  return names_of(trainer_tables().policies);
}

const RecomputedModule* find_recomputed_module(std::string_view name) {
  return entry_named(trainer_tables().modules, name);
}

std::vector<std::string> recomputed_modules() {
  return names_of(trainer_tables().modules);
}

const TrainerModel* find_trainer_model(std::string_view trainer, std::string_view name) {
  const std::vector<TrainerModel>& models = trainer_tables().models;
  const auto found = std::ranges::find_if(models, [&](const TrainerModel& model) {
    return model.trainer == trainer && model.name == name;
  });
  return found == models.end() ? nullptr : &*found;
}

std::vector<std::string> models_of_trainer(std::string_view trainer) {
  std::vector<std::string> names;
  for (const TrainerModel& model : trainer_tables().models) {
    if (model.trainer == trainer) names.push_back(model.name);
  }
  return names;
}

const TrainerKeys* find_trainer_keys(std::string_view trainer) {
  return entry_named(trainer_tables().keys, trainer);
}

std::vector<TrainerPreset> presets_of_trainer(std::string_view trainer) {
  std::vector<TrainerPreset> presets = trainer_tables().presets;
  std::erase_if(presets, [&](const TrainerPreset& preset) { return preset.trainer != trainer; });
  return presets;
}

const std::vector<TrainerField>& fields_of_trainer(std::string_view software,
                                                   std::string_view group) {
  for (const TrainerFields& each : trainer_tables().fields) {
    if (each.software == software && each.group == group) return each.fields;
  }
  throw ConfigError({{std::string(software), "has no fields " + std::string(group)}});
}

const std::vector<TrainerChoice>& trainer_choices() {
  return trainer_tables().choices;
}

}  // namespace stepsim
