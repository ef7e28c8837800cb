#include "schedules/lowering/steps/tensor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

using Kind = LayerStep::Kind;

bool has_width(const Layer& layer) {
  return std::ranges::any_of(layer.ops, [](const LayerOp& op) {
    return op.tensor.width_gathered > Bytes(0) || op.tensor.width_reduced > Bytes(0);
  });
}

using Kernels = std::span<const Kernel>;

// Returns the kernels in front that round a chip's own tokens, if the group gathers what they make.
Kernels rounded_before(const std::vector<Kernel>& kernels, std::optional<DataType> gathered_as) {
  if (!gathered_as) return {};
  const auto rounds = [](const Kernel& kernel) {
    return kernel.use == KernelUse::kFindScale || kernel.use == KernelUse::kRoundInput ||
           kernel.use == KernelUse::kRoundGradient;
  };
  const auto end = std::ranges::find_if_not(kernels, rounds);
  return {kernels.begin(), end};
}

// Returns the others.
Kernels behind_gather(const std::vector<Kernel>& kernels, std::optional<DataType> gathered_as) {
  return Kernels(kernels).subspan(rounded_before(kernels, gathered_as).size());
}

// Returns the kernels of an op's input gradient that stand behind the gather of its result's
// gradient, if the T region ends with it. `is_last`: the layer leaves no region at its end.
Kernels gradients_of_input(const Layer& layer, std::size_t i, const TensorGroup& group,
                           bool is_last) {
  const LayerOp& op = layer.ops[i];
  const bool is_end = i + 1 == layer.ops.size();
  const bool leaves = is_end ? !is_last : !is_tensor(layer.ops[i + 1]);
  const bool gathers = group.ranks > 1 && group.sequence_parallel && is_tensor(op) && leaves;
  if (!gathers) return op.input_gradient;
  return behind_gather(op.input_gradient, op.tensor.gradient_gathered_as);
}

class LayerSteps {
 public:
  LayerSteps(const Layer& layer, const TensorGroup& group, Bytes boundary)
      : group_(group),
        sequence_parallel_(group.sequence_parallel),
        features_(has_width(layer)),
        type_(group.precision.communicated()),
        boundary_(boundary) {}

  LayerStep& compute() {
    if (steps_.empty() || steps_.back().kind != Kind::kCompute) steps_.emplace_back();
    return steps_.back();
  }
  void split() { steps_.emplace_back(); }  // the next kernels start a new step

  void run(Kernels kernels) {
    if (kernels.empty()) return;
    LayerStep& step = compute();
    step.kernels.insert(step.kernels.end(), kernels.begin(), kernels.end());
  }

  void communicate(CollectiveOp op, Kind kind = Kind::kCollective) {
    communicate(op, boundary_, kind);
  }
  void communicate(CollectiveOp op, Bytes bytes, Kind kind = Kind::kCollective) {
    add_collective(op, kind, bytes, type_);
  }
  void gather_input(const LayerOp& op, Kind kind = Kind::kCollective) {
    add_collective(CollectiveOp::kAllGather, kind, gathered_input(op, group_, boundary_),
                   op.tensor.input_gathered_as.value_or(type_));
  }
  void add_collective(CollectiveOp op, Kind kind, Bytes bytes, DataType type) {
    LayerStep step;
    step.kind = kind;
    const bool again = kind == Kind::kBackground;
    step.lane = again ? Lane::kTensorRegather : Lane::kTensor;
    if (features_) step.lane = again ? Lane::kFeaturesRegather : Lane::kFeatures;
    step.collective = op;
    step.bytes = bytes;
    step.type = type;
    steps_.push_back(std::move(step));
  }

  void append(std::vector<LayerStep> others) {
    for (LayerStep& other : others) steps_.push_back(std::move(other));
  }

  // Gathers again in the background from the start of the open run of kernels. Other collectives
  // may run at the same time.
  void gather_in_background(const LayerOp& op) {
    LayerStep open = std::move(compute());
    steps_.pop_back();
    gather_input(op, Kind::kBackground);
    steps_.push_back(std::move(open));
  }
  void in_background(const std::vector<LayerStep>& others) {
    LayerStep open = std::move(compute());
    steps_.pop_back();
    append(others);
    steps_.push_back(std::move(open));
  }

