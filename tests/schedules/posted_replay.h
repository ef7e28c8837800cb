// replay_posted() plays a schedule whose messages are posted as the runtimes of the zero-bubble
// paper's experiments do (Qi et al., arXiv 2401.10241; their code and Megatron-LM's). Unlike
// replay(), where a message travels by itself from the end of its op on, a rank has one line of
// batches, in the order of its list: a batch starts when what stands before it in the list has run
// and the batch before it has ended, and a message when both of its ends have started theirs. Each
// message takes `costs.send` from then on; a batch ends with its last message.
//
//   kMegatron           1F1B: after each op a batch of what it has made and what the next op needs.
//                       The next op waits for it. (p2p_communication: batch_isend_irecv and wait.)
//   kMegatronByTurns    interleaved: a batch after each forward of the warm-up and then after each
//                       pair of forward and backward, with what the rank before makes meanwhile
//   kPlanned            ZB: both ends put a message into their lists where the planned time of its
//                       making falls; an op waits only for the batch that brings its own input
//
// Time: ops x stages in the worst case.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/replay.h"

namespace stepsim {

enum class Posting { kMegatron, kMegatronByTurns, kPlanned };

class PostedReplay {
 public:
  // REQUIRES: one direction; `group` micro-batches in turn on a chunk with kMegatronByTurns.
  PostedReplay(const PipelineSchedule& schedule, const PipelineCosts& costs, Posting posting,
               std::int64_t group = 0)
      : schedule_(schedule), costs_(costs), posting_(posting), group_(group) {
    entries_.resize(schedule.ranks.size());
    if (posting == Posting::kPlanned) {
      post_as_planned();
    } else if (posting == Posting::kMegatron) {
      post_after_ops();
    } else {
      post_by_turns();
    }
  }

