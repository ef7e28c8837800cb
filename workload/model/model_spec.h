// ModelSpec is the shape of a language model, decoder or encoder, as a Hugging Face config.json
// gives it. A plain struct of counts; nothing here knows about chips, plans or batches.
//
// A layer mixes tokens, then features, each in a branch of its own:
//
//   mixer   attention to all tokens or to a window, a state that runs along the tokens
//           (state_spec.h), attention and a state side by side, or nothing
//   MLP     dense, experts, or nothing
//
// Layers need not be alike: `mixer_pattern` and `mlp_pattern` say what each is. How many parameters
// and FLOPs the whole has is in workload/model_counts.h.
//
// Positions of rotary embeddings, soft caps, scaling factors and the kind of a gated activation are
// not modelled: they change neither a parameter nor a byte that matters.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/chips/kernel.h"
#include "workload/model/state_spec.h"

namespace stepsim {

enum class ModelKind : std::uint8_t {
  kTransformer,
  kMlpStack,  // two matmuls a layer, nothing else: mlp_stack.h
};
inline constexpr std::size_t kModelKinds = 2;
std::string_view name_of(ModelKind kind);  // "mlp_stack"

enum class NormKind : std::uint8_t {
  kRms,
  kLayer,             // has a bias besides its scale
  kLayerWithoutBias,  // Cohere, DBRX
};
inline constexpr std::size_t kNormKinds = 3;
std::string_view name_of(NormKind kind);  // "rms"

// A learned gate on attention's result, made from the branch's input.
enum class AttentionGate : std::uint8_t {
  kNone,
  kHead,   // a value a head (Step 3.5)
  kValue,  // a value a feature (Qwen3-Next): a projection as wide as attention's result
};
inline constexpr std::size_t kAttentionGates = 3;
std::string_view name_of(AttentionGate gate);  // "head"

// What a token of a layer with a window looks at.
enum class WindowKind : std::uint8_t {
  kSliding,  // the `window` tokens up to itself; without causal also as many behind it
  kChunked,  // those before it in its own chunk of `window` tokens (Llama 4)
};
inline constexpr std::size_t kWindowKinds = 2;
std::string_view name_of(WindowKind kind);  // "sliding"

// Mixture of experts: in place of its MLP, a layer has a router and many small MLPs, of which each
// token visits `per_token`.
struct ExpertSpec {
  std::int64_t routed = 0;               // experts of a layer; 0: a dense model
  std::int64_t per_token = 0;            // routed experts that a token visits (top-k)
  std::int64_t intermediate = 0;         // width of one routed expert
  std::int64_t shared_intermediate = 0;  // width of all shared experts side by side; 0: none
  std::int64_t first_dense = 0;          // first layers that keep their MLP
  std::int64_t every = 1;                // of each `every` layers after those, the last has experts
  bool router_bias = false;
  bool shared_gate = false;    // a learned weight for the shared experts' result (Qwen2)
  double capacity_factor = 0;  // an expert takes at most this times its even share of the tokens,
                               // the rest is dropped; 0: takes all that come
  // Routing balance as data: how often each routed expert is chosen, relative to each other. Empty:
  // equally often.
  std::vector<double> load{};
  // Choices besides the routed experts that compute nothing (LongCat-Flash, arXiv 2509.01322): a
  // token's own value comes back. Chosen as often as the others, they leave fewer copies to send.
  std::int64_t zero = 0;
  // Width to which tokens are projected before they go to their experts, and from which the sum is
  // projected back (LatentMoE of Nemotron 3); 0: they go as they are.
  std::int64_t latent = 0;

  // Returns the routed experts that a token visits on average.
  std::int64_t visited() const { return routed == 0 ? 0 : per_token * routed / (routed + zero); }
  bool operator==(const ExpertSpec&) const = default;
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): queries and keys-values come out of
// narrow latent vectors; each head's q and k are a part without position and a rotated part, which
// all heads share in k. Then kv_heads = heads and head_dim = nope_dim + rope_dim.
struct LatentSpec {
  std::int64_t q_rank = 0;   // 0: queries are projected directly
  std::int64_t kv_rank = 0;  // 0: no latent attention
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t v_dim = 0;

