#include "workload/mixers/compressed_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "workload/mixers/attention.h"
#include "workload/mixers/sparse_attention.h"

namespace stepsim {
namespace {

std::int64_t head_dim(const Part& part) {
  return part.model.attention.head_dim;
}

std::int64_t query_values(const Part& part) {
  return part.tokens * part.heads * head_dim(part);
}

LayerOp vectors_norm(const Part& part) {
  LayerOp op{.name = "latent_norm"};
  op.parameters.own = part.model.attention.query_rank + head_dim(part);
  make_rms_norm(part, part.own_tokens * op.parameters.own, op);
  return op;
}

// The features of a value and a weight that the compressor makes of each token.
std::int64_t compressor_width(const Part& part, const BlockKind& kind) {
  return (kind.mixer == Mixer::kCompressed ? 4 : 2) * head_dim(part);
}

LayerOp compress_projection(const Part& part, const BlockKind& kind) {
  LayerOp op = project_own(part, {.name = "compress_projection",
                                  .inputs = part.hidden(),
                                  .outputs = compressor_width(part, kind)});
  op.reads = {"attention_norm"};
  op.input = part.own_stream();  // latent_projection keeps it
  return op;
}

// Sums of values by the softmax of their weights, normalised and rotated.
LayerOp compress(const Part& part, const BlockKind& kind) {
  const std::int64_t ratio = compression_of(part.model, kind);
  const std::int64_t read = part.own_tokens * compressor_width(part, kind);
  const Bytes made = part.size(part.own_tokens * head_dim(part) / ratio);
  LayerOp op{.name = "compress"};
  op.parameters.own = ratio * compressor_width(part, kind) / 2 + head_dim(part);
  op.forward = {part.elementwise(op.name, {.elements = read, .writes = 0, .flops = 4})};
  op.forward.front().written = made;
  op.input_gradient = {part.elementwise(op.name, {.elements = read, .flops = 8})};
  op.input_gradient.front().read += made;
  keep_input(op, part.size(read));
  op.workspace.backward = 2 * part.size(read) + made;
  return op;
}

LayerOp query_head_norm(const Part& part) {
  LayerOp op{.name = "query_head_norm", .region = Region::kTensor};
  make_rms_norm(part, query_values(part), op);
  return op;
}

// Rotates in place, so that nothing is kept.
LayerOp rotate(const Part& part, OpName name, std::int64_t heads) {
  const std::int64_t rotated = part.tokens * heads * part.model.compressed.rope_dim;
  LayerOp op{.name = name, .region = Region::kTensor};
  op.forward = op.input_gradient = {
      part.elementwise(name, {.elements = rotated, .flops = 3, .kind = ElementwiseKind::kRope})};
  op.input = part.size(query_values(part));
  op.passed_on = op.input - part.size(part.tokens * part.heads * part.model.compressed.rope_dim);
  return op;
}

// The kernel reads lists of keys: the window's and the compressed ones.
void make_gathered(Kernel& kernel) {
  if (kernel.kind != KernelKind::kAttentionForward && kernel.kind != KernelKind::kAttentionBackward)
    return;
  const double matmuls = kernel.kind == KernelKind::kAttentionForward ? 2 : 5;
  const double of_a_key = 2 * matmuls * static_cast<double>(kernel.batch * kernel.m * kernel.k);
  kernel.gathered = true;
  kernel.n = std::max<std::int64_t>(1, std::llround(kernel.flops.value() / of_a_key));
}

LayerOp attention_over(const Part& part, const BlockKind& kind) {
  LayerOp op = attention(part, attention_shape(part, kind));
  op.reads = {"rope"};
  for (std::vector<Kernel>* const kernels : {&op.forward, &op.input_gradient}) {
    for (Kernel& kernel : *kernels) make_gathered(kernel);
  }
  const std::int64_t ratio = compression_of(part.model, kind);
  if (ratio == 0) return op;
  const Bytes keys = part.size(part.tokens * head_dim(part) / ratio);
  op.input += keys;
  op.saved.input += keys;
  op.saved.total += keys;
  op.reads.push_back("compress");
  if (kind.mixer != Mixer::kCompressed) return op;
  op.reads.push_back("index_scores");
  const Shard& shard = part.shard;
  const double pairs = static_cast<double>(shard.sequences) *
                       compressed_pairs(part.model, kind, shard.sequence_length) /
                       static_cast<double>(shard.context);
  const Bytes gathered = gathered_size(part, pairs);
  op.forward.front().read += gathered;
  op.input_gradient.front().read += gathered;
  op.input_gradient.front().written += gathered;
  return op;
}

// Each group's heads have a matrix of their own to a narrow vector.
LayerOp output_group_projection(const Part& part) {
  const CompressedSpec& compressed = part.model.compressed;
  const DataTypes& types = part.shard.types;
  const std::int64_t groups = compressed.output_groups / part.shard.tensor;
  const std::int64_t k = part.heads * head_dim(part) / groups, n = compressed.output_rank;
  const MatmulTypes product{types.activations, types.activations};
  LayerOp op{.name = "output_group_projection", .region = Region::kTensor};
  const auto multiply = [&](std::int64_t columns, std::int64_t inner) {
    return matmul(op.name, product, {.batch = groups, .m = part.tokens, .n = columns, .k = inner});
  };
  op.forward = {multiply(n, k)};
  op.input_gradient = {multiply(k, n)};
  op.weight_gradient = {accumulating_matmul(op.name, {types.activations, types.gradients},
                                            {.batch = groups, .m = n, .n = k, .k = part.tokens})};
  op.parameters.own = groups * n * k;
  op.input = part.size(query_values(part));
  op.backward_reads_input = true;  // attention keeps its result, turned in place
  op.workspace.backward = part.size(part.tokens * groups * (n + k));
  return op;
}

std::vector<LayerOp> vectors(const Part& part, const BlockKind& kind) {
  std::vector<LayerOp> ops;
  ops.push_back(project_own(part, {.name = "latent_projection",
                                   .inputs = part.hidden(),
                                   .outputs = part.model.attention.query_rank + head_dim(part),
                                   .narrow = true}));
  keep_input(ops.back(), part.operand_size(part.own_tokens * part.hidden()));
  ops.push_back(vectors_norm(part));
  if (!kind.is_compressed()) return ops;
  ops.push_back(compress_projection(part, kind));
  ops.push_back(compress(part, kind));
  if (kind.mixer == Mixer::kCompressed) ops.push_back(index_keys(part));
  return ops;
}

}  // namespace

std::int64_t compression_of(const ModelSpec& model, const BlockKind& kind) {
  if (!kind.is_compressed()) return 0;
  return kind.mixer == Mixer::kCompressed ? model.compressed.ratio : model.compressed.heavy_ratio;
}

AttentionShape compressed_shape(const Part& part, const BlockKind& kind, std::int64_t queries,
                                std::int64_t keys, double pairs) {
  const std::int64_t ratio = compression_of(part.model, kind);
  return {.sequences = part.shard.sequences,
          .heads = part.heads,
          .kv_heads = 1,
          .queries = queries,
          .keys = keys + (ratio > 0 ? keys / ratio : 0),
          .qk_dim = head_dim(part),
          .v_dim = head_dim(part),
          .pairs = pairs,
          .values_in_keys = true};
}

std::vector<LayerOp> compressed_attention_ops(const Part& part, const BlockKind& kind) {
  assert(part.model.compressed.output_groups > 0);
  const CompressedSpec& compressed = part.model.compressed;
  const std::int64_t rank = part.model.attention.query_rank;
  std::vector<LayerOp> ops = vectors(part, kind);
  LayerOp queries = project_gathered(part, {.name = "query_up_projection",
                                            .inputs = rank,
                                            .outputs = part.heads * head_dim(part),
                                            .narrow = true});
  queries.reads = {"latent_norm"};
  const std::int64_t ratio = compression_of(part.model, kind);
  const std::int64_t keys = part.tokens * head_dim(part);
  queries.tensor.crossing = (part.tokens * rank + keys + (ratio > 0 ? keys / ratio : 0)) *
                            size_of(part.shard.types.communication);
  ops.push_back(std::move(queries));
  ops.push_back(query_head_norm(part));
  ops.push_back(rotate(part, "rope", part.heads + 1));
  if (kind.mixer == Mixer::kCompressed) {
    for (LayerOp& op : choose_tokens(part)) ops.push_back(std::move(op));
  }
  ops.push_back(attention_over(part, kind));
  ops.push_back(rotate(part, "result_rope", part.heads));
  ops.push_back(output_group_projection(part));
  const std::int64_t inputs = compressed.output_groups / part.shard.tensor * compressed.output_rank;
  ops.push_back(project_partial(
      part,
      {.name = "out_projection", .inputs = inputs, .outputs = part.hidden(), .narrow = true}));
  keep_input(ops.back(), part.operand_size(part.tokens * inputs));
  return ops;
}

}  // namespace stepsim
