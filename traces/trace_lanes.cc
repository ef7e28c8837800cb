#include "traces/trace_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace stepsim {
namespace {

// Chooses a lane for the work of every entry. Returns the lanes that each stream needs; none where
// the stream did nothing.
std::vector<std::uint32_t> choose_lanes(const Program& program, const Timeline& timeline,
                                        RankLayout& layout) {
  struct StreamState {
    std::int64_t busy_until = 0;
    std::int64_t instant = -1;   // nanosecond of the last instant
    std::uint32_t instants = 0;  // so far at that nanosecond
    std::uint32_t lanes = 0;
  };
  std::vector<StreamState> states(program.streams.size());
  for (const TimelineOp& entry : timeline.ops) {
    StreamState& state = states[layout.stream_of_op[entry.op]];
    const Span work = work_span(entry, program.ops[entry.op].kind);
    const std::int64_t begin = nanoseconds(entry.started);
    if (begin < state.busy_until || work.begin < begin || work.end < work.begin) {
      throw std::logic_error(
          fmt::format("rank {}: ops of a stream overlap at {} ns", timeline.rank.index(), begin));
    }
    state.busy_until = work.end;
    std::uint32_t lane = 0;
    if (work.length() == 0) {
      state.instants = state.instant == work.begin ? state.instants + 1 : 1;
      state.instant = work.begin;
      lane = state.instants;
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

RankLayout lay_out(const OpGraph& graph, const Timeline& timeline, std::uint32_t& next_thread) {
  const Program& program = graph.programs[graph.ranks[timeline.rank.index()].program.index()];
  RankLayout layout;
  layout.process = process_of(timeline.rank);
  layout.stream_of_op.resize(program.ops.size());
  for (std::uint32_t stream = 0; stream < program.streams.size(); ++stream) {
    const Stream& ops = program.streams[stream];
    std::fill_n(layout.stream_of_op.begin() + ops.first_op, ops.ops, stream);
  }
  const std::vector<std::uint32_t> counts = choose_lanes(program, timeline, layout);
  for (std::uint32_t stream = 0; stream < program.streams.size(); ++stream) {
    std::vector<Lane>& lanes = layout.lanes.emplace_back();
    for (std::uint32_t lane = 0; lane < counts[stream]; ++lane) {
      const bool main = lane == 0 && program.streams[stream].computes;
      std::string name = program.streams[stream].name;
      if (lane > 0) name += " (instants)";
      lanes.push_back({main ? layout.process : next_thread++, std::move(name)});
    }
  }
  return layout;
}

}  // namespace stepsim
