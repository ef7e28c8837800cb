// Layers are what one chip runs for a micro-batch: every kernel of forward and backward with its
// FLOPs and bytes, the parameters it holds and the activations it keeps. The kernels are those of
// the part of the model that is the chip's own under the plan (Shard); communication is not in
// here: schedules/lowering puts it where the region changes.
//
//   embedding --> blocks --> head (final norm, unembedding, loss)
//
// Blocks are of a few kinds (dense or with experts, local or global attention); each kind is built
// once. A block, with the region of each op (S = tokens divided, T = features divided, E = tokens
// that came to this chip's experts):
//
//   S norm | T qkv, rope, attention, out_projection | S add, norm | T gate_up, act, down | S add
//
// and with experts, from the second norm on (the shared experts only where there are some):
//
//   S norm | T shared gate_up, act, down | S router, permute | E gate_up, act, down |
//   S unpermute, add
//
// Under two-level dispatch a token comes to a chip once for all of its experts there. Its copies
// are then made and summed up in E, beside the matmuls, and the kernels of the communication
// library add up what the chips send back. Permute and unpermute then only round.
//
// Variations: latent attention has projections to the latent vectors in S, before T; post-norms
// stand in S before each addition; parallel branches are one run of T between one norm and one
// addition. A state takes the place of attention, or stands beside it in one run of T; a branch may
// be missing.
//
// The files by part: mixer.h (attention.h, latent_attention.h, state_mixer.h), mlp.h, experts.h,
// embedding.h, head.h; what they share, and who keeps what for the backward pass: layer_part.h.
//
// Sources: Megatron-LM (arXiv 1909.08053) for column and row splits, Korthikanti et al. (arXiv
// 2205.05198) for sequence parallelism and kept activations, FlashAttention for the fused
// attention kernel (keeps its inputs, output and one fp32 log-sum-exp a row; the backward kernel
// recomputes the scores: 2.5 x the forward's FLOPs), Megatron-Core's token dispatcher for experts
// (arXiv 2504.14960).
// A vocabulary that `tensor` does not divide is padded to the next multiple of it. Key-value heads
// fewer than `tensor` are on several chips each.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/chips/kernel.h"
#include "workload/model/model_habits.h"
#include "workload/model/model_spec.h"
#include "workload/parts/kernel_choices.h"
#include "workload/parts/narrow_types.h"
#include "workload/parts/op_name.h"
#include "workload/parts/pass_themes.h"

