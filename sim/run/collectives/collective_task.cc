#include "sim/run/collectives/collective_task.h"

#include <cassert>
#include <stdexcept>

namespace stepsim {

CollectiveTask task_of(const OpGraph& graph, const CollectiveWork& work) {
  if (work.bytes > kMostCollectiveBytes) {
    throw std::range_error("a member of a collective has more than 16 TiB, the most simulated");
  }
  CollectiveTask task{.op = work.op,
                      .bytes = work.bytes,
                      .element = size_of(work.type),
                      .root = work.root,
                      .shift = work.shift,
                      .experts = work.experts};
  if (work.byte_matrix) {
    assert(work.op == CollectiveOp::kAllToAll);
    task.matrix = &graph.byte_matrices[*work.byte_matrix];
    task.element = Bytes(1);  // elements may have any length
  }
  if (work.permutation) {
    assert(work.op == CollectiveOp::kPermute);
    task.permutation = graph.permutations[*work.permutation];
  }
  if (work.step_list) task.steps = &graph.step_lists[*work.step_list];
  return task;
}

}  // namespace stepsim
