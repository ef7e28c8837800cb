#include <array>
#include <utility>

#include "proto/to_spec.h"

namespace stepsim {
namespace {

// Far above anything that exists; they keep products of sizes in 64 bits.
void check_upper_limits(const ModelSpec& model, ProblemList& problems) {
  constexpr std::int64_t kMost = 1 << 21;
  const std::array<std::pair<const char*, std::int64_t>, 8> sizes = {
      {{"layers", model.layers},
       {"hidden", model.hidden},
       {"intermediate", model.intermediate},
       {"heads", model.heads},
       {"kv_heads", model.kv_heads},
       {"head_dim", model.head_dim},
       {"vocabulary", model.vocabulary},
       {"learned_positions", model.learned_positions}}};
  for (const auto& [field, value] : sizes) {
    if (value <= kMost) continue;
    problems.add(std::string("model.") + field,
                 "must be at most " + std::to_string(kMost) + ", is " + std::to_string(value));
  }
}

bool is_transformer(const file::Model& model, ProblemList& problems) {
  if (model.kind() == "mlp_stack") return false;
  if (model.has_kind() && model.kind() != "transformer") {
    problems.add("model.kind", "must be transformer or mlp_stack, is \"" + model.kind() + "\"");
  }
  return true;
}

}  // namespace

ModelSpec to_model(const file::Model& model, ProblemList& problems) {
  const auto given = [&problems](bool has, const char* field) {
    if (!has) {
      problems.add(std::string("model.") + field, "must be given: a whole number of at least 1");
    }
  };
  given(model.has_layers(), "layers");
  given(model.has_hidden(), "hidden");
  given(model.has_intermediate(), "intermediate");
  const bool transformer = is_transformer(model, problems);
  if (transformer) {
    given(model.has_heads(), "heads");
    given(model.has_vocabulary(), "vocabulary");
  }
  ModelSpec spec{.name = model.has_name() ? model.name() : "model",
                 .kind = transformer ? ModelKind::kTransformer : ModelKind::kMlpStack,
                 .layers = model.layers(),
                 .hidden = model.hidden(),
                 .intermediate = model.intermediate(),
                 .heads = model.heads(),
                 .kv_heads = model.has_kv_heads() ? model.kv_heads() : model.heads(),
                 .head_dim = model.head_dim(),
                 .vocabulary = model.vocabulary(),
                 .learned_positions = model.learned_positions(),
                 .tied_embeddings = model.tied_embeddings(),
                 .attention_bias = model.attention_bias(),
                 .mlp_bias = model.mlp_bias()};
  if (model.has_gated_mlp()) spec.gated_mlp = model.gated_mlp();
  if (transformer && !model.has_head_dim()) {
    if (spec.heads < 1 || spec.hidden < 1) {
      spec.head_dim = 1;  // the cause is reported
    } else if (spec.hidden % spec.heads != 0) {
      problems.add("model.heads", "must divide hidden (" + std::to_string(spec.hidden) +
                                      ") where head_dim is not given, is " +
                                      std::to_string(spec.heads));
      spec.head_dim = 1;
    } else {
      spec.head_dim = spec.hidden / spec.heads;
    }
  }
  if (model.has_norm() && model.norm() != "rms" && model.norm() != "layer") {
    problems.add("model.norm", "must be rms or layer, is \"" + model.norm() + "\"");
  }
  spec.norm = model.norm() == "layer" ? NormKind::kLayer : NormKind::kRms;
  check_upper_limits(spec, problems);
  problems.add(under("model", check(spec)));
  return spec;
}

}  // namespace stepsim
