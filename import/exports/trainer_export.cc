#include "import/exports/trainer_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/exports/same_plan.h"
#include "import/importer.h"
#include "import/megatron/megatron_flags.h"

namespace stepsim {
namespace {

bool is_of_launcher(std::string_view key) {
  return key == "nnodes" || key == "nproc_per_node";
}

std::string megatron_text(const ExportedSettings& made) {
  const std::string launcher = flags_of(made, [](std::string_view key, bool is_off) {
    return is_of_launcher(key) ? megatron_flag(key, is_off) : "";
  });
  const std::string own = flags_of(made, [](std::string_view key, bool is_off) {
    return is_of_launcher(key) ? "" : megatron_flag(key, is_off);
  });
  return "torchrun" + launcher + " \\\n  pretrain_gpt.py" + own +
         " \\\n  --mock-data \\\n  --train-iters 100 \\\n  --lr 1e-4\n";
}
constexpr std::array kExporters = {
    TrainerExporter{"megatron", "Megatron-LM", set_core_settings, megatron_text},
    TrainerExporter{"torchtitan", "torchtitan", set_torchtitan_settings, toml_of},
    TrainerExporter{"maxtext", "MaxText", set_maxtext_settings, yaml_of},
    TrainerExporter{"nemo", "Megatron Bridge", set_nemo_settings, yaml_of}};

// Keys of the plan that may differ with no more than a note: they change neither what is computed
// nor where it lies, but what travels beside it.
constexpr auto kOnlyNoted = std::to_array<std::string_view>(
    {"plan.order", "plan.map", "plan.memory_limit", "plan.overlap_pipeline",
     "plan.overlap_expert_parallel", "plan.overlap_gradients", "plan.overlap_parameters",
     "plan.prefetch", "plan.reshard_after_forward", "plan.communication_dtype",
     "plan.dispatch_dtype", "plan.combine_dtype", "plan.dispatch", "plan.expert_node",
     "plan.node_limit", "plan.copy_checkpoint"});

bool is_only_noted(std::string_view path) {
  return std::ranges::find(kOnlyNoted, path) != kOnlyNoted.end();
}

// What the importer of the same kind makes of the text, on the same cluster.
Experiment read_again(const TrainerExporter& exporter, const std::string& text,
                      const Experiment& experiment, const ExperimentRecord& record) {
  ImportRequest request = {.files = {"exported"}};
  request.text = text;
  request.ranks = static_cast<std::uint32_t>(experiment.plan.mesh.ranks());
  request.cluster_record = record.fields;
  const Imported read = find_importer(exporter.kind)->read(request);
  return load_experiment({.experiment = "exported", .text = read.text});
}

std::string with_reason(const DifferingField& field, const std::string* why) {
  return fmt::format("is {}, which reads back as {}{}", field.wanted, field.written,
                     why == nullptr ? "" : ": " + *why);
}

std::string notes_as_comments(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "# " + note + '\n';
  return text;
}

}  // namespace

std::span<const TrainerExporter> trainer_exporters() {
  return kExporters;
}

const TrainerExporter* find_trainer_exporter(std::string_view kind) {
  const auto found = std::ranges::find(kExporters, kind, &TrainerExporter::kind);
  return found == kExporters.end() ? nullptr : &*found;
}

TrainerExport export_settings(const TrainerExporter& exporter, const Experiment& experiment,
                              const ExperimentRecord& record) {
  if (experiment.plan.is_inference()) {
    throw ConfigError({Problem{"pass", "is no training step"}});
  }
  ExportedSettings made;
  exporter.set(experiment, made);
  throw_if_any(made.refused());
  const std::string body = exporter.text(made);
  const Experiment read = read_again(exporter, body, experiment, record);

  TrainerExport result;
  std::vector<Problem> problems;
  std::string software;
  for (const DifferingField& field : differences(experiment, read)) {
    const std::string* const why = made.reason(field.path);
    if (field.path.starts_with("software.")) {
      software +=
          fmt::format("{}{} ({}, here {})", software.empty() ? "" : ", ",
                      field.path.substr(field.path.find('.') + 1), field.written, field.wanted);
    } else if (is_only_noted(field.path) || made.accepts(field.path)) {
      result.notes.push_back(field.path + " " + with_reason(field, why));
    } else {
      problems.push_back({field.path, with_reason(field, why)});
    }
  }
  throw_if_any(std::move(problems));
  if (!software.empty()) {
    result.notes.push_back(
        fmt::format("software: {} runs it with other habits than this plan has: {}",
                    exporter.software, software));
  }
  result.text = fmt::format(
      "# Settings of {} for {} ranks, written by stepsim. Data, tokenizer and learning rate are\n"
      "# stand-ins. stepsim import {} --ranks {} reads the plan back.\n{}{}",
      exporter.software, experiment.plan.mesh.ranks(), exporter.kind, experiment.plan.mesh.ranks(),
      notes_as_comments(result.notes), body);
  return result;
}

}  // namespace stepsim
