// ParallelPlan says how a training step is divided over ranks. Plan keys are those of the command
// line and of experiment files: docs/plan-keys.md.
//
//   ranks = tp x cp x dp x pp, numbered in `order`, innermost first:
//   with tp-cp-dp-pp, rank = tp + TP * (cp + CP * (dp + DP * pp))
//
// Two meshes lie over the ranks. Dense layers use tp x cp x dp x pp. The routed experts of a stage
// use etp x ep x edp x pp: the stage's tp x cp x dp ranks, in the same order, divided anew, etp
// innermost. edp = tp x cp x dp / (etp x ep) ranks hold the same part of the same experts.
//
// What a rank holds is divided over its replicas, the cp x dp ranks with equal weights, as `zero`
// says. With hybrid sharding (`shard`) over groups of that many neighbouring replicas, and the
// groups are alike.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/schedule_name.h"
#include "sim/base/error.h"
#include "sim/chips/chip_spec.h"
#include "sim/chips/kernel.h"
#include "sim/network/places.h"
#include "workload/layers.h"
#include "workload/model_spec.h"

namespace stepsim {

enum class PlanAxis : std::uint8_t { kTensor, kContext, kData, kPipeline };
inline constexpr std::size_t kPlanAxes = 4;
std::string_view name_of(PlanAxis axis);  // "tp", "cp", "dp", "pp"

// Axes of the experts' mesh within a stage, innermost first.
enum class ExpertAxis : std::uint8_t { kExpertTensor, kExpert, kExpertData };

enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  // some modules of each block
  kMatmuls,    // all but the results of matmuls with weights: norms, attention, activations
  kAlternate,  // all but the results of attention and of every second matmul (torchtitan)
  kFull,       // whole blocks: only their inputs are kept
};
inline constexpr std::size_t kRecomputes = 5;
std::string_view name_of(Recompute recompute);  // "selective"

// What recompute = selective makes again: schedules/lowering/recompute.h.
enum class RecomputeModule : std::uint8_t {
  kAttention,
  kNorm,
  kActivation,
  kLatentUp,  // projections out of the latent vectors, and rotation
  kMlp,
  kSharedExperts,
  kExperts,  // router, dispatch, routed and shared experts, combine
};
inline constexpr std::size_t kRecomputeModules = 7;
std::string_view name_of(RecomputeModule module);  // "latent_up"

enum class Optimizer : std::uint8_t {
  kAdam,
  kNone,  // forward and backward only, as the closed forms count a step; no state
};
inline constexpr std::size_t kOptimizers = 2;
std::string_view name_of(Optimizer optimizer);  // "adam"
// How attention sees the keys and values of the other context ranks.
enum class ContextMode : std::uint8_t {
  kRing,        // chunks of keys and values go round, rank r has the r-th part of the sequence
  kZigzagRing,  // the same, rank r has the parts r and 2 cp - 1 - r of 2 cp: causal work is equal
  kAllGather,   // all keys and values are gathered first; parts as in kZigzagRing (Llama 3)
  kUlysses,     // all-to-all: every rank gets some heads of the whole sequence, and back
};
inline constexpr std::size_t kContextModes = 4;
std::string_view name_of(ContextMode mode);  // "zigzag_ring"

// How tokens travel to their experts and back.
enum class Dispatch : std::uint8_t {
  kAllToAll,  // a copy of the token for each expert that it was routed to
  kTwoLevel,  // a copy for each node, along the rail, handed on inside it to each rank that has one
              // of the token's experts (DeepEP, arXiv 2412.19437, section 3.2)
};
inline constexpr std::size_t kDispatches = 2;
std::string_view name_of(Dispatch dispatch);  // "all_to_all"

// An axis of the plan laid over levels of the cluster, innermost first: tp over torus axis x.
struct AxisMapping {
  PlanAxis axis = PlanAxis::kTensor;
  std::vector<std::string> levels;
};