  // T to S in the forward pass, and the mirror image in the backward pass.
  void enter_sequence_region() {
    communicate(sequence_parallel_ ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce);
  }
  void mirror_enter_sequence_region(const LayerOp& op) {
    if (!sequence_parallel_) return;
    run(rounded_before(op.input_gradient, op.tensor.gradient_gathered_as));
    add_collective(CollectiveOp::kAllGather, Kind::kCollective,
                   gathered_gradient(op, group_, boundary_),
                   op.tensor.gradient_gathered_as.value_or(type_));
  }
  // S to T.
  void enter_tensor_region(const LayerOp& op) {
    if (!sequence_parallel_) return;
    run(rounded_before(op.forward, op.tensor.input_gathered_as));
    gather_input(op);
  }
  void mirror_enter_tensor_region(const LayerOp& op, Kind kind) {
    communicate(sequence_parallel_ ? CollectiveOp::kReduceScatter : CollectiveOp::kAllReduce,
                crossing(op, boundary_), kind);
  }

  std::vector<LayerStep> take() {
    std::erase_if(steps_, [](const LayerStep& step) {
      return step.kind == Kind::kCompute && step.kernels.empty() && step.kept == Bytes(0) &&
             step.let_go == Bytes(0);
    });
    return std::move(steps_);
  }

 private:
  const TensorGroup& group_;
  bool sequence_parallel_;
  bool features_;  // two-dimensional weights: features are divided too
  DataType type_;
  Bytes boundary_;
  std::vector<LayerStep> steps_;
};

using Exchanges = std::vector<OpExchange>;

// Returns the op's exchange, or an empty one that sends nothing.
const OpExchange& exchange_of(std::size_t op, const Exchanges& exchanges) {
  static const OpExchange kNone;
  const auto found = std::ranges::find(exchanges, op, &OpExchange::op);
  return found == exchanges.end() ? kNone : *found;
}

std::vector<LayerStep> forward_steps(const Layer& layer, const TensorGroup& group, Bytes boundary,
                                     bool is_last, const Exchanges& exchanges) {
  LayerSteps steps(layer, group, boundary);
  for (std::size_t i = 0; i < layer.ops.size(); ++i) {
    const LayerOp& op = layer.ops[i];
    Kernels kernels = op.forward;
    if (group.ranks > 1 && i > 0 && is_tensor(layer.ops[i - 1]) != is_tensor(op)) {
      is_tensor(op) ? steps.enter_tensor_region(op) : steps.enter_sequence_region();
      if (is_tensor(op)) kernels = behind_gather(op.forward, op.tensor.input_gathered_as);
    }
    const OpExchange& exchange = exchange_of(i, exchanges);
    steps.append(exchange.before_forward);
    if (exchange.starts_step) steps.split();
    if (exchange.forward.empty()) {
      LayerStep& step = steps.compute();
      step.kept += exchange.kept.value_or(op.saved.total);
      step.workspace = std::max(step.workspace, op.workspace.forward);
      steps.run(kernels);
    } else {
      steps.append(exchange.forward);
    }
    if (op.host_reads) {
      steps.compute().host_waits = true;
      steps.split();
    }
    steps.append(exchange.after_forward);
    if (group.ranks > 1 && op.tensor.reduced_values_per_token > 0) {
      const std::int64_t tokens = group.tokens;
      steps.add_collective(CollectiveOp::kAllReduce, Kind::kCollective,
                           Bytes(op.tensor.reduced_values_per_token * tokens * 4), DataType::kFp32);
    }
  }
  if (group.ranks > 1 && !is_last && is_tensor(layer.ops.back())) {
    steps.enter_sequence_region();
  }
  return steps.take();
}

