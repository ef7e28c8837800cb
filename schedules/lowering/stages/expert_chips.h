// Experts on chips of their own (ffn_chips; MegaScale-Infer, arXiv 2504.02263; Step-3, arXiv
// 2507.19427). They cut a block in two: attention chips do all its other work, and run the shared
// experts while their tokens are away.
//
//   attention   norms .. router, permute | dispatch | shared experts  | combine | unpermute, add
//   experts                              | dispatch | routed experts  | combine |
//
// Dispatch and combine are all-to-alls of all ranks, in which each attention chip sends every
// expert chip an equal part of the copies of its own tokens, and gets as many results back. Where
// etp chips share each expert they gather each other's copies first, and reduce-scatter the
// results.
//
// Not modelled: copies that a chip with several of a token's experts would get once, uneven loads.

#pragma once

#include <vector>

#include "schedules/lowering/steps/exchange.h"
#include "schedules/lowering/steps/expert.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/base/units.h"
#include "workload/expert_routing.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

// Everything here REQUIRES a valid plan with splits_ffn(). `tokens`: new ones of its requests.

// Returns the exchange of a layer for these requests. Parts of a chip's copies are rounded up
// to whole elements. O(ranks^2).
ExpertExchange exchange_with_expert_chips(const Ranks& mesh, const Precision& precision,
                                          std::int64_t tokens, const TokenRouting& routing);

struct SplitBlock {
  Layer attention;
  std::vector<OpExchange> of_attention;
  Layer experts;
  std::vector<OpExchange> of_experts;  // all but dispatch and combine
};

// REQUIRES: block.routing; the block has one op of the E region (inference_layers()).
SplitBlock split_block(Layer block, const Ranks& mesh, const Precision& precision,
                       std::int64_t tokens, const ExpertExchange& exchange);

// Returns the bytes that all ranks send for one layer and these requests.
Bytes bytes_of_split_layer(const Ranks& mesh, const Precision& precision, std::int64_t tokens,
                           const TokenRouting& routing);

}  // namespace stepsim
