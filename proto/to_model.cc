#include <string>

#include "proto/messages/read_fields.h"
#include "proto/to_spec.h"
#include "workload/model/model_fields.h"

namespace stepsim {
namespace {

bool has_dense_layers(const ModelSpec& spec) {
  if (spec.shared.blocks > 0) return true;
  if (!spec.mlp_pattern.empty()) return spec.mlp_pattern.find('D') != std::string::npos;
  return spec.experts.routed < 1 || spec.experts.first_dense > 0 || spec.experts.every != 1;
}

bool attends(const ModelSpec& spec) {
  return spec.mixer_pattern.empty() ||
         spec.mixer_pattern.find_first_of("GLBICHNXZgli") != std::string::npos;
}

void check_given(const file::Model& model, const ModelSpec& spec, ProblemList& problems) {
  const auto given = [&problems](bool has, const char* field) {
    if (!has) {
      problems.add(std::string("model.") + field, "must be given: a whole number of at least 1");
    }
  };
  given(model.has_intermediate() || !has_dense_layers(spec), "intermediate");
  if (spec.kind == ModelKind::kMlpStack) return;
  given(model.has_heads() || !attends(spec), "heads");
  given(model.has_vocabulary(), "vocabulary");
}

std::int64_t head_dim_of(const file::Model& model, const ModelSpec& spec, ProblemList& problems) {
  if (model.has_head_dim() || spec.kind == ModelKind::kMlpStack || !attends(spec)) {
    return spec.attention.head_dim;
  }
  if (spec.latent.kv_rank > 0) return spec.latent.nope_dim + spec.latent.rope_dim;
  if (spec.attention.heads < 1 || spec.hidden < 1) return 1;  // the cause has been reported
  if (spec.hidden % spec.attention.heads == 0) return spec.hidden / spec.attention.heads;
  problems.add("model.heads", "must divide hidden (" + std::to_string(spec.hidden) +
                                  ") where head_dim is not given, is " +
                                  std::to_string(spec.attention.heads));
  return 1;
}

}  // namespace

ModelSpec to_model(const file::Model& model, ProblemList& problems) {
  ModelSpec spec{.name = "model"};
  read_fields(model, model_fields(), spec, "model.", problems);
  if (!model.has_kv_heads()) spec.attention.kv_heads = spec.attention.heads;
  check_given(model, spec, problems);
  if (!model.has_intermediate() && !has_dense_layers(spec)) {
    spec.mlp.width = spec.experts.intermediate;
    problems.mark_reported("model.intermediate");  // reported under the experts' own field
  }
  spec.attention.head_dim = head_dim_of(model, spec, problems);
  problems.add(under("model", check(spec)));
  return spec;
}

}  // namespace stepsim
