// ParallelPlan says how a training step is divided over ranks. Plan keys are those of the command
// line and of experiment files: `stepsim help plan`.
//
//   ranks = tp x cp x dp x pp, numbered in `order`, innermost first:
//   with tp-cp-dp-pp, rank = tp + TP * (cp + CP * (dp + DP * pp))
//
// A pass of inference may have its routed experts on chips of their own (`ffn_chips`): their ranks
// follow those of the mesh and divide the experts by etp x ep, etp innermost. Only ranks of the
// mesh have coordinates along the plan's axes.
//
// Two meshes lie over the ranks. Dense layers use tp x cp x dp x pp. The routed experts of a stage
// use etp x ep x edp x pp: the stage's tp x cp x dp ranks, in the same order, divided anew, etp
// innermost. edp = tp x cp x dp / (etp x ep) ranks hold the same part of the same experts.
//
// The replicas of a rank, the cp x dp ranks with equal weights, divide its state between them
// according to `zero`. With hybrid sharding (`shard`) each group of that many neighbouring replicas
// divides the state, and all groups are alike.

#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/plan/inference_pass.h"
#include "schedules/plan/plan_themes.h"
#include "schedules/plan/software_themes.h"
#include "sim/base/error.h"
#include "sim/chips/chip_spec.h"
#include "sim/network/places.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// ParallelPlan holds the keys by themes: of the plan, of the software that runs it, and of a pass.
// A function takes the themes that it reads.
struct ParallelPlan {
  Ranks mesh{};
  BatchShape batch{};
  TensorContext tensor{};
  PipelinePlan pipeline{};
  ExpertPlacement experts{};
  Sharding state{};
  RecomputePlan recomputing{};
  Precision precision{};
  OverlapPlan overlap{};
  TrainingPlan training{};
  OffloadPlan offload{};

  std::string software{};  // whose defaults hold (catalog/software); empty: none's
  KernelChoices kernels{};
  NarrowTypes narrow{};
  LossChoices loss{};
  TensorPieces pieces{};
  MessagePlan messages{};
  Buffers buffers{};
  OptimizerUpdate update{};
  HostLaunches launches{};
  ModelHabits habits{};
  Allocator allocator{};

  InferencePass pass{};
  CachePlan cache{};

  // Returns the bytes a parameter of the gradients that are held: sums, and if they are added up by
  // kernels of their own, those of a micro-batch beside them.
  std::int64_t held_gradient_bytes() const {
    if (update.host_gradients && update.host_optimizer && state.zero >= 2) return 0;
    return update.gradient_bytes +
           (update.separate_accumulation ? stepsim::size_of(DataType::kBf16).value() : 0);
  }
  bool is_inference() const { return pass.inference != Inference::kNone; }
  std::int64_t microbatches() const {
    return batch.global_batch / (mesh.dp * batch.microbatch_size);
  }
  // Returns the tokens of a micro-batch on a context rank.
  std::int64_t tokens() const {
    return pass.own_requests
               ? tokens_of_chip(*pass.own_requests, mesh.cp, 1)
               : batch.microbatch_size * (batch.sequence / mesh.cp) + pass.prefill_tokens;
  }
  std::int64_t sharded_over() const { return state.shard.value_or(mesh.replicas()); }
  // Training holds weights of one byte in 16 bits too; what is served was made narrow before.
  DataType weights() const {
    return precision.weight_type.value_or(is_inference() ? precision.type
                                                         : Precision::wide(precision.type));
  }
  DataType cached() const { return cache.type.value_or(precision.activations()); }
  // REQUIRES: lora_rank.
  Adapters adapters() const {
    assert(training.lora_rank);
    return {.rank = *training.lora_rank,
            .places = training.lora_modules,
            .frozen = training.frozen_type};
  }
  bool divides_tokens() const { return tensor.sequence_parallel && mesh.tp > 1; }
  // Megatron Core's rule: rings of many replicas pass large enough pieces on.
  std::int64_t bucket_parameters() const {
    return messages.gradient_bucket_parameters.value_or(mesh.dp <= 40 ? 40'000'000
                                                                      : 1'000'000 * mesh.dp);
  }
  bool scatters_messages() const {
    return messages.scatter_messages && mesh.tp > 1 && mesh.pp > 1 && !tensor.sequence_parallel &&
           !tensor.divides_width();
  }
};

// Returns the plan with the recompute that its software makes of the one that was chosen.
ParallelPlan with_recompute_habits(ParallelPlan plan, const ModelSpec& model);

// Returns every problem of a plan for this model on these chips: sizes that are not positive,
// divisions with a remainder, more ranks than chips, unknown levels or levels used twice,
// unsupported values.
std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places);

// Returns the problems that the plan has with any model on these chips.
std::vector<Problem> check_without_model(const ParallelPlan& plan, const Places& places);

// Returns the problems of a plan on this chip: data types that it cannot compute in.
std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip);

// Returns the coordinate of `rank` along `axis`.
std::int64_t coordinate(const Ranks& mesh, std::int64_t rank, PlanAxis axis);
std::int64_t coordinate(const Ranks& mesh, std::int64_t rank, ExpertAxis axis);

// Returns the number of `rank` among the tp x cp x dp ranks of its stage, in the plan's order.
std::int64_t number_in_stage(const Ranks& mesh, std::int64_t rank);

// Returns the chip number of every rank. REQUIRES: check() is empty.
std::vector<std::uint32_t> place_ranks(const Ranks& mesh, const Places& places);

}  // namespace stepsim
