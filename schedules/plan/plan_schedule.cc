#include "schedules/plan/plan_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "schedules/pipeline/orders/fused_neighbours.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/check_order.h"
#include "schedules/pipeline/search/optimal_schedule.h"

namespace stepsim {
namespace {

ScheduleRequest request_of(const ParallelPlan& plan, const PipelineCosts& costs) {
  ScheduleRequest request{.name = plan.pipeline.schedule,
                          .stages = plan.mesh.pp,
                          .microbatches = plan.microbatches(),
                          .chunks = chunks_of(plan.pipeline),
                          .costs = costs};
  if (plan.pipeline.microbatch_group) request.microbatch_group = *plan.pipeline.microbatch_group;
  if (plan.pipeline.memory_limit) request.memory_limit = *plan.pipeline.memory_limit;
  return request;
}

// The limit is the memory of 1F1B unless the plan gives another. The placement must be known before
// the order is: several chunks are laid out as a V, whose turns need no messages.
OptimalRequest optimal_request_of(const ParallelPlan& plan, const PipelineCosts& costs) {
  return {
      .stages = plan.mesh.pp,
      .microbatches = plan.microbatches(),
      .chunks = chunks_of(plan.pipeline),
      .costs = costs,
      .memory_limit = plan.pipeline.memory_limit.value_or(plan.mesh.pp * chunks_of(plan.pipeline)),
      .placement = placement_of(plan.pipeline)};
}

// Words a problem of the schedule's stages and micro-batches in terms of the plan.
Problem in_words_of_plan(Problem problem, const ParallelPlan& plan) {
  if (problem.field == "stages") {
    problem.field = "pp";
  } else if (problem.field == "microbatches") {
    problem.field = "global_batch";
    problem.message =
        fmt::format("makes {} micro-batches (global_batch / (dp x microbatch)), which {}",
                    plan.microbatches(), problem.message);
  }
  return problem;
}

std::vector<Problem> check_file(const ParallelPlan& plan, const PipelineSchedule& order) {
  std::vector<Problem> problems;
  const auto agree = [&](const char* field, std::int64_t of_plan, const char* what,
                         std::int64_t of_file) {
    if (of_plan == of_file) return;
    problems.push_back(
        {field, fmt::format("{} {}, but the schedule's file has {}", what, of_plan, of_file)});
  };
  agree("pp", plan.mesh.pp, "is", order.size());
  agree("global_batch", plan.microbatches(), "makes micro-batches:", order.microbatches);
  if (plan.pipeline.chunks) agree("chunks", *plan.pipeline.chunks, "is", order.chunks);
  for (Problem& problem : check_order(order)) {
    problem.field = "schedule: " + problem.field;
    problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> check_optimal(const ParallelPlan& plan) {
  std::vector<Problem> problems;
  for (Problem& problem : check(optimal_request_of(plan, {}))) {
    problems.push_back(in_words_of_plan(std::move(problem), plan));
  }
  return problems;
}

// Returns the order of a pass of inference: every stage runs the forward of one micro-batch.
PipelineSchedule once_forward(std::int64_t pp) {
  PipelineSchedule schedule{.microbatches = 1, .chunks = 1};
  schedule.ranks.assign(static_cast<std::size_t>(pp), {{PipelineOpKind::kForward, 0, 0}});
  return schedule;
}

// Returns whether the schedule runs forwards and backwards together by itself.
bool fuses(const PipelinePlan& plan) {
  if (plan.own_schedule) return has_fused_ops(*plan.own_schedule);
  return !plan.optimal_schedule && published(plan.schedule).fuses;
}

}  // namespace

std::string_view schedule_text(const PipelinePlan& plan) {
  if (plan.own_schedule) return "own schedule";
  return plan.optimal_schedule ? "optimal" : name_of(plan.schedule);
}

std::int64_t chunks_of(const PipelinePlan& plan) {
  if (plan.own_schedule) return plan.own_schedule->chunks;
  const std::int64_t usual = plan.optimal_schedule ? 1 : published(plan.schedule).default_chunks();
  return std::max<std::int64_t>(1, plan.chunks.value_or(usual));
}

Placement placement_of(const PipelinePlan& plan) {
  if (plan.own_schedule) return plan.own_schedule->placement;
  if (plan.optimal_schedule) return chunks_of(plan) > 1 ? Placement::kV : Placement::kLoop;
  return published(plan.schedule).placement;
}

std::int64_t stages_of(const ParallelPlan& plan) {
  return plan.mesh.pp *
         (placement_of(plan.pipeline) == Placement::kBidirectional ? 1 : chunks_of(plan.pipeline));
}

std::vector<std::int64_t> layers_of_stages(const ParallelPlan& plan, std::int64_t layers) {
  if (!plan.pipeline.layout.empty()) return plan.pipeline.layout;
  const std::int64_t stages = stages_of(plan);
  return std::vector<std::int64_t>(static_cast<std::size_t>(stages), layers / stages);
}

std::optional<PostingRule> posting_rule(const ParallelPlan& plan) {
  if (!plan.messages.batch_p2p) return std::nullopt;
  const bool has_runtime = !plan.pipeline.own_schedule && !plan.pipeline.optimal_schedule &&
                           !plan.overlap.expert_parallel;
  return has_runtime ? published(plan.pipeline.schedule).posting : kPostAsPlanned;
}

bool plans_by_cost(const ParallelPlan& plan) {
  if (const auto rule = posting_rule(plan); rule && rule->by_times) return true;
  if (plan.pipeline.own_schedule) return false;
  return plan.pipeline.optimal_schedule || published(plan.pipeline.schedule).planning.has_value();
}

bool overlaps_steps(const ParallelPlan& plan) {
  if (plan.update.post_validation) return true;
  if (plan.pipeline.own_schedule || plan.mesh.pp == 1) return false;
  if (plan.pipeline.optimal_schedule) return true;
  return published(plan.pipeline.schedule).overlaps_steps;
}

bool splits_all_backwards(const PipelinePlan& plan) {
  if (plan.own_schedule) {
    return std::ranges::all_of(plan.own_schedule->ranks, [](const std::vector<PipelineOp>& order) {
      return std::ranges::count(order, PipelineOpKind::kBackward, &PipelineOp::kind) == 0;
    });
  }
  if (plan.optimal_schedule) return true;
  return published(plan.schedule).splits_all_backwards;
}

std::vector<Problem> check_schedule(const ParallelPlan& plan) {
  if (plan.is_inference()) return {};  // check_inference()
  if (plan.mesh.pp < 1 || plan.mesh.dp < 1 || plan.batch.microbatch_size < 1 ||
      plan.batch.global_batch < 1)
    return {};
  if (plan.batch.global_batch % (plan.mesh.dp * plan.batch.microbatch_size) != 0) return {};
  std::vector<Problem> problems;
  if (plan.pipeline.own_schedule) {
    problems = check_file(plan, *plan.pipeline.own_schedule);
  } else if (plan.pipeline.optimal_schedule) {
    problems = check_optimal(plan);
  } else {
    for (Problem& problem : check(request_of(plan, {}))) {
      problems.push_back(in_words_of_plan(std::move(problem), plan));
    }
  }
  if (plan.messages.batch_p2p && plan.mesh.pp == 1) {
    problems.push_back({"batch_p2p", "is true, but one stage sends nothing: pp above 1, or false"});
  }
  if (plan.messages.batch_p2p && !plan.overlap.pipeline) {
    problems.push_back({"batch_p2p",
                        "is true, and batches already define what waits for messages: "
                        "overlap_pipeline must stay true"});
  }
  if (plan.overlap.expert_parallel && !plan.pipeline.own_schedule && fuses(plan.pipeline)) {
    problems.push_back({"overlap_expert_parallel",
                        fmt::format("is true, but {} fuses forwards and backwards by itself: leave "
                                    "it out",
                                    schedule_text(plan.pipeline))});
  } else if (plan.overlap.expert_parallel && problems.empty()) {
    const PipelineSchedule order = schedule_of(plan, {});
    if (!has_fused_ops(order)) {
      problems.push_back({"overlap_expert_parallel",
                          fmt::format("is true, but {} with {} micro-batches never has a forward "
                                      "right behind a whole backward: eager_1f1b, "
                                      "interleaved_1f1b, or 1f1b on one stage",
                                      schedule_text(plan.pipeline), plan.microbatches())});
    }
    if (!check_order(order).empty()) {
      problems.push_back(
          {"overlap_expert_parallel",
           fmt::format("is true, but with {} a forward that runs by turns with the backward before "
                       "it would wait for the end of that backward on another rank: eager_1f1b, "
                       "interleaved_1f1b, or 1f1b on one stage",
                       schedule_text(plan.pipeline))});
    }
  }
  if (plan.state.zero == 3 && plan.overlap.expert_parallel) {
    problems.push_back({"zero",
                        "is 3 (FSDP) with overlap_expert_parallel, whose forwards and backwards "
                        "gather layers in two orders at once: 0, 1 or 2"});
  }
  if (plan.state.zero == 3 && placement_of(plan.pipeline) == Placement::kBidirectional) {
    problems.push_back({"zero",
                        "is 3 (FSDP) with a schedule that holds two copies of each stage: "
                        "0, 1 or 2, or dualpipev, which holds one"});
  } else if (plan.state.zero == 3 && fuses(plan.pipeline)) {
    problems.push_back({"zero",
                        "is 3 (FSDP) with fused forwards and backwards, which gather layers "
                        "in two orders at once: 0, 1 or 2"});
  }
  return problems;
}

PipelineSchedule schedule_of(const ParallelPlan& plan, const PipelineCosts& costs) {
  if (plan.is_inference()) return once_forward(plan.mesh.pp);
  PipelineSchedule schedule;
  if (plan.pipeline.own_schedule) {
    schedule = *plan.pipeline.own_schedule;
  } else if (plan.pipeline.optimal_schedule) {
    schedule = optimal_schedule(optimal_request_of(plan, costs)).schedule;
  } else {
    schedule = make_schedule(request_of(plan, costs));
  }
  return plan.overlap.expert_parallel ? fused_neighbours(std::move(schedule)) : schedule;
}

}  // namespace stepsim
