// ParallelPlan says how a training step is divided over ranks. Plan keys are those of the command
// line and of experiment files: docs/plan-keys.md.
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
#include "workload/adapters.h"
#include "workload/inference.h"
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

// The modules that recompute = selective repeats: schedules/lowering/recompute.h.
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
};
inline constexpr std::size_t kOptimizers = 2;
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

// What the host launches as one graph, at the cost of one launch.
enum class CudaGraphs : std::uint8_t {
  kNone,
  kBlocks,  // what has a fixed shape in each pass over a block
  kStep,    // all of the step
};
inline constexpr std::size_t kCudaGraphs = 3;
std::string_view name_of(CudaGraphs graphs);  // "blocks"

// What a plan computes: a training step, or a pass of inference.
enum class Inference : std::uint8_t {
  kNone,     // training
  kPrefill,  // prompts, or further tokens of them
  kDecode,   // the next token of each request
};
inline constexpr std::size_t kInferences = 3;
std::string_view name_of(Inference inference);  // "decode"

// By what the tensor group divides the cache.
enum class CacheSplit : std::uint8_t {
  kHeads,     // some key-value heads of all requests
  kRequests,  // all heads of some requests
};
inline constexpr std::size_t kCacheSplits = 2;
std::string_view name_of(CacheSplit split);  // "requests"

// AxisMapping lays an axis of the plan over levels of the cluster, innermost first: tp over torus
// axis x.
struct AxisMapping {
  PlanAxis axis = PlanAxis::kTensor;
  std::vector<std::string> levels;
};

// ParallelPlan holds the keys. plan_fields.cc says what each key does, its limits and when to
// change it, and is where a new key is declared.
struct ParallelPlan {
  // ---- ranks and batch ----
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t global_batch = 0;     // sequences per step
  std::int64_t sequence = 0;         // tokens per sequence
  std::int64_t document_length = 0;  // tokens; 0: each sequence is one document
  std::int64_t microbatch_size = 1;  // sequences
  std::array<PlanAxis, kPlanAxes> order = {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData,
                                           PlanAxis::kPipeline};  // innermost first
  std::vector<AxisMapping> map;                                   // empty: rank r sits on chip r
  bool allow_idle_chips = false;
  // Chips of each node or rack that have ranks; unset: domain_share() chooses.
  std::optional<std::int64_t> chips_per_domain;

  // ---- inference: inference_plan.h ----
  Inference inference = Inference::kNone;
  std::int64_t context = 0;         // tokens of each request after the pass; 0: not given
  std::int64_t prefill_tokens = 0;  // new tokens of one more request, beside those that generate
  std::int64_t prefill_context = 0;
  std::optional<DataType> cache_type{};  // unset: the activations' type
  CacheSplit cache_split = CacheSplit::kHeads;
  std::int64_t ffn_chips = 0;  // chips of the routed experts alone; 0: experts are in the mesh
  std::int64_t pass_microbatches = 1;  // parts of a pass that take turns on both kinds of chips
  std::optional<DataType> expert_weight_type{};  // unset: as other weights
  std::optional<DataType> expert_type{};       // in which experts compute; unset: as other matmuls
  double expert_spread = 1;                    // the most popular expert over the least
  std::optional<RequestBatch> own_requests{};  // of a replica, instead of what the keys say

  // ---- tensor and context ranks ----
  bool sequence_parallel = true;
  std::int64_t tensor_chunks = 1;
  std::int64_t tensor_pieces = 1;
  bool overlap_tensor = false;
  std::int64_t tensor_width = 1;  // ranks of tp that divide the model's width
  ContextMode cp_mode = ContextMode::kZigzagRing;

  // ---- pipeline ----
  ScheduleName schedule = ScheduleName::kOneForwardOneBackward;
  std::optional<PipelineSchedule> own_schedule;  // from a file, instead of `schedule`
  std::string schedule_file;                     // that file's path
  bool optimal_schedule = false;                 // searched for, instead of `schedule`
  std::optional<std::int64_t> chunks;            // unset: the schedule's default
  std::vector<std::int64_t> layout;              // layers of each global stage; empty: equally many
  bool balanced = false;                         // layout=balanced, which loading works out
  std::optional<std::int64_t> microbatch_group;  // micro-batches; unset: the schedule's
  std::optional<std::int64_t> memory_limit;      // micro-batches x chunks; unset: the schedule's
  bool overlap_pipeline = true;
  bool scatter_messages = false;  // each tensor rank sends a share, gathered behind (no ranks of
                                  // sequence_parallel, which hold shares anyway)
  bool batch_p2p = false;  // messages in batches, as the schedule's runtime posts them (posting.h)

