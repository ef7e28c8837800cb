// Stage is the program of one pipeline stage while it is written: its layers, the plan, the streams
// that every part shares, and what the next compute op has to wait for. The files beside this one
// each add what one part of the plan asks for:
//
//   tensor.h          collectives between the steps of a layer (before the program is written)
//   recompute.h       forward steps again before the backward (before the program is written)
//   stage_lowering.h  the order of micro-batches, and the steps of each pass
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
#include "schedules/plan/parallel_plan.h"
#include "sim/program_builder.h"

namespace stepsim {

// On the critical path, compute counts as one of these: OpGraph::path_labels.
enum class PathLabel : std::uint32_t { kForward, kBackward, kRecompute, kOptimizer };

// Communicators of the plan; those that it does not use are not there.
struct PlanCommunicators {
  std::optional<CommunicatorId> tensor;
  std::optional<CommunicatorId> tensor_regather;
  std::optional<CommunicatorId> pipeline;
  std::optional<CommunicatorId> gradients;   // dp x cp
  std::optional<CommunicatorId> parameters;  // dp x cp: ZeRO-1 and FSDP gathers
  std::optional<CommunicatorId> tied_embedding;
};

// A layer of the stage.
struct StageUnit {
  const LoweredLayer* layer = nullptr;
  std::string name;          // "block"
  std::int32_t number = -1;  // of a block in the model
};

struct Stage {
  const ParallelPlan& plan;
  const PlanCommunicators& communicators;
  GraphTables& tables;
  std::int32_t number = 0;
  std::vector<StageUnit> units;
  Bytes boundary{};                  // of a micro-batch's [tokens, hidden]
  std::int64_t tied_parameters = 0;  // of an embedding table that first and last stage both hold
  ProgramBuilder builder;
  StreamId compute{};

  std::vector<Dependency> waits{};  // of the next compute op, or of what sends its result
  std::optional<OpRef> first_compute{};
  std::optional<OpRef> last_compute{};

  bool is_first() const { return number == 0; }
  bool is_last() const { return number + 1 == plan.pp; }

  // Holds a copy of an embedding table that is not among its own layers.
  bool copies_table() const { return tied_parameters > 0 && !is_first(); }
  std::int64_t parameters() const;  // with that copy
  std::int64_t replicas() const { return plan.dp * plan.cp; }
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
