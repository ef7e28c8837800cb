#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

std::string describe_stages(const ParallelPlan& plan) {
  if (stages_of(plan) == plan.mesh.pp) return "pp is " + std::to_string(plan.mesh.pp);
  return "pp x chunks is " + std::to_string(plan.mesh.pp) + " x " +
         std::to_string(chunks_of(plan.pipeline)) + " = " + std::to_string(stages_of(plan));
}

// Returns whether the first and the last stage have something to do without layers: the embedding
// and the head.
bool has_ends(const ModelSpec& model) {
  return model.kind != ModelKind::kMlpStack;
}

// A stage with nothing to do would only pass on what it receives.
void check_empty_stages(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  for (std::size_t stage = 0; stage < plan.pipeline.layout.size(); ++stage) {
    const bool is_end = stage == 0 || stage + 1 == plan.pipeline.layout.size();
    rules.require(
        plan.pipeline.layout[stage] != 0 || (is_end && has_ends(model)), "layout",
        "has no layers in stage " + std::to_string(stage) +
            (has_ends(model) ? "; only the first stage, with the embedding, and the last, with "
                               "the head, may have none"
                             : ", and an mlp_stack has neither embedding nor head, so every "
                               "stage must have some"));
  }
}

void check_layout(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  std::int64_t sum = 0;
  for (const std::int64_t layers : plan.pipeline.layout) {
    rules.require(layers >= 0, "layout",
                  "has a stage of " + std::to_string(layers) + " layers, must be at least 0");
    sum += layers;
  }
  rules.require(static_cast<std::int64_t>(plan.pipeline.layout.size()) == stages_of(plan), "layout",
                "has " + std::to_string(plan.pipeline.layout.size()) + " stages, but " +
                    describe_stages(plan));
  check_empty_stages(plan, model, rules);
  rules.require(sum == model.layers, "layout",
                "adds up to " + std::to_string(sum) + " layers, but the model has " +
                    std::to_string(model.layers));
}

// Returns "7,8*14,7": equal stages, with the shorter ones at the ends, where embedding and head
// are. Returns "" if there are too few layers.
std::string suggested_layout(std::int64_t stages, const ModelSpec& model) {
  const std::int64_t layers = model.layers;
  const std::int64_t least = layers / stages;
  const std::int64_t longer = layers % stages;
  const std::int64_t shorter = stages - longer;
  const std::int64_t may_be_empty = has_ends(model) ? 2 : 0;
  if (least == 0 && shorter > may_be_empty) return "";
  std::string text;
  const auto add = [&text](std::int64_t each, std::int64_t count) {
    if (count == 0) return;
    text += (text.empty() ? "" : ",") + std::to_string(each);
    if (count > 1) text += "*" + std::to_string(count);
  };
  add(least, shorter - shorter / 2);
  add(least + 1, longer);
  add(least, shorter / 2);
  return text;
}

// Returns "give the layers of each stage by layout, such as layout=7,8*14,7 or layout=balanced".
std::string by_layout(const ParallelPlan& plan, const ModelSpec& model) {
  const std::string layout = suggested_layout(stages_of(plan), model);
  return "give the layers of each stage by layout" +
         (layout.empty() ? "" : ", such as layout=" + layout + " or layout=balanced");
}

// Returns "nearest on as many ranks: 2 (dp = 1024)": the numbers of stages nearest to the plan's
// that divide the layers and leave a whole dp. If only one stage does, it returns numbers that
// divide the layers.
std::string nearest_stages(const ParallelPlan& plan, std::int64_t layers) {
  const std::int64_t ranks = plan.mesh.dp * plan.mesh.pp;
  std::vector<std::int64_t> fitting;
  for (std::int64_t pp = 2; pp <= std::min(layers, ranks); ++pp) {
    if (layers % pp == 0 && ranks % pp == 0) fitting.push_back(pp);
  }
  if (fitting.empty()) {
    return "nearest: " + nearest_divisors(plan.mesh.pp, layers) + ", on other numbers of ranks";
  }
  std::string text;
  const auto add = [&](std::int64_t pp) {
    text += (text.empty() ? "" : " or ") + std::to_string(pp) +
            " (dp = " + std::to_string(ranks / pp) + ")";
  };
  const auto above = std::ranges::upper_bound(fitting, plan.mesh.pp);
  if (above != fitting.begin()) add(*(above - 1));
  if (above != fitting.end()) add(*above);
  return "nearest on as many ranks: " + text;
}

void check_equal_stages(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  const std::int64_t layers = model.layers;
  if (layers % plan.mesh.pp == 0) return;
  rules.require(false, "pp",
                "is " + std::to_string(plan.mesh.pp) +
                    ", which does not divide the model's layers (" + std::to_string(layers) +
                    "); " + nearest_stages(plan, layers) + "; or " + by_layout(plan, model));
}

// Returns "2 or 4": the numbers of chunks nearest to the plan's with which the stages divide the
// layers; "" if there are none.
std::string nearest_chunks(const ParallelPlan& plan, std::int64_t layers) {
  if (layers % plan.mesh.pp != 0) return "";
  return "nearest: " + nearest_divisors(chunks_of(plan.pipeline), layers / plan.mesh.pp) + ", or ";
}

}  // namespace

void check_stages(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  rules.require(model.shared.blocks == 0 || plan.mesh.pp <= 1 ||
                    placement_of(plan.pipeline) != Placement::kBidirectional,
                "schedule",
                "has two copies of each stage, but layers of several stages share weights (Z of "
                "mixer_pattern): a schedule with one copy, or pp=1");
  if (!plan.pipeline.layout.empty()) return check_layout(plan, model, rules);
  if (stages_of(plan) == plan.mesh.pp) {
    if (plan.mesh.pp >= 1 && plan.mesh.dp >= 1 && model.layers >= 1) {
      check_equal_stages(plan, model, rules);
    }
  } else if (plan.mesh.pp >= 1 && model.layers >= 1) {
    rules.require(model.layers % stages_of(plan) == 0, "chunks",
                  describe_stages(plan) + " stages, which do not divide the model's layers (" +
                      std::to_string(model.layers) + "); " + nearest_chunks(plan, model.layers) +
                      by_layout(plan, model));
  }
}

}  // namespace stepsim
