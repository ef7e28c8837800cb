#include "schedules/pipeline/replay/posting_rules.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "schedules/pipeline/replay/replay.h"

namespace stepsim {
namespace {

using Batches = std::vector<PostedBatch>;

void add(std::vector<PostedMessage>& all, const std::vector<PostedMessage>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// ---- kPostAroundOps ----

Batches around_ops(const PipelineSchedule& schedule, std::int32_t rank) {
  const std::vector<PipelineOp>& order = schedule.ranks[static_cast<std::size_t>(rank)];
  Batches batches;
  const auto post = [&](std::size_t before, std::vector<PostedMessage> messages) {
    if (!messages.empty()) batches.push_back({before, std::move(messages)});
  };
  std::vector<PostedMessage> made;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::vector<PostedMessage> taken = inputs_of(schedule, rank, order[i]);
    const bool is_turn = i > 0 && (order[i].kind == PipelineOpKind::kForward) !=
                                      (order[i - 1].kind == PipelineOpKind::kForward);
    if (is_turn) {
      add(made, taken);
      taken.clear();
    }
    post(i, std::move(made));
    post(i, std::move(taken));
    made = outputs_of(schedule, rank, order[i]);
  }
  post(order.size(), std::move(made));
  return batches;
}

// ---- kPostByTurns ----

// Turns holds the forwards and the backwards of a rank. Each are in the same order on every rank:
// the message that a rank needs for its number k + 1 arrives behind its number k. At the end of the
// loop the message is the one that the other end makes as number k - (P - 1).
class Turns {
 public:
  Turns(const PipelineSchedule& schedule, std::int32_t rank)
      : schedule_(schedule), rank_(rank), order_(schedule.ranks[static_cast<std::size_t>(rank)]) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      (order_[i].kind == PipelineOpKind::kForward ? forwards_ : backwards_).push_back(i);
    }
  }

  Batches batches() {
    const std::size_t count = forwards_.size();
    std::size_t warm_up = 0;
    while (warm_up < count && order_[warm_up].kind == PipelineOpKind::kForward) ++warm_up;
    if (warm_up < count) --warm_up;  // the last one belongs to the first pair
    take(forwards_, {});
    if (warm_up == 0) take(backwards_, {});
    post_before(0);
    for (std::size_t k = 0; k < warm_up; ++k) {
      behind(forwards_, k);
      if (k + 1 == warm_up) take(backwards_, {});
      post_before(forwards_[k] + 1);
    }
    for (std::size_t k = 0; k < count; ++k) {
      if (warm_up + k < count) behind(forwards_, warm_up + k);
      behind(backwards_, k);
      post_before(backwards_[k] + 1);
    }
    return std::move(batches_);
  }

 private:
  // Receives the message that arrives behind op `number` of a kind; if there is none, before the
  // first op.
  void take(const std::vector<std::size_t>& ops, std::optional<std::size_t> behind) {
    const bool is_forward = &ops == &forwards_;
    const std::int32_t ranks = schedule_.size();
    const bool from_round = rank_ == (is_forward ? 0 : ranks - 1);
    const std::int64_t next = behind ? static_cast<std::int64_t>(*behind) + 1 : 0;
    const std::int64_t number = from_round ? next - ranks : next;
    if (number < 0 || number >= std::ssize(ops)) return;
    const PipelineOp& op = order_[ops[static_cast<std::size_t>(number)]];
    const std::int32_t chunk = !from_round ? op.chunk : is_forward ? op.chunk + 1 : op.chunk - 1;
    if (chunk < 0 || chunk == schedule_.chunks) return;
    const PostedMessage message{false, is_forward, op.microbatch, chunk};
    if (way_of(schedule_, rank_, message)) batch_.push_back(message);
  }
  void behind(const std::vector<std::size_t>& ops, std::size_t k) {
    add(batch_, outputs_of(schedule_, rank_, order_[ops[k]]));
    take(ops, k);
  }
  void post_before(std::size_t op) {
    if (!batch_.empty()) batches_.push_back({op, std::exchange(batch_, {})});
  }

  const PipelineSchedule& schedule_;
  std::int32_t rank_;
  const std::vector<PipelineOp>& order_;
  std::vector<std::size_t> forwards_{};  // positions in the list
  std::vector<std::size_t> backwards_{};
  std::vector<PostedMessage> batch_{};
  Batches batches_{};
};

// ---- kPostAsPlanned ----

// PlannedEntry is an op, or a message at the place that its planned time gives it.
struct PlannedEntry {
  std::int64_t time = 0;   // start of an op, or end of the op that sends a message
  std::int64_t end = 0;    // end of an op
  std::size_t number = 0;  // an op's number in its list; a message's number, equal at both ends
  std::optional<PostedMessage> message{};  // unset: an op

