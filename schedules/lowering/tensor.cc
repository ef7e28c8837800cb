#include "schedules/lowering/tensor.h"

#include <algorithm>
#include <utility>

namespace stepsim {
namespace {

using Kind = LayerStep::Kind;

class StepList {
 public:
  StepList(const ParallelPlan& plan, Bytes boundary)
      : sequence_parallel_(plan.sequence_parallel), type_(plan.type), boundary_(boundary) {}

  LayerStep& compute() {
    if (steps_.empty() || steps_.back().kind != Kind::kCompute) steps_.emplace_back();
    return steps_.back();
  }
  void split() { steps_.emplace_back(); }  // the next kernels are a step of their own

  void run(const std::vector<Kernel>& kernels) {
    if (kernels.empty()) return;
    LayerStep& step = compute();
    step.kernels.insert(step.kernels.end(), kernels.begin(), kernels.end());
  }

  void communicate(CollectiveOp op, Kind kind = Kind::kCollective) {
    add_collective(op, kind, boundary_, type_);
  }
  void add_collective(CollectiveOp op, Kind kind, Bytes bytes, DataType type) {
    LayerStep step;
    step.kind = kind;
    step.collective = op;
    step.bytes = bytes;
    step.type = type;
    steps_.push_back(std::move(step));
  }

  // Gathers again from the beginning of the run of kernels that is open.
  void gather_in_background() {
    LayerStep open = std::move(compute());
    steps_.pop_back();
    communicate(CollectiveOp::kAllGather, Kind::kBackground);
    steps_.push_back(std::move(open));
  }

  // T to S in the forward pass; its mirror in the backward pass.
  void enter_sequence_region() {
    communicate(sequence_parallel_ ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce);
  }
  void mirror_enter_sequence_region() {
    if (sequence_parallel_) communicate(CollectiveOp::kAllGather);
  }
  // S to T.
  void enter_tensor_region() {
    if (sequence_parallel_) communicate(CollectiveOp::kAllGather);
  }
  void mirror_enter_tensor_region(Kind kind) {
    communicate(sequence_parallel_ ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce, kind);
  }

  std::vector<LayerStep> take() {
    std::erase_if(steps_, [](const LayerStep& step) {
      return step.kind == Kind::kCompute && step.kernels.empty() && step.kept == Bytes(0) &&
             step.let_go == Bytes(0);
    });
    return std::move(steps_);
  }

 private:
  bool sequence_parallel_;
  DataType type_;
  Bytes boundary_;
  std::vector<LayerStep> steps_;
};

std::vector<LayerStep> forward_steps(const Layer& layer, const ParallelPlan& plan, Bytes boundary,
                                     bool is_last) {
  StepList steps(plan, boundary);
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const LayerOp& op = layer.ops[i];
    if (plan.tp > 1 && i > 0 && layer.ops[i - 1].region != op.region) {
      op.region == Region::kTensor ? steps.enter_tensor_region() : steps.enter_sequence_region();
    }
    LayerStep& step = steps.compute();
    step.kept += op.saved;
    step.workspace = std::max(step.workspace, op.forward_workspace);
    steps.run(op.forward);
    if (plan.tp > 1 && op.reduced_values_per_token > 0) {
      const std::int64_t tokens = plan.microbatch * plan.sequence;
      steps.add_collective(CollectiveOp::kAllReduce, Kind::kCollective,
                           Bytes(op.reduced_values_per_token * tokens * 4), DataType::kFp32);
    }
  }
  if (plan.tp > 1 && !is_last && layer.ops.back().region == Region::kTensor) {
    steps.enter_sequence_region();
  }
  return steps.take();
}

std::vector<LayerStep> backward_steps(const Layer& layer, const ParallelPlan& plan, Bytes boundary,
                                      bool is_last) {
  StepList steps(plan, boundary);
  if (plan.tp > 1 && !is_last && layer.ops.back().region == Region::kTensor) {
    steps.mirror_enter_sequence_region();
  }
  for (std::size_t i = layer.ops.size(); i-- > 0;) {
    const LayerOp& op = layer.ops[i];
    const bool leaves_tensor = plan.tp > 1 && i > 0 && op.region == Region::kTensor &&
                               layer.ops[i - 1].region == Region::kSequence;
    const bool enters_tensor = plan.tp > 1 && i > 0 && op.region == Region::kSequence &&
                               layer.ops[i - 1].region == Region::kTensor;
    const bool regathers = plan.tp > 1 && plan.sequence_parallel && op.regathers_input;
    LayerStep* step = &steps.compute();
    step->workspace = std::max(step->workspace, op.backward_workspace);
    steps.run(op.input_gradient);
    if (regathers) steps.gather_in_background();
    if (leaves_tensor && plan.overlap_tensor) steps.mirror_enter_tensor_region(Kind::kDetached);
    if (regathers) steps.split();
    step = &steps.compute();
    step->workspace = std::max(step->workspace, op.backward_workspace);
    step->needs_background = step->needs_background || regathers;
    step->let_go += op.saved;
    steps.run(op.weight_gradient);
    if (leaves_tensor && plan.overlap_tensor) steps.split();
    if (leaves_tensor && !plan.overlap_tensor) steps.mirror_enter_tensor_region(Kind::kCollective);
    if (enters_tensor) steps.mirror_enter_sequence_region();
  }
  return steps.take();
}

}  // namespace

LoweredLayer lower_tensor(const Layer& layer, const ParallelPlan& plan, Bytes boundary,
                          bool is_last) {
  return {.forward = forward_steps(layer, plan, boundary, is_last),
          .backward = backward_steps(layer, plan, boundary, is_last),
          .parameters = layer.parameters(),
          .input = layer.ops.front().saved};
}

}  // namespace stepsim
