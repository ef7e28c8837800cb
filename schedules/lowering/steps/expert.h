// Expert parallelism: the copies of each token travel to the ranks that hold their experts
// (dispatch) and their results back (combine). The backward pass sends gradients the same ways:
// those of the results to the experts, in the type of the dispatch, those of the tokens back, in
// the type of the combine. Where etp ranks share each expert they gather each other's copies first,
// and reduce-scatter the results.
//
//   all_to_all   a copy for each expert: each rank sends tokens x copies x bytes, of which
//                (ep - 1)/ep leave it
//   two_level    (DeepEP, arXiv 2412.19437, section 3.2) a copy for each node that has one of the
//                token's experts, along the rail to the rank with the same place in that node, and
//                from there, while more arrive, to each rank that has one. Results are added up in
//                the node before they go back
//
// In a pass of inference an all_to_all says how many tokens go to how many experts, and the library
// may take its low-latency kernels for it (sim/collectives/library_choice.h).
//
// With two_level, a skewed load or a capacity, a matrix of all pairs gives the sizes. It holds the
// expected counts of route_tokens() (workload/expert_routing.h), the same in every layer and
// micro-batch. The ranks of hot experts then also have longer kernels (roles, lowered_model.h).

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/steps/exchange.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/network/places.h"
#include "workload/expert_routing.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

// ExpertExchange holds the bytes that ranks of an expert-parallel group send to each other. With
// experts on chips of their own the group is all ranks of the plan.
struct ExpertExchange {
  // To the experts, and back. Empty: every pair sends equally much.
  std::vector<ByteMatrix> matrices{};
  std::uint32_t first = 0;  // index of the first of them in OpGraph::byte_matrices
  AlgorithmChoice there = AlgorithmChoice::kAuto;
  AlgorithmChoice back = AlgorithmChoice::kAuto;
};

// REQUIRES: the plan is valid for the model and these places.
ExpertExchange expert_exchange(const ModelSpec& model, const Ranks& mesh,
                               const ExpertPlacement& experts, const TokenRouting& routing,
                               const Places& places);

// Returns the tokens of all ranks that come to the chip with the `expert_rank`-th part of the
// experts or to a chip that shares it. Each token counts once. REQUIRES: a two-level dispatch;
// exchange has matrices.
std::int64_t arriving_tokens(const TokenRouting& routing, const Ranks& mesh,
                             const ExpertExchange& exchange, std::int64_t expert_rank);

bool is_shared_expert(const LayerOp& op);

// Returns the block with its shared experts moved between the dispatch and the routed experts, so
// that they run beside the dispatch (overlap_shared_experts; Megatron-Core:
// --moe-shared-expert-overlap).
Layer shared_experts_beside_dispatch(Layer block);

// Returns the exchanges of the first and the last op of the E region on the ranks with the
// `expert_rank`-th part of the experts. With overlap_shared_experts it adds that of the first
// shared op. Empty without experts, or if ep and etp are 1.
std::vector<OpExchange> expert_exchanges(const Layer& block, const ParallelPlan& plan,
                                         const ExpertExchange& exchange, std::int64_t expert_rank);

// Messages of the forward that are sent a second time because experts are recomputed.
struct ExpertsAgain {
  bool dispatch = false;
  bool combine = false;
};

// Returns the bytes that all ranks of a stage send for one layer and one micro-batch.
std::int64_t expert_bytes(const TokenRouting& routing, const Ranks& mesh,
                          const Precision& precision, const ExpertExchange& exchange,
                          const ExpertsAgain& again);

}  // namespace stepsim
