// FSDP, ZeRO stage 3 (Rajbhandari et al., arXiv 1910.02054; Zhao et al., arXiv 2304.11277), layer
// by layer: parameters are gathered before each pass over a layer and let go after it; gradients
// are reduced and divided after its backward, every micro-batch.
//
// At most 1 + prefetch layers are gathered at a time: a gather waits for the end of the visit of a
// layer before those. At most two layers have gradients that are not reduced yet: a backward waits
// for the reduction of the layer before the last one.
//
// Without reshard_after_forward a layer is gathered by its first forward of a step and let go after
// its last backward: one gather a step, whatever the number of micro-batches, and the whole stage's
// weights in memory.
//
// With hybrid sharding layers are gathered and reduced within a group of replicas, and the divided
// gradients are summed over the groups after the last backward of a layer. Experts have replicas of
// their own (edp), so gathers and reductions of their own too; where there is one replica only,
// nothing is divided. A tied table is gathered for both of its layers, and reduced after both.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/lowering/stage.h"

namespace stepsim {

// How a pass uses a layer. Weight gradients alone (W) read no parameters; input gradients alone (B)
// make no weight gradients.
struct LayerVisit {
  bool reads_parameters = true;
  bool makes_gradients = false;
};

class FullySharded {
 public:
  explicit FullySharded(Stage& stage);

  // Before the steps of a pass over a layer; after them. `is_last`: the last pass over it.
  void enter(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch);
  void leave(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch, bool is_last);

  // The ops that the optimizer waits for. Then, once the optimizer is written: the first gathers of
  // the next step wait for it.
  std::vector<Dependency> reduced() const;
  void before_next_step(OpRef optimizer);

 private:
  // The parameters that have the same replicas.
  struct Part {
    const ReplicaGroups* groups = nullptr;
    bool experts = false;
    StreamId gather_stream{};
    StreamId reduce_stream{};
    std::optional<StreamId> across_stream{};
    std::vector<std::optional<OpRef>> gathers{};  // by visit of a layer that reads them
    std::vector<OpRef> reductions{};
    std::optional<OpRef> last_across{};
  };
  void gather(Part& part, const StageUnit& unit, std::int32_t microbatch);
  void reduce(Part& part, const StageUnit& unit, std::int32_t microbatch, bool is_last);
  Bytes weights(const Part& part, const StageUnit& unit) const;

  Stage& stage_;
  std::vector<Part> parts_;
  std::vector<OpRef> last_of_visit_;        // compute ops
  std::vector<const StageUnit*> gathered_;  // without resharding: those that are gathered
  std::optional<OpRef> before_visit_;       // last compute op before the visit that is open
};

}  // namespace stepsim
