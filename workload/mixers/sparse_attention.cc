#include "workload/mixers/sparse_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string_view>

namespace stepsim {
namespace {

// Queries come out of the narrow latent vector where there is one.
std::int64_t query_inputs(const Part& part) {
  if (part.model.compressed.output_groups > 0) return part.model.attention.query_rank;
  return part.model.latent.q_rank > 0 ? part.model.latent.q_rank : part.hidden();
}

OpName source_of_queries(const Part& part) {
  const bool narrow = part.model.latent.q_rank > 0 || part.model.compressed.output_groups > 0;
  return narrow ? OpName("latent_norm") : OpName("attention_norm");
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

// The sequences whose pairs an indexer scores.
struct Scored {
  std::int64_t sequences = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  double pairs = 0;  // of a sequence
};

// Multiplies queries and keys over all heads of the indexer.
Kernel score(const Part& part, const Scored& scored) {
  const IndexerSpec& indexer = part.model.indexer;
  const DataType type = part.shard.types.matmul;
  const std::int64_t width = indexer.heads * indexer.head_dim;
  Kernel kernel =
      matmul("index_scores", {type, DataType::kFp32},
             {.batch = scored.sequences, .m = scored.queries, .n = scored.keys, .k = width});
  const double pairs = static_cast<double>(scored.sequences) * scored.pairs;
  kernel.flops = Flops(2 * pairs * static_cast<double>(width));
  kernel.read =
      bytes_of(scored.sequences * (scored.queries * width + scored.keys * indexer.head_dim), type);
  kernel.written = Bytes(static_cast<std::int64_t>(4 * pairs));
  return kernel;
}

Kernel choose(const Part& part, std::int64_t queries, Bytes scores) {
  Kernel kernel = elementwise("choose_tokens", DataType::kFp32, {.elements = 0});
  kernel.read = scores;
  kernel.written = Bytes(queries * part.model.indexer.top_k * 4);
  return kernel;
}

Scored scored_by_rank(const Part& part, double pairs) {
  const Shard& shard = part.shard;
  return {.sequences = shard.sequences,
          .queries = shard.sequence_length / shard.context,
          .keys = shard.sequence_length / tokens_of_index_key(part.model),
          .pairs = pairs};
}

// `chosen`: with so many keys of a query at most; 0: with all before it.
double pairs_of_rank(const Part& part, std::int64_t chosen) {
  const std::int64_t ratio = tokens_of_index_key(part.model);
  return attention_pairs(part.shard.sequence_length, true, ratio * chosen) /
         static_cast<double>(part.shard.context * ratio);
}

// What the indexer is trained towards: the scores of all heads with the chosen keys, whose vectors
// are gathered. Its backward gathers the chosen narrow keys, and adds their gradients in fp32.
void add_target(const Part& part, LayerOp& op) {
  const IndexerSpec& indexer = part.model.indexer;
  const double pairs =
      static_cast<double>(part.shard.sequences) * pairs_of_rank(part, indexer.top_k);
  const std::int64_t width = part.model.attention.head_dim;
  Kernel target = attention_forward("index_target", part.shard.types.activations,
                                    {.sequences = part.shard.sequences,
                                     .heads = part.heads,
                                     .kv_heads = 1,
                                     .queries = part.shard.sequence_length / part.shard.context,
                                     .keys = indexer.top_k,
                                     .qk_dim = width,
                                     .v_dim = width,
                                     .values_in_keys = true});
  target.flops = Flops(2 * pairs * static_cast<double>(part.heads * width));
  target.gathered = true;
  target.n = std::max<std::int64_t>(1, std::llround(pairs / static_cast<double>(part.tokens)));
  target.read = part.size(part.tokens * part.heads * width) + gathered_size(part, pairs);
  target.written = Bytes(static_cast<std::int64_t>(4 * pairs));
  op.forward.push_back(target);
  const auto values = static_cast<std::int64_t>(pairs) * indexer.head_dim;
  op.input_gradient.front().read += part.size(values);
  op.input_gradient.back().read += 4 * Bytes(values);
  op.input_gradient.back().written += 4 * Bytes(values);
}

LayerOp scores(const Part& part) {
  const IndexerSpec& indexer = part.model.indexer;
  const Kernel all = score(part, scored_by_rank(part, pairs_of_rank(part, 0)));
  const Kernel choice = choose(part, part.tokens, all.written);
  const Kernel chosen = score(part, scored_by_rank(part, pairs_of_rank(part, indexer.top_k)));
  LayerOp op{.name = "index_scores", .region = Region::kTensor};
  op.forward = {all, choice};
  op.input_gradient = {chosen, chosen};  // of the queries and of the keys
  op.reads = {"index_query_projection", "index_key_projection"};
  keep_input(op, part.size(part.tokens * (indexer.heads + 1) * indexer.head_dim));
  op.saved.inside = choice.written;
  op.saved.total += op.saved.inside;
  op.workspace.forward = all.written;
  op.workspace.backward = chosen.written;
  if (tokens_of_index_key(part.model) > 1) add_target(part, op);
  return op;
}

}  // namespace

LayerOp index_keys(const Part& part) {
  assert(part.model.indexer.heads > 0);
  const IndexerSpec& indexer = part.model.indexer;
  const std::int64_t ratio = tokens_of_index_key(part.model);
  const std::int64_t width = (ratio > 1 ? 4 : 1) * indexer.head_dim;  // two values, two weights
  LayerOp op = project_own(part, {.name = "index_key_projection",
                                  .inputs = part.hidden(),
                                  .outputs = width + indexer.heads,
                                  .narrow = true});
  if (ratio == 1) {
    op.parameters.own += 2 * indexer.head_dim;  // a layer norm of the key
  } else {
    op.parameters.own += ratio * width / 2 + indexer.head_dim;  // places, and an RMS norm
    op.forward.push_back(
        part.elementwise("compress", {.elements = part.own_tokens * width, .writes = 0}));
    op.input_gradient.push_back(
        part.elementwise("compress", {.elements = part.own_tokens * width, .flops = 8}));
  }
  op.reads = {"attention_norm"};
  op.input = part.own_stream();  // the projection before keeps it
  return op;
}

std::vector<LayerOp> choose_tokens(const Part& part) {
  assert(part.model.indexer.heads > 0);
  return {index_queries(part), scores(part)};
}

std::int64_t tokens_of_index_key(const ModelSpec& model) {
  return model.compressed.ratio > 0 ? model.compressed.ratio : 1;
}

std::vector<Kernel> index_scores(const Part& part, std::int64_t sequences, std::int64_t queries,
                                 std::int64_t keys, double pairs) {
  const Kernel all =
      score(part, {.sequences = sequences, .queries = queries, .keys = keys, .pairs = pairs});
  return {all, choose(part, sequences * queries, all.written)};
}

Bytes gathered_size(const Part& part, double pairs) {
  const LatentSpec& latent = part.model.latent;
  const std::int64_t width =
      part.model.compressed.output_groups > 0 ? part.model.attention.head_dim
      : latent.kv_rank > 0                    ? latent.kv_rank + latent.rope_dim
                           : part.kv_heads * (part.model.attention.head_dim + part.model.v_dim());
  return part.size(static_cast<std::int64_t>(pairs) * width);
}

void gather_choice(const Part& part, LayerOp& op) {
  const double pairs = pairs_of_rank(part, part.model.indexer.top_k);
  const Bytes gathered = gathered_size(part, static_cast<double>(part.shard.sequences) * pairs);
  op.forward.front().read += gathered;
  op.input_gradient.front().read += gathered;
  op.input_gradient.front().written += gathered;
}

double index_flops(const ModelSpec& model, std::int64_t length, std::int64_t top_k) {
  const std::int64_t ratio = tokens_of_index_key(model);
  return 2 * attention_pairs(length, true, ratio * top_k) / static_cast<double>(ratio) *
         static_cast<double>(model.indexer.heads * model.indexer.head_dim);
}

}  // namespace stepsim
