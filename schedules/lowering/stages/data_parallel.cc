#include "schedules/lowering/stages/data_parallel.h"

#include <algorithm>
#include <utility>

#include "schedules/plan/axis.h"

namespace stepsim {

DataParallel::DataParallel(Stage& stage) : stage_(stage) {
  for (const bool upper : {false, true}) {
    if (upper && !stage.has_copies()) continue;
    for (const bool experts : {false, true}) {
      const ReplicaGroups& groups = stage.groups(experts, upper);
      Part part{.groups = &groups, .experts = experts, .upper = upper};
      const auto open = [&](const std::optional<CommunicatorId>& communicator,
                            const std::string& what) {
        std::optional<StreamId> stream;
        const std::string name = (experts ? "edp " : "dp ") + what + (upper ? " upper" : "");
        if (communicator) stream = stage.builder.add_stream(name);
        return stream;
      };
      part.gradient_stream = open(groups.gradients, "gradients");
      part.across_stream = open(groups.across, "gradients across");
      part.parameter_stream = open(groups.parameters, "parameters");
      parts_.push_back(std::move(part));
    }
  }
}

void DataParallel::enter(const StageUnit& unit) {
  before_backward_ = stage_.front().last_compute;
  if (stage_.plan.state.zero < 2) return;
  constexpr std::size_t kMostWhole = 2;  // buckets
  for (const Part& part : parts_) {
    if (unit.layer->parameters_of(part.experts) == 0) continue;
    if (part.reductions.size() < kMostWhole) continue;
    stage_.front().waits.push_back(after(part.reductions[part.reductions.size() - kMostWhole]));
  }
}

// Zero 2: a whole gradient is held from the first op of its backward to the end of its reduction.
void DataParallel::hold_whole_gradients(Part& part, std::int64_t parameters) {
  if (stage_.plan.state.zero < 2 || !part.gradient_stream) return;
  // If a layer made its weight gradients earlier, with its input gradients, it runs nothing now.
  const std::uint32_t next = before_backward_ ? before_backward_->position + 1 : 0;
  const OpRef first{stage_.compute, std::min(next, stage_.front().last_compute->position)};
  stage_.builder.change_memory(first,
                               {.category = MemoryCategory::kGradients,
                                .bytes = Bytes(parameters * stage_.plan.update.gradient_bytes)});
}

void DataParallel::leave(const StageUnit& unit, std::int32_t stage, bool is_last) {
  const Sharding& state = stage_.plan.state;
  const std::int64_t full = stage_.plan.bucket_parameters();
  if (!is_last && state.zero < 2) return;
  for (Part& part : parts_) {
    if (part.upper != stage_.is_upper(stage)) continue;
    const std::int64_t parameters = unit.layer->parameters_of(part.experts);
    if (parameters > 0) {
      hold_whole_gradients(part, parameters);
      if (part.buckets.empty() || part.buckets.back().is_last != is_last ||
          part.buckets.back().parameters >= full) {
        part.buckets.emplace_back().is_last = is_last;
      }
      Bucket& bucket = part.buckets.back();
      bucket.parameters += parameters;
      bucket.divided += part_of(parameters, part.groups->shards);
      bucket.units.push_back(&unit);
      bucket.ready = *stage_.front().last_compute;
      if ((stage_.plan.overlap.gradients || state.zero == 2) && bucket.parameters >= full) {
        reduce(part, bucket);
      }
    }
  }
}

void DataParallel::end_pass(std::int32_t stage) {
  if (stage_.plan.state.zero < 2) return;
  for (Part& part : parts_) {
    if (part.upper == stage_.is_upper(stage)) end_pass(part);
  }
}

void DataParallel::reduce(Part& part, Bucket& bucket) {
  bucket.reduced = true;
  const Sharding& state = stage_.plan.state;
  const std::int64_t gradient_bytes = stage_.plan.update.gradient_bytes;
  const std::int64_t own = state.zero == 0 ? bucket.parameters : bucket.divided;
  if (!part.gradient_stream) {
    if (bucket.is_last) complete_.push_back({bucket.ready, own});
    return;
  }
  const bool at_once = stage_.plan.overlap.gradients || state.zero == 2;
  const std::string what = part.experts ? "expert gradients" : "gradients";
  const std::int64_t summed =
      state.zero == 0 ? bucket.parameters : part.groups->shards * bucket.divided;
  OpRef reduction = stage_.add_collective(
      *part.gradient_stream,
      {.communicator = *part.groups->gradients,
       .op = state.zero >= 1 ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
       .bytes = Bytes(summed * gradient_bytes),
       .type = stage_.gradient_type()},
      Axis::kData, stage_.label("reduce " + what),
      {after(at_once ? bucket.ready : *stage_.front().last_compute)});
  if (state.zero == 2) {
    stage_.builder.change_memory(reduction, {.category = MemoryCategory::kGradients,
                                             .at_end = true,
                                             .bytes = Bytes(bucket.parameters * gradient_bytes)});
    part.reductions.push_back(reduction);
  }
  if (bucket.is_last && part.across_stream) {
    reduction = stage_.add_collective(
        *part.across_stream,
        {.communicator = *part.groups->across,
         .op = CollectiveOp::kAllReduce,
         .bytes = Bytes(bucket.divided * gradient_bytes),
         .type = stage_.gradient_type()},
        Axis::kData, stage_.label("reduce " + what + " across groups"), {after(reduction)});
  }
  part.done = {after(reduction)};
  if (bucket.is_last) complete_.push_back({reduction, own});
}

void DataParallel::end_pass(Part& part) {
  for (Bucket& bucket : part.buckets) {
    if (!bucket.reduced) reduce(part, bucket);
    if (bucket.is_last) part.last_buckets.push_back(std::move(bucket));
  }
  part.buckets.clear();
}

void DataParallel::forward_begins(const StageUnit& unit) {
  if (!stage_.plan.overlap.parameters) return;
  if (std::ranges::count(first_forwards_, &unit, &FirstForward::unit) > 0) return;
  first_forwards_.push_back(
      {&unit,
       {stage_.compute,
        stage_.front().last_compute ? stage_.front().last_compute->position + 1 : 0}});
}

std::vector<Dependency> DataParallel::finish_gradients() {
  std::vector<Dependency> done;
  for (Part& part : parts_) {
    for (const HeldWeights& held : stage_.shared) {
      if (part.experts || !held.is_copy) continue;
      before_backward_.reset();  // the copy's whole gradient is held all the time
      hold_whole_gradients(part, held.parameters);
      part.buckets.push_back({.parameters = held.parameters,
                              .divided = part_of(held.parameters, part.groups->shards),
                              .units = {held.reader},
                              .ready = *stage_.front().last_compute,
                              .is_last = true});
    }
    end_pass(part);
    done.insert(done.end(), part.done.begin(), part.done.end());
  }
  return done;
}

void DataParallel::gather_parameters(OpRef optimizer) {
  for (Part& part : parts_) {
    if (!part.parameter_stream) continue;
    // Gathers the parameters that the next forward needs first before the others.
    std::vector<Bucket>& buckets = part.last_buckets;
    if (stage_.plan.overlap.parameters) std::ranges::reverse(buckets);
    std::optional<OpRef> last;
    for (const Bucket& bucket : buckets) {
      last = stage_.add_collective(
          *part.parameter_stream,
          {.communicator = *part.groups->parameters,
           .op = CollectiveOp::kAllGather,
           .bytes = part.groups->shards * bucket.divided * size_of(stage_.plan.weights()),
           .type = stage_.plan.weights()},
          Axis::kData,
          stage_.label(part.experts ? "gather expert parameters" : "gather parameters"),
          {after(optimizer)});
      if (!stage_.plan.overlap.parameters) continue;
      for (const FirstForward& forward : first_forwards_) {
        if (std::ranges::count(bucket.units, forward.unit) > 0) {
          stage_.builder.add_dependency(forward.op, after_previous_step(*last));
        }
      }
    }
    if (last && !stage_.plan.overlap.parameters) {
      stage_.builder.add_dependency(*stage_.first_compute, after_previous_step(*last));
    }
  }
}

}  // namespace stepsim
