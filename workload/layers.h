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
// Where a token comes to a chip once for all of its experts there (two-level dispatch), its copies
// are made and summed up in E, beside the matmuls, and the kernels of the communication library add
// what the chips send back: permute and unpermute then only round.
//
// Variations: latent attention has projections to the latent vectors in S, before T; post-norms
// stand in S before each addition; parallel branches are one run of T between one norm and one
// addition.
//
// The files by part: attention.h, mlp.h, experts.h, embedding.h, head.h; what they share, and who
// keeps what for the backward pass: layer_part.h.
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
#include "workload/model_spec.h"

namespace stepsim {

// Types by purpose. FP8 training multiplies in FP8 and keeps the rest wider:
// {.matmul = DataType::kFp8, .dispatch = DataType::kFp8}.
struct DataTypes {
  DataType weights = DataType::kBf16;  // as held and gathered
  // The residual stream, attention, elementwise kernels, router, embedding, unembedding and loss.
  DataType activations = DataType::kBf16;
  // Operands of the projections and experts of a block; inputs that only those read are kept in it.
  DataType matmul = DataType::kBf16;
  DataType gradients = DataType::kFp32;      // that weight gradients are added to
  DataType communication = DataType::kBf16;  // activations and gradients between tensor ranks
  DataType dispatch = DataType::kBf16;       // tokens on their way to their experts; back: combine
  DataType combine = DataType::kBf16;
  // Of what has one byte a value (matmul, dispatch), so many values of a row share an fp32 scale
  // (128 in DeepSeek-V3, arXiv 2412.19437, section 3.3.2); 0: a whole tensor does.
  std::int64_t scale_block = 0;
  // As which the input of an MLP's activation is kept; nothing: in the type of the activations.
  std::optional<DataType> activation_input{};
  // Bits of a value of attention's result as it is kept, with scales for blocks as above; 0: as the
  // activations. 12 is DeepSeek-V3's E5M6 (section 3.3.3).
  std::int64_t attention_result_bits = 0;
};

// One type for everything but the accumulators of gradients.
DataTypes all_of_type(DataType type);

// How the cross entropy goes from logits to their gradient, and what lies in memory meanwhile, a
// logit (t: bytes of the activations' type):
enum class LossKernels : std::uint8_t {
  kFused,     // fp32 in registers only. Keeps the logits, which their gradient overwrites: t
  kInPlace,   // Megatron-LM: an fp32 copy, in which softmax and gradient are made in place; rounded
              // at the end. Keeps 4; the copy begins and ends beside t
  kSeparate,  // PyTorch: an fp32 copy, its log-softmax (kept, 4), and in the backward pass the
              // gradients of both; over a tensor group the exponentials too. PyTorch keeps the
              // block of the logits (t) reserved meanwhile, which fits nothing of 4
};
inline constexpr std::size_t kLossKernels = 3;
std::string_view name_of(LossKernels kernels);  // "in_place"

// The part of a micro-batch's work that one chip does.
struct Shard {
  std::int64_t sequences = 1;        // micro-batch
  std::int64_t sequence_length = 0;  // tokens, of the whole sequence
  std::int64_t tensor = 1;           // features (heads, MLP width, vocabulary) are divided by this
  bool sequence_parallel = false;    // tokens of the S region are divided by `tensor` too
  // Above 1, two-dimensional weights: so many of the tensor ranks divide the model's width, the
  // others the features. The S region's features are divided then, not its tokens.
  std::int64_t tensor_width = 1;
  std::int64_t context = 1;        // tokens of each sequence are divided by this, everywhere
  std::int64_t expert = 1;         // routed experts are divided by this
  std::int64_t expert_tensor = 1;  // features of each expert are divided by this
  // Which of the `expert` parts this chip holds, in blocks of neighbouring experts. All are alike
  // unless the model's routing is skewed.
  std::int64_t expert_rank = 0;
  // One kernel from q, k and v to the output, or a matmul, softmax, (dropout) and a matmul, which
  // keep the scores: 2 bytes a pair and head, 5 with dropout.
  bool fused_attention = true;
  // Each result of an elementwise kernel along with the others that read the same, or by a kernel
  // of its own, as in DeepSeek-V3's training: see layer_part.h.
  bool fused_elementwise = true;
  // Weights of matmuls in one byte are turned round for the input gradient of every micro-batch;
  // else once a step, which is not counted.
  bool transpose_weights = false;
  // Of the tokens of all ranks of the experts, those that come to this chip, each once for all of
  // its experts here: two-level dispatch. 0: a copy for each expert comes, in their order.
  std::int64_t arriving_tokens = 0;
  LossKernels loss = LossKernels::kFused;
  DataTypes types{};
};

enum class Region : std::uint8_t {
  kSequence,  // S: every feature of some tokens (of all tokens without sequence parallelism)
  kTensor,    // T: some features of every token
  kExpert,    // E: tokens that were sent to this chip's experts
};

struct LayerOp {
  std::string_view name;  // a literal: "qkv_projection"
  Region region = Region::kSequence;
  std::vector<Kernel> forward{};
  std::vector<Kernel> again{};  // when its forward runs again by itself; none: as `forward`
  std::vector<Kernel> input_gradient{};
  std::vector<Kernel> weight_gradient{};  // of matmul weights and embedding tables
  // Kept from its forward to its weight gradient (or input gradient): its input, what only its own
  // backward reads of what its forward makes, its result for the ops behind it, and the rest
  // (masks), which recompute never drops by itself.
  Bytes saved{};
  Bytes saved_input{};
  Bytes saved_inside{};  // scores, statistics: what selective recompute of attention drops
                         // (Korthikanti et al., section 5)
  Bytes saved_result{};
  // What its forward reads, as this chip would keep it; with what it only hands on untouched.
  Bytes input{};
  Bytes passed_on{};
  // Whose results it reads; none: the op before it. The first is the one that saved_input is of.
  std::vector<std::string_view> reads{};
  bool backward_reads_input = false;  // whoever keeps it
  // Of matrices that lie side by side in one matmul here, and that others multiply one by one:
  // columns. None: it is a single matrix.
  std::vector<std::int64_t> columns{};
  Bytes forward_workspace{};    // lives only while its forward runs: what nobody keeps
  Bytes backward_workspace{};   // lives only while its backward runs: gradients, gathered input
  std::int64_t parameters = 0;  // on this chip. Those of the S region are on every tensor rank;
                                // those of the E region only on the ranks that share its experts
  // What of the op before it crosses the tensor group where the region changes, of all tokens; 0:
  // ModelLayers::tensor_boundary.
  Bytes crossing{};
  // The first T op after an S op multiplies weights with the gathered tokens, but keeps only its
  // own part: its weight gradient needs them gathered again.
  bool regathers_input = false;
  // Vocabulary-parallel cross entropy: fp32 values a token that are summed over the tensor group
  // during its forward (max, sum of exponentials, target logit).
  std::int64_t reduced_values_per_token = 0;
  // With two-dimensional weights, over the ranks that divide the width: features that are gathered
  // before the op and kept divided; partial sums behind it; and fp32 values a token that a norm
  // sums in its forward and in its backward, over the whole tensor group.
  Bytes width_gathered{};
  Bytes width_reduced{};
  std::int64_t norm_values_per_token = 0;
};

inline bool is_tensor(const LayerOp& op) {
  return op.region == Region::kTensor;
}

// What a layer with experts sends where its regions change, S -> E (dispatch) and E -> S (combine);
// the backward pass sends the same sizes the other way. All-to-all buffers of a chip are tokens x
// copies x bytes; `expert_tensor` chips that share an expert gather each other's.
struct TokenRouting {
  std::int64_t tokens = 0;  // of the S region, on this chip
  std::int64_t copies = 0;  // experts that each goes to
  Bytes dispatched{};       // of one copy
  Bytes combined{};
};

struct Layer {
  std::string name;
  std::vector<LayerOp> ops;  // in order of the forward pass
  std::optional<TokenRouting> routing{};
  std::int64_t parameters() const;
  std::int64_t parameters(Region region) const;
  Bytes saved() const;
};

// A module of multi-token prediction, on the stage of the head and behind it: it looks the next
// tokens up (in the embedding's table, of which this stage then holds a copy), joins them with the
// last block's output, and has a block and a loss of its own.
struct PredictionModule {
  Layer entry;
  std::uint32_t kind_of_block = 0;
  Layer head;  // with the model's own unembedding
};

struct ModelLayers {
  Layer embedding;                             // no ops where the model has none
  std::vector<Layer> blocks{};                 // one of each kind, in order of appearance
  std::vector<std::uint32_t> kind_of_block{};  // of each layer of the model: position in `blocks`
  Layer head;                                  // final norm, unembedding, loss; or no ops
  std::vector<PredictionModule> prediction{};
  Bytes boundary;         // [tokens, hidden] of all tokens of the tensor group, as activations
  Bytes tensor_boundary;  // the same in the type of communication: what the tensor group gathers
                          // and reduces at each change of region

  const Layer& block(std::int64_t layer) const& {
    return blocks[kind_of_block[static_cast<std::size_t>(layer)]];
  }
  Layer block(std::int64_t layer) && {  // a copy: the rest is gone at the end of the expression
    return blocks[kind_of_block[static_cast<std::size_t>(layer)]];
  }
};

// Of the table that makes logits, on this chip: the head's own, or the embedding's. 0 without a
// head.
std::int64_t unembedding_parameters(const ModelLayers& layers);

// REQUIRES: check(model) is empty; shard.tensor divides heads and intermediate, and divides
// kv_heads or is divided by them; context divides sequence_length; with sequence parallelism tensor
// divides sequences * sequence_length / context; expert divides the routed experts, expert_tensor
// their width, tensor that of the shared ones; a model with experts is sequence parallel if
// tensor > 1 (otherwise tensor ranks would send the same tokens). With tensor_width > 1: a part of
// tensor, which divides hidden and kv_heads; sequence parallel; neither experts, latent attention
// nor prediction.
ModelLayers build_layers(const ModelSpec& model, const Shard& shard);

}  // namespace stepsim
