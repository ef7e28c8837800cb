#include "schedules/pipeline/orders/hanayo.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {
namespace {

constexpr std::int64_t kForwardSlots = 1;
constexpr std::int64_t kBackwardSlots = 2;

// Waves fills slot after slot: every free rank takes the best op whose inputs have ended.
class Waves {
 public:
  Waves(std::int32_t stages, std::int32_t microbatches, std::int32_t chunks, bool forwards_first)
      : schedule_{.microbatches = microbatches, .chunks = chunks, .placement = Placement::kV},
        forward_ends_(static_cast<std::size_t>(stages * chunks)),
        backward_ends_(forward_ends_.size()),
        free_at_(static_cast<std::size_t>(stages), 0),
        forwards_first_(forwards_first) {
    schedule_.ranks.resize(static_cast<std::size_t>(stages));
  }

  void run() {
    const std::size_t ops =
        2 * forward_ends_.size() * static_cast<std::size_t>(schedule_.microbatches);
    std::size_t done = 0;
    for (std::int64_t now = 0; done < ops; ++now) {
      for (std::int32_t rank = 0; rank < schedule_.size(); ++rank) {
        if (free_at_[static_cast<std::size_t>(rank)] > now) continue;
        const std::optional<PipelineOp> op = best(rank, now);
        if (!op) continue;
        put(rank, *op, now);
        ++done;
      }
    }
  }

  std::int64_t end() const { return std::ranges::max(free_at_); }
  PipelineSchedule take_schedule() { return std::move(schedule_); }

 private:
  using Ends = std::vector<std::int64_t>;  // ends of a stage's ops, by micro-batch

  std::size_t stage(std::int32_t rank, std::int32_t chunk) const {
    return static_cast<std::size_t>(stage_of(schedule_, rank, chunk));
  }
  static bool ended(const Ends& ends, std::size_t microbatch, std::int64_t now) {
    return microbatch < ends.size() && ends[microbatch] <= now;
  }

  bool can_forward(std::size_t at, std::int64_t now) const {
    const std::size_t i = forward_ends_[at].size();
    if (i >= static_cast<std::size_t>(schedule_.microbatches)) return false;
    if (at > 0) return ended(forward_ends_[at - 1], i, now);
    const auto most = static_cast<std::size_t>(2 * schedule_.size());
    return i < most || ended(backward_ends_[0], i - most, now);
  }
  bool can_backward(std::size_t at, std::int64_t now) const {
    const std::size_t i = backward_ends_[at].size();
    if (!ended(forward_ends_[at], i, now)) return false;
    return at + 1 == backward_ends_.size() || ended(backward_ends_[at + 1], i, now);
  }

  std::optional<PipelineOp> best(std::int32_t rank, std::int64_t now) const {
    std::optional<PipelineOp> best;
    const auto offer = [&](const PipelineOp& op) {
      if (!best || precedes(op, *best)) best = op;
    };
    for (std::int32_t chunk = schedule_.chunks - 1; chunk >= 0; --chunk) {
      const std::size_t at = stage(rank, chunk);
      if (can_backward(at, now)) {
        offer(backward_op(static_cast<std::int32_t>(backward_ends_[at].size()), chunk));
      }
      if (can_forward(at, now)) {
        offer(forward_op(static_cast<std::int32_t>(forward_ends_[at].size()), chunk));
      }
    }
    return best;
  }

  // The older unit of P micro-batches goes first. Within a unit the preferred kind goes first, then
  // the older micro-batch. Only one op of each micro-batch and kind is ready at a time.
  bool precedes(const PipelineOp& left, const PipelineOp& right) const {
    const auto key = [this](const PipelineOp& op) {
      const bool is_first = (op.kind == PipelineOpKind::kForward) == forwards_first_;
      return std::tuple(op.microbatch / schedule_.size(), !is_first, op.microbatch);
    };
    return key(left) < key(right);
  }

  void put(std::int32_t rank, const PipelineOp& op, std::int64_t now) {
    const bool is_forward = op.kind == PipelineOpKind::kForward;
    const std::int64_t end = now + (is_forward ? kForwardSlots : kBackwardSlots);
    (is_forward ? forward_ends_ : backward_ends_)[stage(rank, op.chunk)].push_back(end);
    free_at_[static_cast<std::size_t>(rank)] = end;
    schedule_.ranks[static_cast<std::size_t>(rank)].push_back(op);
  }

  PipelineSchedule schedule_;
  std::vector<Ends> forward_ends_;
  std::vector<Ends> backward_ends_;
  std::vector<std::int64_t> free_at_;
  bool forwards_first_;
};

}  // namespace

PipelineSchedule hanayo(std::int32_t stages, std::int32_t microbatches, std::int32_t chunks) {
  assert(stages >= 1 && microbatches >= 1 && chunks >= 2 && chunks % 2 == 0);
  Waves backwards_first(stages, microbatches, chunks, false);
  Waves forwards_first(stages, microbatches, chunks, true);
  backwards_first.run();
  forwards_first.run();
  const bool is_better = forwards_first.end() < backwards_first.end();
  return (is_better ? forwards_first : backwards_first).take_schedule();
}

}  // namespace stepsim
