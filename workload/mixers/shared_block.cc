#include "workload/mixers/shared_block.h"

#include <cassert>
#include <iterator>
#include <utility>

#include "workload/mixers/attention.h"
#include "workload/parts/mlp.h"

namespace stepsim {
namespace {

void append_ops(std::vector<LayerOp> more, std::vector<LayerOp>& ops) {
  std::move(more.begin(), more.end(), std::back_inserter(ops));
}

// The weights are those of an earlier layer.
void borrow(std::vector<LayerOp>& ops) {
  for (LayerOp& op : ops) op.parameters.borrowed = std::exchange(op.parameters.own, 0);
}

// Normalises the stream and the embedding's output, side by side. The gradients of both are added
// to those that are there.
LayerOp norm_of_both(const Part& part) {
  const std::int64_t elements = 2 * part.own_tokens * part.hidden();
  LayerOp op{.name = "attention_norm", .parameters = {.own = 2 * part.norm_parameters()}};
  make_rms_norm(part, elements, op);
  op.forward.front().read += part.own_stream();  // the concatenation
  op.forward.front().written += 2 * part.own_stream();
  op.input = part.own_stream();
  op.input_gradient.push_back(
      part.elementwise("residual_gradient", {.elements = elements, .reads = 2, .flops = 1}));
  return op;
}

// The low-rank paths beside the projections of queries, keys and values, each of its own. Their
// results are added to the projection's.
std::vector<LayerOp> adapted_attention(const Part& part, std::vector<LayerOp> ops) {
  const std::int64_t rank = part.model.shared.attention_adapter_rank;
  if (rank == 0) return ops;
  constexpr std::int64_t kPaths = 3;
  const std::int64_t inputs = 2 * part.hidden();
  LayerOp down = project_own(part, {.name = "attention_adapter_down_projection",
                                    .inputs = inputs,
                                    .outputs = kPaths * rank,
                                    .narrow = true});
  down.input = part.size(part.own_tokens * inputs);  // qkv_projection keeps it
  down.reads = {"attention_norm"};
  const std::int64_t outputs = (part.heads + part.kv_heads) * part.model.attention.head_dim +
                               part.kv_heads * part.model.v_dim();
  LayerOp up = project_gathered(part, {.name = "attention_adapter_up_projection",
                                       .inputs = rank,  // of each feature
                                       .outputs = outputs,
                                       .narrow = true});
  keep_input(up, part.operand_size(part.own_tokens * kPaths * rank));
  up.tensor.crossing =
      part.tokens * (kPaths * rank + inputs) * size_of(part.shard.types.communication);
  LayerOp& qkv = ops.front();
  qkv.reads = {"attention_norm"};
  qkv.tensor.regathers_input = false;  // gathered with the paths' vectors
  qkv.tensor.crossing = {};
  qkv.forward.back().read += part.size(part.tokens * outputs);
  ops.insert(ops.begin(), {std::move(down), std::move(up)});
  return ops;
}

LayerOp adapter_down(const Part& part) {
  LayerOp op = project_own(part, {.name = "adapter_down_projection",
                                  .inputs = part.hidden(),
                                  .outputs = part.model.shared.adapter_rank,
                                  .narrow = true});
  op.input = part.own_stream();  // the MLP's first matrix keeps it
  op.reads = {"mlp_norm"};
  return op;
}

LayerOp adapter_up(const Part& part) {
  const std::int64_t rank = part.model.shared.adapter_rank;
  LayerOp op = project_gathered(part, {.name = "adapter_up_projection",
                                       .inputs = rank,
                                       .outputs = part.mlp_inputs() * part.intermediate,
                                       .narrow = true});
  op.tensor.crossing =
      part.tokens * (rank + part.hidden()) * size_of(part.shard.types.communication);
  return op;
}

// The MLP of the block with its norm, between which the adapter's ops of this layer stand.
std::vector<LayerOp> mlp_ops(const Part& part, bool borrows) {
  std::vector<LayerOp> ops = mlp_branch(part);
  ops.pop_back();                        // no addition of its own
  ops.front() = norm(part, "mlp_norm");  // nor of gradients
  if (borrows) borrow(ops);
  if (part.model.shared.adapter_rank == 0) return ops;
  LayerOp& up = ops[1];
  up.reads = {"mlp_norm"};
  up.tensor.regathers_input = false;  // gathered with the adapter's vector
  up.forward.back().read += part.size(part.tokens * part.mlp_inputs() * part.intermediate);
  ops.insert(ops.begin() + 1, adapter_down(part));
  ops.insert(ops.begin() + 2, adapter_up(part));
  return ops;
}

}  // namespace

std::vector<LayerOp> shared_block(const Part& part, const BlockKind& kind) {
  assert(kind.mixer == Mixer::kShared);
  std::vector<LayerOp> ops = {norm_of_both(part)};
  std::vector<LayerOp> attention = attention_ops(part, kind);
  if (kind.borrows) borrow(ops);
  if (kind.borrows) borrow(attention);
  append_ops(adapted_attention(part, std::move(attention)), ops);
  append_ops(mlp_ops(part, kind.borrows), ops);
  LayerOp own = project_own(part, {.name = "shared_projection",
                                   .inputs = part.hidden(),
                                   .outputs = part.hidden(),
                                   .narrow = true});
  keep_input(own, part.operand_size(part.own_tokens * part.hidden()));
  ops.push_back(std::move(own));
  ops.push_back(residual(part, "shared_residual", part.model.mlp.bias));
  return ops;
}

}  // namespace stepsim
