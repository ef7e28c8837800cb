#include "schedules/lowering/stages/offload.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "schedules/lowering/stages/muon.h"
#include "schedules/lowering/stages/optimizer.h"
#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

OpRef add_host(Stage& stage, StreamId stream, const HostWork& work, OpLabel label,
               std::vector<Dependency> dependencies, std::vector<MemoryChange> memory = {}) {
  OpDraft op{.stream = stream, .kind = OpKind::kHost, .axis = Axis::kHost};
  op.work = stage.tables.host(work);
  op.label = label;
  op.dependencies = std::move(dependencies);
  op.memory_changes = std::move(memory);
  return stage.builder.add(std::move(op));
}

// Returns bucket sizes that add up to the parameters that the rank updates. Rounding makes the last
// bucket larger or smaller. Without buckets the parameters are cut evenly.
std::vector<std::int64_t> bucket_sizes(const Stage& stage,
                                       const std::vector<CompleteGradients>& complete) {
  const std::int64_t updated = stage.updated_parameters();
  std::vector<std::int64_t> sizes;
  if (complete.empty()) {
    const std::int64_t buckets =
        std::max<std::int64_t>(1, part_of(updated, stage.plan.bucket_parameters()));
    for (std::int64_t i = 0; i < buckets; ++i) {
      sizes.push_back((i + 1) * updated / buckets - i * updated / buckets);
    }
    return sizes;
  }
  std::int64_t left = updated;
  for (const CompleteGradients& bucket : complete) {
    sizes.push_back(std::min(left, bucket.parameters));
    left -= sizes.back();
  }
  sizes.back() += left;
  return sizes;
}

// Returns the bytes that an offloaded block keeps for one micro-batch.
Bytes kept_by(const StageUnit& unit) {
  Bytes kept;
  for (const LayerStep& step : unit.layer->forward) kept += step.kept;
  return kept;
}

// Returns what the rank copies for a checkpoint: its part of what its replicas hold together.
Bytes checkpoint_share(const Stage& stage) {
  const bool has_state = stage.plan.training.optimizer != Optimizer::kNone;
  const std::int64_t each =
      size_of(DataType::kBf16).value() + (has_state ? stage.plan.update.optimizer_bytes : 0);
  std::int64_t without = 0;  // second moments that Muon's matrices lack
  std::int64_t values = 0;
  for (const bool experts : {false, true}) {
    values += part_of(stage.parameters_of(experts), stage.groups(experts).replicas);
    if (stage.plan.training.optimizer != Optimizer::kMuon) continue;
    without += part_of(matrix_values(stage, experts), stage.groups(experts).replicas) *
               stage.plan.update.second_moment_bytes;
  }
  return Bytes(values * each - without);
}

bool is_offloaded(const Stage& stage, const StageUnit& unit) {
  if (!unit.block) return false;
  if (!stage.plan.offload.layers) return true;
  for (const StageChunk& chunk : stage.chunks) {
    std::int64_t before = 0;
    for (const StageUnit& other : chunk.units) {
      if (&other == &unit) return before < *stage.plan.offload.layers;
      if (other.block) ++before;
    }
  }
  return false;
}

}  // namespace

OpRef add_offloaded_optimizer(Stage& stage, std::vector<CompleteGradients> complete,
                              const std::vector<Dependency>& ready,
                              const std::vector<Dependency>& valid) {
  const OptimizerUpdate& optimizer = stage.plan.update;
  const bool on_host = optimizer.host_optimizer;
  const std::int64_t weight_bytes = size_of(stage.plan.weights()).value();
  const StreamId out = stage.builder.add_stream("host out");
  const StreamId in = stage.builder.add_stream("host in");
  const StreamId update = on_host ? stage.builder.add_stream("host update") : StreamId();
  const std::vector<std::int64_t> sizes = bucket_sizes(stage, complete);
  stage.builder.hold_on_host(
      Bytes(stage.updated_parameters() *
            (optimizer.optimizer_bytes + (on_host ? optimizer.gradient_bytes : 0))));
  std::vector<OpRef> outs;
  OpRef last{};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // Gradients that receive further sums are complete only together with all others.
    const bool early = i < complete.size() && i + 1 < sizes.size();
    const std::vector<Dependency> own =
        early ? std::vector<Dependency>{after(complete[i].by)} : ready;
    std::vector<Dependency> known = own;
    if (optimizer.clip_gradients) known = valid;
    const auto copy = [&](std::int64_t bytes) { return Bytes(sizes[i] * bytes); };
    if (on_host) {
      const OpRef gradients = add_host(
          stage, out, {.action = HostAction::kCopyOut, .bytes = copy(optimizer.gradient_bytes)},
          stage.label("gradients to host"), own);
      known.push_back(after(gradients));
      const OpRef updated = add_host(
          stage, update,
          {.action = HostAction::kUpdate,
           .bytes = copy(optimizer.gradient_bytes + 2 * optimizer.optimizer_bytes + weight_bytes)},
          stage.label("optimizer on host"), std::move(known));
      last = add_host(stage, in, {.action = HostAction::kCopyIn, .bytes = copy(weight_bytes)},
                      stage.label("weights from host"), {after(updated)});
      continue;
    }
    const Bytes state = copy(optimizer.optimizer_bytes);
    std::vector<Dependency> room = own;
    if (i >= 2) room = {after(outs[i - 2])};
    known.push_back(after(
        add_host(stage, in, {.action = HostAction::kCopyIn, .bytes = state},
                 stage.label("optimizer state from host"), std::move(room),
                 {{.category = MemoryCategory::kOptimizer, .at_end = false, .bytes = state}})));
    last = add_adam(stage, sizes[i], std::move(known));
    outs.push_back(
        add_host(stage, out, {.action = HostAction::kCopyOut, .bytes = state},
                 stage.label("optimizer state to host"), {after(last)},
                 {{.category = MemoryCategory::kOptimizer, .at_end = true, .bytes = state}}));
  }
  if (on_host && stage.first_compute) {
    stage.builder.add_dependency(*stage.first_compute, after_previous_step(last));
  }
  return last;
}

