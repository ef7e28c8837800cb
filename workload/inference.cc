#include "workload/inference.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "workload/head.h"
#include "workload/layers.h"
#include "workload/mixers/attention.h"
#include "workload/mixers/chunked_scan.h"
#include "workload/mixers/compressed_attention.h"
#include "workload/mixers/mixer.h"
#include "workload/mixers/sparse_attention.h"
#include "workload/mixers/state_mixer.h"
#include "workload/model_counts.h"
#include "workload/parts/context_pairs.h"
#include "workload/parts/kernels.h"
#include "workload/parts/layer_part.h"

namespace stepsim {
namespace {

// Values that one projection gives with the keys are kept too: keys are rotated afterwards.
std::int64_t keys_and_values(const ModelSpec& own, std::int64_t kv_heads) {
  if (own.compressed.output_groups > 0) return own.attention.head_dim;  // one vector
  return kv_heads * (own.attention.head_dim + own.v_dim());
}

std::int64_t part_of(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

// Returns the pairs of a new token and a key that a request's attention scores, per head.
double scored_pairs(const ModelSpec& model, const BlockKind& kind, const RequestGroup& group) {
  if (kind.mixer == Mixer::kTwoSided) return pairs_of(model, kind, group.queries);
  return pairs_of(model, kind, group.keys()) - pairs_of(model, kind, group.cached);
}

// ---- kernels that mix the tokens of a request ----

// The kernels of one kind of layer for a group of requests.
class MixedTokens {
 public:
  MixedTokens(const Part& part, const ModelSpec& model, const BlockKind& kind, DataType cache)
      : part_(part), model_(model), kind_(kind), cache_(cache) {}

  // Returns those of the op of this name, group by group; nullopt if the op does not mix tokens.
  std::optional<std::vector<Kernel>> of(OpRole op, const RequestBatch& batch) const {
    std::vector<Kernel> all;
    for (const RequestGroup& group : batch.groups) {
      std::vector<Kernel> kernels;
      if (op == OpRole::kAttention) {
        kernels = attention(group, batch.has_prompts());
      } else if (op == OpRole::kIndexScores) {
        kernels = index_scores(group);
      } else if (op == OpRole::kScan) {
        kernels = scan(group);
      } else {
        return std::nullopt;
      }
      std::ranges::move(kernels, std::back_inserter(all));
    }
    return all;
  }

  // Returns the kernels of attention in a ring of context ranks, for the keys and values of each
  // rank in the order in which they come: its own, then those of the ranks before it.
  std::vector<std::vector<Kernel>> parts_of_ring(const std::vector<RequestGroup>& groups) const {
    const std::int64_t ranks = part_.shard.prompt.parts;
    std::vector<std::vector<Kernel>> parts(static_cast<std::size_t>(ranks));
    for (std::int64_t hop = 0; hop < ranks; ++hop) {
      for (const RequestGroup& group : groups) {
        add_part(group, hop, parts[static_cast<std::size_t>(hop)]);
      }
    }
    return parts;
  }

 private:
  std::vector<Kernel> attention(const RequestGroup& group, bool beside_prompts) const {
    std::vector<Kernel> kernels;
    if (group.generates) {
      kernels.push_back(is_latent()     ? over_latents(group)
                        : has_vectors() ? over_vectors(group)
                                        : over_cache(group, beside_prompts));
      return kernels;
    }
    if (is_latent() && !is_sparse() && group.keys() > own_queries(group)) {
      kernels.push_back(others_keys(group));
    }
    kernels.push_back(over_prompt(group));
    kernels.push_back(write_cache(group));
    return kernels;
  }

  std::vector<Kernel> index_scores(const RequestGroup& group) const {
    const std::int64_t ratio = tokens_of_index_key(model_);
    const double pairs = pairs_of(model_, {.mixer = Mixer::kGlobal}, group.keys()) -
                         pairs_of(model_, {.mixer = Mixer::kGlobal}, group.cached);
    return stepsim::index_scores(part_, group.sequences, group.queries,
                                 part_of(group.keys(), ratio), pairs / static_cast<double>(ratio));
  }

  std::vector<Kernel> scan(const RequestGroup& group) const {
    if (group.generates) return {state_step(group)};
    Shard shard = part_.shard;
    shard.sequences = group.sequences;
    shard.sequence_length = group.queries;
    shard.sequence_parallel = false;  // the group's own tokens needn't be a multiple of it
    const std::vector<LayerOp> ops = mixer_branch(part_of_model(own(), shard), kind_);
    return std::ranges::find_if(ops,
                                [](const LayerOp& op) { return op.name.role() == OpRole::kScan; })
        ->forward;
  }

  // One step of the recurrence for each new token: the state is read and written.
  Kernel state_step(const RequestGroup& group) const {
    const StateSpec& state = model_.state;
    const std::int64_t heads = std::max<std::int64_t>(1, state.heads / part_.shard.tensor);
    const Bytes states = group.sequences * heads * state_size(state);
    const std::int64_t values = group.tokens() * heads * (2 * state.key_dim + state.value_dim);
    Kernel step = part_.elementwise("scan", {.elements = values});
    step.flops = Flops(recurrence_flops(state, 1) * static_cast<double>(group.tokens()) /
                       static_cast<double>(part_.shard.tensor));
    step.read += states;
    step.written += states;
    return step;
  }

  const ModelSpec& own() const { return part_.model; }
  bool is_latent() const { return own().latent.kv_rank > 0; }
  bool is_sparse() const { return kind_.mixer == Mixer::kSparse; }
  bool has_vectors() const { return own().compressed.output_groups > 0; }
  DataType type() const { return part_.shard.types.activations; }

  // Returns the keys that a query of a sparse layer looks at, at most.
  std::int64_t read_keys(const RequestGroup& group) const {
    return is_sparse() ? std::min(group.keys(), own().indexer.top_k) : group.keys();
  }

  bool by_request() const { return part_.shard.cache.split == CacheSplit::kRequests; }
  // New tokens of each prompt that are this context rank's.
  std::int64_t own_queries(const RequestGroup& group) const {
    return part_of(group.queries, part_.shard.prompt.parts);
  }
  // Requests whose caches the chip reads, and the heads that it reads of them.
  std::int64_t own_sequences(const RequestGroup& group) const {
    const std::int64_t parts = by_request() ? part_.shard.tensor : 1;
    return (group.sequences + parts - 1) / parts;
  }
  std::int64_t own_heads() const { return by_request() ? own().attention.heads : part_.heads; }

  Kernel over_cache(const RequestGroup& group, bool beside_prompts) const {
    return attention_decode("attention",
                            {.type = type(), .stored = cache_, .beside_prompts = beside_prompts},
                            {.sequences = own_sequences(group),
                             .heads = own_heads(),
                             .kv_heads = by_request() ? own().attention.kv_heads : part_.kv_heads,
                             .queries = group.queries,
                             .keys = read_keys(group),
                             .window = kind_.mixer == Mixer::kLocal ? own().attention.window : 0,
                             .qk_dim = own().qk_dim(),
                             .v_dim = own().v_dim()});
  }

  // One vector of a token, or of several, for all heads: the window's and the compressed ones.
  Kernel over_vectors(const RequestGroup& group) const {
    return latent_decode(
        "attention", {.type = type(), .stored = cache_},
        {.sequences = own_sequences(group),
         .heads = own_heads(),
         .queries = group.queries,
         .keys = std::min(group.keys(), own().attention.window) + read_compressed(group),
         .latent_dim = own().attention.head_dim,
         .rope_dim = 0});
  }

  // Returns the compressed keys that a query looks at, at most.
  std::int64_t read_compressed(const RequestGroup& group) const {
    const std::int64_t ratio = compression_of(own(), kind_);
    if (ratio == 0) return 0;
    const std::int64_t keys = group.keys() / ratio;
    return kind_.mixer == Mixer::kCompressed ? std::min(keys, own().indexer.top_k) : keys;
  }

  Kernel over_latents(const RequestGroup& group) const {
    return latent_decode("attention", {.type = type(), .stored = cache_},
                         {.sequences = own_sequences(group),
                          .heads = own_heads(),
                          .queries = group.queries,
                          .keys = read_keys(group),
                          .latent_dim = own().latent.kv_rank,
                          .rope_dim = own().latent.rope_dim});
  }

  Kernel over_prompt(const RequestGroup& group) const {
    AttentionShape shape = attention_shape(part_, kind_);
    shape.sequences = group.sequences;
    shape.queries = own_queries(group);
    shape.keys = group.keys();
    if (kind_.mixer == Mixer::kLocal || kind_.is_compressed()) {
      shape.keys = std::min(shape.keys, own().attention.window + group.queries);
    }
    if (const std::int64_t ratio = compression_of(own(), kind_); ratio > 0) {
      shape.keys += group.keys() / ratio;
    }
    shape.pairs =
        scored_pairs(model_, kind_, group) / static_cast<double>(part_.shard.prompt.parts);
    Kernel kernel = attention_forward("attention", type(), shape);
    if (is_sparse()) {
      kernel.read += gathered_size(part_, static_cast<double>(group.sequences) * shape.pairs);
    }
    if (kind_.mixer == Mixer::kCompressed) {
      const double chosen = compressed_pairs(model_, kind_, group.keys()) -
                            compressed_pairs(model_, kind_, group.cached);
      kernel.read += gathered_size(part_, static_cast<double>(group.sequences) * chosen);
    }
    return kernel;
  }

  // Keys and values of tokens in the cache, and of other context ranks, come out of their latent
  // vectors.
  Kernel others_keys(const RequestGroup& group) const {
    return keys_of_latents(group.sequences * (group.keys() - own_queries(group)));
  }
  Kernel keys_of_latents(std::int64_t tokens) const {
    const LatentSpec& latent = own().latent;
    const DataTypes& types = part_.shard.types;
    return matmul(
        "key_value_up_projection", {types.matmul, types.activations},
        {.m = tokens, .n = part_.heads * (latent.nope_dim + latent.v_dim), .k = latent.kv_rank});
  }

  // ---- a ring of context ranks ----

  // Adds what this rank computes with the keys that have come after `hop` hops: nothing where none
  // of them is scored.
  void add_part(const RequestGroup& group, std::int64_t hop, std::vector<Kernel>& kernels) const {
    const double pairs = pairs_after(group, hop);
    if (pairs <= 0) return;
    const std::int64_t queries = own_queries(group);
    const std::int64_t cached = part_of(group.cached, part_.shard.prompt.parts);
    const std::int64_t made = hop == 0 ? 0 : queries;  // latents whose keys another rank has
    if (is_latent() && made + cached > 0) {
      kernels.push_back(keys_of_latents(group.sequences * (made + cached)));
    }
    AttentionShape shape = attention_shape(part_, kind_);
    shape.sequences = group.sequences;
    shape.queries = queries;
    shape.keys = queries + cached;
    if (kind_.mixer == Mixer::kLocal) {
      shape.keys = std::min(shape.keys, own().attention.window + group.queries);
    }
    shape.pairs = pairs;
    kernels.push_back(attention_forward("attention", type(), shape));
    if (hop == 0) {
      kernels.push_back(write_cache(group));
      return;
    }
    const std::int64_t results = group.sequences * queries * shape.heads * shape.v_dim;
    kernels.push_back(
        part_.elementwise("merge_attention", {.elements = results, .reads = 2, .flops = 3}));
  }

  // Counts the pairs of this rank's new tokens and the keys of the rank `hop` places before it: of
  // new tokens by their places, of the cache an equal part.
  double pairs_after(const RequestGroup& group, std::int64_t hop) const {
    const std::int64_t ranks = part_.shard.prompt.parts;
    const std::int64_t owner = (part_.shard.prompt.rank + ranks - hop) % ranks;
    const AttentionMask mask{own().attention.causal, own().attention.window,
                             own().attention.window_kind};
    const auto cached = static_cast<double>(group.cached);
    double pairs = 0;
    for (const TokenSpan& queries : new_tokens(group, part_.shard.prompt.rank)) {
      for (const TokenSpan& keys : new_tokens(group, owner)) {
        pairs += pairs_between(mask, queries, keys);
      }
      if (group.cached > 0) {
        pairs += pairs_between(mask, queries, {0, cached}) / static_cast<double>(ranks);
      }
    }
    return pairs;
  }

  std::vector<TokenSpan> new_tokens(const RequestGroup& group, std::int64_t rank) const {
    std::vector<TokenSpan> spans = spans_of_rank(group.queries, part_.shard.prompt.parts, rank,
                                                 part_.shard.prompt.ring == PromptRing::kZigzag);
    const auto cached = static_cast<double>(group.cached);
    for (TokenSpan& span : spans) span = {span.from + cached, span.until + cached};
    return spans;
  }

  Kernel write_cache(const RequestGroup& group) const {
    const std::int64_t width = is_latent() ? own().latent.kv_rank + own().latent.rope_dim
                                           : keys_and_values(own(), part_.kv_heads);
    const std::int64_t values = group.sequences * own_queries(group) * (kind_.shares ? 0 : width);
    return rounding("write_cache", type(), values, part_.size(values), bytes_of(values, cache_));
  }

  const Part& part_;  // of the layer's own sizes
  const ModelSpec& model_;
  const BlockKind& kind_;
  DataType cache_;
};

// Sends queries, and new keys and values, to the chips that keep the caches of their requests, and
// results back. Latent vectors are made on every chip, so only queries of them travel.
void exchange_requests(const Part& part, const BlockKind& kind, const RequestBatch& batch,
                       LayerOp& attention) {
  const std::int64_t chips = part.shard.tensor;
  std::int64_t tokens = 0;  // as if each chip had as many requests
  for (const RequestGroup& group : batch.groups) {
    if (group.generates) tokens += (group.sequences + chips - 1) / chips * chips * group.queries;
  }
  const ModelSpec& own = part.model;
  const LatentSpec& latent = own.latent;
  const bool is_latent = latent.kv_rank > 0;
  const std::int64_t query =
      part.heads * (is_latent ? latent.kv_rank + latent.rope_dim : own.qk_dim());
  const bool has_keys = !is_latent && !kind.shares;
  // Chips that share a head send it once.
  const std::int64_t keys = has_keys ? keys_and_values(own, own.attention.kv_heads) / chips : 0;
  const std::int64_t result = part.heads * (is_latent ? latent.kv_rank : own.v_dim());
  const Bytes value = size_of(part.shard.types.communication);
  attention.pass.sent_before = tokens * (query + keys) * value;
  attention.pass.sent_after = tokens * result * value;
}

// Returns what a context rank has of all tokens up to now, as it is sent: latent vectors, or keys
// and values.
Bytes keys_of_rank(const Part& part, const RequestBatch& batch) {
  const std::int64_t ranks = part.shard.prompt.parts;
  const ModelSpec& own = part.model;
  const std::int64_t width = own.latent.kv_rank > 0 ? own.latent.kv_rank + own.latent.rope_dim
                                                    : keys_and_values(own, part.kv_heads);
  const DataType type = part.shard.types.communication;
  Bytes of_rank;
  for (const RequestGroup& group : batch.groups) {
    of_rank += bytes_of(group.sequences * part_of(group.queries, ranks) * width, type) +
               bytes_of(group.sequences * part_of(group.cached, ranks) * width, batch.cache);
  }
  const std::int64_t element = size_of(type).value();
  return Bytes(part_of(of_rank.value(), element) * element);
}

// Adds what context ranks send before attention, or beside it. Layers that share keys have gathered
// them before; a ring doesn't keep what it passes on, so they pass it round again.
void exchange_keys(const Part& part, const BlockKind& kind, const RequestBatch& batch,
                   const MixedTokens& mixed, LayerOp& attention) {
  const std::int64_t ranks = part.shard.prompt.parts;
  if (ranks == 1) return;
  if (part.shard.prompt.ring == PromptRing::kNone) {
    if (!kind.shares) attention.pass.gathered_before = ranks * keys_of_rank(part, batch);
    return;
  }
  attention.pass.parts = mixed.parts_of_ring(batch.groups);
  attention.pass.handed_round = keys_of_rank(part, batch);
  attention.forward.clear();
  for (const std::vector<Kernel>& kernels : attention.pass.parts) {
    std::ranges::copy(kernels, std::back_inserter(attention.forward));
  }
}

// ---- ops ----

// Nothing is kept; what an op reads and makes lives while it runs.
void run_forward_only(LayerOp& op) {
  Bytes made;
  for (const Kernel& kernel : op.forward) made = std::max(made, kernel.written);
  op.workspace.forward = std::max(op.workspace.forward, op.input + made) + op.pass.gathered_before +
                         2 * op.pass.handed_round;
  op.again.clear();
  op.input_gradient.clear();
  op.weight_gradient.clear();
  op.saved.total = op.saved.input = op.saved.inside = op.saved.result = Bytes(0);
  op.workspace.backward = Bytes(0);
  op.backward_reads_input = op.tensor.regathers_input = false;
  op.tensor.reduced_values_per_token = 0;
}

Layer forward_only(Layer layer) {
  for (LayerOp& op : layer.ops) run_forward_only(op);
  return layer;
}

// Multiplies with weights that are narrower in memory than the operands.
void read_narrow_weights(const DataTypes& types, std::optional<DataType> weights, LayerOp& op) {
  if (!weights || bits_of(*weights) >= bits_of(types.matmul)) return;
  for (Kernel& kernel : op.forward) {
    if (kernel.kind != KernelKind::kMatmul) continue;
    kernel.read = bytes_of(kernel.batch * kernel.m * kernel.k, types.matmul) +
                  bytes_of(kernel.batch * kernel.n * kernel.k, *weights);
    kernel.stored = *weights;
  }
}

// Returns whether the op multiplies with a matrix in the type of projections. Tables, the head and
// the router stay in that of the activations; others multiply activations only.
bool has_projection(const LayerOp& op) {
  constexpr std::array kOthers = {OpRole::kTable,     OpRole::kHead,        OpRole::kRouter,
                                  OpRole::kAttention, OpRole::kIndexScores, OpRole::kScan};
  const auto is_matmul = [](const Kernel& kernel) { return kernel.kind == KernelKind::kMatmul; };
  return std::ranges::any_of(op.forward, is_matmul) &&
         std::ranges::count(kOthers, op.name.role()) == 0;
}

// Whether experts are divided over several tensor groups.
bool spans_groups(const Shard& shard) {
  return shard.tensor > 1 && shard.experts.sending_replicas == 0 &&
         shard.experts.parts * shard.experts.tensor > shard.tensor;
}

// All experts of the chip in one call, which chooses, sorts, multiplies and adds up. Without a
// tensor group copies arrive sorted by the dispatch, and leave so.
// Experts on chips of their own get the tokens of all replicas, without what pads them.
void join_experts(const ModelSpec& model, const Shard& shard, const RequestBatch& batch,
                  Layer& block) {
  const auto is_expert = [](const LayerOp& op) { return op.region == Region::kExpert; };
  const auto first = std::ranges::find_if(block.ops, is_expert);
  const auto end = std::find_if_not(first, block.ops.end(), is_expert);
  const bool apart = shard.experts.sending_replicas > 0;
  const std::int64_t of_all = shard.experts.parts * shard.experts.tensor;
  const std::int64_t senders = std::max<std::int64_t>(of_all / shard.tensor, 1);  // groups
  const std::int64_t tokens = apart ? batch.tokens() * shard.experts.sending_replicas
                                    : shard.sequences * shard.sequence_length * senders;
  const ExpertSpec& experts = model.experts;
  LayerOp joined = *first;
  joined.name = "experts";
  joined.parameters.own = 0;
  for (auto op = first; op != end; ++op) joined.parameters.own += op->parameters.own;
  const DataType type = shard.types.experts.value_or(shard.types.matmul);
  const DataType held = shard.types.expert_weights.value_or(shard.types.weights);
  const auto narrower = bits_of(held) < bits_of(type) ? std::optional(held) : std::nullopt;
  joined.forward = {experts_kernel("experts", type, narrower,
                                   {.tokens = tokens,
                                    .experts = experts.routed / shard.experts.parts,
                                    .all = experts.routed,
                                    .chosen = experts.visited(),
                                    .hidden = experts.latent > 0 ? experts.latent : model.hidden,
                                    .inter = experts.intermediate / shard.experts.tensor,
                                    .gated = model.mlp.gated,
                                    .spread = shard.expert_spread})};
  *first = std::move(joined);
  block.ops.erase(first + 1, end);
  for (LayerOp& op : block.ops) {
    std::erase_if(op.forward,
                  [](const Kernel& kernel) { return kernel.use == KernelUse::kChooseExperts; });
    const bool moves_rows =
        !apart && (op.name.role() == OpRole::kPermute || op.name.role() == OpRole::kUnpermute);
    const bool are_here = shard.tensor > 1 && !spans_groups(shard);
    if (moves_rows && (are_here || shard.experts.parts == 1)) op.forward.clear();
  }
}

// All ranks of the tensor group have the tokens, so experts are matmuls of the T region like any
// other. Router and permutation come first; then one run of T, with the shared experts.
void divide_experts_over_tensor_group(Layer& block) {
  const auto is_expert = [](const LayerOp& op) { return op.region == Region::kExpert; };
  const auto first = std::ranges::find_if(block.ops, is_expert);
  std::stable_partition(block.ops.begin(), first, [](const LayerOp& op) {
    return op.name.module() != OpModule::kSharedExperts || op.region != Region::kTensor;
  });
  for (LayerOp& op : block.ops) {
    op.pass.in_tensor_group = is_expert(op) || op.name.role() == OpRole::kUnpermute;
  }
  block.routing.reset();
}

class PassLayers {
 public:
  PassLayers(const ModelSpec& model, const Shard& shard, const RequestBatch& batch)
      : model_(model), shard_(shard), batch_(batch) {
    shard_.sequences =
        tokens_of_chip(batch, shard.prompt.parts, shard.sequence_parallel ? shard.tensor : 1);
    shard_.sequence_length = 1;
    shard_.narrow.gather_narrow = false;  // what serves gathers before it rounds
  }

  ModelLayers build() const {
    ModelLayers layers = build_layers(model_, shard_);
    const std::vector<BlockKind> kinds = kinds_of(model_);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      layers.blocks[i] = block(std::move(layers.blocks[i]), kinds[i]);
    }
    for (Layer* part : {&layers.vision.entry, &layers.vision.block, &layers.vision.projector}) {
      *part = forward_only(std::move(*part));
    }
    layers.embedding = forward_only(std::move(layers.embedding));
    layers.head = head();
    layers.prediction.clear();
    return layers;
  }

 private:
  Layer block(Layer block, const BlockKind& kind) const {
    const ModelSpec own = as_in(model_, kind);
    const Part part = part_of_model(own, shard_);
    const MixedTokens mixed(part, model_, kind, batch_.cache);
    for (LayerOp& op : block.ops) {
      if (std::optional<std::vector<Kernel>> kernels = mixed.of(op.name.role(), batch_)) {
        op.forward = *std::move(kernels);
        if (shard_.cache.split == CacheSplit::kRequests && op.name.role() == OpRole::kAttention) {
          exchange_requests(part, kind, batch_, op);
        }
        if (op.name.role() == OpRole::kAttention) exchange_keys(part, kind, batch_, mixed, op);
      } else if (op.region != Region::kExpert && has_projection(op)) {
        read_narrow_weights(shard_.types, shard_.types.weights, op);
      }
    }
    if (block.routing) join_experts(model_, shard_, batch_, block);
    if (block.routing && shard_.tensor > 1 && shard_.experts.sending_replicas == 0 &&
        !spans_groups(shard_)) {
      divide_experts_over_tensor_group(block);
    }
    return forward_only(std::move(block));
  }

  Layer head() const {
    Shard shard = shard_;
    shard.sequences = batch_.outputs();
    shard.sequence_parallel = false;  // the last tokens are chosen when all have been gathered
    const Part part = part_of_model(model_, shard);
    Layer layer = head_layer(part);
    if (shard_.sequence_parallel) {
      const LayerOp own = norm(part_of_model(model_, shard_), "final_norm");
      std::ranges::find(layer.ops, own.name, &LayerOp::name)->forward = own.forward;
    }
    layer.ops.back() = LayerOp{.name = "sampling", .region = Region::kTensor};
    const std::int64_t logits = batch_.outputs() * part.vocabulary * shard.tensor;
    layer.ops.back().forward = {
        elementwise("sampling", DataType::kFp32, {.elements = logits, .writes = 0, .flops = 5})};
    layer.ops.back().tensor.crossing = logits * size_of(shard.types.communication);
    return forward_only(std::move(layer));
  }

  const ModelSpec& model_;
  Shard shard_;
  const RequestBatch& batch_;
};

}  // namespace

std::int64_t RequestBatch::tokens() const {
  std::int64_t sum = 0;
  for (const RequestGroup& group : groups) sum += group.tokens();
  return sum;
}

std::int64_t RequestBatch::outputs() const {
  std::int64_t sum = 0;
  for (const RequestGroup& group : groups) sum += group.outputs();
  return sum;
}

bool RequestBatch::has_prompts() const {
  return !std::ranges::all_of(groups, &RequestGroup::generates);
}

std::int64_t tokens_of_chip(const RequestBatch& batch, std::int64_t parts, std::int64_t divisor) {
  assert(parts >= 1 && divisor >= 1);
  std::int64_t sum = 0;
  for (const RequestGroup& group : batch.groups) {
    sum += group.sequences * part_of(group.queries, parts);
  }
  return part_of(sum, divisor) * divisor;
}

namespace {
bool mixes(OpRole role) {
  return role == OpRole::kAttention || role == OpRole::kIndexScores || role == OpRole::kScan;
}
}  // namespace

ModelLayers inference_layers(const ModelSpec& model, Shard shard, const RequestBatch& batch) {
  assert(model.kind == ModelKind::kTransformer && shard.context == 1);
  return PassLayers(model, shard, batch).build();
}

TokenMixing::TokenMixing(const ModelSpec& model, const Shard& shard, DataType cache)
    : model_(model), shard_(shard), cache_(cache) {
  shard_.sequences = shard_.sequence_length = 1;
  shard_.sequence_parallel = false;  // these kernels have all tokens
  for (const BlockKind& kind : kinds_of(model)) {
    kinds_.push_back({.kind = kind, .own = as_in(model, kind)});
    for (const LayerOp& op : mixer_branch(part_of_model(kinds_.back().own, shard_), kind)) {
      if (mixes(op.name.role())) {
        kinds_.back().ops.push_back(op.name.role());
      }
    }
  }
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto found = std::ranges::find(kinds_, kind_of(model, layer), &Kind::kind);
    ++found->layers;
  }
}