namespace stepsim {

// Types by purpose. FP8 training multiplies in FP8 and keeps the rest wider:
// {.matmul = DataType::kFp8, .dispatch = DataType::kFp8}.
struct DataTypes {
  DataType weights = DataType::kBf16;        // as held and gathered
  std::optional<DataType> expert_weights{};  // of routed experts: inference; unset: as `weights`
  std::optional<DataType> experts{};  // in which routed experts compute: inference; unset: `matmul`
  // The residual stream, attention, elementwise kernels, router, embedding, unembedding and loss.
  DataType activations = DataType::kBf16;
  // Operands of the projections and experts of a block; inputs that only those read are kept in it.
  DataType matmul = DataType::kBf16;
  DataType gradients = DataType::kFp32;      // accumulators of weight gradients
  DataType communication = DataType::kBf16;  // activations and gradients between tensor ranks
  DataType dispatch = DataType::kBf16;       // tokens to their experts; back: combine
  DataType combine = DataType::kBf16;
};

// Returns one type for everything except the accumulators of gradients.
DataTypes all_of_type(DataType type);

enum class PromptRing : std::uint8_t { kNone, kStretch, kZigzag };

// How context ranks divide the prompts of a pass of inference: inference.h.
struct PromptShare {
  std::int64_t parts = 1;  // context ranks that divide each prompt
  // They pass keys and values round instead of gathering them. Each has two stretches of a prompt,
  // one from its beginning and one from its end, or (kStretch) one.
  PromptRing ring = PromptRing::kNone;
  std::int64_t rank = 0;  // of the ring
};

// How routed experts are divided, and what comes to this chip's.
struct HeldExperts {
  std::int64_t parts = 1;   // experts are divided by this
  std::int64_t tensor = 1;  // features of each expert are divided by this
  // The part, 0 to parts - 1, that this chip holds: a block of neighbouring experts. All parts are
  // alike unless the model's routing is skewed.
  std::int64_t rank = 0;
  bool one_copy_each = true;  // a token is sent once for each of its experts
  // Two-level dispatch: tokens, from all ranks of the experts, that come to this chip; each comes
  // once for all of its experts here. 0: a copy comes for each expert, ordered by expert.
  std::int64_t arriving_tokens = 0;
  // Inference: replicas whose tokens come to experts on chips of their own; 0: experts are here.
  std::int64_t sending_replicas = 0;
  bool host_reads_counts = false;  // the host reads how many tokens came to each expert
};

// The part of a micro-batch's work that one chip does, and how its software does it.
struct Shard {
  std::int64_t sequences = 1;        // sequences of a micro-batch
  std::int64_t sequence_length = 0;  // tokens of the whole sequence
  std::int64_t document_length = 0;  // of those that it is packed of; 0: it is one document
  std::int64_t tensor = 1;           // features (heads, MLP width, vocabulary) are divided by this
  bool sequence_parallel = false;    // tokens of the S region are divided by `tensor` too
  // Tensor ranks that divide the model's width; the others divide the features. Above 1 the weights
  // are two-dimensional, and the S region's features are divided, not its tokens.
  std::int64_t tensor_width = 1;
  std::int64_t context = 1;         // tokens of each sequence are divided by this, everywhere
  std::int64_t pictures = 0;        // of a micro-batch, on this chip
  std::int64_t picture_tokens = 0;  // of each; 0: the vision part isn't there
  HeldExperts experts{};
  DataTypes types{};
  KernelChoices kernels{};
  NarrowTypes narrow{};
  LossChoices loss{};
  ModelHabits habits{};
  PromptShare prompt{};
  CachePlan cache{};
  double expert_spread = 1;  // of a pass: the most popular expert over the least (expert_layer.h)
};

enum class Region : std::uint8_t {
  kSequence,  // S: every feature of some tokens (of all tokens without sequence parallelism)
  kTensor,    // T: some features of every token
  kExpert,    // E: tokens that were sent to this chip's experts
};

// Bytes that an op keeps from its forward to its weight gradient (or input gradient).
struct SavedBytes {
  // The three below, and the rest (masks), which recompute never drops by itself.
  Bytes total{};
  Bytes input{};
  // The part of its forward's results that only its own backward reads: scores, statistics. That is
  // what selective recompute of attention drops (Korthikanti et al., section 5).
  Bytes inside{};
  Bytes result{};  // for the ops behind it
  Bytes lent{};    // of `total`, what later layers read, too: no recompute drops it
};

// Bytes that live only while a pass of the op runs.
struct Workspace {
  Bytes forward{};   // what nobody keeps
  Bytes backward{};  // gradients, gathered input
};

// Parameters of an op on this chip. Those of the S region are on every tensor rank; those of the E
// region only on the ranks that share its experts.
struct OpParameters {
  std::int64_t own = 0;
  std::int64_t borrowed = 0;  // further ones that an earlier layer owns
  // Further ones that are not trained: memory, and nothing else. Those held narrower than others
  // count as fewer.
  std::int64_t frozen = 0;
};

// What the tensor group sends for an op.
struct TensorExchange {
  // Bytes of the result before it, of all tokens, that cross the tensor group where the region
  // changes; 0: ModelLayers::tensor_boundary.
  Bytes crossing{};
  // The type in which the tensor group gathers this op's input, if it was made narrow before, and
  // the gradient of its result; unset: as all that crosses (crossing_as()).
  std::optional<DataType> input_gathered_as{};
  std::optional<DataType> gradient_gathered_as{};
  // The first T op after an S op multiplies weights with the gathered tokens, but keeps only its
  // own part: its weight gradient needs them gathered again.
  bool regathers_input = false;
  // Vocabulary-parallel cross entropy: fp32 values a token that are summed over the tensor group
  // during its forward (max, sum of exponentials, target logit).
  std::int64_t reduced_values_per_token = 0;
  // fp32 values a token that are summed over the whole tensor group, in the op's forward and in its
  // backward: by norms of divided features, and by mamba's x_projection.
  std::int64_t summed_values_per_token = 0;
  // Two-dimensional weights: bytes of features that the ranks dividing the width gather before the
  // op (they are kept divided), and bytes of partial sums that they reduce behind it.
  Bytes width_gathered{};
  Bytes width_reduced{};
};

// What an op sends in a pass of inference alone.
struct PassExchange {
  bool in_tensor_group = false;  // the tensor group divides an op of another region, too, and adds
                                 // up the results
  // Caches by request: what a tensor rank sends to all others before and after the op.
  Bytes sent_before{};
  Bytes sent_after{};
  Bytes gathered_before{};  // what all context ranks have together and gather before the op
  // A ring of context ranks: its kernels in place of `forward`, for each part of the keys and
  // values in the order in which they come (an empty part: none of them is scored), and the bytes
  // that a rank hands on with every hop but the last.
  std::vector<std::vector<Kernel>> parts{};
  Bytes handed_round{};
};

struct LayerOp {
  OpName name{};  // "qkv_projection"; what it does and belongs to
  Region region = Region::kSequence;
  std::vector<Kernel> forward{};
  std::vector<Kernel> again{};  // forward when it is repeated alone; empty: same as `forward`
  std::vector<Kernel> input_gradient{};
  std::vector<Kernel> weight_gradient{};  // of matmul weights and embedding tables
  // Columns of each matrix, if one matmul here stands for several that other software multiplies
  // one by one. Empty: it is a single matrix.
  std::vector<std::int64_t> columns{};
  OpParameters parameters{};
  // The ops whose results it reads; empty: the op before it. saved.input belongs to the first.
  std::vector<OpName> reads{};
  Bytes input{};  // bytes that its forward reads, as this chip would keep them; includes passed_on
  Bytes passed_on{};                  // read and handed on untouched
  bool backward_reads_input = false;  // whoever keeps the input
  SavedBytes saved{};
  Workspace workspace{};
  // The host reads a result of its forward, so it launches what comes behind only when that has
  // ended: numbers of tokens that decide the shapes behind it (HeldExperts::host_reads_counts).
  bool host_reads = false;
  TensorExchange tensor{};
  // Context parallelism: bytes of last states and decays that each rank hands to the others, in the
  // forward and (their gradients) in the backward.
  Bytes passed_state{};
  PassExchange pass{};
};

// Returns the bytes of what takes `bytes` in the type in which activations cross the tensor group,
// if it crosses in another type. Scales of NarrowTypes::scale_block are not counted.
Bytes crossing_as(Bytes bytes, DataType crosses_in, std::optional<DataType> type);

inline bool is_tensor(const LayerOp& op) {
  return op.region == Region::kTensor || op.pass.in_tensor_group;
}

// Returns the op's matmul with weights, or nullptr if it has none: those of attention multiply
// activations only. An op has one at most; grouped, for all experts of the chip.
const Kernel* weights_matmul(const LayerOp& op);

// WeightMatrix is a trained matrix of weights on this chip, of which a layer has `count`.
struct WeightMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t count = 1;
  bool routed = false;  // of routed experts

