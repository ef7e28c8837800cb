#include <algorithm>
#include <vector>

#include "schedules/pipeline/orders/interleaved.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/plan/plan_schedule.h"
#include "tests/fuzz/random/random_plan.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostMicrobatches = 16;

std::int64_t& axis_of(ParallelPlan& plan, PlanAxis axis) {
  switch (axis) {
    case PlanAxis::kTensor:
      return plan.mesh.tp;
    case PlanAxis::kContext:
      return plan.mesh.cp;
    case PlanAxis::kData:
      return plan.mesh.dp;
    case PlanAxis::kPipeline:
      break;
  }
  return plan.mesh.pp;
}

PlanAxis random_axis(Choices& choices) {
  using enum PlanAxis;
  return choices.pick({kData, kTensor, kPipeline, kData, kTensor, kPipeline, kContext});
}

// Gives each prime factor of the ranks to an axis.
void divide_ranks(Choices& choices, std::int64_t ranks, ParallelPlan& plan) {
  for (std::int64_t prime = 2; ranks > 1; ++prime) {
    for (; ranks % prime == 0; ranks /= prime) axis_of(plan, random_axis(choices)) *= prime;
  }
}

// Gives each level of a torus to an axis.
void map_levels(Choices& choices, const RandomCluster& cluster, ParallelPlan& plan) {
  for (const RandomAxis& level : cluster.axes) {
    if (level.size == 1) continue;
    const PlanAxis axis = random_axis(choices);
    axis_of(plan, axis) *= level.size;
    auto mapping = std::ranges::find(plan.mesh.map, axis, &AxisMapping::axis);
    if (mapping == plan.mesh.map.end()) {
      plan.mesh.map.push_back({.axis = axis, .levels = {}});
      mapping = plan.mesh.map.end() - 1;
    }
    mapping->levels.push_back(level.name);
  }
}

void choose_ranks(Choices& choices, const RandomCluster& cluster, ParallelPlan& plan) {
  if (!cluster.axes.empty() && choices.one_in(3)) return map_levels(choices, cluster, plan);
  std::int64_t ranks = cluster.chips;
  if (choices.one_in(6)) ranks = choices.divisor_of(ranks);
  plan.mesh.allow_idle_chips = ranks < cluster.chips;
  divide_ranks(choices, ranks, plan);
  for (std::size_t place = kPlanAxes - 1; place > 0 && choices.one_in(4); --place) {
    std::swap(plan.mesh.order[place], plan.mesh.order[choices.below(place + 1)]);
  }
}

void choose_chunks(Choices& choices, ChunkRule rule, ParallelPlan& plan) {
  if (!choices.one_in(2)) return;
  if (rule == ChunkRule::kAny) plan.pipeline.chunks = choices.between(1, 4);
  if (rule == ChunkRule::kEven) plan.pipeline.chunks = 2 * choices.between(1, 2);
}

void choose_group(Choices& choices, const PublishedSchedule& row, std::int64_t microbatches,
                  ParallelPlan& plan) {
  if (!row.has_groups || microbatches < plan.mesh.pp || !choices.one_in(3)) return;
  const std::int64_t group = choices.between(plan.mesh.pp, microbatches);
  if (is_legal_group(group, plan.mesh.pp, microbatches)) plan.pipeline.microbatch_group = group;
}

void choose_limit(Choices& choices, const PublishedSchedule& row, ParallelPlan& plan) {
  if (!row.planning || !choices.one_in(2)) return;
  const std::int64_t least = row.planning->least_limit(plan.mesh.pp);
  plan.pipeline.memory_limit =
      choices.between(std::max(least, plan.mesh.pp), least + 2 * plan.mesh.pp);
}

// Returns a number of micro-batches that the schedule takes, if there is one among some.
std::int64_t random_microbatches(Choices& choices, const PublishedSchedule& row, std::int64_t pp) {
  const std::int64_t first = choices.between(1, std::min(kMostMicrobatches, 2 * pp + 2));
  for (std::int64_t count = first; count <= 2 * kMostMicrobatches; ++count) {
    if (row.counts.is_legal(pp, count)) return count;
  }
  return row.counts.is_legal(pp, 1) ? 1 : first;
}

// Returns the micro-batches of a replica.
std::int64_t choose_schedule(Choices& choices, ParallelPlan& plan) {
  if (plan.mesh.pp <= 2 && choices.one_in(30)) {
    plan.pipeline.optimal_schedule = true;
    return choices.between(1, 3);
  }
  if (choices.below(3) > 0 || (plan.mesh.pp == 1 && choices.below(4) > 0)) {
    const std::vector<ScheduleName> names = all_schedules();
    plan.pipeline.schedule = choices.pick<ScheduleName>(names);
  }
  const PublishedSchedule& row = published(plan.pipeline.schedule);
  const std::int64_t microbatches = random_microbatches(choices, row, plan.mesh.pp);
  choose_chunks(choices, row.chunks, plan);
  choose_group(choices, row, microbatches, plan);
  choose_limit(choices, row, plan);
  return microbatches;
}

// Writes the order of the schedule out, as a file of the user's own.
void write_out_schedule(Choices& choices, ParallelPlan& plan) {
  if (plan.pipeline.optimal_schedule || plans_by_cost(plan) || !choices.one_in(15)) return;
  if (!check_schedule(plan).empty()) return;
  plan.pipeline.own_schedule = schedule_of(plan, {});
  plan.pipeline.schedule = ParallelPlan{}.pipeline.schedule;
  plan.pipeline.chunks.reset();
  plan.pipeline.microbatch_group.reset();
}

}  // namespace

void choose_mesh(Choices& choices, const RandomCluster& cluster, RandomJob& job) {
  ParallelPlan& plan = job.plan;
  choose_ranks(choices, cluster, plan);
  const std::int64_t microbatches = choose_schedule(choices, plan);
  plan.batch.microbatch_size = choices.pick({1, 2, 1, 3});
  plan.batch.global_batch = plan.mesh.dp * plan.batch.microbatch_size * microbatches;
  write_out_schedule(choices, plan);
}

}  // namespace stepsim
