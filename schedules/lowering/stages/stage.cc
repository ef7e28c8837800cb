#include "schedules/lowering/stages/stage.h"

#include <algorithm>

namespace stepsim {

bool Stage::holds(std::int32_t stage) const {
  return std::ranges::any_of(chunks, [&](const StageChunk& chunk) { return chunk.stage == stage; });
}

std::int64_t Stage::parameters_of(bool experts) const {
  std::int64_t sum = 0;
  for (const HeldWeights& held : shared) sum += !experts && held.is_copy ? held.parameters : 0;
  for (const StageChunk& chunk : chunks) {
    for (const StageUnit& unit : chunk.units) sum += unit.layer->parameters_of(experts);
  }
  return sum;
}

std::int64_t Stage::frozen_of(bool experts) const {
  std::int64_t sum = 0;
  for (const StageChunk& chunk : chunks) {
    for (const StageUnit& unit : chunk.units) sum += unit.layer->frozen_of(experts);
  }
  return sum;
}

std::int64_t Stage::updated_parameters() const {
  std::int64_t sum = 0;
  for (const bool experts : {false, true}) {
    sum += part_of(parameters_of(experts), plan.state.zero >= 1 ? groups(experts).shards : 1);
  }
  return sum;
}

std::int64_t Stage::sequence_parameters(std::int64_t parts) const {
  std::int64_t sum = 0;
  for (const StageChunk& chunk : chunks) {
    for (const StageUnit& unit : chunk.units) {
      sum += part_of(unit.layer->sequence_parameters, parts);
    }
  }
  for (const HeldWeights& held : shared) {
    if (held.is_copy) sum += part_of(held.sequence_parameters, parts);
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
