#include "traces/formats/trace_arrows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/formats/trace_lanes.h"

namespace stepsim {
namespace {

const std::vector<RankId>& group_of(const OpGraph& graph, CommunicatorId id, RankId rank) {
  const Communicator& communicator = graph.communicators[id.index()];
  return communicator.groups[communicator.seat_of[rank.index()].group];
}

// Returns the peers of the messages of an op in one direction, as `rank` runs it.
std::vector<RankId> peers_of(const OpGraph& graph, const Op& op, RankId rank, bool sends) {
  std::vector<RankId> peers;
  for (const Message& message : std::span(graph.messages).subspan(op.work, op.work_count)) {
    if (message.is_send != sends) continue;
    const RankId peer = group_of(graph, message.communicator, rank)[message.peer];
    if (std::ranges::find(peers, peer) == peers.end()) peers.push_back(peer);
  }
  return peers;
}

}  // namespace

TraceArrows::TraceArrows(const OpGraph& graph, const SimulationResult& result)
    : graph_(graph),
      result_(result),
      to_(result.timelines.size()),
      from_(result.timelines.size()),
      recorded_(graph.ranks.size()) {
  for (const TimelineFlow& flow : result.flows) add_flow(flow);
  for (std::uint32_t i = 0; i < result.timelines.size(); ++i) add_releases(i);
  std::uint64_t next = 1;
  for (std::uint32_t i = 0; i < result.recorded.size(); ++i) {
    recorded_[result.recorded[i].rank.index()] = i;
    first_number_.push_back(next);
    next += to_[result.recorded[i].timeline].size();
  }
}

const Op& TraceArrows::op_of(std::uint32_t timeline, std::uint32_t entry) const {
  const Timeline& of = result_.timelines[timeline];
  const ProgramId program = graph_.ranks[of.rank.index()].program;
  return graph_.programs[program.index()].ops[of.ops[entry].op];
}

bool TraceArrows::alike(RankId a, RankId b) const {
  const std::vector<std::uint32_t>& classes = result_.class_of_rank;
  return classes.empty() ? a == b : classes[a.index()] == classes[b.index()];
}

// Both ends lie inside the slices in which data moved. A message's arrow points to its arrival; a
// collective's points to the start.
void TraceArrows::add_flow(const TimelineFlow& flow) {
  const TimelineOp& sent = result_.timelines[flow.from_timeline].ops[flow.from_entry];
  const TimelineOp& received = result_.timelines[flow.to_timeline].ops[flow.to_entry];
  const OpKind kind = op_of(flow.to_timeline, flow.to_entry).kind;
  const Span from = work_span(sent, op_of(flow.from_timeline, flow.from_entry).kind);
  const Span to = work_span(received, kind);
  const bool message = kind == OpKind::kMessages;
  if (!message && received.moving == received.started) return;  // it has not waited
  const std::int64_t last = std::max(to.begin, to.end - 1);
  const std::int64_t head = message ? last : std::clamp(from.begin, to.begin, last);
  add({flow.from_timeline, flow.from_entry, flow.to_timeline, flow.to_entry, from.begin, head,
       message ? "message" : "collective"});
}

// Finds the op that compute waited for last, and the compute op that then started.
void TraceArrows::add_releases(std::uint32_t number) {
  const Timeline& timeline = result_.timelines[number];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> entry_of;  // by step and op
  std::map<Time, std::uint32_t> starts;  // of compute ops that take time
  for (std::uint32_t i = 0; i < timeline.ops.size(); ++i) {
    const TimelineOp& entry = timeline.ops[i];
    if (op_of(number, i).kind != OpKind::kCompute) {
      entry_of[{entry.step, entry.op}] = i;
    } else if (nanoseconds(entry.started) < nanoseconds(entry.ended)) {
      starts.emplace(entry.started, i);
    }
  }
  for (const TimelineWait& wait : timeline.waits) {
    if (!wait.op || wait.cause == WaitCause::kHost) continue;
    const auto start = starts.find(wait.to);
    const auto waited = entry_of.find({wait.step, *wait.op});
    if (start == starts.end() || waited == entry_of.end()) continue;
    const Span from = work_span(timeline.ops[waited->second], op_of(number, waited->second).kind);
    add({number, waited->second, number, start->second, std::max(from.begin, from.end - 1),
         nanoseconds(wait.to), "release"});
  }
}

// Two ends in one nanosecond, the head before the tail, are an arrow that no reader could draw.
void TraceArrows::add(const Arrow& arrow) {
  if (arrow.head < arrow.tail) return;
  const auto number = static_cast<std::uint32_t>(arrows_.size());
  const auto place = static_cast<std::uint32_t>(to_[arrow.to_timeline].size());
  arrows_.push_back(arrow);
  to_[arrow.to_timeline].push_back(number);
  from_[arrow.from_timeline].push_back({number, place});
}

std::optional<RankId> TraceArrows::source(const Arrow& arrow, RankId rank) const {
  const Op& op = op_of(arrow.to_timeline, arrow.to_entry);
  if (op.kind == OpKind::kCompute) return rank;
  const RankId like = result_.timelines[arrow.from_timeline].rank;
  std::optional<RankId> found;
  const auto consider = [&](RankId peer) {
    if (alike(peer, like) && (!found || peer < *found)) found = peer;
  };
  if (op.kind == OpKind::kMessages) {
    for (const RankId peer : peers_of(graph_, op, rank, false)) consider(peer);
  } else {
    const CommunicatorId communicator = graph_.collective_works[op.work].communicator;
    for (const RankId peer : group_of(graph_, communicator, rank)) consider(peer);
  }
  return found;
}

std::vector<RankId> TraceArrows::targets(const Arrow& arrow, RankId rank) const {
  const Op& op = op_of(arrow.from_timeline, arrow.from_entry);
  if (op_of(arrow.to_timeline, arrow.to_entry).kind == OpKind::kCompute) return {rank};
  std::vector<RankId> peers;
  if (op.kind == OpKind::kMessages) {
    peers = peers_of(graph_, op, rank, true);
  } else {
    peers = group_of(graph_, graph_.collective_works[op.work].communicator, rank);
  }
  const RankId like = result_.timelines[arrow.to_timeline].rank;
  std::erase_if(peers, [&](RankId peer) { return !alike(peer, like); });
  return peers;
}

RankArrows TraceArrows::of(std::size_t recorded) const {
  const auto [rank, timeline] = result_.recorded[recorded];
  std::vector<End> ends;
  for (std::uint32_t place = 0; place < to_[timeline].size(); ++place) {
    const Arrow& arrow = arrows_[to_[timeline][place]];
    const auto from = source(arrow, rank);
    if (!from || !recorded_[from->index()]) continue;
    ends.push_back({arrow.to_entry, {number(recorded, place), true, arrow.head, arrow.name}});
  }
  for (const auto& [number_of_arrow, place] : from_[timeline]) {
    const Arrow& arrow = arrows_[number_of_arrow];
    for (const RankId to : targets(arrow, rank)) {
      const auto there = recorded_[to.index()];
      if (!there || source(arrow, to) != rank) continue;
      ends.push_back({arrow.from_entry, {number(*there, place), false, arrow.tail, arrow.name}});
    }
  }
  std::ranges::stable_sort(ends, {}, &End::entry);
  RankArrows arrows;
  arrows.first_.assign(result_.timelines[timeline].ops.size() + 1, 0);
  for (const End& end : ends) {
    arrows.ends_.push_back(end.end);
    ++arrows.first_[end.entry + 1];
  }
  for (std::size_t i = 1; i < arrows.first_.size(); ++i) arrows.first_[i] += arrows.first_[i - 1];
  return arrows;
}

}  // namespace stepsim
