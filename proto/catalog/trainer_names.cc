#include "proto/catalog/trainer_names.h"

#include <algorithm>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/trainer_names.pb.h"

namespace stepsim {
namespace {

struct TrainerTables {
  std::vector<RematPolicy> policies;
  std::vector<RecomputedModule> modules;
  std::vector<TrainerModel> models;
};

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

}  // namespace

const RematPolicy* find_remat_policy(std::string_view name) {
  return entry_named(trainer_tables().policies, name);
}

const RecomputedModule* find_recomputed_module(std::string_view name) {
  return entry_named(trainer_tables().modules, name);
}

std::vector<std::string> recomputed_modules() {
  std::vector<std::string> names;
  for (const RecomputedModule& module : trainer_tables().modules) names.push_back(module.name);
  return names;
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

}  // namespace stepsim
