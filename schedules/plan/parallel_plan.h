// ParallelPlan says how a training step is divided over ranks. Plan keys are those of the command
// line and of experiment files: docs/plan-keys.md.
//
//   ranks = tp x cp x dp x pp, numbered in `order`, innermost first:
//   with tp-cp-dp-pp, rank = tp + TP * (cp + CP * (dp + DP * pp))

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/schedule_name.h"
#include "sim/base/error.h"
#include "sim/chips/chip_spec.h"
#include "sim/chips/kernel.h"
#include "sim/network/places.h"
#include "workload/model_spec.h"

namespace stepsim {

enum class PlanAxis : std::uint8_t { kTensor, kContext, kData, kPipeline };
inline constexpr std::size_t kPlanAxes = 4;
std::string_view name_of(PlanAxis axis);  // "tp", "cp", "dp", "pp"

enum class Recompute : std::uint8_t {
  kNone,
  kSelective,  // the attention kernel
  kFull,       // whole blocks: only their inputs are kept
};
std::string_view name_of(Recompute recompute);  // "selective"

enum class Optimizer : std::uint8_t {
  kAdam,
  kNone,  // forward and backward only, as the closed forms count a step; no state
};
std::string_view name_of(Optimizer optimizer);  // "adam"

// An axis of the plan laid over levels of the cluster, innermost first: tp over torus axis x.
struct AxisMapping {
  PlanAxis axis = PlanAxis::kTensor;
  std::vector<std::string> levels;
};

struct ParallelPlan {
  std::int64_t tp = 1;
  std::int64_t cp = 1;  // only 1 so far
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t microbatch = 1;    // sequences
  std::int64_t global_batch = 0;  // sequences of a step
  std::int64_t sequence = 0;      // tokens of a sequence
  bool sequence_parallel = true;  // with tp > 1: tokens between the tensor-parallel parts divided
  std::vector<std::int64_t> layout;  // layers of each global stage; empty: equally many
  Recompute recompute = Recompute::kNone;
  int zero = 0;                     // 0: replicated; 1: optimizer state divided; 3: FSDP
  DataType type = DataType::kBf16;  // compute, weights, activations
  ScheduleName schedule = ScheduleName::kOneForwardOneBackward;
  std::optional<PipelineSchedule> own_schedule;  // from a file, instead of `schedule`
  std::int64_t chunks = 0;            // of the model on a rank; 0: as the schedule has by default
  std::int64_t microbatch_group = 0;  // interleaved: in turn on a chunk; 0: pp
  std::int64_t memory_limit = 0;      // planned by time: micro-batches x chunks; 0: the schedule's
  std::array<PlanAxis, kPlanAxes> order = {PlanAxis::kTensor, PlanAxis::kContext, PlanAxis::kData,
                                           PlanAxis::kPipeline};  // innermost first
  std::vector<AxisMapping> map;                                   // empty: rank r sits on chip r
  bool allow_idle_chips = false;

  std::int64_t gradient_bucket_parameters = 40'000'000;  // of one gradient reduction, dp overlapped
  int prefetch = 1;               // FSDP: layers gathered ahead of the one that computes
  bool overlap_gradients = true;  // reduce gradients while the backward pass goes on
  bool overlap_pipeline = true;   // messages between stages beside compute
  bool overlap_tensor = false;    // reduce-scatter of an input gradient beside the weight gradient
  Optimizer optimizer = Optimizer::kAdam;
  std::int64_t optimizer_bytes = 12;  // a parameter: fp32 master weight and two Adam moments
  std::int64_t gradient_bytes = 4;    // a parameter: gradients are accumulated and reduced in fp32

  std::int64_t ranks() const { return tp * cp * dp * pp; }
  std::int64_t microbatches() const { return global_batch / (dp * microbatch); }
  std::int64_t size_of(PlanAxis axis) const;
};

// Every problem of a plan for this model on these chips: sizes that are not positive, divisions
// that leave a rest, more ranks than chips, unknown or doubly used levels, values not supported.
std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model, const Places& places);

// The problems of a plan on this chip: a data type that it can't compute in.
std::vector<Problem> check(const ParallelPlan& plan, const ChipSpec& chip);

// Coordinate of `rank` along `axis`.
std::int64_t coordinate(const ParallelPlan& plan, std::int64_t rank, PlanAxis axis);

// The chip number of every rank. REQUIRES: check() is empty.
std::vector<std::uint32_t> place_ranks(const ParallelPlan& plan, const Places& places);

}  // namespace stepsim
