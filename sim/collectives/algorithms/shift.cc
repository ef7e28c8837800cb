#include "sim/collectives/algorithms/shift.h"

#include <cassert>

namespace stepsim {

Shift::Shift(const CollectiveTask& task, const std::vector<std::uint32_t>& order)
    : FlatAlgorithm(task, order), target_(order.size()) {
  assert(task.permutation.empty() || task.permutation.size() == order.size());
  const std::uint32_t shift = task.op == CollectiveOp::kPermute ? task.shift % members() : 1;
  for (std::uint32_t member = 0; member < members(); ++member) {
    target_[member] =
        task.permutation.empty() ? (member + shift) % members() : task.permutation[member];
    nobody_sends_ = nobody_sends_ && target_[member] == member;
  }
}

}  // namespace stepsim