struct ParallelPlan {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;            // routed experts are divided over this many ranks,
  std::int64_t etp = 1;           // and each of them over this many
  std::int64_t microbatch = 1;    // sequences
  std::int64_t global_batch = 0;  // sequences of a step
  std::int64_t sequence = 0;      // tokens of a sequence
  // Above 1, two-dimensional weight-stationary: so many neighbouring tensor ranks divide the
  // model's width, the tp / tensor_width others the features.
  std::int64_t tensor_width = 1;
  bool sequence_parallel = true;  // with tp > 1: tokens between the tensor-parallel parts divided
  ContextMode cp_mode = ContextMode::kZigzagRing;
  Dispatch dispatch = Dispatch::kAllToAll;
  std::int64_t expert_node = 0;  // two-level dispatch: neighbouring ranks of ep in one node; 0: as
                                 // many as the cluster has there
  std::int64_t node_limit = 0;   // and at most so many nodes of a token; 0: no limit
  std::vector<std::int64_t> layout;  // layers of each global stage; empty: equally many
  Recompute recompute = Recompute::kNone;
  std::vector<RecomputeModule> recompute_modules = {RecomputeModule::kAttention};  // selective
  std::int64_t recompute_block = 1;   // full: of so many layers in a row one input is kept
  std::int64_t recompute_layers = 0;  // of each stage's first so many layers only; 0: of all
  int zero = 0;            // 0: replicated; 1: optimizer state divided; 2: and gradients; 3: FSDP
  std::int64_t shard = 0;  // zero >= 1: replicas that divide the state; 0: all cp x dp
  DataType type = DataType::kBf16;  // of the arithmetic of matmuls
  // What is held and gathered; what is between ops and kept; what tensor, context, expert and
  // pipeline ranks send each other. Nothing: `type`, or bf16 where that has one byte.
  std::optional<DataType> weight_type;
  std::optional<DataType> activation_type;
  std::optional<DataType> communication_type;
  std::optional<DataType> dispatch_type;  // tokens, and gradients, on their way to the experts
  std::optional<DataType> combine_type;   // and back
  std::optional<DataType> activation_input_type;  // as which inputs of MLPs' activations are kept
  std::int64_t scale_block = 0;    // values of one byte that share an fp32 scale; 0: a whole tensor
  bool fused_attention = true;     // else scores are written to memory, and kept
  bool fused_elementwise = true;   // else more kernels than one read the same (layer_part.h)
  bool transpose_weights = false;  // of one byte, for the input gradient of each micro-batch
  std::int64_t attention_result_bits = 0;  // of a value, as it is kept; 0: as the activations
  std::int64_t sm_margin = 0;  // units of the chip that all kernels leave to communication
  LossKernels loss = LossKernels::kFused;
  // Kernels that add weight gradients to an accumulator leave autograd an empty tensor in its
  // place: one of each shape of a block's weights stays for good (Transformer Engine).
  bool gradient_placeholders = false;
  // FSDP: the fp32 weights that are divided are the master weights themselves, and are cast to the
  // type of weights when they are gathered (PyTorch). Else both are held (DeepSpeed).
  bool shared_master = false;
  ScheduleName schedule = ScheduleName::kOneForwardOneBackward;
  std::optional<PipelineSchedule> own_schedule;  // from a file, instead of `schedule`
  bool optimal_schedule = false;                 // searched for, instead of `schedule`
  std::int64_t chunks = 0;            // of the model on a rank; 0: as the schedule has by default
  std::int64_t microbatch_group = 0;  // interleaved: in turn on a chunk; 0: pp
  std::int64_t memory_limit = 0;      // planned by time: micro-batches x chunks; 0: the schedule's
  std::array<PlanAxis, kPlanAxes> order = {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData,
                                           PlanAxis::kPipeline};  // innermost first
  std::vector<AxisMapping> map;                                   // empty: rank r sits on chip r
  bool allow_idle_chips = false;

