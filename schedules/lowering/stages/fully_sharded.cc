#include "schedules/lowering/stages/fully_sharded.h"

#include <algorithm>
#include <string>

#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

// Returns the stage's embedding; nullptr if it has none, or another layer of it reads the table.
const StageUnit* own_embedding(const Stage& stage) {
  const StageUnit* embedding = nullptr;
  for (const StageChunk& chunk : stage.chunks) {
    for (const StageUnit& unit : chunk.units) {
      if (unit.tied_parameters > 0) return nullptr;
      if (unit.is_embedding) embedding = &unit;
    }
  }
  return embedding;
}

}  // namespace

FullySharded::FullySharded(Stage& stage) : stage_(stage) {
  for (const bool experts : {false, true}) {
    const ReplicaGroups& groups = stage.groups(experts);
    if (!groups.gradients) continue;
    const std::string name = experts ? "expert fsdp " : "fsdp ";
    Part part{.groups = &groups, .experts = experts};
    part.gather_stream = stage.builder.add_stream(name + "gather");
    part.reduce_stream = stage.builder.add_stream(name + "reduce");
    if (groups.across) part.across_stream = stage.builder.add_stream(name + "reduce across");
    parts_.push_back(std::move(part));
  }
  if (stage.plan.buffers.keep_root) root_ = own_embedding(stage);
}

Bytes FullySharded::weights(const Part& part, const StageUnit& unit) const {
  return padded(unit.gathered(part.experts), part.groups->shards) * size_of(stage_.plan.weights());
}

void FullySharded::enter(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch) {
  const bool has_it =
      !stage_.plan.state.reshard_after_forward && std::ranges::count(gathered_, &unit) > 0;
  for (Part& part : parts_) {
    if (visit.reads_parameters) {
      part.gathers.emplace_back();
      if (!has_it && unit.gathered(part.experts) > 0) gather(part, unit, microbatch);
    }
    const std::size_t most_unreduced = stage_.plan.overlap.gradients ? 2 : 1;
    if (visit.makes_gradients && part.reductions.size() >= most_unreduced) {
      stage_.front().waits.push_back(
          after(part.reductions[part.reductions.size() - most_unreduced]));
    }
  }
  if (visit.reads_parameters && !has_it) gathered_.push_back(&unit);
  before_visit_ = stage_.front().last_compute;
}

void FullySharded::gather(Part& part, const StageUnit& unit, std::int32_t microbatch) {
  const std::size_t visit = part.gathers.size() - 1;
  const auto ahead = static_cast<std::size_t>(stage_.plan.state.prefetch) + 1;
  std::vector<Dependency> dependencies;
  if (visit >= ahead) dependencies.push_back(after(last_of_visit_[visit - ahead]));
  const Bytes bytes = weights(part, unit);
  const OpRef gather = stage_.add_collective(
      part.gather_stream,
      {.communicator = *part.groups->parameters,
       .op = CollectiveOp::kAllGather,
       .bytes = bytes,
       .type = stage_.plan.weights()},
      Axis::kData,
      stage_.label((part.experts ? "gather experts of " : "gather ") + unit.name, unit.block,
                   microbatch),
      std::move(dependencies));
  stage_.builder.change_memory(gather,
                               {.category = MemoryCategory::kGatheredParameters, .bytes = bytes});
  part.gathers.back() = gather;
  stage_.front().waits.push_back(after(gather));
}

int FullySharded::let_go(const StageUnit& unit, const LayerVisit& visit, bool is_last) const {
  if (!stage_.plan.state.reshard_after_forward) return visit.makes_gradients && is_last ? 1 : 0;
  const bool saves =
      (stage_.plan.buffers.save_gathered && unit.layer->reads_weights_again) || &unit == root_;
  const int own = visit.reads_parameters && !(saves && visit.is_forward) ? 1 : 0;
  return own + (saves && visit.makes_gradients ? 1 : 0);
}

void FullySharded::leave(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch,
                         bool is_last) {
  const OpRef last = *stage_.front().last_compute;
  if (visit.reads_parameters) last_of_visit_.push_back(last);
  const int let_go_times = let_go(unit, visit, is_last);
  for (Part& part : parts_) {
    if (unit.gathered(part.experts) == 0) continue;
    if (let_go_times > 0) {
      stage_.builder.change_memory(last, {.category = MemoryCategory::kGatheredParameters,
                                          .at_end = true,
                                          .bytes = let_go_times * weights(part, unit)});
    }
    if (visit.makes_gradients && unit.reduced(part.experts) > 0) {
      reduce(part, unit, microbatch, is_last);
    }
  }
}

void FullySharded::reduce(Part& part, const StageUnit& unit, std::int32_t microbatch,
                          bool is_last) {
  const std::int64_t gradient_bytes = stage_.plan.update.gradient_bytes;
  const std::string what = (part.experts ? "reduce experts of " : "reduce ") + unit.name;
  const std::int64_t parameters = unit.reduced(part.experts);
  const Bytes bytes(padded(parameters, part.groups->shards) * gradient_bytes);
  const OpRef reduction =
      stage_.add_collective(part.reduce_stream,
                            {.communicator = *part.groups->gradients,
                             .op = CollectiveOp::kReduceScatter,
                             .bytes = bytes,
                             .type = stage_.gradient_type()},
                            Axis::kData, stage_.label(what, unit.block, microbatch),
                            {after(*stage_.front().last_compute)});
  // The whole gradient is held from the first op of the backward on.
  const OpRef first{stage_.compute, before_visit_ ? before_visit_->position + 1 : 0};
  stage_.builder.change_memory(first, {.category = MemoryCategory::kGradients, .bytes = bytes});
  stage_.builder.change_memory(
      reduction, {.category = MemoryCategory::kGradients, .at_end = true, .bytes = bytes});
  part.reductions.push_back(reduction);
  if (!is_last || !part.across_stream) return;
  part.last_across = stage_.add_collective(
      *part.across_stream,
      {.communicator = *part.groups->across,
       .op = CollectiveOp::kAllReduce,
       .bytes = Bytes(part_of(parameters, part.groups->shards) * gradient_bytes),
       .type = stage_.gradient_type()},
      Axis::kData, stage_.label(what + " across groups", unit.block, microbatch),
      {after(reduction)});
}

std::vector<Dependency> FullySharded::reduced() const {
  std::vector<Dependency> done;
  for (const Part& part : parts_) {
    if (!part.reductions.empty()) done.push_back(after(part.reductions.back()));
    if (part.last_across) done.push_back(after(*part.last_across));
  }
  return done;
}

void FullySharded::before_next_step(OpRef optimizer) {
  const auto ahead = static_cast<std::size_t>(stage_.plan.state.prefetch) + 1;
  for (const Part& part : parts_) {
    for (std::size_t visit = 0; visit < ahead && visit < part.gathers.size(); ++visit) {
      if (!part.gathers[visit]) continue;
      stage_.builder.add_dependency(*part.gathers[visit], after_previous_step(optimizer));
    }
  }
}

}  // namespace stepsim
