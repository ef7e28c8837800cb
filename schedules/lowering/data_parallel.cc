#include "schedules/lowering/data_parallel.h"

namespace stepsim {

DataParallel::DataParallel(Stage& stage) : stage_(stage) {
  if (stage.communicators.gradients) gradient_stream_ = stage.builder.add_stream("dp gradients");
  if (stage.communicators.parameters) parameter_stream_ = stage.builder.add_stream("dp parameters");
}

void DataParallel::gradients_ready(const StageUnit& unit) {
  const ParallelPlan& plan = stage_.plan;
  if (buckets_.empty() || buckets_.back().parameters >= plan.gradient_bucket_parameters) {
    buckets_.emplace_back();
  }
  Bucket& bucket = buckets_.back();
  bucket.parameters += unit.layer->parameters;
  bucket.ready = *stage_.last_compute;
  if (plan.overlap_gradients && bucket.parameters >= plan.gradient_bucket_parameters) {
    reduce(bucket);
  }
}

void DataParallel::reduce(Bucket& bucket) {
  bucket.reduced = true;
  if (!gradient_stream_) return;
  const ParallelPlan& plan = stage_.plan;
  const OpRef reduction = stage_.add_collective(
      *gradient_stream_,
      {.communicator = *stage_.communicators.gradients,
       .op = plan.zero >= 1 ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
       .bytes = Bytes(bucket.parameters * plan.gradient_bytes),
       .type = stage_.gradient_type()},
      Axis::kData, stage_.label("reduce gradients"),
      {after(plan.overlap_gradients ? bucket.ready : *stage_.last_compute)});
  done_ = {after(reduction)};
}

std::vector<Dependency> DataParallel::finish_gradients() {
  if (stage_.copies_table()) {
    buckets_.push_back({.parameters = stage_.tied_parameters, .ready = *stage_.last_compute});
  }
  for (Bucket& bucket : buckets_) {
    if (!bucket.reduced) reduce(bucket);
  }
  if (stage_.tied_parameters > 0) {
    std::vector<Dependency> dependencies = done_;
    dependencies.push_back(after(*stage_.last_compute));
    done_.push_back(after(stage_.add_collective(
        stage_.builder.add_stream("tied embedding"),
        {.communicator = *stage_.communicators.tied_embedding,
         .op = CollectiveOp::kAllReduce,
         .bytes = Bytes(stage_.tied_parameters * stage_.plan.gradient_bytes),
         .type = stage_.gradient_type()},
        Axis::kData, stage_.label("reduce tied embedding"), std::move(dependencies))));
  }
  return done_;
}

void DataParallel::gather_parameters(OpRef optimizer) {
  if (!parameter_stream_) return;
  std::optional<OpRef> last;
  for (const Bucket& bucket : buckets_) {
    last =
        stage_.add_collective(*parameter_stream_,
                              {.communicator = *stage_.communicators.parameters,
                               .op = CollectiveOp::kAllGather,
                               .bytes = bucket.parameters * size_of(stage_.plan.type),
                               .type = stage_.plan.type},
                              Axis::kData, stage_.label("gather parameters"), {after(optimizer)});
  }
  if (last) stage_.builder.add_dependency(*stage_.first_compute, after_previous_step(*last));
}

}  // namespace stepsim