std::vector<Kernel> TokenMixing::kernels(std::size_t kind, const RequestBatch& batch) const {
  const auto& [block, own, layers, ops] = kinds_[kind];
  const Part part = part_of_model(own, shard_);
  const MixedTokens mixed(part, model_, block, cache_);
  std::vector<Kernel> all;
  for (const OpRole op : ops) {
    std::vector<Kernel> kernels = *mixed.of(op, batch);
    std::ranges::move(kernels, std::back_inserter(all));
  }
  return all;
}

Bytes weights_size(const Layer& layer, const DataTypes& types) {
  Bytes size;
  for (const LayerOp& op : layer.ops) {
    const bool is_expert = op.region == Region::kExpert;
    const DataType type = is_expert            ? types.expert_weights.value_or(types.weights)
                          : has_projection(op) ? types.weights
                                               : types.activations;
    size += weight_bytes_of(op.parameters.own, type);
  }
  return size;
}

Bytes cache_size(const ModelSpec& model, const BlockKind& kind, std::int64_t tensor, DataType type,
                 std::int64_t tokens) {
  const ModelSpec own = as_in(model, kind);
  Bytes size;
  if (kind.has_state()) {
    const std::int64_t parts = std::min(tensor, own.state.heads);
    size += sequence_state_size(own.state, DataType::kBf16) / parts;
  }
  if (kind.mixer == Mixer::kSparse && !kind.shares) {
    size += Bytes(tokens * own.indexer.head_dim);  // in fp8
  }
  if (const std::int64_t ratio = compression_of(own, kind); ratio > 0) {
    const bool has_indexer = kind.mixer == Mixer::kCompressed;
    size += bytes_of(tokens * own.attention.head_dim, type) / ratio +
            Bytes((has_indexer ? tokens * own.indexer.head_dim : 0) / ratio);
  }
  if (!kind.attends() || (kind.shares && kind.mixer != Mixer::kSparse)) return size;
  if (kind.mixer == Mixer::kLocal || kind.is_compressed()) {
    tokens = std::min(tokens, own.attention.window);
  }
  const std::int64_t width =
      own.latent.kv_rank > 0
          ? own.latent.kv_rank + own.latent.rope_dim
          : keys_and_values(own, std::max<std::int64_t>(1, own.attention.kv_heads / tensor));
  return size + bytes_of(tokens * width, type);
}

Bytes cache_bytes_per_token(const ModelSpec& model, DataType type) {
  Bytes sum;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const BlockKind kind = kind_of(model, layer);
    sum += cache_size(model, kind, 1, type, 2) - cache_size(model, kind, 1, type, 1);
  }
  return sum;
}

double inference_flops(const ModelSpec& model, const RequestBatch& batch) {
  const ForwardFlops one = forward_flops(model, 1);
  double mixing = 0;
  double at_one = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const BlockKind kind = kind_of(model, layer);
    at_one += mixing_flops(model, kind, {.length = 1});
    for (const RequestGroup& group : batch.groups) {
      mixing += static_cast<double>(group.sequences) *
                (mixing_flops(model, kind, {.length = group.keys()}) -
                 mixing_flops(model, kind, {.length = group.cached}));
    }
  }
  double weights = -at_one;
  for (const double layer : one.layers) weights += layer;
  return weights * static_cast<double>(batch.tokens()) +
         one.head * static_cast<double>(batch.outputs()) + mixing;
}

}  // namespace stepsim