std::vector<LayerStep> backward_steps(const Layer& layer, const TensorGroup& group, Bytes boundary,
                                      bool is_last, const Exchanges& exchanges) {
  LayerSteps steps(layer, group, boundary);
  if (group.ranks > 1 && !is_last && is_tensor(layer.ops.back())) {
    steps.mirror_enter_sequence_region(layer.ops.back());
  }
  for (std::size_t i = layer.ops.size(); i-- > 0;) {
    const LayerOp& op = layer.ops[i];
    const bool changes = group.ranks > 1 && i > 0 && is_tensor(op) != is_tensor(layer.ops[i - 1]);
    const bool leaves_tensor = changes && is_tensor(op);
    const bool enters_tensor = changes && !is_tensor(op);
    const bool regathers = group.ranks > 1 && group.sequence_parallel && op.tensor.regathers_input;
    const OpExchange& exchange = exchange_of(i, exchanges);
    if (!exchange.before_backward.empty()) {
      steps.append(exchange.before_backward);
      steps.split();
    }
    if (!exchange.backward.empty()) {
      steps.append(exchange.backward);
      continue;
    }
    LayerStep* step = &steps.compute();
    step->workspace = std::max(step->workspace, op.workspace.backward);
    steps.run(gradients_of_input(layer, i, group, is_last));
    if (regathers) steps.gather_in_background(op);
    const bool gathers_more = !exchange.for_weights.empty();
    if (gathers_more) steps.in_background(exchange.for_weights);
    if (leaves_tensor && group.overlaps) steps.mirror_enter_tensor_region(op, Kind::kDetached);
    if (regathers || gathers_more) steps.split();
    step = &steps.compute();
    for (const LayerStep& gather : exchange.for_weights) step->needs.push_back(*gather.ticket);
    step->workspace = std::max(step->workspace, op.workspace.backward);
    step->needs_background = step->needs_background || regathers;
    step->let_go += op.saved.total;
    steps.run(op.weight_gradient);
    steps.append(exchange.after_backward);
    if (exchange.starts_step) steps.split();
    if (leaves_tensor && group.overlaps) steps.split();
    if (leaves_tensor && !group.overlaps) {
      steps.mirror_enter_tensor_region(op, Kind::kCollective);
    }
    if (enters_tensor) steps.mirror_enter_sequence_region(layer.ops[i - 1]);
  }
  return steps.take();
}

// Returns the bytes of the gradient of a matmul's result, as its weight gradient reads it. The next
// function returns those of the gradient of the input.
// Experts may have a matmul each.
Bytes result_size(const LayerOp& op) {
  Bytes size;
  for (const Kernel& kernel : op.forward) {
    if (kernel.kind != KernelKind::kMatmul) continue;
    const Bytes as_operand = bytes_of(kernel.batch * kernel.m * kernel.n, kernel.type);
    const Bytes result = std::min(kernel.written, as_operand);
    size = op.region == Region::kExpert ? size + result : std::max(size, result);
  }
  return size;
}
Bytes input_size(const LayerOp& op) {
  Bytes size;
  for (const Kernel& kernel : op.input_gradient) {
    if (kernel.kind != KernelKind::kMatmul) continue;
    size = op.region == Region::kExpert ? size + kernel.written : std::max(size, kernel.written);
  }
  return size;
}

// Embedding tables and separate biases make their gradient in B.
bool has_weight_part(const LayerOp& op) {
  return weights_matmul(op) != nullptr;
}

class SplitBackward {
 public:
  SplitBackward(const Layer& layer, const TensorGroup& group, Bytes boundary,
                const Exchanges& exchanges)
      : layer_(layer),
        group_(group),
        exchanges_(exchanges),
        inputs_(layer, group, boundary),
        weights_(layer, group, boundary) {}

  std::vector<LayerStep> steps(bool is_last) {
    is_last_ = is_last;
    if (group_.ranks > 1 && !is_last && is_tensor(layer_.ops.back())) {
      inputs_.mirror_enter_sequence_region(layer_.ops.back());
    }
    for (std::size_t i = layer_.ops.size(); i-- > 0;) {
      const OpExchange& exchange = exchange_of(i, exchanges_);
      communicate(exchange.before_backward);
      add_inputs(i);
      if (has_weight_part(layer_.ops[i])) add_weights(i);
      communicate(exchange.after_backward);
      if (exchange.starts_step) flush_weights();
      const bool changes = i > 0 && is_tensor(layer_.ops[i]) != is_tensor(layer_.ops[i - 1]);
      if (group_.ranks == 1 || !changes) continue;
      if (is_tensor(layer_.ops[i])) {
        inputs_.mirror_enter_tensor_region(layer_.ops[i], Kind::kCollective);
      } else {
        inputs_.mirror_enter_sequence_region(layer_.ops[i - 1]);
      }
      flush_weights();
    }
    flush_weights();
    return inputs_.take();
  }

