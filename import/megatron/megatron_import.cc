#include "import/megatron/megatron_import.h"

#include <array>
#include <string>

#include "import/input_bytes.h"
#include "import/megatron/core_experiment.h"
#include "import/megatron/megatron_flags.h"
#include "import/ms_swift/ms_swift_import.h"
#include "import/trainer/trainer_experiment.h"
#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// Models that are no decoders have arguments of their own.
constexpr auto kOtherModels = std::to_array<std::string_view>(
    {"bert_binary_head", "encoder_num_layers", "mask_prob", "retro_add_retriever", "img_h"});

std::string software_of_arguments(Settings& settings) {
  if (settings.is_true("is_old_megatron")) return "megatron-lm-2023";
  const std::string dispatcher =
      in_small_letters(settings.text("moe_token_dispatcher_type").value_or(""));
  const bool deep = dispatcher == "flex" || settings.is_true("moe_enable_deepep");
  return deep ? "megatron-core-deepep" : "megatron-core";
}

}  // namespace

Imported import_megatron(const ImportRequest& request) {
  std::vector<Problem> problems;
  const TrainerFiles files = trainer_files(request, problems);
  throw_if_any(problems);
  Settings settings(problems);
  bool is_log = false;
  for (const std::string& path : files.paths) {
    const auto text = request.text.empty() ? read_bytes(path, problems, InputKind::kTable)
                                           : std::optional(request.text);
    throw_if_any(problems);
    const auto source = read_megatron_flags(*text, path, files.overrides, settings, problems);
    if (!source) throw_if_any(problems);
    is_log = source == MegatronSource::kLog;
  }
  if (settings.has("swift_program")) {
    return import_swift_settings("megatron", files.paths, settings, request, problems);
  }
  // Logs have the arguments of all models; flags of others are there only if they are meant.
  if (!is_log) {
    for (const std::string_view key : kOtherModels) {
      if (settings.has(key)) {
        settings.fail(key, "belongs to a model that is no decoder, which is not read");
      }
    }
    settings.set_if_absent({.key = "group_query_attention",
                            .name = "--group-query-attention",
                            .value = false,
                            .is_used = true});
  }
  TrainerExperiment made("megatron", settings, request, problems);
  CoreOptions options = {.software = software_of_arguments(settings), .prediction_by_flag = true};
  if (!request.model.empty()) {
    options.model = request.model;
    options.model_from = "--model";
  }
  read_core_experiment(options, made);
  return made.finish(core_changes_no_time);
}

}  // namespace stepsim
