// Gives the keys of one trainer the names that a reader takes, by the tables of catalog/trainers
// (proto/catalog/trainer_names.h): software that wraps Megatron Core, DeepSpeed or torchtitan
// needs no reader of its own.
//
//   const TrainerKeys& keys = *find_trainer_keys("nanotron");
//   rename_keys(keys, settings, problems);         // parallelism.tp: tensor_model_parallel_size
//   const auto assumed = set_defaults(keys, settings);
//   read_core_experiment(options, made);
//   return made.finish([&](const Setting& s) { return changes_no_time(keys, s) || ...; });
//
// Keys that the table doesn't have keep their names, so that finish() lists them as not known.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/settings/settings.h"
#include "proto/catalog/trainer_names.h"

namespace stepsim {

// Returns the trainer's keys. Throws ConfigError if the tables have none.
const TrainerKeys& keys_of_trainer(std::string_view trainer);

// A value that the table has no word for is a problem with those that it has. Of two keys with one
// new name the later counts.
void rename_keys(const TrainerKeys& keys, Settings& settings, std::vector<Problem>& problems);

// Sets what no file has; returns a line for each, to be told as assumed. Keys of experts ("moe_..",
// "expert_..") are left out for a model without them.
std::vector<std::string> set_defaults(const TrainerKeys& keys, Settings& settings,
                                      bool has_experts = true);

// Returns whether the table says so, by the key or by the name in the file.
bool changes_no_time(const TrainerKeys& keys, const Setting& setting);

// Checks the keys that `reader` has choices for. A value that is none of them is a problem with
// those there are and the nearest.
void check_choices(std::string_view reader, Settings& settings);

// Returns "must be uniform or block, is unifrom; did you mean uniform?", which is what a value that
// is none of `accepted` gets.
std::string not_accepted(std::string_view value, const std::vector<std::string>& accepted);

// Returns the catalog's name of a model as people and hubs write it, "Qwen/Qwen2.5-7B-Instruct";
// "" if there is none. Case, dashes and what marks a tuned version of the same sizes don't count.
std::string catalog_model(std::string_view name);

}  // namespace stepsim