 private:
  void communicate(const std::vector<LayerStep>& steps) {
    if (steps.empty()) return;
    inputs_.append(steps);
    flush_weights();
  }
  bool regathers(const LayerOp& op) const {
    return group_.ranks > 1 && group_.sequence_parallel && op.tensor.regathers_input;
  }
  // Returns the part of the op's kept bytes that is the input of the next op, if that op has a W
  // and keeps nothing itself. An op with a W of its own keeps its bytes until then anyway.
  Bytes read_by_next(std::size_t i) const {
    if (i + 1 == layer_.ops.size() || has_weight_part(layer_.ops[i])) return {};
    const LayerOp& next = layer_.ops[i + 1];
    if (!has_weight_part(next) || next.saved.total > Bytes(0)) return {};
    return std::min(layer_.ops[i].saved.total, input_size(next));
  }

  // The W of the next op reads a part of what an interleaved op keeps.
  void add_interleaved(std::size_t i) {
    std::vector<LayerStep> steps = exchange_of(i, exchanges_).backward;
    for (LayerStep& step : steps) {
      if (step.let_go > Bytes(0)) step.let_go -= read_by_next(i);
    }
    inputs_.append(std::move(steps));
  }

  void add_inputs(std::size_t i) {
    const LayerOp& op = layer_.ops[i];
    if (!exchange_of(i, exchanges_).backward.empty()) return add_interleaved(i);
    LayerStep& step = inputs_.compute();
    // The workspace includes the regathered input, which only W reads.
    step.workspace = std::max(
        step.workspace, op.workspace.backward - (regathers(op) ? op.workspace.forward : Bytes(0)));
    if (has_weight_part(op)) {
      step.kept += result_size(op);
      inputs_.run(gradients_of_input(layer_, i, group_, is_last_));
    } else {
      step.let_go += op.saved.total - read_by_next(i);
      inputs_.run(gradients_of_input(layer_, i, group_, is_last_));
      inputs_.run(op.weight_gradient);
    }
  }

  void add_weights(std::size_t i) {
    const LayerOp& op = layer_.ops[i];
    weights_.compute();
    if (regathers(op)) {
      weights_.gather_in_background(op);
      weights_.split();
    }
    const std::vector<LayerStep>& more = exchange_of(i, exchanges_).for_weights;
    if (!more.empty()) {
      weights_.append(more);
      weights_.split();
    }
    LayerStep& step = weights_.compute();
    for (const LayerStep& gather : more) step.needs.push_back(*gather.ticket);
    step.needs_background = regathers(op);
    if (regathers(op)) step.workspace = std::max(step.workspace, op.workspace.forward);
    step.let_go += op.saved.total + result_size(op);
    if (op.saved.total == Bytes(0) && i > 0) step.let_go += read_by_next(i - 1);
    weights_.run(op.weight_gradient);
    if (regathers(op)) weights_.split();
  }

  void flush_weights() {
    std::vector<LayerStep> steps = weights_.take();
    for (LayerStep& step : steps) step.weight_gradient = true;
    inputs_.append(std::move(steps));
    inputs_.split();
  }

  const Layer& layer_;
  const TensorGroup& group_;
  const Exchanges& exchanges_;
  bool is_last_ = false;
  LayerSteps inputs_;
  LayerSteps weights_;
};

std::vector<LayerStep> split_backward_steps(const Layer& layer, const TensorGroup& group,
                                            Bytes boundary, bool is_last,
                                            const Exchanges& exchanges) {
  std::vector<LayerStep> steps = SplitBackward(layer, group, boundary, exchanges).steps(is_last);
  // A run of kernels reuses memory that it has released, so only the difference counts.
  for (LayerStep& step : steps) {
    const Bytes reused = std::min(step.kept, step.let_go);
    step.kept -= reused;
    step.let_go -= reused;
  }
  return steps;
}

}  // namespace

