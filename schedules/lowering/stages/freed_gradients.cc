#include "schedules/lowering/stages/freed_gradients.h"

#include <algorithm>
#include <utility>

namespace stepsim {

// Returns the dense parameters whose gradients the unit's first backward makes on this rank.
std::int64_t FreedGradients::parameters_made(const StageUnit& unit) {
  std::int64_t parameters = unit.layer->parameters_of(false);
  for (const HeldWeights& held : stage_.shared) {
    if (held.is_copy && held.reader == &unit) parameters += held.parameters;
  }
  if (unit.block) return parameters;
  const bool shares_own_table = stage_.holds_first() && stage_.holds_last();
  if (unit.tied_parameters == 0) return parameters - std::exchange(table_made_, 0);
  if (!shares_own_table || table_made_ > 0) return parameters;
  table_made_ = unit.tied_parameters;
  return parameters + table_made_;
}

void FreedGradients::leave(const StageUnit& unit) {
  if (std::ranges::count(made_, &unit) > 0) return;
  made_.push_back(&unit);
  const auto held = [&](std::int64_t parameters, bool experts) {
    const std::int64_t parts = stage_.plan.state.zero >= 2 ? stage_.groups(experts).shards : 1;
    return Bytes(part_of(parameters * stage_.plan.update.gradient_bytes, parts));
  };
  const Bytes bytes =
      held(parameters_made(unit), false) + held(unit.layer->parameters_of(true), true);
  if (bytes == Bytes(0)) return;
  // A layer that made its weight gradients earlier, with its input gradients, runs nothing now.
  const std::uint32_t next = before_visit_ ? before_visit_->position + 1 : 0;
  const OpRef first{stage_.compute, std::min(next, stage_.front().last_compute->position)};
  stage_.builder.change_memory(first, {.category = MemoryCategory::kGradients, .bytes = bytes});
  held_ += bytes;
}

void FreedGradients::free_after(OpRef optimizer) {
  if (held_ == Bytes(0)) return;
  stage_.builder.change_memory(
      optimizer, {.category = MemoryCategory::kGradients, .at_end = true, .bytes = held_});
}

}  // namespace stepsim
