// Expert parallelism: the copies of each token travel to the ranks that hold their experts
// (dispatch) and their results back (combine); the backward sends the same sizes the other way.
// Where etp ranks share each expert they gather each other's copies first, and reduce-scatter the
// results.
//
//   all_to_all   a copy for each expert: each rank sends tokens x copies x bytes, of which
//                (ep - 1)/ep leave it
//   two_level    (DeepEP, arXiv 2412.19437, section 3.2) a copy for each node that has one of the
//                token's experts, to the rank with the same place in that node; then one for each
//                expert inside the node. With M nodes, k copies and at most g nodes of a token (g =
//                M without a limit) those are g (1 - (1 - 1/g)^k) nodes on average
//
// Not modelled: with a skewed load the experts compute what comes to them, but the all-to-alls are
// those of an even load.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/lowering/exchange.h"
#include "schedules/plan/parallel_plan.h"
#include "workload/layers.h"

namespace stepsim {

// Of the first and the last op of the E region; none without experts, or with ep and etp of 1.
std::vector<OpExchange> expert_exchanges(const Layer& block, const ParallelPlan& plan);

// What of the forward is sent twice, because experts are recomputed.
struct ExpertsAgain {
  bool dispatch = false;
  bool combine = false;
};

// Bytes that all ranks of a stage send for a layer and micro-batch.
std::int64_t expert_bytes(const TokenRouting& routing, const ParallelPlan& plan,
                          const ExpertsAgain& again);

// Tokens that a rank sends to other nodes, or its own, in the first step of a two-level dispatch.
std::int64_t tokens_across_nodes(const TokenRouting& routing, const ParallelPlan& plan);

}  // namespace stepsim
