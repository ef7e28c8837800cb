// What one chip runs in a pass of inference, and what it keeps of each request.
//
// A pass computes new tokens of some requests. Requests that are alike form a group: prompts
// (prefill, or a chunk of one), or requests that generate, with one new token or, under
// speculation, a few. All tokens go through projections, MLPs and experts together; what mixes the
// tokens of a request runs group by group:
//
//   prompt     FlashAttention of the new tokens over themselves and those in the cache; a chunked
//              scan where a layer has a state
//   generates  attention of a few queries over the cache (sim/chips/decode_attention.h), which some
//              libraries compute in one call with the prompts. With latent
//              attention queries and results are those of the latent vectors, and the projection
//              out of them (key_value_up) multiplies queries and results instead: as many FLOPs
//              (DeepSeek-V2, arXiv 2405.04434, section 2.1.2). A state is read and written once
//
// The head takes the last token of each request (all new ones of those that generate). The logits
// are gathered over the tensor group, and a token is drawn.
//
// Experts are one call of a serving library (sim/chips/expert_layer.h), which reads the weights of
// those that have a token, of E experts on average E (1 - (1 - k / E)^tokens). With tensor
// parallelism the experts are divided over the tensor group too (ep x etp = tp), whose ranks all
// have the same tokens: nothing is sent to them, and their results are summed with the group's.
//
// With caches by request (CachePlan::split; the scaling book, part 7) each chip of the
// tensor group keeps whole caches of some of the requests that generate, where it would else keep
// some key-value heads of all, and more than one chip the same head once there are more chips than
// heads. Projections still divide heads, so queries and new keys and values go to the chips of
// their requests by an all-to-all, and results come back by another. Prompts attend by heads; that
// their keys then move to the chip of their request is not modelled.
//
// With context ranks (PromptShare; Llama 3, arXiv 2407.21783, section 3.3.2) each has two
// stretches of every prompt, one from its beginning and one from its end, so that all score as many
// pairs, and keeps as large a part of the cache. Before attention they gather the keys and values
// of all tokens up to now, or latent vectors, whose keys and values each rank then computes. Every
// context rank computes the logits. A length that the ranks don't divide is rounded up.
//
// In a ring of them (PromptShare::ring; Liu et al., arXiv 2310.01889) they pass what they have
// round instead: ranks - 1 hops, each beside the attention over what has come, whose result is then
// merged with that of the parts before. With one stretch of the prompt a rank (kStretch) the last
// rank scores most pairs and parts of later tokens are skipped; with two (kZigzag) all have as
// many. The cache is taken to be spread evenly over the ranks. What goes round is not kept: layers
// that share keys pass them again. Two parts of others stand in memory.
//
// With sequence parallelism the tensor group divides the tokens of norms, residuals and the router;
// tokens that it does not divide are padded.
//
// With experts on chips of their own (HeldExperts::sending_replicas) the tensor group divides the
// tokens of norms, router and residuals, each chip sends its own ones there, and the experts' op
// has those of all replicas.
//
// Attention to compressed keys reads a window and compressed keys of the cache, with the kernel of
// latents. Tokens that have not filled a compressed key yet are few and are not counted.
//
// Nothing is kept for a backward. Not modelled: sequences of unequal length in a group (give the
// mean), modules of multi-token prediction (a draft is a pass of its own), pages of the cache.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/chips/kernel.h"
#include "workload/model/model_spec.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

// Requests that are alike. REQUIRES: sequences and queries at least 1, cached at least 0.
struct RequestGroup {
  std::int64_t sequences = 1;
  std::int64_t queries = 1;  // new tokens of each
  std::int64_t cached = 0;   // tokens of each that lie in the cache before the pass; the mean
  bool generates = false;

  std::int64_t keys() const { return cached + queries; }
  std::int64_t tokens() const { return sequences * queries; }
  // Rows of logits that are read.
  std::int64_t outputs() const { return generates ? tokens() : sequences; }
  friend bool operator==(const RequestGroup&, const RequestGroup&) = default;
};

struct RequestBatch {
  std::vector<RequestGroup> groups{};
  DataType cache = DataType::kBf16;

  std::int64_t tokens() const;
  std::int64_t outputs() const;
  bool has_prompts() const;
  friend bool operator==(const RequestBatch&, const RequestBatch&) = default;
};

// Returns the tokens that a chip of `parts` context ranks computes, padded to a multiple of
// `divisor`.
std::int64_t tokens_of_chip(const RequestBatch& batch, std::int64_t parts, std::int64_t divisor);

// Returns the layers of a pass: forwards only. The head ends with the op "sampling", before which
// the logits of the tensor group have to be gathered. REQUIRES: as build_layers(), of which shard's
// sequences are set here; shard.context is 1; the model is a transformer without cross attention;
// with experts and tensor > 1 experts.parts x experts.tensor is tensor, or experts.sending_replicas
// is set and the shard is sequence parallel; with prompt.parts > 1 no request generates, and no
// layer has a state or an indexer.
ModelLayers inference_layers(const ModelSpec& model, Shard shard, const RequestBatch& batch);

// TokenMixing is the kernels that mix the tokens of a request, by which passes of as many tokens
// and outputs differ from one another.
class TokenMixing {
 public:
  // REQUIRES: as inference_layers(). `model` must outlive this.
  TokenMixing(const ModelSpec& model, const Shard& shard, DataType cache);

  std::size_t kinds() const { return kinds_.size(); }  // of layers: kinds_of(model)
  std::int64_t layers_of(std::size_t kind) const { return kinds_[kind].layers; }
  // Returns what a layer of this kind runs.
  std::vector<Kernel> kernels(std::size_t kind, const RequestBatch& batch) const;

 private:
  struct Kind {
    BlockKind kind{};
    ModelSpec own{};  // as_in(model, kind)
    std::int64_t layers = 0;
    std::vector<OpRole> ops{};
  };
  const ModelSpec& model_;
  Shard shard_;
  DataType cache_;
  std::vector<Kind> kinds_{};
};

// Returns the bytes of a layer's weights: of projections and experts in their types, of tables,
// norms and the router in that of the activations.
Bytes weights_size(const Layer& layer, const DataTypes& types);

// Returns the bytes that a layer of this kind keeps on one chip of a request that has `tokens`
// tokens: keys and values (of the window, where it is shorter), a latent vector, keys of an
// indexer, a state. Key-value heads fewer than `tensor`, and latents, are on several chips.
// REQUIRES, for caches by request: `tensor` is 1.
Bytes cache_size(const ModelSpec& model, const BlockKind& kind, std::int64_t tensor, DataType type,
                 std::int64_t tokens);

// Returns what all layers keep of a further token of a request that is shorter than every window,
// on all chips together, each value counted once.
Bytes cache_bytes_per_token(const ModelSpec& model, DataType type);

// Returns the model FLOPs of a pass: 2 x matmul parameters a token, of the head for its outputs
// only, and the mixing of tokens as in model_flops() (model_counts.h), causal.
double inference_flops(const ModelSpec& model, const RequestBatch& batch);

}  // namespace stepsim
