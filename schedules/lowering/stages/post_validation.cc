#include "schedules/lowering/stages/post_validation.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

// Returns the op that waits: the first forward after those that go ahead.
std::size_t first_validated_op(const PipelineSchedule& schedule, std::int32_t rank) {
  const std::vector<PipelineOp>& order = schedule.ranks[static_cast<std::size_t>(rank)];
  std::size_t forwards = 0;
  while (forwards < order.size() && order[forwards].kind == PipelineOpKind::kForward &&
         order[forwards].chunk == order.front().chunk) {
    ++forwards;
  }
  const auto ahead = static_cast<std::size_t>(
      std::min(2 * (schedule.size() - 1 - rank), schedule.microbatches - 1));
  return std::min(ahead, forwards - 1);
}

}  // namespace

PostValidation::PostValidation(Stage& stage)
    : stage_(stage), stream_(stage.builder.add_stream("validation")) {
  assert(stage.plan.update.post_validation && stage.schedule.size() > 1);
  if (!is_last()) validated_ = exchange(false, stage.number + 1, "receive gradient norm", {});
  if (!is_first()) handed_back_ = exchange(true, stage.number - 1, "send gradient norm", {});
}

std::vector<Dependency> PostValidation::waits_before(std::size_t op) const {
  if (!validated_ || op != first_validated_op(stage_.schedule, stage_.number)) return {};
  return {after(*validated_)};
}

std::vector<Dependency> PostValidation::add_to_partial_state(const std::vector<Dependency>& own) {
  std::vector<Dependency> partial = own;
  if (!is_first()) {
    partial.push_back(
        after(exchange(false, stage_.number - 1, "receive partial gradient norm", {})));
  }
  if (!is_last()) {
    exchange(true, stage_.number + 1, "send partial gradient norm", partial);
    return partial;
  }
  for (Dependency whole : partial) {
    whole.previous_step = true;
    stage_.builder.add_dependency(*handed_back_, whole);
  }
  return partial;
}

OpRef PostValidation::exchange(bool is_send, std::int32_t peer, const std::string& name,
                               std::vector<Dependency> dependencies) {
  OpDraft op{.stream = stream_, .kind = OpKind::kMessages, .axis = Axis::kOther};
  op.work = stage_.tables.message({.is_send = is_send,
                                   .kind = MessageKind::kState,
                                   .communicator = *stage_.communicators.pipeline,
                                   .peer = static_cast<std::uint32_t>(peer),
                                   .microbatch = {},
                                   .boundary = std::min(stage_.number, peer),
                                   .bytes = kGlobalState});
  op.label = stage_.label(name);
  op.dependencies = std::move(dependencies);
  return stage_.builder.add(std::move(op));
}

}  // namespace stepsim
