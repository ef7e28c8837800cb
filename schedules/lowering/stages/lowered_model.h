// LoweredModel holds every layer of a model as steps under a plan, before pipeline stages divide
// the layers. Ranks of one stage have the same steps unless they compute different amounts. With a
// causal ring each context rank has steps of its own (context.h); with a skewed load each expert
// rank has. Such ranks have another role and a program of their own.

#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/lowering/recompute/recompute.h"
#include "schedules/lowering/steps/expert.h"
#include "schedules/lowering/steps/tensor.h"
#include "schedules/plan/parallel_plan.h"
#include "workload/layers.h"
#include "workload/model/model_spec.h"
#include "workload/parts/kernels.h"

namespace stepsim {

struct Role {
  std::int64_t context_rank = 0;
  std::int64_t expert_rank = 0;
};

// A block in each role that recompute gives it. Roles that the plan does not use are empty.
struct LoweredBlock {
  std::array<LoweredLayer, kBlockRecomputes> roles;
  const LoweredLayer& in(BlockRecompute role) const {
    return roles[static_cast<std::size_t>(role)];
  }
};

struct LoweredModule {  // a module of multi-token prediction
  LoweredLayer entry;
  LoweredLayer head;
};

// The routed experts of a kind of block, where they are on chips of their own.
struct LoweredExperts {
  Layer layer;
  LoweredLayer steps;  // empty: this kind of block has none
};

struct LoweredModel {
  ModelLayers layers;  // if the plan splits_ffn() those of attention chips, and the experts' are in
  std::vector<LoweredExperts> experts_apart;  // by kind; else empty
  std::vector<AttentionShape> attention;      // by kind of block; empty if it has none, or cp is 1
  std::vector<LoweredLayer> vision{};         // entry, block, projector; empty: the model has none
  LoweredLayer embedding;
  std::vector<LoweredBlock> blocks;  // by kind
  LoweredLayer head;
  std::vector<LoweredModule> prediction;
};

// Returns the types of a plan, by purpose.
DataTypes data_types(const ParallelPlan& plan);

// Returns the share of the model that a rank with this role computes for a micro-batch.
Shard shard_of(const ParallelPlan& plan, const Role& role);

// Returns the bytes that a rank sends over the boundary of two stages before this layer, for a
// micro-batch: the stream, and what handed_on() says.
Bytes message_size(const ModelSpec& model, const ParallelPlan& plan, const ModelLayers& layers,
                   std::int64_t layer);

// `exchange`: expert_exchange(), or exchange_with_expert_chips() for the plan's requests.
LoweredModel lower_model(const ModelSpec& model, const ParallelPlan& plan, const Role& role,
                         const ExpertExchange& exchange);

// The roles of a plan: context ranks, and expert ranks, that compute different amounts. 1: all are
// alike.
struct Roles {
  std::int64_t contexts = 1;
  std::int64_t experts = 1;

  std::size_t size() const { return static_cast<std::size_t>(contexts * experts); }
  Role operator[](std::size_t index) const {
    const auto at = static_cast<std::int64_t>(index);
    return {.context_rank = at % contexts, .expert_rank = at / contexts};
  }
  std::size_t of(const Ranks& mesh, std::int64_t rank) const;  // index of a rank's role
};
Roles roles_of(const ModelSpec& model, const ParallelPlan& plan);

}  // namespace stepsim
