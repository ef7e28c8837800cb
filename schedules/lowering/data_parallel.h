// Data parallelism with whole layers on every replica: gradients are summed over the replicas in
// buckets, in the order in which the last backward completes them (Li et al., arXiv 2006.15704):
// all-reduced, or under ZeRO-1 reduce-scattered, so that each replica updates its part; then the
// updated parameters are gathered, and the next step waits for that.
//
// A table that first and last stage both hold (tied embeddings) is a bucket of its own on the
// stage that has a copy; the two copies' gradients are summed after the replicas'.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/lowering/stage.h"

namespace stepsim {

class DataParallel {
 public:
  explicit DataParallel(Stage& stage);

  // The gradients of a layer are complete with the last compute op.
  void gradients_ready(const StageUnit& unit);

  // Reduces what is left after the last backward; returns what the optimizer waits for.
  std::vector<Dependency> finish_gradients();

  // ZeRO-1: what other replicas have updated.
  void gather_parameters(OpRef optimizer);

 private:
  struct Bucket {
    std::int64_t parameters = 0;
    OpRef ready;
    bool reduced = false;
  };
  void reduce(Bucket& bucket);

  Stage& stage_;
  std::optional<StreamId> gradient_stream_;
  std::optional<StreamId> parameter_stream_;
  std::vector<Bucket> buckets_;
  std::vector<Dependency> done_;
};

}  // namespace stepsim