  bool operator==(const LatentSpec&) const = default;
};

// Sizes of attention in layers with a window, where they differ from the others' (Gemma 4, MiMo).
// 0: the same.
struct LocalSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;

  bool operator==(const LocalSpec&) const = default;
};

// Blocks of attention and MLP whose weights several layers share (Zamba 2, arXiv 2411.15242). Such
// a block stands before the state of a layer Z: it reads the stream beside the embedding's output,
// and a square projection of the layer's own brings its result into the state's input. Layers Z
// have the blocks in turn; the first of each owns the weights.
struct SharedSpec {
  std::int64_t blocks = 0;        // 0: no layer shares weights
  std::int64_t adapter_rank = 0;  // of each layer's own low-rank path beside the MLP's first matrix
  std::int64_t attention_adapter_rank = 0;  // the same beside each projection of q, k and v

  bool operator==(const SharedSpec&) const = default;
};

// Sparse attention (DeepSeek-V3.2, arXiv 2512.02556): an indexer of narrow heads, in fp8, scores
// all tokens for each query, and attention looks at the best top_k. With latent attention queries
// and results are those of the latent vectors, which all heads share as keys and values.
struct IndexerSpec {
  std::int64_t heads = 0;  // 0: no layer has an indexer
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;

  bool operator==(const IndexerSpec&) const = default;
};

// Attention to compressed keys (DeepSeek-V4, its report's section 2.3), in every layer of a model.
// A token has one vector, which is key and value of all heads. Layers L look at the window alone;
// layers H also at one key for each `heavy_ratio` tokens before them; layers C at those that an
// indexer chooses of the keys for `ratio` tokens. Results go out through a narrow vector for each
// group of heads. Then kv_heads = 1, and queries come out of a vector of query_rank.
struct CompressedSpec {
  std::int64_t ratio = 0;          // tokens of a key in layers C; each reads twice as many
  std::int64_t heavy_ratio = 0;    // in layers H
  std::int64_t rope_dim = 0;       // rotated part of a head, in queries, keys and results
  std::int64_t output_groups = 0;  // 0: no such attention
  std::int64_t output_rank = 0;    // width of a group's result

  bool operator==(const CompressedSpec&) const = default;
};

// Hyper-connections (arXiv 2409.19606; held to doubly stochastic matrices: mHC, 2512.24880): the
// residual is several streams, which each branch mixes into its input and its result into them.
struct HyperSpec {
  std::int64_t streams = 0;              // 0: one residual stream, which branches add to
  std::int64_t sinkhorn_iterations = 0;  // of rows and columns of the mixing matrix; 0: unbound

  bool operator==(const HyperSpec&) const = default;
};

// Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): modules behind the last
// layer, each a projection, a block, and a loss; tables are those of the model.
struct PredictionSpec {
  std::int64_t modules = 0;
  std::string block{};  // its mixer's and its MLP's letter ("LE"); empty: as the last layer's
};

// The part that makes tokens of pictures (a vision transformer, arXiv 2010.11929): a projection of
// patches of pixels, encoder blocks in which the patches of a picture look at each other, and a
// projector that makes a token of the text's width of merge x merge patches (vision.h).
struct VisionSpec {
  std::int64_t layers = 0;  // 0: no vision part
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t intermediate = 0;
  std::int64_t patch = 0;      // pixels along a side
  std::int64_t frames = 1;     // pictures that a patch reaches over
  std::int64_t merge = 1;      // patches along a side of a token
  std::int64_t positions = 0;  // rows of a learned embedding
  // Projectors: one, and further ones for results of layers before the last (Qwen3-VL's deepstack).
  std::int64_t projectors = 1;

