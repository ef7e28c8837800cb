#include "traces/formats/trace_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace stepsim {
namespace {

// Returns, by entry, whether the next slice of its stream that is not an instant is work, not a
// wait, and begins at the same nanosecond as the entry's work.
std::vector<bool> meets_next(const Program& program, const Timeline& timeline,
                             const RankLayout& layout) {
  std::vector<bool> meets(timeline.ops.size());
  std::vector<std::optional<std::int64_t>> next(program.streams.size());  // begin, by stream
  for (std::size_t i = timeline.ops.size(); i-- > 0;) {
    const TimelineOp& entry = timeline.ops[i];
    const OpKind kind = program.ops[entry.op].kind;
    const Span work = work_span(entry, kind);
    std::optional<std::int64_t>& begin = next[layout.stream_of_op[entry.op]];
    meets[i] = begin == work.begin;
    if (wait_span(entry, kind).length() > 0) {
      begin.reset();
    } else if (work.length() > 0) {
      begin = work.begin;
    }
  }
  return meets;
}

// Chooses a lane for the work of every entry. Returns the lanes that each stream needs; no lane if
// the stream did nothing.
std::vector<std::uint32_t> choose_lanes(const Program& program, const Timeline& timeline,
                                        RankLayout& layout) {
  struct StreamState {
    std::int64_t busy_until = 0;
    std::optional<std::int64_t> instant{};  // nanosecond of the last instant
    std::uint32_t next_lane = 0;            // lane for another instant at that nanosecond
    std::uint32_t lanes = 0;
  };
  const std::vector<bool> meets = meets_next(program, timeline, layout);
  std::vector<StreamState> states(program.streams.size());
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const TimelineOp& entry = timeline.ops[i];
    StreamState& state = states[layout.stream_of_op[entry.op]];
    const Span work = work_span(entry, program.ops[entry.op].kind);
    const std::int64_t begin = nanoseconds(entry.started);
    if (begin < state.busy_until || work.begin < begin || work.end < work.begin) {
      throw std::logic_error(
          fmt::format("rank {}: ops of a stream overlap at {} ns", timeline.rank.index(), begin));
    }
    state.busy_until = work.end;
    const Span wait = wait_span(entry, program.ops[entry.op].kind);
    layout.waits_late.push_back(wait.length() > 0 && state.instant == wait.begin);
    std::uint32_t lane = 0;
    const bool computes = program.ops[entry.op].kind == OpKind::kCompute;
    if (work.length() == 0 && !computes) {
      if (state.instant != work.begin) state.next_lane = meets[i] ? 1 : 0;
      state.instant = work.begin;
      lane = state.next_lane++;
    }
    state.lanes = std::max(state.lanes, lane + 1);
    layout.lane_of.push_back(lane);
  }
  std::vector<std::uint32_t> counts;
  for (const StreamState& state : states) counts.push_back(state.lanes);
  return counts;
}

}  // namespace

Span work_span(const TimelineOp& entry, OpKind kind) {
  const bool waits = kind != OpKind::kCompute;
  return {nanoseconds(waits ? entry.moving : entry.started), nanoseconds(entry.ended)};
}

Span wait_span(const TimelineOp& entry, OpKind kind) {
  return {nanoseconds(entry.started), work_span(entry, kind).begin};
}

RankLayout lay_out(const OpGraph& graph, RankId rank, const Timeline& timeline,
                   std::uint32_t& next_thread) {
  const Program& program = graph.programs[graph.ranks[rank.index()].program.index()];
  RankLayout layout;
  layout.process = process_of(rank);
  layout.stream_of_op.resize(program.ops.size());
  for (std::uint32_t stream = 0; stream < program.streams.size(); ++stream) {
    const Stream& ops = program.streams[stream];
    std::fill_n(layout.stream_of_op.begin() + ops.first_op, ops.ops, stream);
  }
  const std::vector<std::uint32_t> counts = choose_lanes(program, timeline, layout);
  for (std::uint32_t stream = 0; stream < program.streams.size(); ++stream) {
    std::vector<TraceLane>& lanes = layout.lanes.emplace_back();
    for (std::uint32_t lane = 0; lane < counts[stream]; ++lane) {
      const bool main = lane == 0 && program.streams[stream].computes;
      std::string name = program.streams[stream].name;
      if (lane > 0) name += lane == 1 ? " (instants)" : fmt::format(" (instants {})", lane);
      lanes.push_back({main ? layout.process : next_thread++, std::move(name)});
    }
  }
  return layout;
}

}  // namespace stepsim