  // ---- experts ----
  Dispatch dispatch = Dispatch::kAllToAll;
  std::optional<std::int64_t> expert_node;  // ranks of ep in one node; unset: as in the cluster
  std::optional<std::int64_t> node_limit;   // most nodes of one token; unset: any number
  bool overlap_expert_parallel = false;     // backwards run with the forward behind them
  bool overlap_shared_experts = false;
  bool grouped_experts = true;
  bool sort_copies = false;
  bool mask_dispatch = false;

  // ---- data parallelism ----
  int zero = 0;                       // 0: replicated; 1: optimizer state; 2: gradients; 3: FSDP
  std::optional<std::int64_t> shard;  // replicas that divide the state; unset: all cp x dp
  std::optional<std::int64_t> gradient_bucket_parameters;  // unset: see bucket_parameters()
  bool overlap_gradients = true;
  bool overlap_parameters = false;
  int prefetch = 1;  // FSDP: layers gathered ahead of the computing layer
  bool reshard_after_forward = true;
  bool save_gathered = false;  // FSDP: what forwards gathered stays for their backwards
  bool keep_root = false;  // FSDP: the embedding's gathered weights stay until the backward ends
  bool shared_master = false;  // FSDP: the divided fp32 weights are the master weights
  bool fsdp_copies = false;    // into and out of the buffers of its collectives

  // ---- recompute ----
  Recompute recompute = Recompute::kNone;
  std::vector<RecomputeModule> recompute_modules = {RecomputeModule::kAttention};  // selective
  std::vector<KeptResult> recompute_keep{};      // all_but: at least one
  std::int64_t recompute_block = 1;              // full: layers in a row that keep one input
  std::optional<std::int64_t> recompute_layers;  // first layers of each stage; unset: all

  // ---- types and kernels ----
  DataType type = DataType::kBf16;      // arithmetic of matmuls
  std::optional<DataType> weight_type;  // unset: `type`, or bf16 if that has one byte
  std::optional<DataType> activation_type;
  std::optional<DataType> communication_type;
  std::optional<DataType> dispatch_type;
  std::optional<DataType> combine_type;
  std::optional<DataType> activation_input_type;
  std::optional<std::int64_t> scale_block;  // values that share an fp32 scale; unset: a tensor
  bool scale_rows = false;                  // a scale a row
  bool current_scaling = false;
  bool gather_narrow = false;
  bool round_weights = false;
  bool keep_narrow_weights = false;
  std::optional<std::int64_t> attention_result_bits;  // unset: the activations' type
  bool transpose_weights = false;
  bool transpose_operands = false;
  bool fused_attention = true;
  std::optional<AttentionLibrary> attention_library;  // unset: the chip's usual one
  std::string software;  // whose defaults hold (catalog/software); empty: none's
  bool fused_elementwise = true;
  bool eager_elementwise = false;
  bool eager_gate = false;   // the activation of a gated MLP and its product alone are so
  bool copy_inputs = false;  // each matmul that tensor ranks divide by columns has its input's copy
  LossKernels loss = LossKernels::kFused;
  bool hold_logits = false;        // their fp32 copy stays until the loss has run backward
  std::int64_t metric_losses = 0;  // cross entropies beside the loss, for figures that are logged
  bool gradient_placeholders = false;
  std::int64_t sm_margin = 0;  // units of the chip that kernels leave to communication

  // ---- launches by the host ----
  std::optional<Duration> host_launch_cost;  // of one launch; unset: launching costs nothing
  std::int64_t host_queue_depth = 1024;      // launches
  CudaGraphs cuda_graphs = CudaGraphs::kNone;
  bool host_reads_counts = true;  // of the tokens of each expert

  // ---- optimizer, and what lives on the host ----
  std::optional<std::int64_t> lora_rank;  // unset: all parameters are trained
  std::vector<AdapterPlace> lora_modules = Adapters{}.places;
  std::optional<DataType> frozen_type;  // of a block's frozen matrices; unset: weights()
  Optimizer optimizer = Optimizer::kAdam;
  std::int64_t optimizer_bytes = 12;         // per parameter
  std::int64_t optimizer_scratch_bytes = 0;  // per parameter that it updates, while it runs
  std::int64_t gradient_bytes = 4;           // per parameter
  bool separate_accumulation = false;
  bool hold_gradients = true;   // false: each is used up as soon as it is reduced
  bool free_gradients = false;  // by the optimizer; the next backward makes them again
  bool clip_gradients = false;
  bool post_validation = false;
  bool offload_optimizer = false;
  bool host_optimizer = false;
  bool offload_activations = false;
  std::optional<std::int64_t> offload_layers;  // first blocks of each chunk; unset: all
  bool copy_checkpoint = false;                // beside the step, to the host

