// The bubble: the published form of the schedule with the books' work, then the effects of this
// run's stages.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "experiment/explained/explain_parts.h"
#include "schedules/pipeline/published/bubble_formula.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

// Returns the seconds per step in which a mean rank of each stage was neither in a bubble nor idle.
std::vector<double> busy_by_stage(const FinishedRun& run) {
  std::vector<double> busy(run.graph.pipeline_stages, 0.0);
  std::vector<double> ranks(run.graph.pipeline_stages, 0.0);
  const double steps = std::max(1.0, static_cast<double>(run.result.steps) - 1);
  for (std::size_t rank = 0; rank < run.graph.ranks.size(); ++rank) {
    const Breakdown& parts = run.result.breakdowns[rank];
    const std::uint32_t stage = run.graph.ranks[rank].pp;
    busy[stage] += to_seconds(parts.sum() - parts.bubble - parts.idle) / steps;
    ranks[stage] += 1;
  }
  for (std::size_t stage = 0; stage < busy.size(); ++stage) {
    busy[stage] /= std::max(1.0, ranks[stage]);
  }
  return busy;
}

}  // namespace

PublishedBubble published_bubble(const FinishedRun& run) {
  const ParallelPlan& plan = run.experiment.plan;
  PublishedBubble bubble;
  if (plan.mesh.pp == 1 || plan.pipeline.own_schedule || plan.pipeline.optimal_schedule)
    return bubble;
  const ScheduleRequest request{.name = plan.pipeline.schedule,
                                .stages = plan.mesh.pp,
                                .microbatches = plan.microbatches(),
                                .chunks = chunks_of(plan.pipeline)};
  if (!check(request).empty()) return bubble;
  const auto formula = bubble_formula(request);
  if (!formula) return bubble;
  const double work =
      static_cast<double>(request.costs.all() * request.microbatches * chunks_of(plan.pipeline));
  bubble.ratio =
      static_cast<double>(formula->numerator) / (static_cast<double>(formula->denominator) * work);
  bubble.formula = published(plan.pipeline.schedule).formula_id;
  bubble.text = fmt::format("{}: {} with {} stages and {} micro-batches is {:.4g} of the work",
                            name_of(plan.pipeline.schedule), formula->text, plan.mesh.pp,
                            plan.microbatches(), bubble.ratio);
  return bubble;
}

ExplainedPart explain_bubble(const FinishedRun& run, double predicted_work) {
  const PublishedBubble published = published_bubble(run);
  const double simulated = to_seconds(run.result.breakdown.bubble);
  ExplainedPart part{.name = "pipeline bubble",
                     .formula = published.formula,
                     .text = published.text,
                     .predicted = published.ratio * predicted_work,
                     .simulated = simulated,
                     .causes = {}};
  const std::vector<double> busy = busy_by_stage(run);
  double mean = 0;
  for (const double stage : busy) mean += stage / static_cast<double>(busy.size());
  const double longer = published.ratio * (mean - predicted_work);
  const double uneven = busy.empty() ? 0 : *std::ranges::max_element(busy) - mean;
  const double scale = std::max(simulated, part.predicted);
  add_cause(part.causes, "the same share of a longer work time", longer, scale);
  add_cause(part.causes, "stages are unequal: all wait for the slowest", uneven, scale);
  add_cause(part.causes, "messages between stages, and effects of the schedule's order",
            simulated - part.predicted - longer - uneven, scale);
  return part;
}

// With T_a and T_e the times of a micro-batch in a layer, T_c of a dispatch or a combine, and m
// micro-batches: T_a = T_e and m >= 2 (1 + T_c / max(T_a, T_e)) leave nobody waiting
// (MegaScale-Infer, arXiv 2504.02263, equations 1 to 3).
ExplainedPart explain_turns(const FinishedRun& run) {
  std::array<double, 2> compute{};  // of a rank of either kind
  std::array<double, 2> waits{};
  std::array<double, 2> ranks{};
  const double steps = std::max(1.0, static_cast<double>(run.result.steps) - 1);
  for (std::size_t rank = 0; rank < run.graph.ranks.size(); ++rank) {
    const std::uint32_t kind = run.graph.ranks[rank].pp;
    compute[kind] += to_seconds(run.result.breakdowns[rank].compute) / steps;
    waits[kind] += to_seconds(run.result.breakdowns[rank].bubble) / steps;
    ranks[kind] += 1;
  }
  ExplainedPart part{.name = "pipeline bubble",
                     .formula = "",
                     .text = "",
                     .predicted = 0,
                     .simulated = to_seconds(run.result.breakdown.bubble),
                     .causes = {}};
  const double all = ranks[0] + ranks[1];
  part.text = fmt::format(
      "{} micro-batches by turns: on a chip attention computes {:.4g} ms, experts {:.4g} ms; none "
      "waits if both are equal and micro-batches >= 2 (1 + a dispatch / the longer of both in a "
      "layer)",
      count_of_microbatches(run.experiment.plan), 1e3 * compute[0] / ranks[0],
      1e3 * compute[1] / ranks[1]);
  add_cause(part.causes, "attention waits for experts", waits[0] / all, part.simulated);
  add_cause(part.causes, "experts wait for attention", waits[1] / all, part.simulated);
  return part;
}

}  // namespace stepsim
