#include "sim/collectives/choose_algorithm.h"

#include <cassert>
#include <utility>

#include "sim/base/error.h"
#include "sim/collectives/algorithm_table.h"

namespace stepsim {
namespace {

std::string misfit(CollectiveOp op, const AlgorithmRow& row, const GroupShape& shape) {
  if (!row.ops.contains(op)) return "can't do " + std::string(name_of(op));
  return row.misfit(op, shape);
}

std::string matrix_misfit(const CollectiveTask& task, const AlgorithmRow& row,
                          const GroupShape& shape) {
  return task.matrix == nullptr ? "" : row.matrix_misfit(*task.matrix, shape);
}

void throw_unless_empty(AlgorithmChoice choice, const std::string& reason) {
  if (reason.empty()) return;
  throw ConfigError(
      std::vector<Problem>{{"algorithm", std::string(name_of(choice)) + " " + reason}});
}

}  // namespace

std::vector<AlgorithmChoice> algorithms_for(CollectiveOp op, const GroupShape& shape) {
  std::vector<AlgorithmChoice> result;
  for (const AlgorithmRow& row : algorithm_table()) {
    if (row.choice == AlgorithmChoice::kCustom) continue;
    if (misfit(op, row, shape).empty()) result.push_back(row.choice);
  }
  return result;
}

std::string refusal(CollectiveOp op, AlgorithmChoice choice, const GroupShape& shape) {
  if (choice == AlgorithmChoice::kAuto) return "";
  std::string reason = misfit(op, row_of(choice), shape);
  if (reason.empty()) return reason;
  reason += "; in this group there are:";
  for (const AlgorithmChoice other : algorithms_for(op, shape)) {
    reason += (reason.back() == ':' ? " " : ", ") + std::string(name_of(other));
  }
  return reason;
}

std::vector<AlgorithmChoice> weighed_algorithms(const CollectiveTask& task,
                                                const GroupShape& shape) {
  std::vector<AlgorithmChoice> result;
  for (const AlgorithmRow& row : algorithm_table()) {
    if (!misfit(task.op, row, shape).empty() || !matrix_misfit(task, row, shape).empty()) continue;
    const Weighed weighed = row.weighed(task, shape);
    if (weighed == Weighed::kAlone) return {row.choice};
    if (weighed == Weighed::kYes) result.push_back(row.choice);
  }
  assert(!result.empty());
  return result;
}

std::unique_ptr<CollectiveAlgorithm> choose_algorithm(const CollectiveTask& task,
                                                      AlgorithmChoice choice,
                                                      const GroupShape& shape) {
  throw_unless_empty(choice, refusal(task.op, choice, shape));
  const AlgorithmRow& row = row_of(choice);
  throw_unless_empty(choice, matrix_misfit(task, row, shape));
  return row.make(task, shape);
}

}  // namespace stepsim