  std::int64_t merged() const { return merge * merge; }  // patches of a token
  bool operator==(const VisionSpec&) const = default;
};

// Attention of the layers that have some.
struct AttentionSpec {
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // = heads: multi-head; 1: multi-query; between: grouped-query
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;   // width of a head's values; 0: head_dim
  std::int64_t query_rank = 0;  // width of the vector that queries come out of; 0: the stream's
  bool rotary = true;           // rotates q and k, if no positions are learned
  bool bias = false;            // on q, k, v and output projections
  bool qkv_bias = false;        // on q, k and v projections alone
  bool qk_norm = false;         // q and k are normalised: RMS over head_dim, in each head
  bool qk_norm_whole = false;   // or over all heads together (OLMo 2)
  bool sinks = false;           // one learned logit per head
  AttentionGate gate = AttentionGate::kNone;
  bool values_are_keys = false;  // in global layers: one projection gives both (Gemma 4)
  bool causal = true;            // false: an encoder, each token looks at all
  std::int64_t window = 0;       // tokens that a local layer looks back at, itself included; 0: all
  WindowKind window_kind = WindowKind::kSliding;
};

// MLPs of layers that have no experts.
struct MlpSpec {
  std::int64_t width = 0;
  // Width of each layer's own one, repeated over the model. Empty: `width` in all.
  std::vector<std::int64_t> widths{};
  bool gated = true;  // gate and up projection, their product goes down; experts too
  bool bias = false;  // experts too
};

struct NormSpec {
  NormKind kind = NormKind::kRms;
  bool pre = true;         // each branch begins with a norm
  bool post = false;       // each branch's result is normalised (Gemma 2; OLMo 2: alone)
  bool parallel = false;   // parallel branches read a norm's output each (GPT-NeoX)
  bool embedding = false;  // a norm after the embedding (BLOOM)
};

// Tables that are looked up, and the one that makes logits.
struct EmbeddingSpec {
  std::int64_t vocabulary = 0;
  std::int64_t extra_rows = 0;         // further rows of tables that are looked up
  std::int64_t learned_positions = 0;  // rows of a learned position embedding; 0: none
  bool tied = false;                   // unembedding shares the embedding's table
  // Width of vectors that each layer looks up for itself and adds to the stream through a gate and
  // a projection (Gemma 4 E2B); 0: none.
  std::int64_t of_layers = 0;
};

struct ModelSpec {
  std::string name;
  // Type in which the published file has its weights. Plans say which types a step uses.
  std::optional<DataType> weight_type{};
  std::string note{};  // what it leaves out of what its source describes: "its vision part"
  ModelKind kind = ModelKind::kTransformer;  // kMlpStack: layers, hidden and the MLP's width only
  std::int64_t layers = 0;
  std::int64_t hidden = 0;  // width of the residual stream
  AttentionSpec attention{};
  MlpSpec mlp{};
  NormSpec norms{};
  EmbeddingSpec embedding{};
  bool parallel_branches = false;  // attention and MLP read one norm's output (PaLM)
  bool head_projection = false;    // a square projection and activation before the last norm (BERT)
  bool dropout = false;            // masks after embedding, attention, MLP, and on its scores
  // Says how each layer mixes tokens: one letter a layer, repeated over the model ("LLLLLG").
  //
  //   G  global attention    L  local, with the window       S  a state
  //   B  both: global attention and a state side by side     -  not at all
  //   Z  a block of shared weights, then a state
  //   I  sparse attention with an indexer
  //   C  window and keys chosen by an indexer of compressed ones    H  and all compressed ones
  //   N  attention that is not causal: the encoder of an encoder-decoder
  //   X  its decoder: causal attention, then cross attention to the last layer N
  //
  // A small g or l has no keys and values of its own: it reads those of an earlier layer of its
  // kind; a small i reads the tokens that an earlier indexer has chosen. Empty: all local if there
  // is a window, otherwise global.
  std::string mixer_pattern{};
  // Says what follows in each layer, the same way: D a dense MLP, E experts, - nothing. Empty: as
  // `experts` says.
  std::string mlp_pattern{};
  LocalSpec local{};
  LatentSpec latent{};
  StateSpec state{};
  IndexerSpec indexer{};
  CompressedSpec compressed{};
  HyperSpec hyper{};
  SharedSpec shared{};
  ExpertSpec experts{};
  PredictionSpec prediction{};
  VisionSpec vision{};

