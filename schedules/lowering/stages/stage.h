// Stage is the program of one pipeline rank while it is being written: the layers of its chunks,
// the plan, the streams that all parts share, and the dependencies of the next compute op. Each
// file beside this one adds one part of the plan:
//
//   tensor.h          collectives between the steps of a layer (before the program is written)
//   recompute.h       forward steps again before the backward (before the program is written)
//   stage_lowering.h  the order of the pipeline schedule, and the steps of each pass
//   pass.h            what a pass over a chunk is
//   pipeline.h        messages to and from the neighbouring stages
//   fully_sharded.h   FSDP: parameters gathered before a layer runs, gradients divided after
//   data_parallel.h   gradients reduced in buckets, parameters gathered after the optimizer
//   freed_gradients.h gradients that the optimizer frees and a backward makes again
//   optimizer.h       the optimizer step
//   post_validation.h the norm of all gradients, known only after it
//   offload.h         optimizer state and activations on the host

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/lowering/stages/graph_tables.h"
#include "schedules/lowering/steps/tensor.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/program/program_builder.h"

namespace stepsim {

// Returns the largest part of an even division (rounded up).
constexpr std::int64_t part_of(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}

// Returns the size of a buffer that holds `whole` and divides into equal parts: libraries pad the
// flat buffers of parameters and gradients so.
constexpr std::int64_t padded(std::int64_t whole, std::int64_t parts) {
  return parts * part_of(whole, parts);
}

// Labels of compute ops on the critical path: OpGraph::path_labels.
enum class PathLabel : std::uint32_t { kForward, kBackward, kRecompute, kOptimizer };

// What an op is of its step: OpLabel::part.
enum class StepPart : std::uint8_t {
  kPass,            // of forwards and backwards
  kWeightGradient,  // in a backward, what makes weight gradients and nothing else
  kOptimizer,       // behind all passes
};

// ReplicaGroups describes ranks that hold equal parameters: cp x dp, or edp for routed experts.
// `shards` of them divide the state; with hybrid sharding that is only a part of them.
struct ReplicaGroups {
  std::int64_t replicas = 1;
  std::int64_t shards = 1;
  std::optional<CommunicatorId> gradients{};   // all-reduce, or reduce-scatter over the shards
  std::optional<CommunicatorId> parameters{};  // gathers over the shards
  std::optional<CommunicatorId> across{};      // hybrid sharding: ranks with equal shards
};

// The communicators of the plan. Those that it does not use are unset.
struct PlanCommunicators {
  std::array<std::optional<CommunicatorId>, kLanes> lanes;  // by Lane
  std::optional<CommunicatorId> pipeline;
  std::vector<CommunicatorId> shared;  // as shared_weights()
  std::optional<CommunicatorId>
      norm;  // ranks whose gradients differ; with post-validation: of one stage
  ReplicaGroups dense;
  ReplicaGroups experts;
  // With two copies of each stage: the groups for the second half of the stages, because each rank
  // completes the two in its own order.
  ReplicaGroups upper_dense;
  ReplicaGroups upper_experts;
};

// StageUnit is a layer of a chunk.
struct StageUnit {
  const LoweredLayer* layer = nullptr;
  std::string name;  // "block"
  bool is_embedding = false;
  std::optional<std::int32_t> block{};  // index of the block in the model, if it is one
  std::int64_t tied_parameters = 0;     // that this layer reads and another layer owns
  bool waits_for_chunks = false;        // another chunk of the rank adds gradients to its weights

