#include "proto/hugging_face/hugging_face_families.h"

#include <algorithm>
#include <vector>

#include "proto/hugging_face/families.h"

namespace stepsim {

std::span<const HuggingFaceFamily> hugging_face_families() {
  static const std::vector<HuggingFaceFamily> kAll = [] {
    std::vector<HuggingFaceFamily> all;
    for (const auto& families :
         {dense_families(), expert_families(), state_families(), encoder_families()}) {
      all.insert(all.end(), families.begin(), families.end());
    }
    std::ranges::sort(all, {}, &HuggingFaceFamily::model_type);
    return all;
  }();
  return kAll;
}

}  // namespace stepsim
