#include "import/transformers/trainer_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "import/deepspeed/deepspeed_import.h"
#include "import/input_bytes.h"
#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

// What the settings call the file of DeepSpeed: one of the request with its name, or one that lies
// in the project's own folder.
class DeepspeedFile {
 public:
  DeepspeedFile(const TrainerArguments& arguments, Settings& settings,
                std::vector<Problem>& problems)
      : arguments_(arguments), s_(settings), problems_(problems) {}

  // Returns lines of what was assumed.
  std::vector<std::string> add(const std::vector<std::string>& paths) {
    const std::string name = short_name(s_.text("deepspeed").value_or(""));
    for (const std::string& path : paths) {
      if (short_name(path) == name || (!name.empty() && path.ends_with(".json"))) return read(path);
    }
    return preset(name);
  }

 private:
  std::vector<std::string> read(const std::string& path) {
    if (const auto text = read_settings_text(path, problems_)) {
      Settings own(problems_);
      read_json_settings(*text, short_name(path), own, problems_);
      for (const Setting* const setting : own.all()) s_.set_if_absent(*setting);
    }
    return {};
  }

  std::vector<std::string> preset(const std::string& name) {
    if (name.empty()) return {};
    const std::vector<TrainerPreset> known = presets_of_trainer(arguments_.kind);
    const auto found = std::ranges::find(known, name, &TrainerPreset::name);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const TrainerPreset& each : known) names.push_back(each.name);
      s_.fail("deepspeed", fmt::format("is {}: give that file as well{}", shortened(name),
                                       did_you_mean(name, names, comma_separated(names))));
      return {};
    }
    for (const std::string& word : found->settings) {
      const std::size_t equals = word.find('=');
      const std::string key = word.substr(0, equals);
      s_.set_if_absent(
          {.key = key, .name = key, .value = word.substr(equals + 1), .place = found->name});
    }
    return {fmt::format("what {} says in the folder of {}: the file isn't given", name,
                        arguments_.kind)};
  }

  const TrainerArguments& arguments_;
  Settings& s_;
  std::vector<Problem>& problems_;
};

// FSDP by Accelerate's file, or by a word of the settings.
std::vector<std::string> add_fsdp(Settings& settings) {
  const std::string how = in_small_letters(settings.text("distributed_type").value_or(""));
  if (how != "fsdp" || settings.has("zero_optimization.stage")) return {};
  const std::string strategy =
      in_small_letters(settings.text("fsdp_config.fsdp_sharding_strategy").value_or(""));
  const bool frees = settings.truth("fsdp_config.fsdp_reshard_after_forward").value_or(true);
  const bool divides_weights =
      strategy.empty() ? frees : strategy == "full_shard" || strategy == "1";
  const bool divides_none = strategy == "no_shard" || strategy == "3";
  settings.set({.key = "zero_optimization.stage",
                .name = "distributed_type",
                .value = divides_none      ? 0
                         : divides_weights ? 3
                                           : 2,
                .place = "FSDP"});
  return {};
}

}  // namespace

Imported import_trainer_arguments(const TrainerArguments& arguments,
                                  const std::vector<std::string>& paths, Settings& settings,
                                  const ImportRequest& request, std::vector<Problem>& problems) {
  const TrainerKeys& keys = keys_of_trainer("transformers");
  rename_keys(keys, settings, problems);
  TrainerExperiment made(arguments.kind, settings, request, problems);
  made.assume(DeepspeedFile(arguments, settings, problems).add(paths));
  drop_automatic(settings);
  made.assume(add_fsdp(settings));
  made.assume(set_defaults(keys, settings));
  if (!settings.has("gradient_checkpointing")) {
    const bool is_off = settings.is_true("disable_gradient_checkpointing");
    settings.set({.key = "gradient_checkpointing",
                  .name = "disable_gradient_checkpointing",
                  .value = !is_off,
                  .place = is_off ? "its files" : "default"});
    if (!is_off) made.assume("blocks are made again: the default of " + arguments.kind);
  }
  settings.use("disable_gradient_checkpointing");
  const bool is_deepspeed = settings.has("deepspeed");
  const std::string software = is_deepspeed ? arguments.deepspeed_software : "transformers";
  made.assume(fmt::format("software {}: what {} runs on", software, arguments.kind));
  read_deepspeed_experiment({.software = software}, made);
  return made.finish([&](const Setting& setting) {
    return changes_no_time(keys, setting) || deepspeed_changes_no_time(setting);
  });
}

}  // namespace stepsim