  std::int64_t gradient_bucket_parameters = 40'000'000;  // of one gradient reduction, dp overlapped
  int prefetch = 1;                   // FSDP: layers gathered ahead of the one that computes
  bool reshard_after_forward = true;  // FSDP: else gathered once a step, until the last backward
  bool overlap_gradients = true;      // reduce gradients while the backward pass goes on
  bool overlap_parameters = false;    // ZeRO-1 and 2: gather parameters beside the next forward
  bool overlap_tensor = false;     // reduce-scatter of an input gradient beside the weight gradient
  std::int64_t tensor_chunks = 1;  // above 1: collective matmuls, each in so many chunks
  bool overlap_pipeline = true;    // messages between stages beside compute
  bool batch_p2p = false;  // ... in batches, as the runtime of the schedule posts them (posting.h)
  // All-to-alls of experts: each backward runs with the forward behind it, by turns
  // (fused_neighbours.h); or the shared experts run beside the dispatch and, in the backward,
  // beside the way back.
  bool overlap_expert_parallel = false;
  bool overlap_shared_experts = false;
  bool clip_gradients = false;     // the norm of all gradients before the optimizer
  bool post_validation = false;    // the optimizer does not wait for that norm
  bool offload_optimizer = false;  // its state lives on the host, and streams through the chip
  bool host_optimizer = false;     // with offload_optimizer: the host makes the step (ZeRO-Offload)
  bool offload_activations = false;  // what a block keeps goes to the host, and comes back
  std::int64_t offload_layers = 0;   // of each chunk's first so many blocks only; 0: of all
  Optimizer optimizer = Optimizer::kAdam;
  std::int64_t optimizer_bytes = 12;  // a parameter: fp32 master weight and two Adam moments
  std::int64_t gradient_bytes = 4;    // a parameter: gradients are accumulated and reduced in fp32
  bool hold_gradients = true;  // else each is used up as soon as it is reduced (10-byte accounting)

  std::int64_t ranks() const { return tp * cp * dp * pp; }
  std::int64_t microbatches() const { return global_batch / (dp * microbatch); }
  std::int64_t replicas() const { return cp * dp; }
  std::int64_t sharded_over() const { return shard == 0 ? replicas() : shard; }
  std::int64_t edp() const { return tp * cp * dp / (etp * ep); }
  std::int64_t size_of(PlanAxis axis) const;
  std::int64_t size_of(ExpertAxis axis) const;
  DataType weights() const { return weight_type.value_or(wide(type)); }
  DataType activations() const { return activation_type.value_or(wide(type)); }
  DataType communicated() const { return communication_type.value_or(activations()); }
  bool offloads() const { return offload_optimizer || offload_activations; }
  DataType dispatched() const { return dispatch_type.value_or(communicated()); }
  DataType combined() const { return combine_type.value_or(activations()); }
  bool divides_tokens() const { return sequence_parallel && tp > 1; }
  bool divides_width() const { return tensor_width > 1; }

 private:
  static DataType wide(DataType type);
};

// Every problem of a plan for this model on these chips: sizes that are not positive, divisions
// that leave a rest, more ranks than chips, unknown or doubly used levels, values not supported.
std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places);

// The problems of a plan on this chip: a data type that it can't compute in.
std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip);

// Of the schedule: "1f1b", "optimal", "own schedule".
std::string_view schedule_text(const ParallelPlan& plan);

// Coordinate of `rank` along `axis`.
std::int64_t coordinate(const ParallelPlan& plan, std::int64_t rank, PlanAxis axis);
std::int64_t coordinate(const ParallelPlan& plan, std::int64_t rank, ExpertAxis axis);

// Number of `rank` among the tp x cp x dp ranks of its stage, in the plan's order.
std::int64_t number_in_stage(const ParallelPlan& plan, std::int64_t rank);

// The chip number of every rank. REQUIRES: check() is empty.
std::vector<std::uint32_t> place_ranks(const ParallelPlan& plan, const Places& places);

}  // namespace stepsim
