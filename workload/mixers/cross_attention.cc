#include "workload/mixers/cross_attention.h"

#include <utility>

#include "workload/mixers/attention.h"

namespace stepsim {
namespace {

LayerOp keys_and_values(const Part& part) {
  const ModelSpec& model = part.model;
  LayerOp op =
      project_gathered(part, {.name = "cross_key_value_projection",
                              .inputs = part.hidden(),
                              .outputs = part.kv_heads * (model.attention.head_dim + model.v_dim()),
                              .bias = model.attention.bias || model.attention.qkv_bias,
                              .narrow = true});
  op.saved.total = op.saved.input = Bytes(0);  // the last layer of the encoder keeps it
  op.reads = {"cross_norm"};
  // Each layer adds its gradient of the encoder's result to that of the layers behind it.
  op.input_gradient.push_back(part.elementwise(
      "encoder_gradient", {.elements = part.own_tokens * part.hidden(), .reads = 2, .flops = 1}));
  return op;
}

}  // namespace

std::vector<LayerOp> cross_attention_branch(const Part& part) {
  const ModelSpec& model = part.model;
  std::vector<LayerOp> ops = {branch_norm(part, "cross_norm")};
  LayerOp queries =
      project_gathered(part, {.name = "cross_query_projection",
                              .inputs = part.hidden(),
                              .outputs = part.heads * model.attention.head_dim,
                              .bias = model.attention.bias || model.attention.qkv_bias,
                              .narrow = true});
  // The encoder's tokens are gathered with the decoder's.
  queries.tensor.crossing =
      2 * part.tokens * part.hidden() * size_of(part.shard.types.communication);
  ops.push_back(std::move(queries));
  ops.push_back(keys_and_values(part));
  ops.back().tensor.regathers_input = false;  // the queries' projection gathers both
  LayerOp attend = attention(part, attention_shape(part, {.mixer = Mixer::kTwoSided}));
  attend.name = "cross_attention";
  attend.reads = {"cross_query_projection", "cross_key_value_projection"};
  ops.push_back(std::move(attend));
  ops.push_back(project_partial(part, {.name = "cross_out_projection",
                                       .inputs = part.heads * model.v_dim(),
                                       .outputs = part.hidden(),
                                       .narrow = true,
                                       .keeps_wide = true}));
  add_post_norm(part, "cross_post_norm", ops);
  ops.push_back(residual(part, "cross_residual", model.attention.bias));
  return ops;
}

}  // namespace stepsim
