#include "workload/model/mlp_stack_spec.h"

#include <cassert>
#include <string>
#include <string_view>

namespace stepsim {

std::vector<Problem> check_mlp_stack(const ModelSpec& model) {
  assert(model.kind == ModelKind::kMlpStack);
  std::vector<Problem> problems;
  const auto absent = [&problems](std::string_view field, std::int64_t value) {
    if (value == 0) return;
    problems.push_back({std::string(field),
                        "must not be given for an mlp_stack, which has layers, hidden and "
                        "intermediate only; is " +
                            std::to_string(value)});
  };
  if (model.mlp.width < 1) {
    problems.push_back(
        {"intermediate", "must be at least 1, is " + std::to_string(model.mlp.width)});
  }
  absent("heads", model.attention.heads);
  absent("kv_heads", model.attention.kv_heads);
  absent("head_dim", model.attention.head_dim);
  absent("vocabulary", model.embedding.vocabulary);
  absent("learned_positions", model.embedding.learned_positions);
  absent("window", model.attention.window);
  absent("latent.kv_rank", model.latent.kv_rank);
  absent("experts.routed", model.experts.routed);
  absent("prediction_modules", model.prediction.modules);
  return problems;
}

std::int64_t mlp_stack_parameters(const ModelSpec& model) {
  return model.layers * 2 * model.hidden * model.mlp.width;
}

}  // namespace stepsim
