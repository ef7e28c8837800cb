// Where the ranks of a group of ep stand, and how tokens are routed to them: what two-level
// dispatch and skewed loads need to know.

#pragma once

#include <cstdint>

#include "schedules/plan/parallel_plan.h"
#include "sim/network/places.h"
#include "workload/expert_routing.h"
#include "workload/model_spec.h"

namespace stepsim {

// Neighbouring ranks of each group of ep that stand in one node of the cluster, if every group has
// as many in each of its nodes, in the same places of it; else 0. O(ranks).
// REQUIRES: the plan's sizes, its order and its map are good.
std::int64_t ranks_of_expert_node(const ParallelPlan& plan, const Places& places);

// Whether pairs of ranks of ep have different bytes for each other, or nodes share them.
bool routes_by_matrix(const ModelSpec& model, const ParallelPlan& plan);

// Tokens of a layer and micro-batch in a group of ep, `node` of them in a node; tokens and bytes of
// a token are those of the caller.
ExpertRouting expert_routing(const ModelSpec& model, const ParallelPlan& plan, std::int64_t node);

}  // namespace stepsim
