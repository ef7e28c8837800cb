// ModelHabits says what a training software makes of any model, and of the recompute that a plan
// chooses (with_recompute_habits, schedules/plan/parallel_plan.h).
// schedules/plan/keys/software_fields.cc says what each key does.

#pragma once

#include <cstdint>

namespace stepsim {

struct ModelHabits {
  bool dropout = false;  // of models without a gated MLP: GPTs
  // Every tensor rank holds as many rows of the embedding: a multiple of this many.
  std::int64_t pads_vocabulary = 1;
  bool recomputes_as_needed = false;  // a full recompute leaves out a block's last matmul
  bool recomputes_cudnn = false;      // an alternate one keeps nothing of cuDNN's attention

  // Returns the rows of an embedding that so many tensor ranks divide.
  std::int64_t padded(std::int64_t vocabulary, std::int64_t ranks) const {
    const std::int64_t multiple = pads_vocabulary * ranks;
    return pads_vocabulary == 1 ? vocabulary : (vocabulary + multiple - 1) / multiple * multiple;
  }
};

}  // namespace stepsim
