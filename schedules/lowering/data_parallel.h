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
// Where two ranks hold a copy of a stage each, the copies are replicas as well: of the first half
// of the stages in one communicator, of the second half in another, as each rank holds one of both
// and completes them in its own order.
//
// A table that first and last stage both hold (tied embeddings) is a bucket of its own on the
// stage that has a copy.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/lowering/offload.h"
#include "schedules/lowering/stage.h"

namespace stepsim {

class DataParallel {
 public:
  explicit DataParallel(Stage& stage);

  // Around a pass that makes the weight gradients of a layer with any micro-batch.
  void enter(const StageUnit& unit);
  // They are complete with the last compute op. `is_last`: those of the step are.
  void leave(const StageUnit& unit, std::int32_t stage, bool is_last);
  // The pass over a chunk has no further layer.
  void end_pass(std::int32_t stage);

  // A forward of a layer begins with the next compute op.
  void forward_begins(const StageUnit& unit);

  // Reduces the gradients that are left after the last backward. Returns the ops that the optimizer
  // waits for.
  std::vector<Dependency> finish_gradients();

  // Buckets in the order in which their gradients of the step are complete: after
  // finish_gradients().
  const std::vector<CompleteGradients>& complete() const { return complete_; }

  // ZeRO-1 and 2: gathers the parameters that other replicas have updated.
  void gather_parameters(OpRef optimizer);

 private:
  struct Bucket {
    std::int64_t parameters = 0;
    std::int64_t divided = 0;  // one shard's part of each layer
    std::vector<const StageUnit*> units{};
    OpRef ready{};
    bool is_last = false;
    bool reduced = false;
  };
  // The parameters that have the same replicas.
  struct Part {
    const ReplicaGroups* groups = nullptr;
    bool experts = false;
    bool upper = false;  // of the second half of the stages
    std::optional<StreamId> gradient_stream{};
    std::optional<StreamId> across_stream{};
    std::optional<StreamId> parameter_stream{};
    std::vector<Bucket> buckets{};       // of the pass that goes on
    std::vector<Bucket> last_buckets{};  // of the last pass
    std::vector<OpRef> reductions{};     // every one, zero 2
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
  std::optional<OpRef> before_backward_;  // last compute op before the backward that is open
};

}  // namespace stepsim
