// Recompute trades FLOPs for memory: activations that a backward needs are dropped after the
// forward and made again. (Chen et al., arXiv 1604.06174; Korthikanti et al., arXiv 2205.05198,
// section 5.)
//
//   selective   modules of a block (RecomputePlan::modules):
//               attention: its kernel runs again before its backward, its result stays. A fused
//               kernel keeps no scores, so with it this saves only the log-sum-exp of each row
//               norm, activation, latent_up: their results are dropped and made again before the
//               backward that reads them (DeepSeek-V3, arXiv 2412.19437, section 3.2.2;
//               Megatron-Core's output-discarding checkpoints)
//               mlp, shared_experts, experts: the whole module keeps its input alone and runs
//               again, its collectives too (the dispatch and combine of experts)
//   matmuls     the results of matmuls with weights are kept, and the tokens that came to experts;
//               norms, attention, additions and activations are made again, as far as somebody
//               needs them. A block's last matmul needs no place: its result goes into the input of
//               the next block, which is kept. So 2 b s (D + 2 F) bytes for a gated MLP (FORMULAS
//               D13), and as much for attention's
//   alternate   as matmuls, but only every second one, matrices counted one by one, and attention
//               too: torchtitan's selective checkpointing of operations, which counts them so
//   all_but     the results in RecomputePlan::keep are kept, and the tokens that came to
//               experts; all else is made again, as far as somebody needs it: what JAX does with
//               save_only_these_names
//   full        a block keeps its input alone; its whole forward runs again before its backward,
//               its tensor-parallel collectives too. Of `recompute_block` blocks in a row only the
//               first's input is kept: all of them run again before the backward of the last
//
// The bytes that are kept and that come back are read off the ops of the layer (LayerOp::saved and
// its parts). No policy has a formula of its own.
//
// `recompute_layers` leaves all but the first so many blocks of each stage alone. Embedding and
// head are not recomputed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedules/lowering/steps/exchange.h"
#include "schedules/lowering/steps/tensor.h"
#include "schedules/plan/parallel_plan.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

// ---- parts of a block ----

// OpRecompute says how recompute treats an op of a block.
struct OpRecompute {
  bool again = false;         // its forward runs again before a backward
  bool result_again = false;  // its result was dropped, too
  Bytes kept{};               // held from its forward to its backward, in place of LayerOp::saved
  Bytes restored{};           // held again from its repetition to its backward
  Bytes input_restored{};     // held again once the op before it has been repeated
  // Collectives that run again, on the way into the op and behind it:
  bool gathers_again = false;   // tensor group; set on the first op of a stretch of the T region
  bool reduces_again = false;   // tensor group; set on the last op of the stretch
  bool receives_again = false;  // OpExchange::before_forward (or ::forward)
  bool returns_again = false;   // OpExchange::after_forward
};

// Returns one entry for each op of the block, for recompute = none, selective, matmuls,
// alternate or all_but.
std::vector<OpRecompute> recomputed_ops(const Layer& block, const RecomputePlan& plan,
                                        const Ranks& mesh, ContextMode context);

// Returns the bytes that all these ops keep from the forward on.
Bytes kept(const std::vector<OpRecompute>& ops);

class RecomputeChoice;  // recompute_choice.h

// Returns the block as its backward sees it, and adds exchanges that make again what the backward
// reads. `choice`: that of the block. Call it before lower_tensor(); `boundary` is the same there.
Layer recompute_parts(const Layer& whole, const RecomputeChoice& choice, const TensorGroup& group,
                      Bytes boundary, std::vector<OpExchange>& exchanges);

// ---- whole blocks ----

// BlockRecompute is the role of a block among the neighbours that are recomputed with it.
enum class BlockRecompute : std::uint8_t {
  kNone,
  kAlone,   // repeated by itself; also for selective and matmuls
  kFirst,   // first of several that are repeated together: its input is kept
  kInside,  // between the first and the last of them
  kLast,    // last of them: all run again before its backward
};
inline constexpr std::size_t kBlockRecomputes = 5;

// Returns the role of block `index` among the `count` consecutive blocks of a stage.
BlockRecompute block_recompute(const RecomputePlan& plan, std::int64_t index, std::int64_t count);

// Returns whether the block's forward is repeated in a visit of its own, for which FSDP gathers its
// parameters once more.
inline bool has_own_visit(BlockRecompute role) {
  return role == BlockRecompute::kFirst || role == BlockRecompute::kInside;
}

// Returns the block in its role, with recompute = full. Call it after lower_tensor().
LoweredLayer recompute_fully(LoweredLayer layer, BlockRecompute role = BlockRecompute::kAlone);

}  // namespace stepsim
