#include "sim/run/books/attribution.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace stepsim {
namespace {

// Returns the stream of an op in its program.
const Stream& stream_of(const Program& program, OpId op) {
  return *std::prev(std::ranges::upper_bound(program.streams, op.index(), {}, &Stream::first_op));
}

}  // namespace

Attribution::Attribution(const Job& job, const Streams& streams)
    : job_(job), streams_(streams), ranks_(job.ranks().size()) {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const RankStreamId stream : streams.of(RankId(rank))) {
      if (streams.computes(stream)) ranks_[rank].compute_stream = stream;
    }
  }
}

Duration Attribution::clipped(Time from, Time to) const {
  const Time start = std::max(from, window_start_);
  return start < to ? to - start : Duration{};
}

void Attribution::add(RankState& state, Duration& part, const TimelineWait& wait) const {
  part += clipped(wait.from, wait.to);
  if (state.recorded && wait.from < wait.to) state.waits.push_back(wait);
}

void Attribution::compute_starts(RankId rank, Time ready, Time now) {
  RankState& state = ranks_[rank.index()];
  const RankStreamId stream = state.compute_stream;
  if (state.since < ready) {
    const Program& program = streams_.program_of(stream);
    const Ended* op =
        releaser(state, program, streams_.op_id(stream), streams_.step(stream), ready);
    if (op == nullptr) throw std::logic_error("attribution: a wait that nothing has ended");
    walk(state, program, op);
  }
  add(state, state.breakdown.launch,
      {.from = std::max(ready, state.since),
       .to = now,
       .cause = WaitCause::kHost,
       .op = streams_.op_id(stream).index(),
       .step = streams_.step(stream)});
  state.ended.clear();
  state.since = now;
  state.computing = true;
}

void Attribution::compute_ends(RankId rank, Time now) {
  RankState& state = ranks_[rank.index()];
  state.breakdown.compute += clipped(state.since, now);
  state.since = now;
  state.computing = false;
}

void Attribution::communication_ends(const CommunicationEnd& end, Time ready, Time now) {
  RankState& state = ranks_[streams_.rank_of(end.stream).index()];
  if (state.computing) return;
  state.ended.push_back({.ready = ready,
                         .started = streams_.started_at(end.stream),
                         .moving = end.moving,
                         .ended = now,
                         .op = streams_.op_id(end.stream),
                         .step = streams_.step(end.stream),
                         .waited_for_other_stage = end.waited_for_other_stage,
                         .last = end.last});
}

void Attribution::begin_window(Time now) {
  window_start_ = now;
  for (RankState& state : ranks_) state.breakdown = {};
}

const Attribution::Ended* Attribution::releaser(const RankState& state, const Program& program,
                                                OpId op, std::uint32_t step, Time at) {
  const Ended* best = nullptr;
  const auto first = std::ranges::lower_bound(state.ended, at, {}, &Ended::ended);
  const auto consider = [&](std::uint32_t candidate, std::uint32_t candidate_step) {
    for (auto ended = first; ended != state.ended.end() && ended->ended == at; ++ended) {
      if (ended->op.index() == candidate && ended->step == candidate_step &&
          (best == nullptr || ended->op < best->op)) {
        best = &*ended;
      }
    }
  };
  const Stream& own = stream_of(program, op);
  if (op.index() > own.first_op) {
    consider(op.index() - 1, step);
  } else if (step > 0) {
    consider(own.first_op + own.ops - 1, step - 1);
  }
  for (const Dependency& dependency : program.dependencies_of(op)) {
    if (dependency.previous_step && step == 0) continue;
    consider(program.streams[dependency.stream.index()].first_op + dependency.position,
             dependency.previous_step ? step - 1 : step);
  }
  return best;
}

// Walks back from the end of `op`, which the rank waited for, to the moment when the compute stream
// stopped. Each step goes from an op to the one that released it.
void Attribution::walk(RankState& state, const Program& program, const Ended* op) const {
  Breakdown& sum = state.breakdown;
  const std::size_t first = state.waits.size();
  const auto rank_of = [this](RankStreamId stream) {
    return job_.representative(streams_.rank_of(stream));
  };
  const auto add_part = [&](Duration& part, WaitCause cause, Time from, Time to) {
    const bool meets = cause == WaitCause::kOtherStage || cause == WaitCause::kPeers;
    add(state, part,
        {.from = std::max(from, state.since),
         .to = to,
         .cause = cause,
         .op = op->op.index(),
         .step = op->step,
         .last = meets && op->last ? std::optional(rank_of(*op->last)) : std::nullopt});
  };
  for (Time until = op->ended; until > state.since;) {
    const auto axis = static_cast<std::size_t>(program.ops[op->op.index()].axis);
    const Time moving = std::clamp(op->moving, op->started, until);
    add_part(sum.exposed_communication[axis], WaitCause::kData, moving, until);
    if (op->waited_for_other_stage) {
      add_part(sum.bubble, WaitCause::kOtherStage, op->started, moving);
    } else {
      add_part(sum.idle, WaitCause::kPeers, op->started, moving);
    }
    add_part(sum.launch, WaitCause::kHost, op->ready, op->started);
    until = op->ready;
    if (until <= state.since) break;
    op = releaser(state, program, op->op, op->step, until);
    if (op == nullptr) throw std::logic_error("attribution: a wait that nothing has ended");
  }
  std::ranges::reverse(state.waits.begin() + static_cast<std::ptrdiff_t>(first), state.waits.end());
}

std::vector<Breakdown> Attribution::breakdowns() const {
  std::vector<Breakdown> now;
  now.reserve(ranks_.size());
  for (const RankState& state : ranks_) now.push_back(state.breakdown);
  return now;
}

void Attribution::repeat(std::uint64_t times, const std::vector<Breakdown>& past,
                         const std::vector<std::uint32_t>& ops) {
  const auto count = static_cast<std::int64_t>(times);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankState& state = ranks_[rank];
    Breakdown& now = state.breakdown;
    const auto grow = [count](Duration& part, Duration before) { part += count * (part - before); };
    grow(now.compute, past[rank].compute);
    grow(now.bubble, past[rank].bubble);
    grow(now.idle, past[rank].idle);
    grow(now.launch, past[rank].launch);
    for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
      grow(now.exposed_communication[axis], past[rank].exposed_communication[axis]);
    }
    const RankStreams streams = streams_.of(RankId(static_cast<std::uint32_t>(rank)));
    const Program& program = streams_.program_of(state.compute_stream);
    for (Ended& ended : state.ended) {
      const auto local =
          static_cast<std::uint32_t>(&stream_of(program, ended.op) - program.streams.data());
      const std::uint32_t stream = (*streams.begin()).index() + local;
      ended.op = OpId(static_cast<std::uint32_t>(ended.op.index() + times * ops[stream]));
    }
  }
}

std::vector<Breakdown> Attribution::finish(Time end) {
  std::vector<Breakdown> result;
  for (RankState& state : ranks_) {
    const Ended* last = nullptr;
    for (const Ended& ended : state.ended) {
      const bool later = last == nullptr || ended.ended > last->ended ||
                         (ended.ended == last->ended && ended.op < last->op);
      if (later) last = &ended;
    }
    if (last != nullptr) walk(state, streams_.program_of(state.compute_stream), last);
    add(state, job_.graph().pipeline_stages > 1 ? state.breakdown.bubble : state.breakdown.idle,
        {.from = last != nullptr ? last->ended : state.since, .to = end});
    result.push_back(state.breakdown);
  }
  return result;
}

}  // namespace stepsim
