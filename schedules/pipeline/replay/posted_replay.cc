#include "schedules/pipeline/replay/posted_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedules/pipeline/compact_optional.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

class PostedReplayer {
 public:
  PostedReplayer(const PipelineSchedule& schedule, const StageCosts& costs, const Posting& posting)
      : schedule_(schedule), costs_(costs), posting_(posting), ranks_(schedule.ranks.size()) {
    const auto cells = static_cast<std::size_t>(2 * stage_count(schedule)) *
                       static_cast<std::size_t>(schedule.microbatches);
    starts_.resize(cells);
    arrivals_.resize(cells);
    for (std::size_t rank = ranks_.size(); rank-- > 0;) {
      queue_.push_back(static_cast<std::int32_t>(rank));
    }
  }

  // Returns whether every op and batch ran.
  bool run() {
    while (!queue_.empty()) {
      const std::int32_t rank = queue_.back();
      queue_.pop_back();
      ranks_[at(rank)].is_queued = false;
      while (end_batch(rank) || post_next(rank) || run_next(rank)) {
      }
    }
    for (std::int32_t rank = 0; rank < schedule_.size(); ++rank) {
      const Rank& state = ranks_[at(rank)];
      if (state.next_op < order(rank).size() || state.ended < batches(rank).size()) return false;
    }
    return true;
  }

  PipelineReplay result() const {
    PipelineReplay result = replay(schedule_, costs_);  // the same peaks and work
    result.makespan = 0;
    result.span_bubble = 0;
    result.longest_span = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      result.starts[rank] = ranks_[rank].starts;
      if (result.starts[rank].empty()) continue;
      const std::int64_t span = ranks_[rank].end - result.starts[rank].front();
      result.makespan = std::max(result.makespan, ranks_[rank].end);
      result.span_bubble = std::max(result.span_bubble, span - ranks_[rank].work);
      result.longest_span = std::max(result.longest_span, span);
    }
    return result;
  }

  // REQUIRES: run() returned false.
  std::string waits() const {
    std::string text;
    for (std::int32_t rank = 0; rank < schedule_.size(); ++rank) {
      const Rank& state = ranks_[at(rank)];
      if (state.ended == state.posted) continue;
      for (const PostedMessage& message : batches(rank)[state.ended].messages) {
        const MessageWay way = *way_of(schedule_, rank, message);
        if (starts_[cell(message, way)][message.is_send ? 1 : 0]) continue;
        text += fmt::format("\n  rank {} waits for rank {} to {} the {} of micro-batch {}", rank,
                            way.peer, message.is_send ? "receive" : "send",
                            message.is_activation ? "activation" : "gradient", message.microbatch);
      }
    }
    return text;
  }

 private:
  struct Rank {
    std::vector<std::int64_t> starts{};
    std::size_t next_op = 0;
    std::size_t posted = 0;  // batches
    std::size_t ended = 0;
    bool has_started = false;        // whether batch number `ended` has started
    std::vector<std::int64_t> at{};  // when each batch was posted
    std::int64_t line_free = 0;
    std::int64_t time = 0;  // earliest time of the next op or batch
    std::int64_t end = 0;   // end of the last op
    std::int64_t work = 0;
    bool is_queued = true;
  };

  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  const std::vector<PipelineOp>& order(std::int32_t rank) const {
    return schedule_.ranks[at(rank)];
  }
  const std::vector<PostedBatch>& batches(std::int32_t rank) const {
    return posting_.ranks[at(rank)];
  }
  std::size_t cell(const PostedMessage& message, const MessageWay& way) const {
    const std::int32_t table = message.is_activation ? 0 : schedule_.microbatches;
    return at(table + message.microbatch) * at(stage_count(schedule_)) + at(way.boundary);
  }

  // Starts the oldest batch that has not ended. Ends it if both ends of all its messages have
  // started.
  bool end_batch(std::int32_t rank) {
    Rank& state = ranks_[at(rank)];
    if (state.ended == state.posted) return false;
    const std::vector<PostedMessage>& messages = batches(rank)[state.ended].messages;
    const std::int64_t start = std::max(state.at[state.ended], state.line_free);
    if (!std::exchange(state.has_started, true)) {
      for (const PostedMessage& message : messages) {
        const MessageWay way = *way_of(schedule_, rank, message);
        starts_[cell(message, way)][message.is_send ? 0 : 1] = start;
        wake(way.peer);
      }
    }
    std::int64_t end = start;
    for (const PostedMessage& message : messages) {
      const MessageWay way = *way_of(schedule_, rank, message);
      const auto& [sent, received] = starts_[cell(message, way)];
      if (!sent || !received) return false;
      end = std::max(end, std::max(*sent, *received) + costs_.at(way.boundary).send);
    }
    for (const PostedMessage& message : messages) {
      if (!message.is_send) arrivals_[cell(message, *way_of(schedule_, rank, message))] = end;
    }
    state.line_free = end;
    state.has_started = false;
    ++state.ended;
    return true;
  }

  bool post_next(std::int32_t rank) {
    Rank& state = ranks_[at(rank)];
    if (state.posted == batches(rank).size()) return false;
    if (batches(rank)[state.posted].before > state.next_op) return false;
    if (posting_.waits_for_all) {
      if (state.ended < state.posted) return false;
      state.time = std::max(state.time, state.line_free);
    }
    state.at.push_back(state.time);
    ++state.posted;
    return true;
  }

  bool run_next(std::int32_t rank) {
    Rank& state = ranks_[at(rank)];
    if (state.next_op == order(rank).size()) return false;
    const PipelineOp& op = order(rank)[state.next_op];
    std::int64_t start = state.time;
    if (posting_.waits_for_all) {
      if (state.ended < state.posted) return false;
      start = std::max(start, state.line_free);
    } else {
      for (const PostedMessage& input : inputs_of(schedule_, rank, op)) {
        const CompactOptional<std::int64_t> arrived =
            arrivals_[cell(input, *way_of(schedule_, rank, input))];
        if (!arrived) return false;
        start = std::max(start, *arrived);
      }
    }
    const std::int64_t time = time_of(schedule_, rank, op, costs_);
    state.starts.push_back(start);
    state.end = start + time;
    state.time = state.end;
    state.work += time;
    ++state.next_op;
    return true;
  }

  void wake(std::int32_t rank) {
    if (std::exchange(ranks_[at(rank)].is_queued, true)) return;
    queue_.push_back(rank);
  }

  const PipelineSchedule& schedule_;
  const StageCosts& costs_;
  const Posting& posting_;
  std::vector<Rank> ranks_;
  std::vector<std::array<CompactOptional<std::int64_t>, 2>>
      starts_{};  // when each end of a message started
  std::vector<CompactOptional<std::int64_t>> arrivals_{};
  std::vector<std::int32_t> queue_{};
};

}  // namespace

PipelineReplay replay_posted(const PipelineSchedule& schedule, const StageCosts& costs,
                             const Posting& posting) {
  PostedReplayer replayer(schedule, costs, posting);
  if (!replayer.run()) {
    throw ConfigError({{"schedule", "can't run with its messages in batches:" + replayer.waits()}});
  }
  return replayer.result();
}

}  // namespace stepsim
