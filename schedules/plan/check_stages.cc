#include <string>

#include "schedules/plan/plan_rules.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

std::string describe_stages(const ParallelPlan& plan) {
  if (stages_of(plan) == plan.pp) return "pp is " + std::to_string(plan.pp);
  return "pp x chunks is " + std::to_string(plan.pp) + " x " + std::to_string(chunks_of(plan)) +
         " = " + std::to_string(stages_of(plan));
}

void check_layout(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  std::int64_t sum = 0;
  for (const std::int64_t layers : plan.layout) {
    rules.require(layers >= 0, "layout",
                  "has a stage of " + std::to_string(layers) + " layers, must be at least 0");
    sum += layers;
  }
  rules.require(
      static_cast<std::int64_t>(plan.layout.size()) == stages_of(plan), "layout",
      "has " + std::to_string(plan.layout.size()) + " stages, but " + describe_stages(plan));
  // An empty stage in the middle would hand on what it has not made.
  for (std::size_t stage = 1; stage + 1 < plan.layout.size(); ++stage) {
    rules.require(plan.layout[stage] != 0, "layout",
                  "has no layers in stage " + std::to_string(stage) +
                      "; only the first stage, with the embedding, and the last, with the head, "
                      "may have none");
  }
  rules.require(sum == model.layers, "layout",
                "adds up to " + std::to_string(sum) + " layers, but the model has " +
                    std::to_string(model.layers));
}

// "2 or 4": chunks next to the plan's with which the stages divide the layers; "": there are none.
std::string nearest_chunks(const ParallelPlan& plan, std::int64_t layers) {
  if (layers % plan.pp != 0) return "";
  return "nearest: " + nearest_divisors(chunks_of(plan), layers / plan.pp) + ", or ";
}

}  // namespace

void check_stages(const ParallelPlan& plan, const ModelSpec& model, Rules& rules) {
  if (!plan.layout.empty()) return check_layout(plan, model, rules);
  if (stages_of(plan) == plan.pp) {
    rules.divides("pp", plan.pp, "model's layers", model.layers);
  } else if (plan.pp >= 1 && model.layers >= 1) {
    rules.require(model.layers % stages_of(plan) == 0, "chunks",
                  describe_stages(plan) + " stages, which do not divide the model's layers (" +
                      std::to_string(model.layers) + "); " + nearest_chunks(plan, model.layers) +
                      "give the layers of each by layout");
  }
}

}  // namespace stepsim
