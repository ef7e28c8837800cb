#include "schedules/pipeline/stage_costs.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace stepsim {
namespace {

// Applies `choose` to the times of all stages, for each kind of op.
template <typename Choose>
PipelineCosts chosen(const StageCosts& costs, const Choose& choose) {
  const auto of = [&](std::int64_t PipelineCosts::*kind) {
    std::vector<std::int64_t> times;
    for (const PipelineCosts& stage : costs.listed()) times.push_back(stage.*kind);
    return choose(times);
  };
  return {.forward = of(&PipelineCosts::forward),
          .backward_input = of(&PipelineCosts::backward_input),
          .backward_weight = of(&PipelineCosts::backward_weight),
          .send = of(&PipelineCosts::send),
          .fused = costs.at(0).fused};
}

}  // namespace

StageCosts::StageCosts(std::vector<PipelineCosts> by_stage) : costs_(std::move(by_stage)) {
  assert(!costs_.empty());
  const auto differs = [&](const PipelineCosts& stage) { return stage != costs_.front(); };
  if (std::ranges::none_of(costs_, differs)) costs_.resize(1);
}

std::int64_t time_of(const PipelineSchedule& schedule, std::int32_t rank, const PipelineOp& op,
                     const StageCosts& costs) {
  const PipelineCosts& stage = costs.at(stage_of(schedule, rank, op.chunk));
  if (op.kind != PipelineOpKind::kForwardBackward || stage.fused) return time_of(op, stage);
  return stage.forward + costs.at(stage_of(schedule, rank, op.backward_chunk)).backward();
}

PipelineCosts longest_stage(const StageCosts& costs) {
  return chosen(costs, [](const std::vector<std::int64_t>& times) {
    return *std::ranges::max_element(times);
  });
}

PipelineCosts median_stage(const StageCosts& costs) {
  return chosen(costs, [](std::vector<std::int64_t> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
    std::ranges::nth_element(times, middle);
    return *middle;
  });
}

std::int64_t unit_of(const StageCosts& costs) {
  std::int64_t unit = 0;
  for (const PipelineCosts& stage : costs.listed()) unit = std::gcd(unit, unit_of(stage));
  return unit;
}

StageCosts in_units(const StageCosts& costs, std::int64_t unit) {
  std::vector<PipelineCosts> stages;
  for (const PipelineCosts& stage : costs.listed()) stages.push_back(in_units(stage, unit));
  return stages;
}

StageCosts recut(const StageCosts& costs, std::int64_t from, std::int64_t to, std::int64_t fine) {
  const std::int64_t cells = std::lcm(from, to);  // parts of the model, each in one stage of both
  const std::int64_t a_stage = cells / from;
  assert(fine % a_stage == 0);
  if (costs.are_even()) {
    PipelineCosts same = costs.at(0);
    const std::int64_t factor = cells / to * (fine / a_stage);
    for (std::int64_t* time : {&same.forward, &same.backward_input, &same.backward_weight}) {
      *time *= factor;
    }
    same.send *= fine;
    if (same.fused) *same.fused *= factor;
    return same;
  }
  std::vector<PipelineCosts> stages;
  for (std::int64_t stage = 0; stage < to; ++stage) {
    PipelineCosts sum{.forward = 0, .backward_input = 0, .backward_weight = 0, .send = 0};
    for (std::int64_t cell = stage * (cells / to); cell < (stage + 1) * (cells / to); ++cell) {
      const PipelineCosts& old = costs.at(static_cast<std::int32_t>(cell / a_stage));
      sum.forward += old.forward * (fine / a_stage);
      sum.backward_input += old.backward_input * (fine / a_stage);
      sum.backward_weight += old.backward_weight * (fine / a_stage);
      sum.send = old.send * fine;
    }
    stages.push_back(sum);
  }
  return stages;
}

}  // namespace stepsim
