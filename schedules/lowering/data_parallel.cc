#include "schedules/lowering/data_parallel.h"

#include <algorithm>

namespace stepsim {

DataParallel::DataParallel(Stage& stage) : stage_(stage) {
  const PlanCommunicators& communicators = stage.communicators;
  sides_.push_back(open_side(communicators.gradients, communicators.parameters, ""));
  if (!stage.has_copies()) return;
  sides_.push_back(
      open_side(communicators.upper_gradients, communicators.upper_parameters, " upper"));
}

DataParallel::Side DataParallel::open_side(std::optional<CommunicatorId> gradients,
                                           std::optional<CommunicatorId> parameters,
                                           const std::string& suffix) {
  Side side{.gradients = gradients, .parameters = parameters};
  if (gradients) side.gradient_stream = stage_.builder.add_stream("dp gradients" + suffix);
  if (parameters) side.parameter_stream = stage_.builder.add_stream("dp parameters" + suffix);
  return side;
}

void DataParallel::gradients_ready(const StageUnit& unit, std::int32_t stage) {
  const ParallelPlan& plan = stage_.plan;
  const bool is_upper = stage_.is_upper(stage);
  const auto open = std::find_if(buckets_.rbegin(), buckets_.rend(),
                                 [&](const Bucket& bucket) { return bucket.is_upper == is_upper; });
  const bool is_full =
      open == buckets_.rend() || open->parameters >= plan.gradient_bucket_parameters;
  Bucket& bucket = is_full ? buckets_.emplace_back(Bucket{.is_upper = is_upper}) : *open;
  bucket.parameters += unit.layer->parameters;
  bucket.ready = *stage_.last_compute;
  if (plan.overlap_gradients && bucket.parameters >= plan.gradient_bucket_parameters) {
    reduce(bucket);
  }
}

void DataParallel::reduce(Bucket& bucket) {
  bucket.reduced = true;
  Side& side = side_of(bucket);
  if (!side.gradient_stream) return;
  const ParallelPlan& plan = stage_.plan;
  const OpRef reduction = stage_.add_collective(
      *side.gradient_stream,
      {.communicator = *side.gradients,
       .op = plan.zero >= 1 ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
       .bytes = Bytes(bucket.parameters * plan.gradient_bytes),
       .type = stage_.gradient_type()},
      Axis::kData, stage_.label("reduce gradients"),
      {after(plan.overlap_gradients ? bucket.ready : *stage_.last_compute)});
  side.last_reduction = after(reduction);
}

std::vector<Dependency> DataParallel::finish_gradients() {
  if (stage_.copies_table()) {
    buckets_.push_back({.parameters = stage_.tied_parameters, .ready = *stage_.last_compute});
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.reduced) reduce(bucket);
  }
  std::vector<Dependency> done;
  for (const Side& side : sides_) {
    if (side.last_reduction) done.push_back(*side.last_reduction);
  }
  if (stage_.tied_parameters > 0) {
    std::vector<Dependency> dependencies = done;
    dependencies.push_back(after(*stage_.last_compute));
    done.push_back(after(stage_.add_collective(
        stage_.builder.add_stream("tied embedding"),
        {.communicator = *stage_.communicators.tied_embedding,
         .op = CollectiveOp::kAllReduce,
         .bytes = Bytes(stage_.tied_parameters * stage_.plan.gradient_bytes),
         .type = stage_.gradient_type()},
        Axis::kData, stage_.label("reduce tied embedding"), std::move(dependencies))));
  }
  return done;
}

void DataParallel::gather_parameters(OpRef optimizer) {
  for (const bool upper : {false, true}) {
    std::optional<OpRef> last;
    for (const Bucket& bucket : buckets_) {
      const Side& side = side_of(bucket);
      if (bucket.is_upper != upper || !side.parameter_stream) continue;
      last =
          stage_.add_collective(*side.parameter_stream,
                                {.communicator = *side.parameters,
                                 .op = CollectiveOp::kAllGather,
                                 .bytes = bucket.parameters * size_of(stage_.plan.type),
                                 .type = stage_.plan.type},
                                Axis::kData, stage_.label("gather parameters"), {after(optimizer)});
    }
    if (last) stage_.builder.add_dependency(*stage_.first_compute, after_previous_step(*last));
  }
}

}  // namespace stepsim
