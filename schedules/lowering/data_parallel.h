// Data parallelism with whole layers on every replica: gradients are summed over the replicas in
// buckets, in the order in which the last backward completes them (Li et al., arXiv 2006.15704):
// all-reduced, or under ZeRO-1 reduce-scattered, so that each replica updates its part; then the
// updated parameters are gathered, and the next step waits for that.
//
// Where two ranks hold a copy of a stage each, the copies are replicas as well: of the first half
// of the stages in one communicator, of the second half in another, as each rank holds one of both
// and completes them in its own order.
//
// A table that first and last stage both hold (tied embeddings) is a bucket of its own on the
// stage that has a copy; the two copies' gradients are summed after the replicas'.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/lowering/stage.h"

namespace stepsim {

class DataParallel {
 public:
  explicit DataParallel(Stage& stage);

  // The gradients of a layer of this global stage are complete with the last compute op.
  void gradients_ready(const StageUnit& unit, std::int32_t stage);

  // Reduces what is left after the last backward; returns what the optimizer waits for.
  std::vector<Dependency> finish_gradients();

  // ZeRO-1: what other replicas have updated.
  void gather_parameters(OpRef optimizer);

 private:
  struct Bucket {
    std::int64_t parameters = 0;
    OpRef ready{};
    bool is_upper = false;  // of the second half of the stages, which has copies
    bool reduced = false;
  };
  struct Side {
    std::optional<CommunicatorId> gradients{};
    std::optional<CommunicatorId> parameters{};
    std::optional<StreamId> gradient_stream{};
    std::optional<StreamId> parameter_stream{};
    std::optional<Dependency> last_reduction{};
  };
  Side open_side(std::optional<CommunicatorId> gradients, std::optional<CommunicatorId> parameters,
                 const std::string& suffix);
  Side& side_of(const Bucket& bucket) { return sides_[bucket.is_upper ? 1 : 0]; }
  void reduce(Bucket& bucket);

  Stage& stage_;
  std::vector<Side> sides_;
  std::vector<Bucket> buckets_;  // the last one of each side may still be filled
};

}  // namespace stepsim
