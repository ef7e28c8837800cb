// How trainers call policies of recomputation, modules and models that have names of their own here
// (catalog/trainers). Importers look names up:
//
//   const RematPolicy* const policy = find_remat_policy("save_qkv_proj");
//   if (policy != nullptr) keep(policy->keep);
//
// Each function returns nullptr for a name that the tables don't have, and throws ConfigError with
// every problem of the catalog's files.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// RematPolicy is a policy of JAX's trainers.
struct RematPolicy {
  std::string name;
  std::string keep;  // plan.recompute_keep; empty: whole blocks are made again
  bool offloads = false;
};
const RematPolicy* find_remat_policy(std::string_view name);

// RecomputedModule is a module of Megatron Core's recompute_modules.
struct RecomputedModule {
  std::string name;
  std::string module;  // of plan.recompute_modules
  std::string needs;   // field of the model that is above 0 if its blocks have the module
};
const RecomputedModule* find_recomputed_module(std::string_view name);
std::vector<std::string> recomputed_modules();  // their names

// TrainerModel is a model under a trainer's name.
struct TrainerModel {
  std::string trainer;  // "torchtitan"
  std::string name;     // "llama3 8B"
  std::string catalog;  // name in the catalog; empty: `fields` say all
  std::string fields;   // "layers=36,hidden=2560"
};
const TrainerModel* find_trainer_model(std::string_view trainer, std::string_view name);
std::vector<std::string> models_of_trainer(std::string_view trainer);  // their names

}  // namespace stepsim
