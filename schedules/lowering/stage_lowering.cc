#include "schedules/lowering/stage_lowering.h"

#include <optional>
#include <string>
#include <utility>

#include "schedules/lowering/data_parallel.h"
#include "schedules/lowering/fully_sharded.h"
#include "schedules/lowering/optimizer.h"
#include "schedules/lowering/pipeline.h"

namespace stepsim {
namespace {

// One pass over a micro-batch.
struct Pass {
  PathLabel label = PathLabel::kForward;
  std::int32_t microbatch = 0;
  bool is_backward() const { return label == PathLabel::kBackward; }
};

std::string word_for(PathLabel label) {
  switch (label) {
    case PathLabel::kForward:
      return "forward";
    case PathLabel::kBackward:
      return "backward";
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
    stage.compute = stage.builder.add_stream("compute", true);
    if (stage.communicators.tensor) tensor_ = stage.builder.add_stream("tp");
    if (stage.communicators.tensor_regather) {
      regather_ = stage.builder.add_stream("tp regather");
    }
    messages_.emplace(stage);
    if (stage.plan.zero == 3 && stage.replicas() > 1) {
      sharded_.emplace(stage);
    } else {
      replicated_.emplace(stage);
    }
  }

  void forward(std::int32_t microbatch) {
    messages_->receive(MessageKind::kActivation, microbatch);
    for (const StageUnit& unit : stage_.units) run(unit, {PathLabel::kForward, microbatch});
    messages_->send(MessageKind::kActivation, microbatch);
  }

  void backward(std::int32_t microbatch, bool is_last) {
    messages_->receive(MessageKind::kGradient, microbatch);
    for (std::size_t i = stage_.units.size(); i-- > 0;) {
      run(stage_.units[i], {PathLabel::kBackward, microbatch});
      if (is_last && replicated_) replicated_->gradients_ready(stage_.units[i]);
    }
    messages_->send(MessageKind::kGradient, microbatch);
  }

  void finish_step() {
    const OpRef optimizer =
        add_optimizer(stage_, sharded_ ? sharded_->reduced() : replicated_->finish_gradients());
    if (sharded_) {
      sharded_->before_next_step(optimizer);
    } else {
      replicated_->gather_parameters(optimizer);
    }
  }

 private:
  void run(const StageUnit& unit, const Pass& pass) {
    if (sharded_) sharded_->enter(unit, pass.is_backward(), pass.microbatch);
    for (const LayerStep& step : pass.is_backward() ? unit.layer->backward : unit.layer->forward) {
      if (step.kind == LayerStep::Kind::kCompute) {
        compute(step, unit, pass);
      } else {
        communicate(step, unit, pass);
      }
    }
    if (sharded_) sharded_->leave(unit, pass.is_backward(), pass.microbatch);
  }

  void communicate(const LayerStep& step, const StageUnit& unit, const Pass& pass) {
    const bool background = step.kind == LayerStep::Kind::kBackground;
    std::vector<Dependency> dependencies = stage_.waits;
    if (stage_.last_compute) dependencies.push_back(after(*stage_.last_compute));
    const OpRef done = stage_.add_collective(
        background ? *regather_ : *tensor_,
        {.communicator =
             background ? *stage_.communicators.tensor_regather : *stage_.communicators.tensor,
         .op = step.collective,
         .bytes = step.bytes,
         .type = step.type},
        Axis::kTensor,
        stage_.label(std::string(name_of(step.collective)), unit.number, pass.microbatch),
        std::move(dependencies));
    if (background) {
      gathered_again_ = done;
    } else if (step.kind == LayerStep::Kind::kDetached) {
      detached_ = done;
    } else {
      stage_.waits = {after(done)};
    }
  }

  void compute(const LayerStep& step, const StageUnit& unit, const Pass& pass) {
    OpDraft op{.stream = stage_.compute, .kind = OpKind::kCompute};
    const PathLabel path = step.recomputes ? PathLabel::kRecompute : pass.label;
    op.work = stage_.tables.compute(step.kernels, static_cast<std::uint32_t>(path));
    op.label = stage_.label(
        unit.name + " " + word_for(path) + ": " + std::string(step.kernels.front().name),
        unit.number, pass.microbatch);
    op.dependencies = stage_.take_waits();
    if (step.needs_background) {
      op.dependencies.push_back(after(*std::exchange(gathered_again_, std::nullopt)));
    }
    if (detached_) stage_.waits.push_back(after(*std::exchange(detached_, std::nullopt)));
    op.memory_changes = {
        {.category = MemoryCategory::kActivations, .at_end = false, .bytes = step.kept},
        {.category = MemoryCategory::kActivations, .at_end = true, .bytes = step.let_go},
        {.category = MemoryCategory::kBuffers, .at_end = false, .bytes = step.workspace},
        {.category = MemoryCategory::kBuffers, .at_end = true, .bytes = step.workspace}};
    stage_.last_compute = stage_.builder.add(std::move(op));
    if (!stage_.first_compute) stage_.first_compute = stage_.last_compute;
    messages_->computed();
  }

  Stage& stage_;
  std::optional<StreamId> tensor_;
  std::optional<StreamId> regather_;
  std::optional<StageMessages> messages_;
  std::optional<FullySharded> sharded_;  // one of these two
  std::optional<DataParallel> replicated_;
  std::optional<OpRef> gathered_again_;  // in the background, until a step needs it
  std::optional<OpRef> detached_;        // the compute op after the next waits for it
};

}  // namespace

Program lower_stage(Stage stage, const std::vector<PipelineOp>& order, Bytes fixed_memory) {
  StageLowering lowering(stage);
  hold_model_state(stage, fixed_memory);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].kind == PipelineOpKind::kForward) {
      lowering.forward(order[i].microbatch);
    } else {
      lowering.backward(order[i].microbatch, i + 1 == order.size());
    }
  }
  lowering.finish_step();
  return std::move(stage.builder).build();
}

}  // namespace stepsim