bool LoweredLayer::has_weight_part() const {
  return std::ranges::any_of(split_backward, &LayerStep::weight_gradient);
}

std::string_view name_of(Lane lane) {
  constexpr std::array<std::string_view, kLanes> kNames = {
      "tp",       "tp backward",       "tp regather", "tp features",  "tp features regather",
      "tp width", "tp width regather", "cp",          "cp gradients", "ep",
      "etp",      "dispatch",          "combine"};
  return kNames[static_cast<std::size_t>(lane)];
}

bool is_regather(Lane lane) {
  return lane == Lane::kTensorRegather || lane == Lane::kFeaturesRegather ||
         lane == Lane::kWidthRegather;
}

Axis axis_of(Lane lane) {
  switch (lane) {
    case Lane::kTensor:
    case Lane::kTensorBackward:
    case Lane::kTensorRegather:
    case Lane::kFeatures:
    case Lane::kFeaturesRegather:
    case Lane::kWidth:
    case Lane::kWidthRegather:
      return Axis::kTensor;
    case Lane::kContext:
    case Lane::kContextGradients:
      return Axis::kContext;
    case Lane::kExperts:
    case Lane::kExpertTensor:
    case Lane::kDispatch:
    case Lane::kCombine:
      return Axis::kExpert;
  }
  return Axis::kOther;
}

TensorGroup tensor_group(const ParallelPlan& plan) {
  return {.ranks = plan.mesh.tp,
          .width = plan.tensor.tensor_width,
          .sequence_parallel = plan.tensor.sequence_parallel,
          .overlaps = plan.pieces.overlap_tensor,
          .scales_rows = plan.narrow.scales_rows(plan.precision.type),
          .tokens = plan.tokens(),
          .precision = plan.precision};
}

Bytes crossing(const LayerOp& op, Bytes boundary) {
  return op.tensor.crossing == Bytes(0) ? boundary : op.tensor.crossing;
}

Bytes gathered_input(const LayerOp& op, const TensorGroup& group, Bytes boundary) {
  return crossing_as(crossing(op, boundary), group.precision.communicated(),
                     op.tensor.input_gathered_as);
}

Bytes gathered_gradient(const LayerOp& op, const TensorGroup& group, Bytes boundary) {
  const Bytes narrow =
      crossing_as(boundary, group.precision.communicated(), op.tensor.gradient_gathered_as);
  return narrow < boundary && group.scales_rows ? 2 * narrow : narrow;
}

namespace {

// Returns the weights that matmuls narrower than the activations multiply.
std::int64_t narrow_weights(const Layer& layer, const TensorGroup& group) {
  if (bits_of(group.precision.type) >= bits_of(group.precision.activations())) return 0;
  std::int64_t sum = 0;
  for (const LayerOp& op : layer.ops) {
    const Kernel* const matmul = weights_matmul(op);
    if (matmul != nullptr && matmul->type == group.precision.type)
      sum += op.parameters.own + op.parameters.frozen;
  }
  return sum;
}

}  // namespace

LoweredLayer lower_tensor(const Layer& layer, const TensorGroup& group, Bytes boundary,
                          bool is_last, const std::vector<OpExchange>& exchanges) {
  if (layer.ops.empty()) return {};
  const auto first =
      std::ranges::find_if(layer.ops, [](const LayerOp& op) { return !op.forward.empty(); });
  return {.forward = forward_steps(layer, group, boundary, is_last, exchanges),
          .backward = backward_steps(layer, group, boundary, is_last, exchanges),
          .split_backward = split_backward_steps(layer, group, boundary, is_last, exchanges),
          .parameters = layer.parameters(),
          .expert_parameters = layer.parameters(Region::kExpert),
          .sequence_parameters = group.divides_width() ? 0 : layer.parameters(Region::kSequence),
          .frozen = layer.frozen(),
          .frozen_experts = layer.frozen(Region::kExpert),
          .narrow_weights = narrow_weights(layer, group),
          .matrices = matrices_of(layer),
          .lent = layer.lent(),
          .input = first->saved.total - first->saved.inside};
}

}  // namespace stepsim
