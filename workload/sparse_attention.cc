#include "workload/sparse_attention.h"

#include <string_view>

namespace stepsim {
namespace {

// Queries come out of the narrow latent vector where there is one.
std::int64_t query_inputs(const Part& part) {
  return part.model.latent.q_rank > 0 ? part.model.latent.q_rank : part.hidden();
}

std::string_view source_of_queries(const Part& part) {
  return part.model.latent.q_rank > 0 ? "latent_norm" : "attention_norm";
}

LayerOp index_queries(const Part& part) {
  const IndexerSpec& indexer = part.model.indexer;
  LayerOp op = project(part, {.name = "index_query_projection",
                              .inputs = query_inputs(part),
                              .outputs = indexer.heads * indexer.head_dim,
                              .narrow = true});
  op.reads = {source_of_queries(part)};
  return op;
}

// Scores of `pairs` of a query and a key in each sequence, over all heads of the indexer.
Kernel score(const Part& part, double pairs) {
  const IndexerSpec& indexer = part.model.indexer;
  const Shard& shard = part.shard;
  const DataType type = shard.types.matmul;
  Kernel kernel = matmul("index_scores", {type, DataType::kFp32},
                         {.batch = shard.sequences,
                          .m = shard.sequence_length / shard.context,
                          .n = shard.sequence_length,
                          .k = indexer.heads * indexer.head_dim});
  const auto sequences = static_cast<double>(shard.sequences);
  kernel.flops =
      Flops(2 * sequences * pairs * static_cast<double>(indexer.heads * indexer.head_dim));
  kernel.read = bytes_of(part.tokens * indexer.heads * indexer.head_dim +
                             shard.sequences * shard.sequence_length * indexer.head_dim,
                         type);
  kernel.written = Bytes(static_cast<std::int64_t>(4 * sequences * pairs));
  return kernel;
}

double pairs_of_rank(const Part& part, std::int64_t window) {
  return attention_pairs(part.shard.sequence_length, true, window) /
         static_cast<double>(part.shard.context);
}

LayerOp scores(const Part& part) {
  const IndexerSpec& indexer = part.model.indexer;
  const Kernel all = score(part, pairs_of_rank(part, 0));
  Kernel choose = elementwise("choose_tokens", DataType::kFp32, {.elements = 0});
  choose.read = all.written;
  choose.written = Bytes(part.tokens * indexer.top_k * 4);
  const Kernel chosen = score(part, pairs_of_rank(part, indexer.top_k));
  LayerOp op{.name = "index_scores", .region = Region::kTensor};
  op.forward = {all, choose};
  op.input_gradient = {chosen, chosen};  // of the queries and of the keys
  op.reads = {"index_query_projection", "index_key_projection"};
  keep_input(op, part.size(part.tokens * (indexer.heads + 1) * indexer.head_dim));
  op.saved_inside = choose.written;
  op.saved += op.saved_inside;
  op.forward_workspace = all.written;
  op.backward_workspace = chosen.written;
  return op;
}

}  // namespace

LayerOp index_keys(const Part& part) {
  const IndexerSpec& indexer = part.model.indexer;
  LayerOp op = project_own(part, {.name = "index_key_projection",
                                  .inputs = part.hidden(),
                                  .outputs = indexer.head_dim + indexer.heads,
                                  .narrow = true});
  op.parameters += 2 * indexer.head_dim;  // a layer norm of the key
  op.reads = {"attention_norm"};
  op.input = part.own_stream();  // the projection before keeps it
  return op;
}

std::vector<LayerOp> choose_tokens(const Part& part) {
  return {index_queries(part), scores(part)};
}

void gather_choice(const Part& part, LayerOp& op) {
  const LatentSpec& latent = part.model.latent;
  const std::int64_t width = latent.kv_rank > 0
                                 ? latent.kv_rank + latent.rope_dim
                                 : part.kv_heads * (part.model.head_dim + part.model.v_dim());
  const double pairs = pairs_of_rank(part, part.model.indexer.top_k);
  const auto gathered =
      static_cast<std::int64_t>(static_cast<double>(part.shard.sequences) * pairs);
  op.forward.front().read += part.size(gathered * width);
  op.input_gradient.front().read += part.size(gathered * width);
  op.input_gradient.front().written += part.size(gathered * width);
}

double index_flops(const IndexerSpec& indexer, std::int64_t length, std::int64_t top_k) {
  return 2 * attention_pairs(length, true, top_k) *
         static_cast<double>(indexer.heads * indexer.head_dim);
}

}  // namespace stepsim
