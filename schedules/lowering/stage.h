// Stage is the program of one rank of the pipeline while it is written: the layers of its chunks,
// the plan, the streams that every part shares, and what the next compute op has to wait for. The
// files beside this one each add what one part of the plan asks for:
//
//   tensor.h          collectives between the steps of a layer (before the program is written)
//   recompute.h       forward steps again before the backward (before the program is written)
//   stage_lowering.h  the order of the pipeline schedule, and the steps of each pass
//   pipeline.h        messages to and from the neighbouring stages
//   fully_sharded.h   FSDP: parameters gathered before a layer runs, gradients divided after
//   data_parallel.h   gradients reduced in buckets, parameters gathered after the optimizer
//   optimizer.h       the optimizer step

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/lowering/graph_tables.h"
#include "schedules/lowering/tensor.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/program_builder.h"

namespace stepsim {

// On the critical path, compute counts as one of these: OpGraph::path_labels.
enum class PathLabel : std::uint32_t { kForward, kBackward, kRecompute, kOptimizer };

// Communicators of the plan; those that it does not use are not there.
struct PlanCommunicators {
  std::optional<CommunicatorId> tensor;
  std::optional<CommunicatorId> tensor_backward;  // of backwards beside forwards: fused ops
  std::optional<CommunicatorId> tensor_regather;
  std::optional<CommunicatorId> pipeline;
  std::optional<CommunicatorId> gradients;   // dp x cp
  std::optional<CommunicatorId> parameters;  // dp x cp: ZeRO-1 and FSDP gathers
  // Two copies of each stage: the same for the second half of the stages.
  std::optional<CommunicatorId> upper_gradients;
  std::optional<CommunicatorId> upper_parameters;
  std::optional<CommunicatorId> tied_embedding;
};

// A layer of a chunk.
struct StageUnit {
  const LoweredLayer* layer = nullptr;
  std::string name;          // "block"
  std::int32_t number = -1;  // of a block in the model
};

// A global stage of the pipeline that the rank holds, or its copy of one.
struct StageChunk {
  std::int32_t stage = 0;
  std::vector<StageUnit> units;
};

struct Stage {
  const ParallelPlan& plan;
  const PlanCommunicators& communicators;
  const PipelineSchedule& schedule;
  GraphTables& tables;
  std::int32_t number = 0;  // of the rank in the pipeline
  std::vector<StageChunk> chunks;
  Bytes boundary{};                  // of a micro-batch's [tokens, hidden]
  std::int64_t tied_parameters = 0;  // of an embedding table that this rank and another both hold
  bool shares_table = false;         // its first and its last chunk have one table
  ProgramBuilder builder;
  StreamId compute{};

  // Of the pass that is being written: what its next compute op has to wait for, or what sends its
  // result; and the buffers of messages that the op reads.
  std::vector<Dependency> waits{};
  Bytes unread{};
  std::optional<OpRef> first_compute{};
  std::optional<OpRef> last_compute{};

  bool holds_first() const { return holds(0); }
  bool holds_last() const { return holds(stage_count(schedule) - 1); }
  bool holds(std::int32_t stage) const;
  // Its gradients are summed with those of another rank's copy.
  bool has_copies() const { return schedule.placement == Placement::kBidirectional; }
  bool is_upper(std::int32_t stage) const {
    return has_copies() && stage >= stage_count(schedule) / 2;
  }

  // Holds a copy of an embedding table that is not among its own layers.
  bool copies_table() const { return tied_parameters > 0 && !holds_first(); }
  std::int64_t parameters() const;  // with that copy
  std::int64_t replicas() const { return plan.dp * plan.cp * (has_copies() ? 2 : 1); }
  DataType gradient_type() const {
    return plan.gradient_bytes == 4 ? DataType::kFp32 : DataType::kBf16;
  }

  std::vector<Dependency> take_waits() { return std::exchange(waits, {}); }
  OpLabel label(const std::string& name, std::int32_t layer = -1, std::int32_t microbatch = -1) {
    return {.name = tables.name(name), .layer = layer, .microbatch = microbatch};
  }
  OpRef add_collective(StreamId stream, const CollectiveWork& work, Axis axis, OpLabel op_label,
                       std::vector<Dependency> dependencies);
};

}  // namespace stepsim
