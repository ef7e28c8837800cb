#include "sim/collectives/collective.h"

namespace stepsim {

std::string_view name_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllReduce:
      return "all-reduce";
    case CollectiveOp::kAllGather:
      return "all-gather";
    case CollectiveOp::kReduceScatter:
      return "reduce-scatter";
  }
  return "";
}

std::string_view name_of(AlgorithmChoice choice) {
  switch (choice) {
    case AlgorithmChoice::kAuto:
      return "auto";
    case AlgorithmChoice::kRing:
      return "ring";
    case AlgorithmChoice::kBidirectionalRing:
      return "bidirectional-ring";
    case AlgorithmChoice::kHierarchical:
      return "hierarchical";
    case AlgorithmChoice::kMultiAxis:
      return "multi-axis";
  }
  return "";
}

}  // namespace stepsim
