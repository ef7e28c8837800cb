#include "schedules/pipeline/replay/check_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "schedules/pipeline/replay/replay.h"

namespace stepsim {
namespace {

// "F0.0, F1.0, F2.0 and 17 more"
std::string listed(const std::vector<std::string>& ops) {
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(kShown, ops.size());
  std::string text = fmt::format(
      "{}", fmt::join(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < ops.size()) text += fmt::format(" and {} more", ops.size() - shown);
  return text;
}

// RankCheck compares the ops of one rank with those that it must run.
class RankCheck {
 public:
  RankCheck(const PipelineSchedule& schedule, std::int32_t rank)
      : schedule_(schedule),
        rank_(rank),
        seen_(static_cast<std::size_t>(schedule.microbatches) *
              static_cast<std::size_t>(schedule.chunks)) {}

  void run(std::vector<Problem>& problems) {
    for (const PipelineOp& op : schedule_.ranks[static_cast<std::size_t>(rank_)]) book(op);
    for (std::int32_t i = 0; i < schedule_.microbatches; ++i) {
      for (std::int32_t chunk = 0; chunk < schedule_.chunks; ++chunk) {
        if (runs(i, chunk)) note_missing(i, chunk);
      }
    }
    const auto add = [&](const std::vector<std::string>& ops, const std::string& what) {
      if (!ops.empty()) problems.push_back({fmt::format("rank {}", rank_), what + listed(ops)});
    };
    add(missing_, "misses ");
    add(doubled_, "has more than once ");
    add(unknown_, "has ops that it can't have: ");
    add(misplaced_, "has in illegal order ");
  }

 private:
  struct Seen {
    bool forward = false;
    bool input = false;
    bool weight = false;
    bool whole = false;  // BW or FB: input and weight gradient in one
  };

  bool runs(std::int32_t microbatch, std::int32_t chunk) const {
    if (microbatch < 0 || microbatch >= schedule_.microbatches) return false;
    if (chunk < 0 || chunk >= schedule_.chunks) return false;
    if (schedule_.placement != Placement::kBidirectional) return true;
    return chunk == (microbatch < schedule_.microbatches / 2 ? 0 : 1);
  }
  Seen& at(std::int32_t microbatch, std::int32_t chunk) {
    return seen_[static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(schedule_.chunks) +
                 static_cast<std::size_t>(chunk)];
  }

  void book(const PipelineOp& op) {
    const std::string text = to_text(op);
    const bool is_fused = op.kind == PipelineOpKind::kForwardBackward;
    if (!runs(op.microbatch, op.chunk) ||
        (is_fused && !runs(op.backward_microbatch, op.backward_chunk))) {
      unknown_.push_back(text);
      return;
    }
    Seen& seen = at(op.microbatch, op.chunk);
    switch (op.kind) {
      case PipelineOpKind::kForward:
        return book_forward(seen, text);
      case PipelineOpKind::kBackward:
        return book_whole(seen, text);
      case PipelineOpKind::kBackwardInput:
        if (seen.input) doubled_.push_back(text);
        if (!seen.forward) misplaced_.push_back(text + " before its F");
        seen.input = true;
        return;
      case PipelineOpKind::kBackwardWeight:
        if (seen.weight) doubled_.push_back(text);
        if (!seen.input) misplaced_.push_back(text + " before its B");
        seen.weight = true;
        return;
      case PipelineOpKind::kForwardBackward:
        break;
    }
    // A fused op cannot contain the backward of its own forward or of a later one.
    book_whole(at(op.backward_microbatch, op.backward_chunk), text);
    book_forward(seen, text);
  }

  void book_forward(Seen& seen, const std::string& text) {
    if (seen.forward) doubled_.push_back(text);
    seen.forward = true;
  }
  void book_whole(Seen& seen, const std::string& text) {
    if (seen.input || seen.weight) doubled_.push_back(text);
    if (!seen.forward) misplaced_.push_back(text + " before its F");
    seen.input = true;
    seen.weight = true;
    seen.whole = true;
  }

  void note_missing(std::int32_t microbatch, std::int32_t chunk) {
    const Seen& seen = at(microbatch, chunk);
    const auto note = [&](PipelineOpKind kind) {
      missing_.push_back(to_text({kind, microbatch, chunk}));
    };
    if (!seen.forward) note(PipelineOpKind::kForward);
    if (!seen.input && !seen.weight) note(PipelineOpKind::kBackward);
    if (!seen.input && seen.weight) note(PipelineOpKind::kBackwardInput);
    if (seen.input && !seen.weight) note(PipelineOpKind::kBackwardWeight);
  }

  const PipelineSchedule& schedule_;
  std::int32_t rank_;
  std::vector<Seen> seen_;
  std::vector<std::string> missing_;
  std::vector<std::string> doubled_;
  std::vector<std::string> unknown_;
  std::vector<std::string> misplaced_;
};

}  // namespace

std::vector<Problem> check_order(const PipelineSchedule& schedule) {
  std::vector<Problem> problems;
  if (schedule.placement == Placement::kBidirectional &&
      (schedule.chunks != 2 || schedule.microbatches % 2 != 0)) {
    return {{"placement", fmt::format("bidirectional needs 2 chunks and an even number of "
                                      "micro-batches, has {} and {}",
                                      schedule.chunks, schedule.microbatches)}};
  }
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    RankCheck(schedule, rank).run(problems);
  }
  if (!problems.empty()) return problems;
  const std::string cycle = find_cycle(schedule);
  if (!cycle.empty()) {
    problems.push_back({"schedule", "can't run, its ranks wait for each other:" + cycle});
  }
  return problems;
}

}  // namespace stepsim