  // The longest from a rank's first start to its last end; -1 if the ranks get stuck.
  std::int64_t span() {
    std::vector<State> states(entries_.size());
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t rank = 0; rank < states.size(); ++rank) {
        moves = advance(rank, states[rank]) || moves;
      }
    }
    std::int64_t longest = 0;
    for (std::size_t rank = 0; rank < states.size(); ++rank) {
      if (states[rank].next < entries_[rank].size() || !states[rank].waiting.empty()) return -1;
      longest = std::max(longest, states[rank].time - states[rank].first_start);
    }
    return longest;
  }

 private:
  using MessageKey =
      std::tuple<bool, std::int32_t, std::int32_t>;  // forward, micro-batch, boundary
  struct Entry {
    const PipelineOp* op = nullptr;  // or a batch
    std::vector<MessageKey> batch{};
    std::int64_t planned = 0;
  };
  struct State {
    std::size_t next = 0;
    std::int64_t time = 0;
    std::int64_t first_start = -1;
    std::int64_t line_free = 0;
    std::vector<std::pair<std::int64_t, const std::vector<MessageKey>*>> waiting{};  // batches
    std::map<MessageKey, std::int64_t> arrived{};
  };

  bool blocks() const { return posting_ != Posting::kPlanned; }

  // What an op makes for another rank, and what it needs from one.
  std::vector<MessageKey> messages(std::int32_t rank, const PipelineOp& op, bool made) const {
    if (op.kind == PipelineOpKind::kBackwardWeight) return {};
    const bool is_forward = op.kind == PipelineOpKind::kForward;
    const std::int32_t stage = stage_of(schedule_, rank, op.chunk);
    const std::int32_t other = is_forward == made ? stage + 1 : stage - 1;
    if (other < 0 || other == stage_count(schedule_)) return {};
    if (rank_of(schedule_, op.microbatch, other) == rank) return {};
    return {{is_forward, op.microbatch, std::min(stage, other)}};
  }

  void add_batch(std::size_t rank, std::vector<MessageKey> batch, std::int64_t planned = 0) {
    if (!batch.empty()) entries_[rank].push_back({nullptr, std::move(batch), planned});
  }

  void post_after_ops() {
    for (std::size_t rank = 0; rank < entries_.size(); ++rank) {
      std::vector<MessageKey> batch;
      for (const PipelineOp& op : schedule_.ranks[rank]) {
        for (const MessageKey& key : messages(static_cast<std::int32_t>(rank), op, false)) {
          batch.push_back(key);
        }
        add_batch(rank, std::move(batch));
        entries_[rank].push_back({&op, {}, 0});
        batch = messages(static_cast<std::int32_t>(rank), op, true);
      }
      add_batch(rank, std::move(batch));
    }
  }

  void post_as_planned() {
    const PipelineReplay planned = replay(schedule_, costs_);
    std::map<std::pair<std::size_t, std::int64_t>, std::vector<MessageKey>> batches;
    for (std::size_t rank = 0; rank < entries_.size(); ++rank) {
      for (std::size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
        const PipelineOp& op = schedule_.ranks[rank][i];
        for (const MessageKey& key : messages(static_cast<std::int32_t>(rank), op, true)) {
          const auto& [is_forward, microbatch, boundary] = key;
          const std::int32_t peer =
              rank_of(schedule_, microbatch, is_forward ? boundary + 1 : boundary);
          const std::int64_t end = planned.starts[rank][i] + time_of(op, costs_);
          batches[{rank, end}].push_back(key);
          batches[{static_cast<std::size_t>(peer), end}].push_back(key);
        }
      }
    }
    for (std::size_t rank = 0; rank < entries_.size(); ++rank) {
      for (std::size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
        entries_[rank].push_back({&schedule_.ranks[rank][i], {}, planned.starts[rank][i]});
      }
    }
    for (auto& [at, batch] : batches) add_batch(at.first, std::move(batch), at.second);
    for (std::vector<Entry>& list : entries_) {
      std::ranges::stable_sort(list, [](const Entry& a, const Entry& b) {
        return std::pair(a.planned, a.op != nullptr) < std::pair(b.planned, b.op != nullptr);
      });
    }
  }

  // Number k of the forwards (backwards) of a rank and its message that the next rank on the way
  // receives after its own number k - 1; round the end of the loop P - 1 later.
  void post_by_turns() {
    const auto ranks = static_cast<std::int32_t>(entries_.size());
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      std::vector<const PipelineOp*> forwards;
      std::vector<const PipelineOp*> backwards;
      for (const PipelineOp& op : schedule_.ranks[static_cast<std::size_t>(rank)]) {
        (op.kind == PipelineOpKind::kForward ? forwards : backwards).push_back(&op);
      }
      const std::size_t count = forwards.size();
      const auto at = static_cast<std::size_t>(rank);
      // What arrives with the batch behind number k of this kind: the input of number k + 1, or,
      // round the end of the loop, what the rank there has made P - 1 turns ago.
      const auto arriving = [&](const std::vector<const PipelineOp*>& ops, std::int64_t k,
                                bool is_forward, std::vector<MessageKey>& batch) {
        const bool from_round = rank == (is_forward ? 0 : ranks - 1);
        const std::int64_t next = k + 1 + (from_round ? group_ - ranks : 0);
        if (next < (from_round ? group_ : 0) || next >= static_cast<std::int64_t>(count)) return;
        for (const MessageKey& key : messages(rank, *ops[static_cast<std::size_t>(next)], false)) {
          batch.push_back(key);
        }
      };
      std::size_t warm_up = 0;
      while (warm_up < count && schedule_.ranks[at][warm_up].kind == PipelineOpKind::kForward) {
        ++warm_up;
      }
      if (warm_up < count) --warm_up;  // the last one is of the first pair
      std::vector<MessageKey> batch;
      arriving(forwards, -1, true, batch);
      if (warm_up == 0) arriving(backwards, -1, false, batch);
      add_batch(at, std::move(batch));
      const auto run = [&](const PipelineOp* op, std::vector<MessageKey>& made) {
        entries_[at].push_back({op, {}, 0});
        for (const MessageKey& key : messages(rank, *op, true)) made.push_back(key);
      };
      for (std::size_t k = 0; k < warm_up; ++k) {
        batch.clear();
        run(forwards[k], batch);
        arriving(forwards, static_cast<std::int64_t>(k), true, batch);
        if (k + 1 == warm_up) arriving(backwards, -1, false, batch);
        add_batch(at, std::move(batch));
      }
      for (std::size_t k = 0; k < count; ++k) {
        batch.clear();
        if (warm_up + k < count) {
          run(forwards[warm_up + k], batch);
          arriving(forwards, static_cast<std::int64_t>(warm_up + k), true, batch);
        }
        run(backwards[k], batch);
        arriving(backwards, static_cast<std::int64_t>(k), false, batch);
        add_batch(at, std::move(batch));
      }
    }
  }

  // Whether anything has happened.
  bool advance(std::size_t rank, State& state) {
    bool moves = false;
    while (settle(rank, state) || step(rank, state)) moves = true;
    return moves;
  }

  // The oldest batch of the rank, if both ends of all its messages have started.
  bool settle(std::size_t rank, State& state) {
    if (state.waiting.empty()) return false;
    const auto& [posted, batch] = state.waiting.front();
    const std::int64_t start = std::max(posted, state.line_free);
    std::int64_t end = 0;
    bool is_met = true;
    for (const MessageKey& key : *batch) {
      auto& starts = starts_[key];
      starts[rank] = start;
      is_met = is_met && starts.size() == 2;
      for (const auto& [end_rank, time] : starts) end = std::max(end, time + costs_.send);
    }
    if (!is_met) return false;
    state.line_free = end;
    if (blocks()) state.time = std::max(state.time, end);
    for (const MessageKey& key : *batch) state.arrived[key] = end;
    state.waiting.erase(state.waiting.begin());
    return true;
  }

  bool step(std::size_t rank, State& state) {
    if (state.next == entries_[rank].size()) return false;
    const Entry& entry = entries_[rank][state.next];
    if (entry.op == nullptr) {
      state.waiting.emplace_back(state.time, &entry.batch);
      ++state.next;
      return true;
    }
    if (blocks() && !state.waiting.empty()) return false;
    std::int64_t start = state.time;
    for (const MessageKey& key : messages(static_cast<std::int32_t>(rank), *entry.op, false)) {
      const auto arrived = state.arrived.find(key);
      if (arrived == state.arrived.end()) return false;
      start = std::max(start, arrived->second);
    }
    if (state.first_start < 0) state.first_start = start;
    state.time = start + time_of(*entry.op, costs_);
    ++state.next;
    return true;
  }

  const PipelineSchedule& schedule_;
  PipelineCosts costs_;
  Posting posting_;
  std::int64_t group_;
  std::vector<std::vector<Entry>> entries_;                           // by rank
  std::map<MessageKey, std::map<std::size_t, std::int64_t>> starts_;  // by the rank at each end
};

}  // namespace stepsim
