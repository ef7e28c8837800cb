// StageLowering writes the program of one pipeline stage: the order of the pipeline schedule, each
// op unrolled into the steps of the stage's layers, and around them what the plan asks for.
//
// Streams of the program (only those that have ops):
//
//   compute                      kernels, one run after another
//   tp                           collectives that compute waits for
//   tp regather                  inputs gathered again beside the backward pass
//   receive/send activation      point to point, posted ahead: a receive is posted when the one
//   receive/send gradient        before it has arrived
//   dp gradients                 buckets of gradients, reduced while the backward pass goes on
//   dp parameters                ZeRO-1: gathers what the divided optimizer has updated
//   fsdp gather, fsdp reduce     FSDP (ZeRO-3): parameters of a layer before it runs, its
//                                gradients after
//
// A compute step waits for the tensor collective before it, for its layer's parameters under FSDP,
// and the first one of a pass for the message of the neighbouring stage.
//
// Memory: activations are kept from the forward to the end of the backward step that reads them,
// workspaces live while their step runs, message buffers from the post of the receive to the end
// of the step that reads them (sends: while they go).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/lowering/graph_tables.h"
#include "schedules/lowering/tensor.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/plan/parallel_plan.h"
#include "sim/program_builder.h"

namespace stepsim {

// On the critical path, compute counts as one of these: OpGraph::path_labels.
enum class PathLabel : std::uint32_t { kForward, kBackward, kOptimizer };

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

class StageLowering {
 public:
  StageLowering(const ParallelPlan& plan, std::int32_t stage, std::vector<StageUnit> units,
                const PlanCommunicators& communicators, GraphTables& tables);

  // `boundary`: bytes of a micro-batch's [tokens, hidden]. `tied_parameters`: of an embedding
  // table that the first and the last stage both hold; 0: none.
  Program build(const std::vector<PipelineOp>& order, Bytes boundary, std::int64_t tied_parameters,
                Bytes fixed_memory);

 private:
  struct Bucket {
    std::int64_t parameters = 0;
    OpRef ready;  // the compute op after which its gradients are complete
  };
  // What the next compute op has to wait for.
  struct Waits {
    std::vector<Dependency> now;
    std::optional<Dependency> detached;  // for the one after the next
    std::optional<OpRef> background;
  };

  void add_streams();
  void hold_state(std::int64_t tied_parameters, Bytes fixed_memory);
  void forward(std::int32_t microbatch);
  void backward(std::int32_t microbatch, bool last);
  void run_steps(const std::vector<LayerStep>& steps, const StageUnit& unit, PathLabel pass,
                 std::int32_t microbatch);
  void run_compute(const LayerStep& step, const StageUnit& unit, PathLabel pass,
                   std::int32_t microbatch);
  OpRef add_collective(StreamId stream, const CollectiveWork& work, Axis axis, OpLabel label,
                       std::vector<Dependency> dependencies);
  void gather_unit(const StageUnit& unit, std::int32_t microbatch);
  void finish_unit(const StageUnit& unit, bool is_backward, std::int32_t microbatch);
  void receive(bool gradient, std::int32_t microbatch);
  void send(bool gradient, std::int32_t microbatch);
  void fill_buckets(const StageUnit& unit);
  void reduce_bucket(const Bucket& bucket);
  void close_step(std::int64_t tied_parameters);
  std::int64_t parameters() const;
  DataType gradient_type() const;

  const ParallelPlan& plan_;
  std::int32_t stage_;
  std::vector<StageUnit> units_;
  const PlanCommunicators& communicators_;
  GraphTables& tables_;
  ProgramBuilder builder_;
  Bytes message_bytes_{};
  bool fsdp_;

  StreamId compute_;
  std::optional<StreamId> tensor_, tensor_regather_, gradients_, parameters_;
  std::optional<StreamId> receive_activation_, send_activation_, receive_gradient_, send_gradient_;

  Waits waits_;
  std::optional<OpRef> first_compute_;
  std::optional<OpRef> last_compute_;
  std::optional<OpRef> received_;  // the receive whose buffer the next compute op reads
  std::vector<OpRef> visits_;      // FSDP: last compute op of each visit of a layer
  std::vector<OpRef> gathers_;     // FSDP: by visit
  std::vector<Bucket> buckets_;
  std::vector<Dependency> reduced_;  // what the optimizer waits for
};

}  // namespace stepsim
