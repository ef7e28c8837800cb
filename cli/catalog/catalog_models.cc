#include "cli/catalog/catalog_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Returns what the layers of a model are: "dense", "experts, local", "experts, state".
std::string kind_text(const ModelSpec& model) {
  if (model.kind == ModelKind::kMlpStack) return "mlp_stack";
  const std::vector<BlockKind> kinds = kinds_of(model);
  const auto has = [&kinds](auto property) { return std::ranges::any_of(kinds, property); };
  const auto mixes = [&has](Mixer mixer) {
    return has([mixer](const BlockKind& kind) { return kind.mixer == mixer; });
  };
  std::string text = model.experts.routed > 0 ? "experts" : "dense";
  if (model.latent.kv_rank > 0) text += ", latent";
  if (mixes(Mixer::kLocal)) {
    text += model.attention.window_kind == WindowKind::kChunked ? ", chunks" : ", windows";
  }
  if (mixes(Mixer::kSparse)) text += ", sparse";
  if (model.compressed.output_groups > 0) text += ", compressed";
  if (has(&BlockKind::has_state)) text += ", " + std::string(name_of(model.state.kind));
  if (mixes(Mixer::kCross)) return text + ", encoder-decoder";
  return text + (model.attention.causal ? "" : ", encoder");
}

// Writes 8030261248 as "8.03 B".
std::string size_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count < 1e9 ? fmt::format("{:.0f} M", count / 1e6) : fmt::format("{:.2f} B", count / 1e9);
}

}  // namespace

std::string catalog_models_text() {
  std::string text = fmt::format("{:<32}{:>12}{:>12}{:>8}  {}\n", "model", "parameters", "active",
                                 "layers", "layers are");
  for (const std::string& name : list(CatalogKind::kModel)) {
    const ModelSpec model = load_model(name);
    text += fmt::format("{:<32}{:>12}{:>12}{:>8}  {}\n", name, size_text(parameter_count(model)),
                        size_text(active_parameter_count(model)), model.layers, kind_text(model));
  }
  return text;
}

}  // namespace stepsim
