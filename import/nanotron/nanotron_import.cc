#include "import/nanotron/nanotron_import.h"

#include <fmt/format.h>

#include "import/megatron/core_experiment.h"
#include "import/settings/settings_files.h"
#include "import/trainer/trainer_experiment.h"
#include "import/trainer/trainer_keys.h"

namespace stepsim {
namespace {

void copy_setting(const char* from, const char* to, Settings& settings) {
  settings.use(from);
  const Setting* const found = settings.find(from);
  if (found == nullptr) return;
  Setting setting = *found;
  setting.key = to;
  setting.is_used = false;
  settings.set(std::move(setting));
}

// Layers with experts by their numbers; -1 is all of them. A shared expert counts if it is switched
// on.
void nanotron_experts(Settings& settings) {
  if (settings.is_true("nanotron_shared")) {
    settings.set_if_absent({.key = "nanotron_shared_size",
                            .name = "shared_expert_intermediate_size",
                            .value = "5632",
                            .place = "default of nanotron"});
    copy_setting("nanotron_shared_size", "moe_shared_expert_intermediate_size", settings);
  }
  settings.use("nanotron_shared_size");
  const auto layers = settings.words("nanotron_moe_layers");
  if (!layers || layers->empty() || layers->front() == "-1") return;
  const std::int64_t all = settings.integer_or("num_layers", 0);
  constexpr std::int64_t kMostLayers = 10'000;
  Json list = Json::array();
  for (std::int64_t layer = 0; layer < std::min(all, kMostLayers); ++layer) {
    const bool has = std::ranges::find(*layers, std::to_string(layer)) != layers->end();
    list.push_back(has ? "1" : "0");
  }
  Setting pattern = *settings.find("nanotron_moe_layers");
  pattern.key = "moe_layer_freq";
  pattern.value = std::move(list);
  settings.set(std::move(pattern));
}

// So many tokens are seen, with the token itself: Megatron counts those before it.
void nanotron_window(Settings& settings) {
  const auto tokens = settings.integer("window_size");
  if (!tokens) return;
  Setting window = *settings.find("window_size");
  window.value = fmt::format("{},0", *tokens - 1);
  window.is_used = false;
  settings.set(std::move(window));
}

}  // namespace

Imported import_nanotron(const ImportRequest& request) {
  std::vector<Problem> problems;
  Settings settings(problems);
  const TrainerFiles files =
      read_trainer_files(request, "Nanotron writes YAML beside its checkpoints (config.yaml)",
                         problems, [&](const std::string& text, const std::string& name) {
                           read_yaml_settings(text, name, settings, problems);
                         });
  for (const std::string& word : files.overrides) apply_override(word, settings);
  if (!settings.names("parallelism.dp") && !settings.names("tokens.micro_batch_size")) {
    problems.push_back({files.paths[0],
                        "has no settings of Nanotron, as parallelism.dp and "
                        "tokens.micro_batch_size"});
    throw_if_any(problems);
  }
  const TrainerKeys& keys = keys_of_trainer("nanotron");
  rename_keys(keys, settings, problems);
  nanotron_experts(settings);
  nanotron_window(settings);
  TrainerExperiment made("nanotron", settings, request, problems);
  made.assume(set_defaults(keys, settings));
  made.assume("no software of the catalog: Nanotron has no entry there");
  CoreOptions options = {.software = "", .model = request.model, .model_from = "--model"};
  read_core_experiment(options, made);
  made.leave_if_true("parallelism.tp_linear_async_communication",
                     "software.overlap_tensor=true says it");
  made.leave("model.ddp_bucket_cap_mb", "software.gradient_bucket_parameters counts parameters");
  return made.finish([&](const Setting& setting) { return changes_no_time(keys, setting); });
}

}  // namespace stepsim
