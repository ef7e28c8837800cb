#include "schedules/lowering/stage.h"

namespace stepsim {

std::int64_t Stage::parameters() const {
  std::int64_t sum = copies_table() ? tied_parameters : 0;
  for (const StageUnit& unit : units) sum += unit.layer->parameters;
  return sum;
}

OpRef Stage::add_collective(StreamId stream, const CollectiveWork& work, Axis axis,
                            OpLabel op_label, std::vector<Dependency> dependencies) {
  OpDraft op{.stream = stream, .kind = OpKind::kCollective, .axis = axis};
  op.work = tables.collective(work);
  op.label = op_label;
  op.dependencies = std::move(dependencies);
  return builder.add(std::move(op));
}

}  // namespace stepsim
