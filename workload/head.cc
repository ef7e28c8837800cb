#include "workload/head.h"

#include <string>
#include <utility>

#include "workload/embedding.h"

namespace stepsim {
namespace {

LayerOp cross_entropy(const Part& part) {
  const std::int64_t logits = part.tokens * part.vocabulary;
  const std::int64_t reduced = 3;
  const Bytes statistic = part.tokens * size_of(DataType::kFp32);
  const Bytes targets = Bytes(part.tokens * kTokenIdBytes);
  LayerOp op{.name = "cross_entropy", .region = Region::kTensor};
  op.forward = {part.elementwise(op.name, {.elements = logits, .writes = 0, .flops = 5})};
  op.forward.front().read += targets;
  op.forward.front().written += reduced * statistic;
  op.input_gradient = {part.elementwise(op.name, {.elements = logits, .flops = 4})};
  op.input_gradient.front().read += 2 * statistic + targets;
  op.saved = part.size(logits) + 2 * statistic + targets;
  op.forward_workspace = reduced * statistic;
  op.reduced_values_per_token = reduced;
  return op;
}

Layer norm_to_loss(const Part& part, std::string name, bool own_table) {
  LayerOp unembedding = project_gathered(
      part, {.name = "unembedding", .inputs = part.hidden(), .outputs = part.vocabulary});
  if (!own_table) unembedding.parameters = 0;
  // The gradient of the logits stands where the logits are kept.
  unembedding.backward_workspace -= part.size(part.tokens * part.vocabulary);
  return {.name = std::move(name),
          .ops = {norm(part, "final_norm"), std::move(unembedding), cross_entropy(part)}};
}

}  // namespace

Layer head_layer(const Part& part) {
  return norm_to_loss(part, "head", !part.model.tied_embeddings);  // or the embedding's table
}

Layer prediction_head_layer(const Part& part) {
  return norm_to_loss(part, "prediction head", false);
}

}  // namespace stepsim
