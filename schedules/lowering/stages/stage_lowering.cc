#include "schedules/lowering/stages/stage_lowering.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/lowering/stages/data_parallel.h"
#include "schedules/lowering/stages/freed_gradients.h"
#include "schedules/lowering/stages/fully_sharded.h"
#include "schedules/lowering/stages/offload.h"
#include "schedules/lowering/stages/optimizer.h"
#include "schedules/lowering/stages/pass.h"
#include "schedules/lowering/stages/pipeline.h"
#include "schedules/lowering/stages/post_validation.h"
#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

// Returns "F 3", "B 3", "W 3", "F 7 + B 3"; with several chunks "F 3 of chunk 1".
std::string name_of(const PipelineOp& op, std::size_t chunks) {
  const auto part = [chunks](const char* letter, std::int32_t microbatch, std::int32_t chunk) {
    const std::string name = letter + std::string(" ") + std::to_string(microbatch);
    return chunks > 1 ? name + " of chunk " + std::to_string(chunk) : name;
  };
  switch (op.kind) {
    case PipelineOpKind::kForward:
      return part("F", op.microbatch, op.chunk);
    case PipelineOpKind::kBackward:
    case PipelineOpKind::kBackwardInput:
      return part("B", op.microbatch, op.chunk);
    case PipelineOpKind::kBackwardWeight:
      return part("W", op.microbatch, op.chunk);
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return part("F", op.microbatch, op.chunk) + " + " +
         part("B", op.backward_microbatch, op.backward_chunk);
}

void add_waits(const std::vector<Dependency>& more, std::vector<Dependency>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

// Indices of a step's work and name in the graph, and what it is of its step.
struct WorkAndName {
  std::uint32_t work = 0;
  std::uint32_t name = 0;
  StepPart part = StepPart::kPass;
};

// Walk is the way of a pass through the layers of its chunk, and the next step on it.
struct Walk {
  Pass pass{};
  std::vector<Stop> stops{};
  std::vector<std::pair<std::uint32_t, OpRef>> tickets{};  // tickets of the layer being written
  std::size_t stop = 0;
  std::size_t step = 0;
  const LayerStep* first_step = nullptr;                       // of the layer being written
  std::vector<std::optional<WorkAndName>>* indices = nullptr;  // of its steps, as far as known

  std::optional<WorkAndName>& indices_of(const LayerStep& written) const {
    return (*indices)[static_cast<std::size_t>(&written - first_step)];
  }
};

const char* word_for(PathLabel label, bool weight_gradient) {
  switch (label) {
    case PathLabel::kForward:
      return "forward";
    case PathLabel::kBackward:
      return weight_gradient ? "weight gradient" : "backward";
    case PathLabel::kRecompute:
      return "recompute";
    case PathLabel::kOptimizer:
      break;
  }
  return "optimizer";
}

class StageLowering {
 public:
  explicit StageLowering(Stage& stage) : stage_(stage) {
    if (stage.plan.launches.delay_ops()) stage.builder.launch_by_host();
    stage.compute = stage.builder.add_stream("compute", true);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (!stage.communicators.lanes[lane]) continue;
      lanes_[lane] = stage.builder.add_stream(std::string(name_of(static_cast<Lane>(lane))));
    }
    messages_.emplace(stage);
    if (stage.plan.update.post_validation) validation_.emplace(stage);
    if (stage.plan.offload.activations) offloaded_.emplace(stage);
    if (stage.plan.offload.copy_checkpoint) checkpoint_ = add_checkpoint_copy(stage);
    if (stage.plan.update.free_gradients) freed_.emplace(stage);
    if (stage.plan.state.zero == 3) {
      sharded_.emplace(stage);
    } else {
      replicated_.emplace(stage);
    }
  }

  // Writes the op of this number in the rank's order.
  void write(std::size_t number, const PipelineOp& op, const Completes& completes) {
    stage_.pass = stage_.tables.name(name_of(op, stage_.chunks.size()));
    add_waits(messages_->post_batches(number), stage_.front().waits);
    if (validation_) add_waits(validation_->waits_before(number), stage_.front().waits);
    const auto pass = [&](PassPart part) { return Pass{part, op.microbatch, op.chunk, completes}; };
    switch (op.kind) {
      case PipelineOpKind::kForward:
        return alone(pass(PassPart::kForward));
      case PipelineOpKind::kBackward:
        return alone(pass(PassPart::kBackward));
      case PipelineOpKind::kBackwardInput:
        return alone(pass(PassPart::kInputGradients));
      case PipelineOpKind::kBackwardWeight:
        return run(pass(PassPart::kWeightGradients));
      case PipelineOpKind::kForwardBackward:
        return together(
            pass(PassPart::kForward),
            {PassPart::kBackwardByParts, op.backward_microbatch, op.backward_chunk, completes});
    }
  }

  void finish_step() {
    stage_.pass = stage_.tables.name("optimizer step");
    stage_.part = StepPart::kOptimizer;
    for (const Complete& complete : deferred_) {
      replicated_->leave(*complete.unit, complete.stage, true);
    }
    std::vector<Dependency> ready =
        sharded_ ? sharded_->reduced() : replicated_->finish_gradients();
    const auto rank = static_cast<std::size_t>(stage_.number);
    add_waits(messages_->post_batches(stage_.schedule.ranks[rank].size()), ready);
    sum_sequence_gradients(ready);
    sum_shared_gradients(ready);
    std::vector<Dependency> valid = add_gradient_norm(stage_, ready);
    if (validation_) valid = validation_->add_to_partial_state(valid);
    if (checkpoint_) {
      ready.push_back(after(*checkpoint_));
      valid.push_back(after(*checkpoint_));
    }
    const OpRef optimizer = add_optimizer(ready, valid);
    if (freed_) freed_->free_after(optimizer);
    if (checkpoint_) stage_.builder.add_dependency(*checkpoint_, after_previous_step(optimizer));
    if (sharded_) {
      sharded_->before_next_step(optimizer);
    } else {
      replicated_->gather_parameters(optimizer);
    }
  }

 private:
  OpRef add_optimizer(const std::vector<Dependency>& ready, const std::vector<Dependency>& valid) {
    if (!stage_.plan.offload.optimizer || stage_.plan.training.optimizer != Optimizer::kAdam) {
      return stepsim::add_optimizer(stage_, valid);
    }
    return add_offloaded_optimizer(
        stage_, replicated_ ? replicated_->complete() : std::vector<CompleteGradients>(), ready,
        valid);
  }

  // ---- passes ----

  void run(const Pass& pass) {
    Walk walk{.pass = pass, .stops = stops_of(pass, chunk_of(pass))};
    while (advance(walk, false)) {
    }
  }

  void alone(const Pass& pass) {
    add_waits(gathered(pass.input(), messages_->receive({pass.input()})), stage_.front().waits);
    stage_.front().unread = held_of(pass.input());
    run(pass);
    messages_->send({result_of(pass)});
  }

  void together(const Pass& forward, const Pass& backward) {
    std::vector<Dependency> waits = messages_->receive({forward.input(), backward.input()});
    for (const Pass* const pass : {&forward, &backward}) waits = gathered(pass->input(), waits);
    add_waits(stage_.take_waits(), waits);
    const std::optional<OpRef> last_compute = stage_.front().last_compute;
    std::array<Walk, 2> walks;
    std::array<bool, 2> unfinished = {true, true};
    for (std::size_t i = 0; i < 2; ++i) {
      const Pass& pass = i == 0 ? backward : forward;
      walks[i] = {.pass = pass, .stops = stops_of(pass, chunk_of(pass))};
      stage_.fronts[i] = {waits, held_of(pass.input()), last_compute};
    }
    while (unfinished[0] || unfinished[1]) {
      for (std::size_t i = 0; i < 2; ++i) {
        if (!unfinished[i]) continue;
        stage_.writing = i;
        unfinished[i] = advance(walks[i], true);
      }
    }
    std::vector<StageMessages::Result> results;
    for (std::size_t i = 2; i-- > 0;) {
      stage_.writing = i;
      results.push_back(result_of(walks[i].pass));
    }
    stage_.front() = {.last_compute = newest_compute_};
    messages_->send(std::move(results));
  }

  // ---- messages in shares ----

  bool comes_in_shares(const Handover& input) const {
    return stage_.plan.scatters_messages() && messages_->buffer_of(input) > Bytes(0);
  }

  // Returns the buffers of an input that came from another rank: its share, and the whole message.
  Bytes held_of(const Handover& input) const {
    const Bytes share = messages_->buffer_of(input);
    return comes_in_shares(input) ? share + stage_.boundary : share;
  }

  // Gathers an input of which each tensor rank has received its share. Returns what a pass waits
  // for.
  std::vector<Dependency> gathered(const Handover& input, std::vector<Dependency> arrived) {
    if (!comes_in_shares(input)) return arrived;
    const auto lane = static_cast<std::size_t>(Lane::kTensor);
    const OpRef gather = stage_.add_collective(
        *lanes_[lane],
        {.communicator = *stage_.communicators.lanes[lane],
         .op = CollectiveOp::kAllGather,
         .bytes = stage_.boundary,
         .type = stage_.plan.precision.communicated()},
        Axis::kTensor,
        stage_.label("gather " + std::string(name_of(input.kind)), {}, input.microbatch), arrived);
    stage_.builder.change_memory(gather,
                                 {.category = MemoryCategory::kBuffers, .bytes = stage_.boundary});
    arrived.push_back(after(gather));
    return arrived;
  }

  // Returns the result of a pass, made by its last compute op or by the collective behind it.
  StageMessages::Result result_of(const Pass& pass) {
    StageMessages::Result result{.output = pass.input(), .made_by = stage_.take_waits()};
    result.made_by.push_back(after(*stage_.front().last_compute));
    return result;
  }

  // Writes all steps of a pass or, `by_turns`, those up to the next collective that compute waits
  // for. Returns whether more may follow.
  bool advance(Walk& walk, bool by_turns) {
    const Pass& pass = walk.pass;
    for (; walk.stop < walk.stops.size(); ++walk.stop) {
      const auto& [stopped_at, again] = walk.stops[walk.stop];
      const StageUnit& unit = *stopped_at;
      const std::vector<LayerStep>& steps = pass.steps_of(*unit.layer, again);
      const LayerVisit visit = again ? LayerVisit{} : pass.visit(*unit.layer);
      if (walk.step == 0) {
        walk.first_step = steps.data();
        walk.indices = &indices_of(unit, steps, pass);
        if (sharded_) sharded_->enter(unit, visit, pass.microbatch);
        if (replicated_ && pass.is_forward()) replicated_->forward_begins(unit);
        if (replicated_ && visit.makes_gradients) replicated_->enter(unit);
        if (freed_ && visit.makes_gradients) freed_->enter();
        if (offloaded_) enter_offloaded(unit, pass);
      }
      while (walk.step < steps.size()) {
        const LayerStep& step = steps[walk.step++];
        if (pass.has(step)) write(step, unit, walk);
        if (!by_turns || step.kind != LayerStep::Kind::kCollective) continue;
        while (walk.step < steps.size() && steps[walk.step].weight_gradient) {
          write(steps[walk.step++], unit, walk);
        }
        return true;
      }
      walk.step = 0;
      walk.tickets.clear();
      if (offloaded_ && pass.is_forward()) offloaded_->after_forward(unit, pass.microbatch);
      if (sharded_) {
        sharded_->leave(unit, visit, pass.microbatch, pass.completes_gradients_of(*unit.layer));
      }
      if (replicated_ && !again) leave(unit, pass, visit);
      if (freed_ && visit.makes_gradients) freed_->leave(unit);
    }
    if (replicated_ && !pass.is_forward()) replicated_->end_pass(chunk_of(pass).stage);
    return false;
  }

  const StageChunk& chunk_of(const Pass& pass) const {
    return stage_.chunks[static_cast<std::size_t>(pass.chunk)];
  }

  // A pass for weight gradients alone reads data that the backward before it brought back from the
  // host.
  void enter_offloaded(const StageUnit& unit, const Pass& pass) {
    if (pass.is_forward()) {
      offloaded_->before_forward(unit);
    } else if (pass.part != PassPart::kWeightGradients) {
      offloaded_->before_backward(unit, pass.microbatch);
    }
  }

  // ---- gradients that are complete ----

  struct Complete {
    const StageUnit* unit;
    std::int32_t stage;
  };
  void leave(const StageUnit& unit, const Pass& pass, const LayerVisit& visit) {
    if (!visit.makes_gradients) return;
    const StageChunk& chunk = chunk_of(pass);
    const bool is_last = pass.completes_gradients_of(*unit.layer);
    if (is_last && unit.waits_for_chunks) {
      deferred_.push_back({&unit, chunk.stage});
    } else {
      replicated_->leave(unit, chunk.stage, is_last);
    }
  }

  // Each copy has the gradients of its own rank's layers only, so they are summed.
  void sum_shared_gradients(std::vector<Dependency>& ready) {
    if (stage_.shared.empty()) return;
    std::vector<Dependency> dependencies = ready;
    dependencies.push_back(after(*stage_.front().last_compute));
    for (const HeldWeights& held : stage_.shared) {
      const Bytes bytes(part_of(held.parameters, gradient_parts()) *
                        stage_.plan.update.gradient_bytes);
      ready.push_back(after(
          stage_.add_collective(stage_.builder.add_stream(held.name),
                                {.communicator = stage_.communicators.shared[held.number],
                                 .op = CollectiveOp::kAllReduce,
                                 .bytes = bytes,
                                 .type = stage_.gradient_type()},
                                Axis::kData, stage_.label("reduce " + held.name), dependencies)));
    }
  }

  // Returns the number of parts that dense gradients are divided into.
  std::int64_t gradient_parts() const {
    return stage_.plan.state.zero >= 2 ? stage_.communicators.dense.shards : 1;
  }

  // Every tensor rank holds the same parameters of the S region but has seen only its own tokens,
  // so the gradients are summed.
  void sum_sequence_gradients(std::vector<Dependency>& ready) {
    const auto lane = static_cast<std::size_t>(Lane::kTensor);
    if (!lanes_[lane] || !stage_.plan.tensor.sequence_parallel) return;
    const Bytes bytes(stage_.sequence_parameters(gradient_parts()) *
                      stage_.plan.update.gradient_bytes);
    if (bytes == Bytes(0)) return;
    std::vector<Dependency> dependencies = ready;
    dependencies.push_back(after(*stage_.front().last_compute));
    ready.push_back(after(stage_.add_collective(
        *lanes_[lane],
        {.communicator = *stage_.communicators.lanes[lane],
         .op = CollectiveOp::kAllReduce,
         .bytes = bytes,
         .type = stage_.gradient_type()},
        Axis::kTensor, stage_.label("reduce norm gradients"), std::move(dependencies))));
  }

  // ---- steps ----

  // All micro-batches share the works and names of a layer's steps.
  std::vector<std::optional<WorkAndName>>& indices_of(const StageUnit& unit,
                                                      const std::vector<LayerStep>& steps,
                                                      const Pass& pass) {
    auto& indices = indices_[{&unit, steps.data(), pass.is_forward()}];
    indices.resize(steps.size());
    return indices;
  }

  // Weight gradients among the steps of B do not wait for B's collectives.
  static bool is_aside(const LayerStep& step, const Pass& pass) {
    return step.weight_gradient && pass.part == PassPart::kBackwardByParts;
  }

  void write(const LayerStep& step, const StageUnit& unit, Walk& walk) {
    if (step.kind == LayerStep::Kind::kCompute) {
      compute(step, unit, walk);
    } else {
      communicate(step, unit, walk);
    }
  }

  void communicate(const LayerStep& step, const StageUnit& unit, Walk& walk) {
    const Pass& pass = walk.pass;
    const bool background = step.kind == LayerStep::Kind::kBackground;
    auto lane = static_cast<std::size_t>(step.lane);
    constexpr auto kBackward = static_cast<std::size_t>(Lane::kTensorBackward);
    if (step.lane == Lane::kTensor && lanes_[kBackward] && !pass.is_forward()) lane = kBackward;
    std::optional<WorkAndName>& known = walk.indices_of(step);
    if (!known) {
      known = {.work = stage_.tables.collective({.communicator = *stage_.communicators.lanes[lane],
                                                 .op = step.collective,
                                                 .bytes = step.bytes,
                                                 .type = step.type,
                                                 .algorithm = step.algorithm,
                                                 .byte_matrix = step.byte_matrix,
                                                 .experts = step.experts}),
               .name = stage_.tables.name(std::string(name_of(step.collective)))};
    }
    OpDraft& op = empty_draft(*lanes_[lane], OpKind::kCollective);
    op.axis = axis_of(step.lane);
    op.work = known->work;
    op.label = stage_.label(known->name, unit.block, pass.microbatch, StepPart::kPass);
    if (!is_aside(step, pass)) op.dependencies = stage_.front().waits;
    if (stage_.front().last_compute) op.dependencies.push_back(after(*stage_.front().last_compute));
    const OpRef done = stage_.builder.add(op);
    if (background && !step.ticket) {
      gathered_again_.push_back(done);
    } else if (background) {
      walk.tickets.emplace_back(*step.ticket, done);
    } else if (step.kind == LayerStep::Kind::kDetached) {
      detached_ = done;
    } else {
      stage_.front().waits = {after(done)};
    }
  }

  // One draft serves all steps, so that its lists keep their room.
  OpDraft& empty_draft(StreamId stream, OpKind kind) {
    draft_.stream = stream;
    draft_.kind = kind;
    draft_.axis = {};
    draft_.dependencies.clear();
    draft_.memory_changes.clear();
    draft_.host_waits = false;
    return draft_;
  }

  WorkAndName indices_of_compute(const LayerStep& step, const StageUnit& unit, const Pass& pass) {
    PathLabel path = pass.is_forward() ? PathLabel::kForward : PathLabel::kBackward;
    if (step.recomputes) path = PathLabel::kRecompute;
    // An op without kernels takes no time. It marks when the data of a collective begin to be held.
    const std::string_view what = step.kernels.empty() ? "arrival" : step.kernels.front().name;
    return {.work = stage_.tables.compute(step.kernels, static_cast<std::uint32_t>(path)),
            .name = stage_.tables.name(unit.name + " " + word_for(path, step.weight_gradient) +
                                       ": " + std::string(what)),
            .part = path == PathLabel::kBackward && step.weight_gradient ? StepPart::kWeightGradient
                                                                         : StepPart::kPass};
  }

  void compute(const LayerStep& step, const StageUnit& unit, const Walk& walk) {
    const Pass& pass = walk.pass;
    std::optional<WorkAndName>& known = walk.indices_of(step);
    if (!known) known = indices_of_compute(step, unit, pass);
    OpDraft& op = empty_draft(stage_.compute, OpKind::kCompute);
    op.host_waits = step.host_waits;
    op.work = known->work;
    op.label = stage_.label(known->name, unit.block, pass.microbatch, known->part);
    if (!is_aside(step, pass)) std::swap(op.dependencies, stage_.front().waits);
    if (step.needs_background) {
      op.dependencies.push_back(after(gathered_again_.front()));
      gathered_again_.pop_front();
    }
    for (const std::uint32_t ticket : step.needs) {
      const auto issued = std::find_if(walk.tickets.rbegin(), walk.tickets.rend(),
                                       [&](const auto& entry) { return entry.first == ticket; });
      op.dependencies.push_back(after(issued->second));
    }
    if (detached_) stage_.front().waits.push_back(after(*std::exchange(detached_, std::nullopt)));
    op.memory_changes = {
        {.category = MemoryCategory::kActivations, .at_end = false, .bytes = step.kept},
        {.category = MemoryCategory::kActivations, .at_end = true, .bytes = step.let_go},
        {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = step.workspace},
        {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = step.workspace},
        {.category = MemoryCategory::kBuffers,
         .at_end = true,
         .bytes = std::exchange(stage_.front().unread, Bytes(0))}};
    stage_.front().last_compute = newest_compute_ = stage_.builder.add(op);
    if (!stage_.first_compute) stage_.first_compute = stage_.front().last_compute;
  }

  using StepsOfUnit = std::tuple<const StageUnit*, const LayerStep*, bool>;  // bool: of a forward

  Stage& stage_;
  std::map<StepsOfUnit, std::vector<std::optional<WorkAndName>>> indices_;
  OpDraft draft_{};
  std::array<std::optional<StreamId>, kLanes> lanes_;
  std::optional<StageMessages> messages_;
  std::optional<PostValidation> validation_;
  std::optional<FullySharded> sharded_;  // one of these two is set
  std::optional<DataParallel> replicated_;
  std::optional<FreedGradients> freed_;
  std::optional<ActivationOffload> offloaded_;
  std::optional<OpRef> checkpoint_{};  // its copy to the host
  std::deque<OpRef> gathered_again_;   // background gathers, each until a step needs it
  std::optional<OpRef> detached_;      // the compute op after the next waits for this
  std::optional<OpRef> newest_compute_;
  std::vector<Complete> deferred_;
};

}  // namespace

Program lower_stage(Stage stage, Bytes fixed_memory) {
  StageLowering lowering(stage);
  hold_model_state(stage, fixed_memory);
  const std::vector<PipelineOp>& order =
      stage.schedule.ranks[static_cast<std::size_t>(stage.number)];
  const std::vector<Completes> completed = completed_by(order, stage.chunks.size());
  for (std::size_t i = 0; i < order.size(); ++i) lowering.write(i, order[i], completed[i]);
  if (!stage.plan.is_inference()) lowering.finish_step();
  return std::move(stage.builder).build();
}

}  // namespace stepsim
