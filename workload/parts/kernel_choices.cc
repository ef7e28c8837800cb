#include "workload/parts/kernel_choices.h"

#include <array>

namespace stepsim {

std::string_view name_of(LossKernels kernels) {
  constexpr std::array<std::string_view, kLossKernels> kNames = {"fused", "in_place", "separate",
                                                                 "chunked"};
  return kNames[static_cast<std::size_t>(kernels)];
}

}  // namespace stepsim
