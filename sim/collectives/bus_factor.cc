#include "sim/collectives/bus_factor.h"

namespace stepsim {

double bus_factor(CollectiveOp op, std::uint32_t members) {
  const double others = (static_cast<double>(members) - 1) / members;
  switch (op) {
    case CollectiveOp::kAllReduce:
      return 2 * others;
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllToAll:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return others;
    default:
      return 1;
  }
}

}  // namespace stepsim
