#include "sim/collectives/collective.h"

namespace stepsim {

bool is_ring_op(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kAllGather ||
         op == CollectiveOp::kReduceScatter;
}

std::string_view name_of(CollectiveOp op) {
  constexpr std::array<std::string_view, kCollectiveOps.size()> kNames = {
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all",   "broadcast", "reduce",
      "gather",     "scatter",    "barrier",        "send-receive", "permute"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name_of(AlgorithmChoice choice) {
  constexpr std::array<std::string_view, kAlgorithmChoices.size()> kNames = {"auto",
                                                                             "ring",
                                                                             "bidirectional-ring",
                                                                             "hierarchical",
                                                                             "multi-axis",
                                                                             "axis-after-axis",
                                                                             "direct",
                                                                             "pairwise",
                                                                             "torus",
                                                                             "chain",
                                                                             "binomial-tree",
                                                                             "double-binary-tree",
                                                                             "halving-doubling",
                                                                             "recursive-doubling",
                                                                             "bruck",
                                                                             "reduce-broadcast",
                                                                             "dissemination",
                                                                             "rotated-rings",
                                                                             "overlapped-levels",
                                                                             "pxn",
                                                                             "node-forwarding",
                                                                             "nvls",
                                                                             "sharp",
                                                                             "nvls-tree",
                                                                             "custom"};
  return kNames[static_cast<std::size_t>(choice)];
}

}  // namespace stepsim
