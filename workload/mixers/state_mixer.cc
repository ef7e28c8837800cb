#include "workload/mixers/state_mixer.h"

#include <algorithm>
#include <utility>

#include "workload/mixers/chunked_scan.h"

namespace stepsim {
namespace {

// The sizes of the mixer on one chip.
struct StatePart {
  std::int64_t heads = 0;
  std::int64_t groups = 0;
  std::int64_t keys = 0;    // width of k, and of q
  std::int64_t values = 0;  // width of v, and of the result
  std::int64_t scalars = 0;
};

bool is_delta(const StateSpec& state) {
  return state.kind == StateKind::kGatedDelta || state.kind == StateKind::kKimiDelta;
}

// Returns the values a head and token that state_projection gives besides: mamba2 the step, the
// delta rules a decay and the strength of a write (kimi_delta's decay has a projection of its own).
std::int64_t scalars_of_a_head(StateKind kind) {
  switch (kind) {
    case StateKind::kGatedDelta:
      return 2;
    case StateKind::kMamba2:
    case StateKind::kKimiDelta:
      return 1;
    case StateKind::kLightning:
    case StateKind::kMamba:
    case StateKind::kShort:
      break;
  }
  return 0;
}

StatePart part_of_state(const Part& part) {
  const StateSpec& state = part.model.state;
  const std::int64_t heads = state.heads / part.shard.tensor;
  const std::int64_t groups = std::max<std::int64_t>(1, state.groups / part.shard.tensor);
  return {.heads = heads,
          .groups = groups,
          .keys = groups * state.key_dim,
          .values = heads * state.value_dim,
          .scalars = heads * scalars_of_a_head(state.kind)};
}

// Returns the learned values of the scan: decays, biases of steps, and what passes it by.
std::int64_t scan_parameters(const StateSpec& state, std::int64_t heads) {
  switch (state.kind) {
    case StateKind::kMamba2:
      return 3 * heads;
    case StateKind::kGatedDelta:
      return 2 * heads;
    case StateKind::kKimiDelta:
      return heads * (1 + state.key_dim);
    case StateKind::kMamba:
      return heads * (state.key_dim + 1);
    case StateKind::kLightning:
    case StateKind::kShort:
      break;
  }
  return 0;
}

bool has_low_rank_gate(const StateSpec& state) {
  return state.kind == StateKind::kKimiDelta && !state.full_gate;
}

// Returns the width of the narrow vectors from which kimi_delta makes decays, and the gate.
std::int64_t low_rank_width(const StateSpec& state) {
  if (state.kind != StateKind::kKimiDelta) return 0;
  return state.full_gate ? state.rank : 2 * state.rank;
}

LayerOp input_projection(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  const std::int64_t gate = state.kind == StateKind::kShort ? 2 * mine.values : mine.values;
  const std::int64_t gates = low_rank_width(state) + (has_low_rank_gate(state) ? 0 : gate);
  const bool is_wide = state.kind == StateKind::kMamba || state.kind == StateKind::kShort;
  const std::int64_t queries_and_keys = is_wide ? 0 : 2 * mine.keys;
  return project_gathered(part, {.name = "state_projection",
                                 .inputs = part.hidden(),
                                 .outputs = queries_and_keys + mine.values + gates + mine.scalars,
                                 .bias = state.bias,
                                 .narrow = true});
}

// Widens the low-rank vectors of kimi_delta: decays of each key feature, gates of each value.
LayerOp gate_projection(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  LayerOp op = project(
      part, {.name = "gate_projection",
             .inputs = state.rank,
             .outputs = mine.heads * state.key_dim + (has_low_rank_gate(state) ? mine.values : 0),
             .narrow = true});
  keep_input(op, part.operand_size(part.tokens * low_rank_width(state)));
  op.reads = {"state_projection"};
  return op;
}

bool has_convolution_bias(const StateSpec& state) {
  return state.convolution_bias && !is_delta(state);
}

// Returns how many features a convolution filters: those of q, k and v, or of x alone.
std::int64_t convolved(const StateSpec& state) {
  const bool is_single = state.kind == StateKind::kMamba || state.kind == StateKind::kShort;
  const std::int64_t keys = is_single ? 0 : 2 * state.groups * state.key_dim;
  return state.convolution == 0 ? 0 : keys + state.heads * state.value_dim;
}

// A short filter along the tokens of each feature, and an activation.
LayerOp convolution(const Part& part, std::int64_t width) {
  const StateSpec& state = part.model.state;
  const std::int64_t elements = part.tokens * width;
  const std::int64_t weights = width * (state.convolution + (has_convolution_bias(state) ? 1 : 0));
  LayerOp op{.name = "convolution", .region = Region::kTensor};
  op.forward = {
      part.elementwise(op.name, {.elements = elements, .flops = 2 * state.convolution + 4})};
  op.input_gradient = {part.elementwise(op.name, {.elements = elements,
                                                  .reads = 2,
                                                  .flops = 4 * state.convolution + 8,
                                                  .accumulated = weights})};
  op.reads = {"state_projection"};
  keep_input(op, part.size(elements));
  op.parameters.own = weights;
  op.workspace.backward = 2 * part.size(elements);
  return op;
}

// Bytes of what the scan reads: q, k and v, and fp32 decays.
Bytes scan_inputs(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  const std::int64_t decays =
      state.kind == StateKind::kKimiDelta ? mine.heads * (state.key_dim + 1) : mine.scalars;
  return part.size(part.tokens * (2 * mine.keys + mine.values)) +
         part.tokens * decays * size_of(DataType::kFp32);
}

// Repeats the convolution before the scan's backward, which keeps nothing that it could read.
void convolve_again(const LayerOp& filter, LayerOp& op) {
  op.input_gradient.insert(op.input_gradient.begin(), filter.forward.begin(), filter.forward.end());
}

// A rank's tokens turn the state that comes to it into what it adds: a decay for each row, and with
// the delta rules a matrix of key_dim x key_dim.
void pass_state(const Part& part, const StatePart& mine, LayerOp& op) {
  const StateSpec& state = part.model.state;
  if (part.shard.context == 1) return;
  if (state.kind == StateKind::kShort) {
    op.passed_state = part.size(part.shard.sequences * (state.convolution - 1) * mine.values);
    return;
  }
  const std::int64_t turned = state.key_dim * (is_delta(state) ? state.key_dim : 1);
  op.passed_state =
      part.shard.sequences * mine.heads * (state_size(state) + turned * size_of(DataType::kFp32));
}

LayerOp scan(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  const ScanShape shape{.kind = state.kind,
                        .sequences = part.shard.sequences,
                        .tokens = part.shard.sequence_length / part.shard.context,
                        .heads = mine.heads,
                        .groups = mine.groups,
                        .key_dim = state.key_dim,
                        .value_dim = state.value_dim,
                        .chunk = state.chunk};
  ScanKernels kernels = chunked_scan(part.shard.types.activations, shape);
  LayerOp op{.name = "scan", .region = Region::kTensor};
  op.forward = std::move(kernels.forward);
  op.input_gradient = std::move(kernels.backward);
  const Bytes inputs = scan_inputs(part, mine);
  op.input = inputs;
  op.backward_reads_input = true;
  op.parameters.own = scan_parameters(state, mine.heads);
  op.workspace.backward = 2 * inputs + part.size(shape.states());
  return op;
}

// Normalises the scan's result, head by head (mamba2: the features of a chip), and multiplies by
// the gate.
LayerOp state_norm(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  const std::int64_t elements = part.tokens * mine.values;
  const ElementwiseKind kind = state.inner_norm ? ElementwiseKind::kNorm : ElementwiseKind::kPlain;
  LayerOp op{.name = "state_norm", .region = Region::kTensor};
  if (state.inner_norm) op.parameters.own = is_delta(state) ? state.value_dim : mine.values;
  op.forward = {
      part.elementwise(op.name, {.elements = elements, .reads = 2, .flops = 8, .kind = kind})};
  op.input_gradient = {part.elementwise(op.name, {.elements = elements,
                                                  .reads = 3,
                                                  .writes = 2,
                                                  .flops = 18,
                                                  .accumulated = op.parameters.own,
                                                  .kind = kind})};
  op.reads = {"scan",
              has_low_rank_gate(state) ? OpName("gate_projection") : OpName("state_projection")};
  keep_input(op, 2 * part.size(elements));
  op.workspace.backward = 3 * part.size(elements);
  return op;
}

LayerOp output_projection(const Part& part, const StatePart& mine) {
  LayerOp op = project_partial(part, {.name = "state_out_projection",
                                      .inputs = mine.values,
                                      .outputs = part.hidden(),
                                      .narrow = true});
  keep_input(op, part.operand_size(part.tokens * mine.values));
  return op;
}

// Makes the step's low-rank form, B and C out of x. Each tensor rank has some features of x, so
// these are partial sums, added up over the group (and their gradients, too).
LayerOp x_projection(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  const std::int64_t outputs = state.rank + 2 * state.key_dim;
  LayerOp op = project(part, {.name = "x_projection", .inputs = mine.values, .outputs = outputs});
  // Without norms the scan's backward makes x again. (Fused: mamba_inner_fn of state-spaces/mamba.)
  if (state.inner_norm) keep_input(op, part.size(part.tokens * mine.values));
  if (part.shard.tensor > 1) op.tensor.summed_values_per_token = outputs;
  if (state.inner_norm) op.parameters.own += outputs;
  return op;
}

LayerOp step_projection(const Part& part, const StatePart& mine) {
  LayerOp op = project(part, {.name = "step_projection",
                              .inputs = part.model.state.rank,
                              .outputs = mine.values,
                              .bias = true});
  keep_input(op, part.size(part.tokens * part.model.state.rank));
  return op;
}

// mamba's scan has no matmul: each feature has a row of key_dim values. The forward reads x, steps,
// the gate, B and C; the backward makes the states again.
LayerOp selective_scan(const Part& part, const StatePart& mine) {
  const StateSpec& state = part.model.state;
  const std::int64_t elements = part.tokens * mine.values;
  const Bytes rows = part.size(part.tokens * 2 * state.key_dim);
  LayerOp op{.name = "scan", .region = Region::kTensor};
  op.forward = {part.elementwise(
      op.name, {.elements = elements, .reads = 3, .flops = 9 * state.key_dim + 6})};
  op.input_gradient = {part.elementwise(
      op.name, {.elements = elements, .reads = 4, .writes = 3, .flops = 27 * state.key_dim + 18})};
  op.forward.front().read += rows;
  op.input_gradient.front().read += rows;
  op.input_gradient.front().written += rows;
  op.reads = {"step_projection", "x_projection", "convolution", "state_projection"};
  op.parameters.own = scan_parameters(state, mine.values);
  keep_input(op, 2 * part.size(elements) + rows);  // steps and the gate; x is x_projection's
  op.saved.result = part.size(elements);
  op.saved.total += op.saved.result;
  op.workspace.backward = 4 * part.size(elements);
  return op;
}

std::vector<LayerOp> selective_ops(const Part& part, const StatePart& mine) {
  std::vector<LayerOp> ops = {input_projection(part, mine), convolution(part, mine.values),
                              x_projection(part, mine), step_projection(part, mine),
                              selective_scan(part, mine)};
  if (!part.model.state.inner_norm) convolve_again(ops[1], ops.back());
  pass_state(part, mine, ops.back());
  ops.push_back(project_partial(part, {.name = "state_out_projection",
                                       .inputs = mine.values,
                                       .outputs = part.hidden(),
                                       .narrow = true,
                                       .keeps_wide = true}));
  return ops;
}

// The filter of x times a gate, times another gate: one kernel, which reads all three.
std::vector<LayerOp> short_ops(const Part& part, const StatePart& mine) {
  std::vector<LayerOp> ops = {input_projection(part, mine), convolution(part, mine.values)};
  LayerOp& filter = ops.back();
  const std::int64_t elements = part.tokens * mine.values;
  const Bytes gates = 2 * part.size(elements);
  filter.forward.front().read += gates;
  filter.input_gradient.front().read += gates;
  filter.input_gradient.front().written += gates;
  keep_input(filter, 3 * part.size(elements));
  filter.workspace.backward = 4 * part.size(elements);
  pass_state(part, mine, filter);
  ops.push_back(output_projection(part, mine));
  return ops;
}

}  // namespace

std::vector<LayerOp> state_ops(const Part& part) {
  const StateSpec& state = part.model.state;
  const StatePart mine = part_of_state(part);
  if (state.kind == StateKind::kMamba) return selective_ops(part, mine);
  if (state.kind == StateKind::kShort) return short_ops(part, mine);
  std::vector<LayerOp> ops = {input_projection(part, mine)};
  if (low_rank_width(state) > 0) ops.push_back(gate_projection(part, mine));
  LayerOp states = scan(part, mine);
  states.reads = {"state_projection"};
  if (state.convolution > 0) {
    ops.push_back(convolution(part, 2 * mine.keys + mine.values));
    states.reads = {"convolution"};
  }
  if (state.kind == StateKind::kMamba2 && state.convolution > 0) {
    convolve_again(ops.back(), states);
    const Bytes all = states.input;
    keep_input(states, part.tokens * mine.scalars * size_of(DataType::kFp32));
    states.input = all;
  } else {
    keep_input(states, states.input);
  }
  pass_state(part, mine, states);
  ops.push_back(std::move(states));
  ops.push_back(state_norm(part, mine));
  ops.push_back(output_projection(part, mine));
  return ops;
}

Bytes state_size(const StateSpec& state) {
  return state.key_dim * state.value_dim * size_of(DataType::kFp32);
}

Bytes sequence_state_size(const StateSpec& state, DataType activations) {
  const std::int64_t heads = state.kind == StateKind::kShort ? 0 : state.heads;
  const std::int64_t taps = std::max<std::int64_t>(0, state.convolution - 1);
  return heads * state_size(state) + taps * convolved(state) * size_of(activations);
}

}  // namespace stepsim
