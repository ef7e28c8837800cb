// Data parallelism with whole layers on every replica: gradients are summed over the replicas in
// buckets, in the order in which the backward completes them (Li et al., arXiv 2006.15704).
//
//   zero 0   all-reduced after the last backward of a bucket
//   zero 1   reduce-scattered, so that each replica updates its part; then the updated parameters
//            are gathered, and the next step waits for that: its first op for all of them, or, with
//            overlap_parameters, each layer for its own bucket
//   zero 2   as 1, but after every micro-batch, so that only a part of the gradients is held. At
//            most two buckets are whole at a time: a backward waits for the reduction before that
//
// With hybrid sharding the parts are divided within a group of replicas, and summed over the groups
// after the last micro-batch. Experts have replicas of their own (edp), so buckets and streams of
// their own too.
//
// If two ranks hold a copy of each stage, the copies are replicas as well. The first half of the
// stages uses one communicator and the second half another, because each rank holds a stage of each
// half and completes the two in its own order.
//
// A copy of weights that another rank of the pipeline owns is a bucket of its own.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/lowering/stages/offload.h"
#include "schedules/lowering/stages/stage.h"

namespace stepsim {

class DataParallel {
 public:
  explicit DataParallel(Stage& stage);

  // Called before a pass makes the weight gradients of a layer, for any micro-batch.
  void enter(const StageUnit& unit);
  // The gradients are complete with the last compute op. `is_last`: they are the step's last for
  // this layer.
  void leave(const StageUnit& unit, std::int32_t stage, bool is_last);
  // Called when the pass over a chunk has no further layer.
  void end_pass(std::int32_t stage);

  // Called when the next compute op begins the forward of a layer.
  void forward_begins(const StageUnit& unit);

  // Reduces the gradients that are left after the last backward. Returns the ops that the optimizer
  // waits for.
  std::vector<Dependency> finish_gradients();

  // Returns the buckets in the order in which their gradients of the step are complete. REQUIRES:
  // finish_gradients() has been called.
  const std::vector<CompleteGradients>& complete() const { return complete_; }

  // For ZeRO-1 and 2: gathers the parameters that other replicas have updated.
  void gather_parameters(OpRef optimizer);

 private:
  struct Bucket {
    std::int64_t parameters = 0;
    std::int64_t divided = 0;  // one shard's share of each layer
    std::vector<const StageUnit*> units{};
    OpRef ready{};
    bool is_last = false;
    bool reduced = false;
  };
  // Part holds the parameters that have the same replicas.
  struct Part {
    const ReplicaGroups* groups = nullptr;
    bool experts = false;
    bool upper = false;  // belongs to the second half of the stages
    std::optional<StreamId> gradient_stream{};
    std::optional<StreamId> across_stream{};
    std::optional<StreamId> parameter_stream{};
    std::vector<Bucket> buckets{};       // buckets of the current pass
    std::vector<Bucket> last_buckets{};  // buckets of the last pass
    std::vector<OpRef> reductions{};     // all reductions so far; zero 2 only
    std::vector<Dependency> done{};
  };
  struct FirstForward {
    const StageUnit* unit;
    OpRef op;
  };

  void reduce(Part& part, Bucket& bucket);
  void end_pass(Part& part);
  void hold_whole_gradients(Part& part, std::int64_t parameters);

  Stage& stage_;
  std::vector<Part> parts_;
  std::vector<CompleteGradients> complete_;
  std::vector<FirstForward> first_forwards_;
  std::optional<OpRef> before_backward_;  // last compute op before the open backward
};

}  // namespace stepsim
