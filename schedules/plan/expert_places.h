// The places of the ranks in a group of ep, and the routing of tokens to them, for two-level
// dispatch and skewed loads.

#pragma once

#include <cstdint>

#include "schedules/plan/parallel_plan.h"
#include "sim/network/places.h"
#include "workload/expert_routing.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Returns the number of neighbouring ranks of each group of ep in one node of the cluster. Returns
// 0 unless every group has equally many in each of its nodes, at the same places of the node.
// O(ranks). REQUIRES: the plan's sizes, its order and its map are valid.
std::int64_t ranks_of_expert_node(const Ranks& mesh, const Places& places);

// Returns whether pairs of ranks of ep exchange different bytes, or nodes share them.
bool routes_by_matrix(const ModelSpec& model, const Ranks& mesh, const ExpertPlacement& experts);

// Returns the routing of a layer and micro-batch in a group of ep, with `node` ranks per node. The
// caller gives the tokens and the bytes of a token.
ExpertRouting expert_routing(const ModelSpec& model, const Ranks& mesh,
                             const ExpertPlacement& experts, std::int64_t node);

}  // namespace stepsim