  std::int64_t qk_dim() const { return attention.head_dim; }  // per head
  std::int64_t v_dim() const {
    if (latent.kv_rank > 0) return latent.v_dim;
    return attention.value_dim > 0 ? attention.value_dim : attention.head_dim;
  }
  std::int64_t residual_streams() const { return hyper.streams > 0 ? hyper.streams : 1; }
};

// Every value outside its limits (model_fields.h), and every division that the shape needs and that
// leaves a rest.
std::vector<Problem> check(const ModelSpec& model);

enum class Mixer : std::uint8_t {
  kNone,
  kGlobal,
  kLocal,
  kState,
  kBoth,
  kSparse,
  kTwoSided,
  kCross,
  kShared,
  kCompressed,
  kHeavy,  // compressed more, and none left out
};
inline constexpr std::size_t kMixers = 11;
enum class MlpKind : std::uint8_t { kNone, kDense, kExperts };

// BlockKind holds the properties in which layers of one model may differ.
struct BlockKind {
  Mixer mixer = Mixer::kGlobal;
  bool shares = false;  // reads an earlier layer's keys and values, or with kSparse its choice
  MlpKind mlp = MlpKind::kDense;
  std::int64_t mlp_width = 0;  // of a dense MLP; 0: the model's
  bool borrows = false;        // with kShared: an earlier layer owns the block's weights
  bool lends = false;          // a later layer reads its keys and values, or the encoder's result

  bool is_compressed() const { return mixer == Mixer::kCompressed || mixer == Mixer::kHeavy; }
  bool attends() const { return mixer != Mixer::kNone && mixer != Mixer::kState; }
  bool has_state() const {
    return mixer == Mixer::kState || mixer == Mixer::kBoth || mixer == Mixer::kShared;
  }
  friend bool operator==(const BlockKind&, const BlockKind&) = default;
};

// REQUIRES: 0 <= layer < model.layers. A model without layers, refused by check(), has a layer 0.
BlockKind kind_of(const ModelSpec& model, std::int64_t layer);

// Returns the kind of block that modules of multi-token prediction have: their own, or that of the
// last layer that shares nothing with an earlier one.
BlockKind prediction_kind_of(const ModelSpec& model);

// Returns each kind of which the model has layers, in order of appearance, then that of prediction
// if no layer has it. Cost: O(layers).
std::vector<BlockKind> kinds_of(const ModelSpec& model);

// Returns the model as layers of this kind have it: with the sizes of `local` in local ones, no
// window in those that look further, and causal or not.
ModelSpec as_in(const ModelSpec& model, const BlockKind& kind);

// Returns the pairs of a query and a key that attention scores in a layer of this kind, per
// sequence and head (attention_pairs() in kernels.h). `masked`: counts those that a causal kernel
// skips, too.
double pairs_of(const ModelSpec& model, const BlockKind& kind, std::int64_t length,
                bool masked = false);

// Returns those of them with compressed keys: query i has i / ratio before it, or the best top_k.
// REQUIRES: kind.is_compressed().
double compressed_pairs(const ModelSpec& model, const BlockKind& kind, std::int64_t length);

// Returns the pairs within the documents of `document` tokens that a sequence is packed of; the
// last may be shorter. 0: the sequence is one document.
double pairs_in_documents(const ModelSpec& model, const BlockKind& kind, std::int64_t length,
                          std::int64_t document);

}  // namespace stepsim
