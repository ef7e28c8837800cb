#include "schedules/lowering/fully_sharded.h"

namespace stepsim {

FullySharded::FullySharded(Stage& stage)
    : stage_(stage),
      gather_stream_(stage.builder.add_stream("fsdp gather")),
      reduce_stream_(stage.builder.add_stream("fsdp reduce")) {}

void FullySharded::gather(const StageUnit& unit, std::int32_t microbatch) {
  const ParallelPlan& plan = stage_.plan;
  const std::size_t visit = gathers_.size();
  const auto ahead = static_cast<std::size_t>(plan.prefetch) + 1;
  std::vector<Dependency> dependencies;
  if (visit >= ahead) dependencies.push_back(after(last_of_visit_[visit - ahead]));
  const Bytes bytes = unit.layer->parameters * size_of(plan.type);
  const OpRef gather = stage_.add_collective(
      gather_stream_,
      {.communicator = *stage_.communicators.parameters,
       .op = CollectiveOp::kAllGather,
       .bytes = bytes,
       .type = plan.type},
      Axis::kData, stage_.label("gather " + unit.name, unit.number, microbatch),
      std::move(dependencies));
  stage_.builder.change_memory(gather,
                               {.category = MemoryCategory::kGatheredParameters, .bytes = bytes});
  gathers_.push_back(gather);
  stage_.waits.push_back(after(gather));
}

void FullySharded::enter(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch) {
  if (visit.reads_parameters) gather(unit, microbatch);
  constexpr std::size_t kMostUnreduced = 2;
  if (visit.makes_gradients && reductions_.size() >= kMostUnreduced) {
    stage_.waits.push_back(after(reductions_[reductions_.size() - kMostUnreduced]));
  }
  before_visit_ = stage_.last_compute;
}

void FullySharded::leave(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch) {
  const ParallelPlan& plan = stage_.plan;
  const OpRef last = *stage_.last_compute;
  if (visit.reads_parameters) {
    last_of_visit_.push_back(last);
    stage_.builder.change_memory(last, {.category = MemoryCategory::kGatheredParameters,
                                        .at_end = true,
                                        .bytes = unit.layer->parameters * size_of(plan.type)});
  }
  if (!visit.makes_gradients) return;
  const Bytes bytes(unit.layer->parameters * plan.gradient_bytes);
  const OpRef reduction = stage_.add_collective(
      reduce_stream_,
      {.communicator = *stage_.communicators.gradients,
       .op = CollectiveOp::kReduceScatter,
       .bytes = bytes,
       .type = stage_.gradient_type()},
      Axis::kData, stage_.label("reduce " + unit.name, unit.number, microbatch), {after(last)});
  // The whole gradient stands from the first op of the backward on.
  const OpRef first{stage_.compute, before_visit_ ? before_visit_->position + 1 : 0};
  stage_.builder.change_memory(first, {.category = MemoryCategory::kGradients, .bytes = bytes});
  stage_.builder.change_memory(
      reduction, {.category = MemoryCategory::kGradients, .at_end = true, .bytes = bytes});
  reductions_.push_back(reduction);
}

std::vector<Dependency> FullySharded::reduced() const {
  if (reductions_.empty()) return {};
  return {after(reductions_.back())};
}

void FullySharded::before_next_step(OpRef optimizer) {
  const auto ahead = static_cast<std::size_t>(stage_.plan.prefetch) + 1;
  for (std::size_t visit = 0; visit < ahead && visit < gathers_.size(); ++visit) {
    stage_.builder.add_dependency(gathers_[visit], after_previous_step(optimizer));
  }
}

}  // namespace stepsim
