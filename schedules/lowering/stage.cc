#include "schedules/lowering/stage.h"

#include <algorithm>

namespace stepsim {

bool Stage::holds(std::int32_t stage) const {
  return std::ranges::any_of(chunks, [&](const StageChunk& chunk) { return chunk.stage == stage; });
}

std::int64_t Stage::parameters() const {
  std::int64_t sum = copies_table() ? tied_parameters : 0;
  for (const StageChunk& chunk : chunks) {
    for (const StageUnit& unit : chunk.units) sum += unit.layer->parameters;
  }
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