  bool is_op() const { return !message.has_value(); }
};

// Posts each receive before the op that runs while its message is made.
void post_receives_ahead(std::vector<PlannedEntry>& list) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    const bool is_beside = list[i - 1].is_op() && !list[i].is_op() && !list[i].message->is_send &&
                           list[i].time <= list[i - 1].end;
    if (is_beside) std::swap(list[i - 1], list[i]);
  }
}

Batches batches_of(const std::vector<PlannedEntry>& list, const PipelineSchedule& schedule,
                   std::int32_t rank) {
  const std::vector<PipelineOp>& order = schedule.ranks[static_cast<std::size_t>(rank)];
  Batches batches;
  std::size_t next_op = 0;
  std::vector<PostedMessage> inputs = inputs_of(schedule, rank, order.front());
  bool is_open = false;
  for (const PlannedEntry& entry : list) {
    if (entry.is_op()) {
      is_open = false;
      ++next_op;
      inputs.clear();
      if (next_op < order.size()) inputs = inputs_of(schedule, rank, order[next_op]);
      continue;
    }
    if (!is_open) batches.push_back({next_op, {}});
    batches.back().messages.push_back(*entry.message);
    is_open = std::ranges::find(inputs, *entry.message) == inputs.end();
  }
  return batches;
}

template <typename BatchesOfRank>
Posting post_by_rank(const PipelineSchedule& schedule, const BatchesOfRank& batches_of_rank) {
  Posting posting{.ranks = {}, .waits_for_all = true};
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    posting.ranks.push_back(batches_of_rank(schedule, rank));
  }
  return posting;
}

}  // namespace

Posting post_around_ops(const PipelineSchedule& schedule, const StageCosts&) {
  return post_by_rank(schedule, around_ops);
}

Posting post_by_turns(const PipelineSchedule& schedule, const StageCosts&) {
  return post_by_rank(schedule, [](const PipelineSchedule& of, std::int32_t rank) {
    return Turns(of, rank).batches();
  });
}

Posting post_as_planned(const PipelineSchedule& schedule, const StageCosts& costs) {
  const PipelineReplay plan = replay(schedule, costs);
  const auto stages = static_cast<std::size_t>(stage_count(schedule));
  // When the activation and the gradient that cross a boundary are made, by micro-batch.
  std::vector<std::int64_t> made[2];
  for (auto& table : made) {
    table.resize(stages * static_cast<std::size_t>(schedule.microbatches));
  }
  const auto cell = [&](const PostedMessage& message, std::int32_t boundary) -> std::int64_t& {
    return made[message.is_activation ? 1 : 0]
               [static_cast<std::size_t>(message.microbatch) * stages +
                static_cast<std::size_t>(boundary)];
  };
  std::vector<std::vector<PlannedEntry>> lists(schedule.ranks.size());
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < schedule.ranks[at].size(); ++i) {
      const PipelineOp& op = schedule.ranks[at][i];
      const std::int64_t end = plan.starts[at][i] + time_of(schedule, rank, op, costs);
      lists[at].push_back({.time = plan.starts[at][i], .end = end, .number = i});
      for (const PostedMessage& message : outputs_of(schedule, rank, op)) {
        cell(message, way_of(schedule, rank, message)->boundary) = end;
      }
    }
  }
  std::size_t number = 0;
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    for (const PipelineOp& op : schedule.ranks[static_cast<std::size_t>(rank)]) {
      for (const PostedMessage& receive : inputs_of(schedule, rank, op)) {
        const MessageWay way = *way_of(schedule, rank, receive);
        const std::int64_t time = cell(receive, way.boundary);
        const std::int32_t from = receive.is_activation ? way.boundary : way.boundary + 1;
        const PostedMessage send{true, receive.is_activation, receive.microbatch,
                                 chunk_of(schedule, receive.microbatch, from)};
        lists[static_cast<std::size_t>(way.peer)].push_back(
            {.time = time, .number = number, .message = send});
        lists[static_cast<std::size_t>(rank)].push_back(
            {.time = time, .number = number, .message = receive});
        ++number;
      }
    }
  }
  Posting posting{.ranks = {}, .waits_for_all = false};
  for (std::int32_t rank = 0; rank < schedule.size(); ++rank) {
    std::vector<PlannedEntry>& list = lists[static_cast<std::size_t>(rank)];
    std::ranges::sort(list, {}, [](const PlannedEntry& entry) {
      return std::tuple(entry.time, entry.is_op(), entry.number);
    });
    post_receives_ahead(list);
    posting.ranks.push_back(batches_of(list, schedule, rank));
  }
  return posting;
}

}  // namespace stepsim
