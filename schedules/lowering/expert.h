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
// With two_level, a skewed load or a capacity the sizes stand in a matrix of all pairs: what
// route_tokens() expects (workload/expert_routing.h), in every layer and micro-batch alike. The
// ranks of hot experts then also have longer kernels (roles, lowered_model.h).

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/exchange.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/network/places.h"
#include "workload/expert_routing.h"
#include "workload/layers.h"

namespace stepsim {

// The bytes that ranks of a group of ep send to each other.
struct ExpertExchange {
  // OpGraph::byte_matrices: to the experts, and back. Empty: as much for each.
  std::vector<ByteMatrix> matrices{};
  AlgorithmChoice there = AlgorithmChoice::kAuto;
  AlgorithmChoice back = AlgorithmChoice::kAuto;
};

// REQUIRES: the plan is good for the model and these places.
ExpertExchange expert_exchange(const ModelSpec& model, const ParallelPlan& plan,
                               const TokenRouting& routing, const Places& places);

// Tokens of all ranks that come to the chip with the `expert_rank`-th part of the experts, and to
// those that share it, each once. REQUIRES: a two-level dispatch; exchange has matrices.
std::int64_t arriving_tokens(const TokenRouting& routing, const ParallelPlan& plan,
                             const ExpertExchange& exchange, std::int64_t expert_rank);

// The shared experts moved between the dispatch and the routed ones, which they run beside
// (overlap_shared_experts; Megatron-Core: --moe-shared-expert-overlap).
Layer shared_experts_beside_dispatch(Layer block);

// The exchanges of the first and the last op of the E region and, with overlap_shared_experts, of
// the first shared one, on the ranks with the `expert_rank`-th part of the experts. None without
// experts, or with ep and etp of 1.
std::vector<OpExchange> expert_exchanges(const Layer& block, const ParallelPlan& plan,
                                         const ExpertExchange& exchange, std::int64_t expert_rank);

// The messages of the forward that are sent twice, because experts are recomputed.
struct ExpertsAgain {
  bool dispatch = false;
  bool combine = false;
};

// Bytes that all ranks of a stage send for a layer and micro-batch.
std::int64_t expert_bytes(const TokenRouting& routing, const ParallelPlan& plan,
                          const ExpertExchange& exchange, const ExpertsAgain& again);

}  // namespace stepsim