  std::int64_t values() const { return rows * columns * count; }
  friend bool operator==(const WeightMatrix&, const WeightMatrix&) = default;
};

// Sizes that a layer with experts sends where its regions change, S -> E (dispatch) and E -> S
// (combine). The backward pass sends the same sizes the other way. All-to-all buffers of a chip are
// tokens x copies x bytes; `expert_tensor` chips that share an expert gather each other's.
struct TokenRouting {
  std::int64_t tokens = 0;   // of the S region, on this chip
  std::int64_t copies = 0;   // experts that each goes to
  std::int64_t experts = 0;  // of all chips
  Bytes dispatched{};        // of one copy
  Bytes combined{};
};

struct Layer {
  std::string name;
  std::vector<LayerOp> ops;  // in order of the forward pass
  std::optional<TokenRouting> routing{};
  std::int64_t parameters() const;
  std::int64_t parameters(Region region) const;
  std::int64_t borrowed() const;
  Bytes lent() const;
  std::int64_t frozen() const;
  std::int64_t frozen(Region region) const;
  Bytes saved() const;
};

// A module of multi-token prediction, on the stage of the head and behind it: it looks the next
// tokens up (in the embedding's table, of which this stage then holds a copy), joins them with the
// last block's output, and has a block and a loss of its own.
struct PredictionModule {
  Layer entry;
  std::uint32_t kind_of_block = 0;
  Layer head;  // uses the model's own unembedding
};

// The vision part (vision.h), before the embedding: blocks are alike.
struct VisionLayers {
  Layer entry{};
  Layer block{};
  std::int64_t blocks = 0;  // 0: the model has none
  Layer projector{};
};

struct ModelLayers {
  VisionLayers vision{};
  Layer embedding;                             // no ops if the model has none
  std::vector<Layer> blocks{};                 // one of each kind, in order of appearance
  std::vector<std::uint32_t> kind_of_block{};  // for each layer of the model: index in `blocks`
  Layer head;                                  // final norm, unembedding, loss; or no ops
  std::vector<PredictionModule> prediction{};
  Bytes boundary;         // [tokens, hidden] of all tokens of the tensor group, as activations
  Bytes tensor_boundary;  // the same in the type of communication: what the tensor group gathers
                          // and reduces at each change of region

  const Layer& block(std::int64_t layer) const& {
    return blocks[kind_of_block[static_cast<std::size_t>(layer)]];
  }
  Layer block(std::int64_t layer) && {  // a copy, because the temporary ends with the expression
    return blocks[kind_of_block[static_cast<std::size_t>(layer)]];
  }
};

// Returns the matrices by which the layer multiplies, as software holds them: those that one matmul
// here stands for are one, each expert has its own. Tables and the head are none of them.
std::vector<WeightMatrix> matrices_of(const Layer& layer);

// Returns the parameters on this chip of the table that makes logits: the head's own, or the
// embedding's. 0 if there is no head.
std::int64_t unembedding_parameters(const ModelLayers& layers);

}  // namespace stepsim
