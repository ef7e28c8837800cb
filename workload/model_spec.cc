#include "workload/model_spec.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "workload/mlp_stack.h"
#include "workload/model_fields.h"

namespace stepsim {
namespace {

class Rules {
 public:
  void at_least(std::string field, std::int64_t least, std::int64_t value) {
    require(value >= least, std::move(field),
            "must be at least " + std::to_string(least) + ", is " + std::to_string(value));
  }
  void require(bool holds, std::string field, std::string message) {
    if (!holds) problems_.push_back({std::move(field), std::move(message)});
  }
  void add(std::vector<Problem> problems) {
    for (Problem& problem : problems) problems_.push_back(std::move(problem));
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

void check_window(const ModelSpec& model, Rules& rules) {
  rules.require(
      model.window_pattern.find_first_not_of("LG") == std::string::npos, "window_pattern",
      "must be letters L (local) and G (global), one a layer, is \"" + model.window_pattern + "\"");
  rules.require(model.window_pattern.empty() || model.window != 0, "window_pattern",
                "is given, but no window: window must be at least 1");
  rules.require(model.window == 0 || model.causal, "window",
                "is " + std::to_string(model.window) +
                    ", but only causal attention can have a window: causal must be true");
}

void check_latent(const ModelSpec& model, Rules& rules) {
  const LatentSpec& latent = model.latent;
  if (latent.kv_rank == 0) {
    rules.require(latent == LatentSpec{}, "latent.kv_rank",
                  "must be at least 1 where other fields of latent are given, is 0");
    return;
  }
  rules.at_least("latent.kv_rank", 1, latent.kv_rank);
  rules.at_least("latent.nope_dim", 1, latent.nope_dim);
  rules.at_least("latent.v_dim", 1, latent.v_dim);
  rules.require(model.kv_heads == model.heads, "kv_heads",
                "must be as many as heads (" + std::to_string(model.heads) +
                    ") with latent attention, is " + std::to_string(model.kv_heads));
  rules.require(model.head_dim == latent.nope_dim + latent.rope_dim, "head_dim",
                "must be latent.nope_dim + latent.rope_dim (" +
                    std::to_string(latent.nope_dim + latent.rope_dim) + "), is " +
                    std::to_string(model.head_dim));
  rules.require(!model.qk_norm, "qk_norm", "must be false with latent attention, is true");
}

void check_experts(const ExpertSpec& experts, Rules& rules) {
  if (experts.routed == 0) {
    rules.require(experts == ExpertSpec{}, "experts.routed",
                  "must be at least 1 where other fields of experts are given, is 0");
    return;
  }
  rules.at_least("experts.per_token", 1, experts.per_token);
  rules.require(experts.per_token <= experts.routed, "experts.per_token",
                "must be at most experts.routed (" + std::to_string(experts.routed) + "), is " +
                    std::to_string(experts.per_token));
  rules.at_least("experts.intermediate", 1, experts.intermediate);
  rules.require(!experts.shared_gate || experts.shared_intermediate > 0, "experts.shared_gate",
                "must be false where experts.shared_intermediate is 0, is true");
  if (experts.load.empty()) return;
  rules.require(static_cast<std::int64_t>(experts.load.size()) == experts.routed, "experts.load",
                "must have one number for each of the " + std::to_string(experts.routed) +
                    " routed experts, has " + std::to_string(experts.load.size()));
  double sum = 0;
  bool fine = true;
  for (const double load : experts.load) {
    fine = fine && std::isfinite(load) && load >= 0;
    sum += load;
  }
  rules.require(fine && sum > 0, "experts.load",
                "must be numbers of at least 0, one of them positive");
  if (!fine || experts.per_token < 1 || experts.per_token >= experts.routed) return;
  for (std::size_t expert = 0; expert < experts.load.size(); ++expert) {
    const double load = experts.load[expert];
    rules.require(load * static_cast<double>(experts.per_token) < sum, "experts.load",
                  "must be less than 1 / experts.per_token (" + std::to_string(experts.per_token) +
                      ") of the sum, as a token goes to an expert once; is " +
                      std::to_string(load) + " of " + std::to_string(sum) + " for expert " +
                      std::to_string(expert));
  }
}

}  // namespace

std::string_view name_of(ModelKind kind) {
  return kind == ModelKind::kTransformer ? "transformer" : "mlp_stack";
}

std::string_view name_of(NormKind kind) {
  return kind == NormKind::kRms ? "rms" : "layer";
}

std::vector<Problem> check(const ModelSpec& model) {
  Rules rules;
  rules.add(model_fields().problems(model));
  if (model.kind == ModelKind::kMlpStack) {
    rules.add(check_mlp_stack(model));
    return rules.take();
  }
  rules.at_least("intermediate", 1, model.intermediate);
  rules.at_least("heads", 1, model.heads);
  rules.at_least("kv_heads", 1, model.kv_heads);
  rules.at_least("head_dim", 1, model.head_dim);
  rules.at_least("vocabulary", 1, model.vocabulary);
  rules.require(model.heads < 1 || model.kv_heads < 1 || model.heads % model.kv_heads == 0,
                "kv_heads",
                "must divide heads (" + std::to_string(model.heads) + "), is " +
                    std::to_string(model.kv_heads));
  check_window(model, rules);
  check_latent(model, rules);
  rules.require(!model.parallel_branches || (model.experts.routed == 0 && !model.post_norms),
                "parallel_branches",
                "must be false for a model with experts or post_norms, is true");
  check_experts(model.experts, rules);
  return rules.take();
}

BlockKind kind_of(const ModelSpec& model, std::int64_t layer) {
  const std::string& pattern = model.window_pattern;
  const ExpertSpec& experts = model.experts;
  const auto place = static_cast<std::size_t>(layer);
  return {.local = model.window > 0 && (pattern.empty() || pattern[place % pattern.size()] == 'L'),
          .experts = experts.routed > 0 && layer >= experts.first_dense &&
                     (layer - experts.first_dense + 1) % experts.every == 0};
}

}  // namespace stepsim