  // Returns the parameters that FSDP gathers for this layer, and those whose gradients it reduces.
  std::int64_t gathered(bool experts) const { return reduced(experts) + layer->frozen_of(experts); }
  std::int64_t reduced(bool experts) const {
    return layer->parameters_of(experts) + (experts ? 0 : tied_parameters);
  }
};

// HeldWeights are weights that other ranks of the pipeline hold too.
struct HeldWeights {
  std::string name;
  std::size_t number = 0;  // in PlanCommunicators::shared
  std::int64_t parameters = 0;
  std::int64_t sequence_parameters = 0;  // those of them in the S region
  bool is_copy = false;                  // another rank's layers count them
  const StageUnit* reader = nullptr;     // of a copy: the unit that reads it first
};

// StageChunk is a global stage of the pipeline that the rank holds, or a copy of one.
struct StageChunk {
  std::int32_t stage = 0;
  std::vector<StageUnit> units;
};

// PassFront is the state of a pass while it is written.
struct PassFront {
  std::vector<Dependency> waits{};  // of the pass's next compute op, or of the op that sends its
                                    // result
  Bytes unread{};                   // buffers of messages that the next compute op reads
  std::optional<OpRef> last_compute{};
};

struct Stage {
  const ParallelPlan& plan;
  const PlanCommunicators& communicators;
  const PipelineSchedule& schedule;
  const Posting* posting;  // nullptr: each message goes by itself
  GraphTables& tables;
  std::int32_t number = 0;  // rank in the pipeline
  std::vector<StageChunk> chunks;
  std::vector<Bytes> boundaries;  // bytes of a message behind each stage (message_size())
  Bytes boundary{};               // hidden values of a micro-batch, which tensor ranks may divide
  // Only a pass of inference has these: its weights, and what it keeps of the requests.
  Bytes weights{};
  Bytes cache{};
  std::vector<HeldWeights> shared{};
  ProgramBuilder builder;
  StreamId compute{};

  std::optional<std::uint32_t> pass{};  // name of the pass being written, in OpGraph::names
  StepPart part = StepPart::kPass;      // of what is being written
  std::optional<OpRef> first_compute{};
  // The two passes of a fused op are written alternately. All other passes use the first entry.
  std::array<PassFront, 2> fronts{};
  std::size_t writing = 0;  // index of the pass being written
  PassFront& front() { return fronts[writing]; }

  bool holds_first() const { return holds(0); }
  bool holds_last() const { return holds(stage_count(schedule) - 1); }
  bool holds(std::int32_t stage) const;
  // Returns whether another rank holds a copy, so that gradients are summed over both.
  bool has_copies() const { return schedule.placement == Placement::kBidirectional; }
  bool is_upper(std::int32_t stage) const {
    return has_copies() && stage >= stage_count(schedule) / 2;
  }

  std::int64_t parameters_of(bool experts) const;  // dense: includes copies of shared weights
  std::int64_t frozen_of(bool experts) const;
  // Returns the parameters that this rank's optimizer updates.
  std::int64_t updated_parameters() const;
  // Returns the parameters of the S region. Every tensor rank holds them, with gradients from its
  // own tokens. `parts`: number of parts that each layer is divided into.
  std::int64_t sequence_parameters(std::int64_t parts) const;
  const ReplicaGroups& groups(bool experts, bool upper = false) const {
    if (upper) return experts ? communicators.upper_experts : communicators.upper_dense;
    return experts ? communicators.experts : communicators.dense;
  }
  DataType gradient_type() const {
    return plan.update.gradient_bytes == 4 ? DataType::kFp32 : DataType::kBf16;
  }

  std::vector<Dependency> take_waits() { return std::exchange(front().waits, {}); }
  OpLabel label(const std::string& name, std::optional<std::int32_t> layer = {},
                std::optional<std::int32_t> microbatch = {}) {
    return label(tables.name(name), layer, microbatch, part);
  }
  OpLabel label(std::uint32_t name, std::optional<std::int32_t> layer,
                std::optional<std::int32_t> microbatch, StepPart of) const {
    return {.name = name,
            .layer = layer,
            .microbatch = microbatch,
            .pass = pass,
            .part = static_cast<std::uint8_t>(of)};
  }
  OpRef add_collective(StreamId stream, const CollectiveWork& work, Axis axis, OpLabel op_label,
                       std::vector<Dependency> dependencies);
};

}  // namespace stepsim
