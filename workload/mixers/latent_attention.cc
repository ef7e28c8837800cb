#include "workload/mixers/latent_attention.h"

#include <cassert>
#include <utility>

namespace stepsim {
namespace {

// RMS norm of the latent vectors of queries, and of keys and values.
LayerOp latent_norm(const Part& part) {
  const LatentSpec& latent = part.model.latent;
  LayerOp op{.name = "latent_norm"};
  op.parameters.own = latent.q_rank + latent.kv_rank;
  make_rms_norm(part, part.own_tokens * op.parameters.own, op);
  return op;
}

// Rotates the rotary part of the queries and of k. The latter is then copied to every head's key.
LayerOp rotate_and_join(const Part& part) {
  const LatentSpec& latent = part.model.latent;
  const std::int64_t rotated = part.tokens * (part.heads + 1) * latent.rope_dim;
  const std::int64_t keys = part.tokens * part.heads * part.model.qk_dim();
  LayerOp op{.name = "rope", .region = Region::kTensor};
  const Kernel rotation =
      part.elementwise("rope", {.elements = rotated, .flops = 3, .kind = ElementwiseKind::kRope});
  op.forward = {rotation, part.elementwise("join_keys", {.elements = keys})};
  op.input_gradient = {part.elementwise("join_keys", {.elements = keys, .flops = 1}), rotation};
  op.reads = {"key_value_up_projection", "query_up_projection"};
  op.input =
      part.size(part.tokens * part.heads * (part.model.qk_dim() + latent.nope_dim + latent.v_dim));
  op.passed_on = part.size(part.tokens * part.heads * latent.v_dim);
  op.workspace.backward = 2 * part.size(keys);
  return op;
}

LayerOp gate_of_result(const Part& part) {
  const bool is_wide = part.model.attention.gate == AttentionGate::kValue;
  LayerOp op = project_gathered(part, {.name = "gate_projection",
                                       .inputs = part.hidden(),
                                       .outputs = part.heads * (is_wide ? part.model.v_dim() : 1),
                                       .narrow = true});
  op.saved.total = op.saved.input = Bytes(0);  // latent_projection keeps it
  op.reads = {part.model.parallel_branches ? OpName("norm") : OpName("attention_norm")};
  op.tensor.regathers_input = false;
  return op;
}

}  // namespace

std::vector<LayerOp> latent_projections(const Part& part) {
  assert(part.model.latent.kv_rank > 0);
  const LatentSpec& latent = part.model.latent;
  const std::int64_t narrow_query = latent.q_rank > 0 ? latent.q_rank : part.hidden();
  std::vector<LayerOp> ops;
  LayerOp down = project_own(part, {.name = "latent_projection",
                                    .inputs = part.hidden(),
                                    .outputs = latent.q_rank + latent.kv_rank + latent.rope_dim,
                                    .narrow = true});
  keep_input(down, part.operand_size(part.own_tokens * part.hidden()));
  ops.push_back(std::move(down));
  ops.push_back(latent_norm(part));

  LayerOp queries = project_gathered(part, {.name = "query_up_projection",
                                            .inputs = narrow_query,
                                            .outputs = part.heads * part.model.qk_dim(),
                                            .narrow = true});
  if (latent.q_rank == 0) {  // latent_projection keeps the same input
    queries.saved.total = queries.saved.input = Bytes(0);
    queries.reads = {part.model.parallel_branches ? OpName("norm") : OpName("attention_norm")};
  }
  // A gate of the result reads the whole stream.
  const bool is_gated = part.model.attention.gate != AttentionGate::kNone;
  const std::int64_t crossing =
      narrow_query + latent.kv_rank + latent.rope_dim + (is_gated ? part.hidden() : 0);
  queries.tensor.crossing = part.tokens * crossing * size_of(part.shard.types.communication);
  ops.push_back(std::move(queries));
  LayerOp keys_and_values =
      project_gathered(part, {.name = "key_value_up_projection",
                              .inputs = latent.kv_rank,
                              .outputs = part.heads * (latent.nope_dim + latent.v_dim),
                              .narrow = true});
  keys_and_values.reads = {"latent_norm"};
  keys_and_values.tensor.regathers_input =
      false;  // its input arrives with the queries' latent vector
  ops.push_back(std::move(keys_and_values));
  if (part.model.attention.gate != AttentionGate::kNone) ops.push_back(gate_of_result(part));
  ops.push_back(rotate_and_join(part));
  return ops;
}

}  // namespace stepsim
