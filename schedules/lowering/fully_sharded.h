// FSDP, ZeRO stage 3 (Rajbhandari et al., arXiv 1910.02054; Zhao et al., arXiv 2304.11277), layer
// by layer: parameters are gathered before each pass over a layer and let go after it; gradients
// are reduced and divided after its backward, every micro-batch.
//
// At most 1 + prefetch layers are gathered at a time: a gather waits for the end of the visit of a
// layer before those. At most two layers have gradients that are not reduced yet: a backward waits
// for the reduction of the layer before the last one.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/lowering/stage.h"

namespace stepsim {

// What a pass does with a layer: weight gradients alone (W) read no parameters, input gradients
// alone (B) make none.
struct LayerVisit {
  bool reads_parameters = true;
  bool makes_gradients = false;
};

class FullySharded {
 public:
  explicit FullySharded(Stage& stage);

  // Before the steps of a pass over a layer; after them.
  void enter(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch);
  void leave(const StageUnit& unit, const LayerVisit& visit, std::int32_t microbatch);

  // What the optimizer waits for; and what waits for it: the first gathers of the next step.
  std::vector<Dependency> reduced() const;
  void before_next_step(OpRef optimizer);

 private:
  void gather(const StageUnit& unit, std::int32_t microbatch);

  Stage& stage_;
  StreamId gather_stream_;
  StreamId reduce_stream_;
  std::vector<OpRef> gathers_;         // by visit of a layer that reads its parameters
  std::vector<OpRef> last_of_visit_;   // compute ops
  std::vector<OpRef> reductions_;      // by backward visit
  std::optional<OpRef> before_visit_;  // last compute op before the visit that is open
};

}  // namespace stepsim
