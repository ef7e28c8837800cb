// Gradients that the optimizer frees (OptimizerUpdate::free_gradients). A layer's are there from
// the first op of its first backward in a step to the end of the optimizer, so that the peak of the
// activations, where the first backward begins, has none of them. With ZeRO 2 and 3 they are this
// rank's part of them; what is whole until it is reduced is counted where that is done
// (data_parallel.h, fully_sharded.h).
//
// A table that the head shares is made with the head. Weights that blocks share are made with the
// block that owns them, whose backward comes last.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

class FreedGradients {
 public:
  explicit FreedGradients(Stage& stage) : stage_(stage) {}

  // Called before and after a visit that makes gradients of a layer.
  void enter() { before_visit_ = stage_.front().last_compute; }
  void leave(const StageUnit& unit);

  void free_after(OpRef optimizer);

 private:
  std::int64_t parameters_made(const StageUnit& unit);

  Stage& stage_;
  std::vector<const StageUnit*> made_;
  std::int64_t table_made_ = 0;  // parameters of a table whose gradient the head has made
  std::optional<OpRef> before_visit_;
  Bytes held_{};
};

}  // namespace stepsim
