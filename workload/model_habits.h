// What a training software makes of any model: a part of what layers are built from.
// schedules/plan/software_fields.cc says what each key does.

#pragma once

#include <cstdint>

namespace stepsim {

struct ModelHabits {
  bool dropout = false;  // of models without a gated MLP: GPTs
  // Every tensor rank holds as many rows of the embedding: a multiple of this many.
  std::int64_t pads_vocabulary = 1;

  // Returns the rows of an embedding that so many tensor ranks divide.
  std::int64_t padded(std::int64_t vocabulary, std::int64_t ranks) const {
    const std::int64_t multiple = pads_vocabulary * ranks;
    return pads_vocabulary == 1 ? vocabulary : (vocabulary + multiple - 1) / multiple * multiple;
  }
};

}  // namespace stepsim
