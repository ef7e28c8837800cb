// What a person, or a search, chooses of a plan, by themes. plan_fields.cc says what each key does,
// its limits and when to change it, and is where a new key is declared.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/schedule_name.h"
#include "sim/chips/kernel.h"
#include "workload/parts/adapters.h"

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
  kAlternate,  // all but the results of attention and of every second matmul outside of routed
               // experts (torchtitan)
  kAlternateMatmuls,  // those of every second matmul alone
  kAllBut,            // all but the results that are named (JAX's save_only_these_names)
  kFull,              // whole blocks: only their inputs are kept
};
inline constexpr std::size_t kRecomputes = 7;
std::string_view name_of(Recompute recompute);  // "selective"
inline bool keeps_every_second_matmul(Recompute recompute) {
  return recompute == Recompute::kAlternate || recompute == Recompute::kAlternateMatmuls;
}

// The modules that recompute = selective repeats: schedules/lowering/recompute/recompute.h.
enum class RecomputeModule : std::uint8_t {
  kAttention,
  kNorm,
  kActivation,
  kLatentUp,  // projections out of the latent vectors, and rotation
  kMlp,
  kSharedExperts,
  kExperts,  // router, dispatch, routed and shared experts, combine
  kHyper,    // mappings of hyper-connections
};
inline constexpr std::size_t kRecomputeModules = 8;
std::string_view name_of(RecomputeModule module);  // "latent_up"

// The results that recompute = all_but keeps.
enum class KeptResult : std::uint8_t {
  kQkv,        // queries, keys, values, before their rotation
  kAttention,  // with the log-sum-exp of each row
  kOut,        // of attention's last matmul
  kUp,         // of an MLP's first matmuls, experts too: gate and up
  kDown,       // of an MLP's last matmul
};
inline constexpr std::size_t kKeptResults = 5;
std::string_view name_of(KeptResult result);  // "qkv"

enum class Optimizer : std::uint8_t {
  kAdam,
  kNone,  // forward and backward only, as the closed forms count a step; no state
  kMuon,  // of matrices; Adam of the rest: schedules/lowering/stages/muon.h
};
inline constexpr std::size_t kOptimizers = 3;
std::string_view name_of(Optimizer optimizer);  // "adam"
// How attention gets the keys and values of the other context ranks.
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
  kAuto,      // one of these two for each pass of inference (experiment/pass_dispatch.h)
};
inline constexpr std::size_t kDispatches = 3;
std::string_view name_of(Dispatch dispatch);  // "all_to_all"

// AxisMapping lays an axis of the plan over levels of the cluster, innermost first: tp over torus
// axis x.
struct AxisMapping {
  PlanAxis axis = PlanAxis::kTensor;
  std::vector<std::string> levels;
};

// Ranks are the sizes of the axes, and where they lie on the chips. The comment of ParallelPlan
// says how they are numbered.
struct Ranks {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t expert_chips = 0;  // ffn_chips, of the routed experts alone; 0: they are in the mesh
  std::array<PlanAxis, kPlanAxes> order = {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData,
                                           PlanAxis::kPipeline};  // innermost first
  std::vector<AxisMapping> map;                                   // empty: rank r sits on chip r
  bool allow_idle_chips = false;
  // Chips of each node or rack that have ranks; unset: domain_share() chooses.
  std::optional<std::int64_t> chips_per_domain;

  bool splits_ffn() const { return expert_chips > 0; }
  std::int64_t stage_ranks() const { return tp * cp * dp; }
  std::int64_t mesh_ranks() const { return stage_ranks() * pp; }
  std::int64_t ranks() const { return mesh_ranks() + expert_chips; }
  std::int64_t replicas() const { return cp * dp; }
  std::int64_t edp() const { return splits_ffn() ? 1 : stage_ranks() / (etp * ep); }
  std::int64_t size_of(PlanAxis axis) const;
  std::int64_t size_of(ExpertAxis axis) const;
};

// BatchShape is what a step computes.
struct BatchShape {
  std::int64_t global_batch = 0;     // sequences per step
  std::int64_t sequence = 0;         // tokens per sequence
  std::int64_t document_length = 0;  // tokens; 0: each sequence is one document
  std::int64_t microbatch_size = 1;  // sequences
  std::int64_t vision_tokens = 0;    // of a sequence, or of a new prompt, that come from pictures
  std::int64_t picture_tokens = 0;   // of a picture; 0: a sequence has one

  std::int64_t tokens_of_picture() const {
    return picture_tokens > 0 ? picture_tokens : vision_tokens;
  }
};

