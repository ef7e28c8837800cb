#include "import/nemo/nemo_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "import/megatron/core_experiment.h"
#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"
#include "proto/catalog/catalog.h"
#include "proto/catalog/trainer_names.h"
#include "sim/base/field_text.h"
#include "sim/base/small_letters.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

// Groups whose keys have Megatron Core's names, the longest first.
constexpr auto kCoreGroups = std::to_array<std::string_view>(
    {"trainer.strategy.ddp.", "trainer.strategy.", "trainer.plugins.0.", "trainer.plugins.",
     "trainer.callbacks.0.", "trainer.callbacks.1.", "trainer.callbacks.2.", "trainer.callbacks.3.",
     "model.config.", "model.optim.", "model.data.", "model.tokenizer.", "model.", "train.", "ddp.",
     "comm_overlap.", "mixed_precision.", "optim.config."});

std::string core_name(const Setting& setting) {
  const std::string& key = setting.key;
  for (const TrainerKey& other : keys_of_trainer("nemo").keys) {
    if (other.name == key) return other.becomes;
  }
  for (const std::string_view group : kCoreGroups) {
    if (!key.starts_with(group)) continue;
    const std::string rest = key.substr(group.size());
    // Names of classes and what deeper groups hold keep their path.
    const bool is_deep = rest.find('.') != std::string::npos || rest.starts_with("_");
    return is_deep ? key : rest;
  }
  return key;
}

bool nemo_changes_no_time(const Setting& setting) {
  return changes_no_time(keys_of_trainer("nemo"), setting) || core_changes_no_time(setting);
}

class NemoKeys {
 public:
  explicit NemoKeys(Settings& settings) : s_(settings) {}

  // Gives keys of Megatron Core their values where NeMo says them in its own way.
  void complete() {
    recipe();
    optimizer();
    if (const Setting* const length = s_.find("data_seq_length"); length != nullptr) {
      const Setting* const own = s_.find("seq_length");
      // A model's sequence is the longest that it was made for.
      if (own != nullptr && own->name.starts_with("model.config.")) {
        copy("seq_length", "longest_sequence");
        copy("data_seq_length", "seq_length");
      } else if (own == nullptr) {
        copy("data_seq_length", "seq_length");
      } else if (s_.integer("data_seq_length") != s_.integer("seq_length")) {
        s_.fail("data_seq_length", fmt::format("must be that of the model, {}", own->shown()));
      }
      s_.use("data_seq_length");
    }
  }

 private:
  void copy(const char* from, const char* to) {
    Setting setting = *s_.find(from);
    setting.key = to;
    setting.is_used = false;
    s_.set(std::move(setting));
  }

  void give(const char* key, Json value, const Setting& because) {
    s_.set_if_absent(
        {.key = key, .name = because.name, .value = std::move(value), .place = because.place});
    if (s_.find(key) == nullptr) {
      s_.set({.key = key, .name = because.name, .value = std::move(value), .place = because.place});
    }
  }

  // "bf16_with_fp8_current_scaling_mixed".
  void recipe() {
    const Setting* const found = s_.find("mixed_precision");
    if (found == nullptr) return;
    const Setting because = *found;
    const std::string name =
        with_underscores(in_small_letters(s_.text("mixed_precision").value_or("")));
    const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
    const bool is_half = name.starts_with("fp16");
    give(is_half ? "fp16" : "bf16", true, because);
    give("grad_reduce_in_fp32", !is_half, because);
    if (has("nvfp4")) return give("fp4", "e2m1", because);
    if (!has("fp8")) return;
    const char* const kind = has("mxfp8")             ? "mxfp8"
                             : has("current_scaling") ? "tensorwise"
                             : has("subchannel")      ? "blockwise"
                                                      : "delayed";
    give("fp8", "hybrid", because);
    give("fp8_recipe", kind, because);
    if (has("current_scaling")) give("first_last_layers_bf16", name, because);
    if (!has("subchannel")) give("fp8_param_gather", true, because);
  }