OpRef add_checkpoint_copy(Stage& stage) {
  stage.pass = stage.tables.name("checkpoint");
  return add_host(stage, stage.builder.add_stream("checkpoint"),
                  {.action = HostAction::kCopyOut, .bytes = checkpoint_share(stage)},
                  stage.label("checkpoint to host"), {});
}

ActivationOffload::ActivationOffload(Stage& stage)
    : stage_(stage),
      out_(stage.builder.add_stream("activations out")),
      in_(stage.builder.add_stream("activations in")) {}

void ActivationOffload::before_forward(const StageUnit& unit) {
  visit();
  constexpr std::size_t kBuffers = 2;
  if (!is_offloaded(stage_, unit) || outs_.size() < kBuffers) return;
  stage_.front().waits.push_back(after(outs_[outs_.size() - kBuffers]));
}

void ActivationOffload::after_forward(const StageUnit& unit, std::int32_t microbatch) {
  const Bytes bytes = kept_by(unit);
  if (!is_offloaded(stage_, unit) || bytes == Bytes(0)) return;
  outs_.push_back(
      add_host(stage_, out_, {.action = HostAction::kCopyOut, .bytes = bytes, .stays = true},
               stage_.label("activations to host", unit.block, microbatch),
               {after(*stage_.front().last_compute)},
               {{.category = MemoryCategory::kActivations, .at_end = true, .bytes = bytes}}));
  kept_.push_back({&unit, microbatch, outs_.back()});
}

void ActivationOffload::before_backward(const StageUnit& unit, std::int32_t microbatch) {
  visit();
  const auto kept = std::ranges::find_if(
      kept_, [&](const Kept& of) { return of.unit == &unit && of.microbatch == microbatch; });
  if (kept == kept_.end()) return;
  const Bytes bytes = kept_by(unit);
  std::vector<Dependency> dependencies{after(kept->out)};
  if (visited_) dependencies.push_back(after(*visited_));
  stage_.front().waits.push_back(after(add_host(
      stage_, in_, {.action = HostAction::kCopyIn, .bytes = bytes, .stays = true},
      stage_.label("activations from host", unit.block, microbatch), std::move(dependencies),
      {{.category = MemoryCategory::kActivations, .at_end = false, .bytes = bytes}})));
  kept_.erase(kept);
}

Bytes offloaded_bytes(const Stage& stage) {
  const OffloadPlan& offload = stage.plan.offload;
  const OptimizerUpdate& update = stage.plan.update;
  std::int64_t bytes = 0;
  if (offload.optimizer && stage.plan.training.optimizer == Optimizer::kAdam) {
    bytes += stage.updated_parameters() *
             (update.host_optimizer ? update.gradient_bytes + size_of(stage.plan.weights()).value()
                                    : 2 * update.optimizer_bytes);
  }
  if (offload.copy_checkpoint) bytes += checkpoint_share(stage).value();
  for (std::size_t chunk = 0; offload.activations && chunk < stage.chunks.size(); ++chunk) {
    // With two copies of a stage, each copy runs some of the micro-batches.
    const auto forwards = std::ranges::count_if(
        stage.schedule.ranks[static_cast<std::size_t>(stage.number)], [&](const PipelineOp& op) {
          return op.chunk == static_cast<std::int32_t>(chunk) &&
                 (op.kind == PipelineOpKind::kForward ||
                  op.kind == PipelineOpKind::kForwardBackward);
        });
    for (const StageUnit& unit : stage.chunks[chunk].units) {
      if (is_offloaded(stage, unit)) bytes += 2 * forwards * kept_by(unit).value();
    }
  }
  return Bytes(bytes);
}

}  // namespace stepsim