// TensorContext says how tensor and context ranks divide the work.
struct TensorContext {
  bool sequence_parallel = true;
  std::int64_t tensor_width = 1;  // ranks of tp that divide the model's width
  ContextMode cp_mode = ContextMode::kZigzagRing;

  bool divides_width() const { return tensor_width > 1; }
};

// PipelinePlan says in which order stages work, and which layers they have.
struct PipelinePlan {
  ScheduleName schedule = ScheduleName::kOneForwardOneBackward;
  std::optional<PipelineSchedule> own_schedule;  // from a file, instead of `schedule`
  std::string schedule_file;                     // that file's path
  bool optimal_schedule = false;                 // searched for, instead of `schedule`
  std::optional<std::int64_t> chunks;            // unset: the schedule's default
  std::vector<std::int64_t> layout;              // layers of each global stage; empty: equally many
  bool balanced = false;                         // layout=balanced, which loading works out
  std::optional<std::int64_t> microbatch_group;  // micro-batches; unset: the schedule's
  std::optional<std::int64_t> memory_limit;      // micro-batches x chunks; unset: the schedule's
};

// Returns the schedule's name: "1f1b", "optimal", "own schedule".
std::string_view schedule_text(const PipelinePlan& plan);

// ExpertPlacement says how tokens reach their experts.
struct ExpertPlacement {
  Dispatch dispatch = Dispatch::kAllToAll;
  std::optional<std::int64_t> expert_node;  // ranks of ep in one node; unset: as in the cluster
  std::optional<std::int64_t> node_limit;   // most nodes of one token; unset: any number
};

// Sharding says what replicas divide of the state, and when they gather it.
struct Sharding {
  int zero = 0;                       // 0: replicated; 1: optimizer state; 2: gradients; 3: FSDP
  std::optional<std::int64_t> shard;  // replicas that divide the state; unset: all cp x dp
  int prefetch = 1;                   // FSDP: layers gathered ahead of the computing layer
  bool reshard_after_forward = true;
};

// RecomputePlan says what forwards drop and backwards make again.
struct RecomputePlan {
  Recompute kind = Recompute::kNone;
  std::vector<RecomputeModule> modules = {RecomputeModule::kAttention};  // selective
  std::vector<KeptResult> keep{};                                        // all_but: at least one
  std::int64_t block = 1;              // full: layers in a row that keep one input
  std::optional<std::int64_t> layers;  // first layers of each stage; unset: all
};

// Precision has the types of the plan.
struct Precision {
  DataType type = DataType::kBf16;      // arithmetic of matmuls
  std::optional<DataType> weight_type;  // unset: `type`, or bf16 if that has one byte
  std::optional<DataType> activation_type;
  std::optional<DataType> communication_type;
  std::optional<DataType> dispatch_type;
  std::optional<DataType> combine_type;

  DataType activations() const { return activation_type.value_or(wide(type)); }
  DataType communicated() const { return communication_type.value_or(activations()); }
  DataType dispatched() const { return dispatch_type.value_or(communicated()); }
  DataType combined() const { return combine_type.value_or(activations()); }

  // Returns bf16 for types of one byte, and others as they are.
  static DataType wide(DataType type) { return size_of(type) == Bytes(1) ? DataType::kBf16 : type; }
};

// OverlapPlan says what travels while ranks compute.
struct OverlapPlan {
  bool pipeline = true;
  bool expert_parallel = false;  // backwards run with the forward behind them
  bool gradients = true;
  bool parameters = false;
};

// Which part of a model's vision is trained beside the text.
enum class VisionTraining : std::uint8_t { kAll, kProjector, kNone };
inline constexpr std::size_t kVisionTrainings = 3;
std::string_view name_of(VisionTraining training);  // "projector"

// TrainingPlan says what is trained, and by which optimizer.
struct TrainingPlan {
  Optimizer optimizer = Optimizer::kAdam;
  std::optional<std::int64_t> lora_rank;  // unset: all parameters are trained
  std::vector<AdapterPlace> lora_modules = Adapters{}.places;
  std::optional<DataType> frozen_type;  // of a block's frozen matrices; unset: weights()
  VisionTraining vision = VisionTraining::kAll;
};

// OffloadPlan says what lives in the memory of the hosts.
struct OffloadPlan {
  bool optimizer = false;
  bool activations = false;
  std::optional<std::int64_t> layers;  // first blocks of each chunk; unset: all
  bool copy_checkpoint = false;        // beside the step, to the host

  bool any() const { return optimizer || activations || copy_checkpoint; }
};

}  // namespace stepsim