  void optimizer() {
    const Setting* const found = s_.find("optim_name");
    if (found == nullptr) return;
    const Setting because = *found;
    const std::string name = in_small_letters(s_.text("optim_name").value_or(""));
    const bool divides = name.find("distributed") != std::string::npos;
    if (divides) give("use_distributed_optimizer", true, because);
    give("optimizer", name.find("adam") != std::string::npos || divides ? "adam" : name, because);
    const std::string sync = in_small_letters(s_.text("grad_sync_dtype").value_or(""));
    if (!sync.empty()) {
      give("grad_reduce_in_fp32", sync.find("32") != std::string::npos, because);
    }
  }

  Settings& s_;
};

// Bridge's recipes are functions, whose files are overrides of them; a class names the model.
std::string software_of_nemo(Settings& settings) {
  const bool is_first =
      settings.names("exp_manager.name") || settings.names("trainer.val_check_interval") ||
      settings.names("exp_manager.explicit_log_dir") || settings.names("optim_name");
  const bool uses_engine = settings.is_true("transformer_engine") || settings.is_true("mcore_gpt");
  return is_first && !uses_engine ? "nemo-megatron-2022" : "nemo";
}

// Files of NeMo 1 and 2 have a trainer; those of Bridge go over what a recipe says.
bool is_override_of_recipe(const Settings& settings) {
  const bool has_type = settings.has("precision") || settings.has("bf16") || settings.has("fp16");
  return !has_type && std::ranges::none_of(settings.all(), [](const Setting* setting) {
    return setting->name.starts_with("trainer.") || setting->name.starts_with("exp_manager.");
  });
}

}  // namespace

std::string nemo_model(std::string_view class_name) {
  std::string name(class_name.substr(class_name.rfind('.') + 1));
  for (const std::string_view word : {"Config", "ModelProvider", "Provider", "Model"}) {
    const std::size_t at = name.find(word);
    if (at != std::string::npos) name.erase(at, word.size());
  }
  std::string letters = in_small_letters(name);
  std::erase_if(letters, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  const TrainerModel* const other = find_trainer_model("nemo", letters);
  return other == nullptr ? catalog_model(name) : other->catalog;
}

Imported import_nemo(const ImportRequest& request) {
  std::vector<Problem> problems;
  Settings settings(problems);
  const TrainerFiles files = read_trainer_files(
      request,
      "nemo llm pretrain ... --to-yaml writes YAML, and Megatron Bridge writes it beside its "
      "checkpoints",
      problems, [&](const std::string& text, const std::string& name) {
        read_yaml_settings(text, name, settings, problems);
      });
  for (const std::string& word : files.overrides) apply_override(word, settings);
  resolve_references(settings);
  settings.rename(core_name);
  const bool is_some = settings.names("tensor_model_parallel_size") ||
                       settings.names("micro_batch_size") || settings.names("num_layers") ||
                       settings.names("global_batch_size");
  if (!is_some) {
    problems.push_back({files.paths[0],
                        "has no settings of NeMo or Megatron Bridge, as "
                        "model.tensor_model_parallel_size and train.global_batch_size"});
    throw_if_any(problems);
  }
  for (const Setting* const setting : settings.all()) {
    if (!setting->name.starts_with("model.teacher.")) continue;
    problems.push_back({setting->where(), "a step runs a teacher as well, which is not read"});
    throw_if_any(problems);
  }
  CoreOptions options = {.software = software_of_nemo(settings)};
  TrainerExperiment made("nemo", settings, request, problems);
  if (is_override_of_recipe(settings)) {
    made.assume(set_defaults(keys_of_trainer("megatron-bridge"), settings));
  }
  NemoKeys(settings).complete();
  if (!request.model.empty()) {
    options.model = request.model;
    options.model_from = "--model";
  }
  const bool has_shape = settings.has("num_layers") && settings.has("hidden_size") &&
                         settings.has("num_attention_heads");
  for (const char* const key : {"model_target", "provider_target"}) {
    if (has_shape || !options.model.empty()) break;  // sizes go over the class
    options.model = nemo_model(settings.text(key).value_or(""));
    options.model_from = key;
  }
  if (!has_shape && options.model.empty()) {
    problems.push_back({files.paths[0],
                        "names no model, neither by its sizes nor by a class that is "
                        "known here: --model M names one of the catalog"});
    throw_if_any(problems);
  }
  read_core_experiment(options, made);
  if (const auto rank = settings.integer("peft.dim")) made.set("plan.lora_rank", *rank, "peft.dim");
  return made.finish(nemo_changes_no_time);
}

}  // namespace stepsim