  // Returns the bytes a parameter of the gradients that are held: sums, and if they are added up by
  // kernels of their own, those of a micro-batch beside them.
  std::int64_t held_gradient_bytes() const {
    return gradient_bytes + (separate_accumulation ? stepsim::size_of(DataType::kBf16).value() : 0);
  }
  bool is_inference() const { return inference != Inference::kNone; }
  bool splits_ffn() const { return ffn_chips > 0; }
  std::int64_t mesh_ranks() const { return tp * cp * dp * pp; }
  std::int64_t ranks() const { return mesh_ranks() + ffn_chips; }
  std::int64_t microbatches() const { return global_batch / (dp * microbatch_size); }
  // Returns the tokens of a micro-batch on a context rank.
  std::int64_t tokens() const {
    return own_requests ? tokens_of_chip(*own_requests, cp, 1)
                        : microbatch_size * (sequence / cp) + prefill_tokens;
  }
  std::int64_t replicas() const { return cp * dp; }
  std::int64_t sharded_over() const { return shard.value_or(replicas()); }
  std::int64_t edp() const { return splits_ffn() ? 1 : tp * cp * dp / (etp * ep); }
  std::int64_t size_of(PlanAxis axis) const;
  std::int64_t size_of(ExpertAxis axis) const;
  // Training holds weights of one byte in 16 bits too; what is served was made narrow before.
  DataType weights() const { return weight_type.value_or(is_inference() ? type : wide(type)); }
  DataType activations() const { return activation_type.value_or(wide(type)); }
  DataType cached() const { return cache_type.value_or(activations()); }
  DataType communicated() const { return communication_type.value_or(activations()); }
  // Whether anything is copied to the host.
  bool offloads() const { return offload_optimizer || offload_activations || copy_checkpoint; }
  DataType dispatched() const { return dispatch_type.value_or(communicated()); }
  DataType combined() const { return combine_type.value_or(activations()); }
  // Whether operands of matmuls have scales for rows or for blocks of them.
  bool scales_rows() const { return scale_block || scale_rows || block_scales_of(type); }
  // REQUIRES: lora_rank.
  Adapters adapters() const {
    return {.rank = *lora_rank, .places = lora_modules, .frozen = frozen_type};
  }
  // Whether ops wait until the host has launched them.
  bool is_launched() const { return host_launch_cost && cuda_graphs != CudaGraphs::kStep; }
  bool divides_tokens() const { return sequence_parallel && tp > 1; }
  bool divides_width() const { return tensor_width > 1; }
  // Megatron Core's rule: rings of many replicas pass large enough pieces on.
  std::int64_t bucket_parameters() const {
    return gradient_bucket_parameters.value_or(dp <= 40 ? 40'000'000 : 1'000'000 * dp);
  }
  bool scatters_messages() const {
    return scatter_messages && tp > 1 && pp > 1 && !sequence_parallel && !divides_width();
  }

 private:
  static DataType wide(DataType type);
};

// Returns every problem of a plan for this model on these chips: sizes that are not positive,
// divisions with a remainder, more ranks than chips, unknown levels or levels used twice,
// unsupported values.
std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places);

// Returns the problems that the plan has with any model on these chips.
std::vector<Problem> check_without_model(const ParallelPlan& plan, const Places& places);

// Returns the problems of a plan on this chip: data types that it cannot compute in.
std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip);

// Returns the schedule's name: "1f1b", "optimal", "own schedule".
std::string_view schedule_text(const ParallelPlan& plan);

// Returns the coordinate of `rank` along `axis`.
std::int64_t coordinate(const ParallelPlan& plan, std::int64_t rank, PlanAxis axis);
std::int64_t coordinate(const ParallelPlan& plan, std::int64_t rank, ExpertAxis axis);

// Returns the number of `rank` among the tp x cp x dp ranks of its stage, in the plan's order.
std::int64_t number_in_stage(const ParallelPlan& plan, std::int64_t rank);

// Returns the chip number of every rank. REQUIRES: check() is empty.
std::vector<std::uint32_t> place_ranks(const ParallelPlan& plan, const Places& places);

}  // namespace stepsim
