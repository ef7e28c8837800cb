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
#include <utility>
#include <vector>

namespace stepsim {

// RematPolicy is a policy of JAX's trainers.
struct RematPolicy {
  std::string name;
  std::string keep;  // plan.recompute_keep; empty: whole blocks are made again
  bool offloads = false;
};
const RematPolicy* find_remat_policy(std::string_view name);
std::vector<std::string> remat_policies();  // their names

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

// TrainerKeys says what a trainer calls the keys that a reader takes (import/trainer/trainer_keys).
struct TrainerKey {
  std::string name;     // "parallelism.tp_mode"; "model.*": all that begin so
  std::string becomes;  // "sequence_parallel"
  std::vector<std::pair<std::string, std::string>> values;  // empty: any value, as it is
};
struct TrainerDefault {
  std::string key;
  std::string value;
  std::string why;
};
struct TrainerKeys {
  std::string name;  // of the trainer
  std::vector<TrainerKey> keys;
  std::vector<TrainerDefault> defaults;
  std::string no_effect;  // "lr* seed": keys that change no step's time
};
const TrainerKeys* find_trainer_keys(std::string_view trainer);

// TrainerChoice is a key that has these values and no others.
struct TrainerChoice {
  std::string reader;
  std::string key;
  std::vector<std::string> accepts;  // in small letters
  std::string why;
  bool notes = false;  // other values are notes, no problems
};
const std::vector<TrainerChoice>& trainer_choices();

// TrainerPreset is a file or a word that stands for settings in a trainer's own folder.
struct TrainerPreset {
  std::string trainer;
  std::string name;                   // "ds_z3_config.json"
  std::vector<std::string> settings;  // "zero_optimization.stage=3"
};
std::vector<TrainerPreset> presets_of_trainer(std::string_view trainer);

// TrainerField is a key that says a field of an experiment by itself
// (import/trainer/trainer_fields).
struct TrainerField {
  std::string key;
  std::string path;  // "model.latent.kv_rank"
  std::string kind;  // "truth", "number"; else a whole number, or one of `values`
  std::vector<std::pair<std::string, std::string>> values;  // of the key, and here
  std::string absent;  // what it is where no file has the key; "": not said
  std::string omit;    // what is not said
  std::string why;     // without a key: why the field may read back as another value
};
// Throws ConfigError if the tables have no such group.
const std::vector<TrainerField>& fields_of_trainer(std::string_view software,
                                                   std::string_view group);

}  // namespace stepsim
