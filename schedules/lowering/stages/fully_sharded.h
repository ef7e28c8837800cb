// FSDP, ZeRO stage 3 (Rajbhandari et al., arXiv 1910.02054; Zhao et al., arXiv 2304.11277), layer
// by layer. Parameters are gathered before each pass over a layer and released after it. Gradients
// are reduced and divided after each backward of a layer, in every micro-batch.
//
// At most 1 + prefetch layers are gathered at a time: a gather waits until the layer that many
// places earlier has been visited. At most two layers have gradients that are not reduced yet: a
// backward waits for the reduction of the layer before the last one, or, without
// overlap_gradients, of the last one, so that nothing computes beside a reduction.
//
// Without reshard_after_forward a layer is gathered by its first forward of a step and released
// after its last backward. That is one gather per step for any number of micro-batches, and the
// whole stage's weights stay in memory.
//
// With save_gathered what a forward gathered of a layer stays until the layer's backward of that
// micro-batch ends, beside what the backward gathers. Layers whose forward is repeated keep
// nothing, nor do lookups in a table.
//
// With keep_root the same holds for the embedding, unless the head shares its table: PyTorch's
// outermost unit is gathered as one, for the forward and for the backward, and holds the embedding,
// the last norm and the head.
//
// With hybrid sharding layers are gathered and reduced within a group of replicas. The divided
// gradients are summed over the groups after the last backward of a layer. Experts have replicas of
// their own (edp), so they have gathers and reductions of their own too. Nothing is divided where
// there is only one replica. A tied table is gathered for both of its layers and reduced after
// both.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

// LayerVisit says how a pass uses a layer. A pass for weight gradients alone (W) reads no
// parameters. A pass for input gradients alone (B) makes no weight gradients.
struct LayerVisit {
  bool reads_parameters = true;
  bool makes_gradients = false;
  bool is_forward = false;  // and its results are kept for a backward
};

class FullySharded {
 public:
  explicit FullySharded(Stage& stage);

  // Called before and after the steps of a pass over a layer. `is_last`: this is the last pass over
  // it.
  void enter(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch);
  void leave(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch, bool is_last);

  // reduced() returns the ops that the optimizer waits for. Call the next one once the optimizer is
  // written: the first gathers of the next step wait for the optimizer.
  std::vector<Dependency> reduced() const;
  void before_next_step(OpRef optimizer);

 private:
  // Part holds the parameters that have the same replicas.
  struct Part {
    const ReplicaGroups* groups = nullptr;
    bool experts = false;
    StreamId gather_stream{};
    StreamId reduce_stream{};
    std::optional<StreamId> across_stream{};
    std::vector<std::optional<OpRef>> gathers{};  // by number of the visit that reads the layer
    std::vector<OpRef> reductions{};
    std::optional<OpRef> last_across{};
  };
  void gather(Part& part, const StageUnit& unit, std::int32_t microbatch);
  void reduce(Part& part, const StageUnit& unit, std::int32_t microbatch, bool is_last);
  Bytes weights(const Part& part, const StageUnit& unit) const;
  // Returns how many times gathered weights are let go at the end of a visit.
  int let_go(const StageUnit& unit, const LayerVisit& visit, bool is_last) const;

  Stage& stage_;
  std::vector<Part> parts_;
  std::vector<OpRef> last_of_visit_;        // the last compute op of each visit
  std::vector<const StageUnit*> gathered_;  // without resharding: the layers that are gathered
  const StageUnit* root_ = nullptr;         // of keep_root
  std::optional<OpRef> before_visit_;       // last compute op before the open visit
};

}  // namespace stepsim
