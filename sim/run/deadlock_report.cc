#include "sim/run/deadlock_report.h"

#include <algorithm>
#include <span>
#include <vector>

namespace stepsim {
namespace {

std::string name_of_op(const OpGraph& graph, const Streams& streams, RankStreamId stream) {
  const OpLabel& label = streams.program_of(stream).labels[streams.op_id(stream).index()];
  std::string text = "rank " + std::to_string(streams.rank_of(stream).index()) + ", stream '" +
                     streams.stream(stream).name + "', op " +
                     std::to_string(streams.position(stream));
  if (label.name >= graph.names.size()) return text;
  text += " (" + graph.names[label.name];
  if (label.microbatch) text += ", micro-batch " + std::to_string(*label.microbatch);
  return text + ")";
}

bool uses_communicator(const OpGraph& graph, const Op& op, CommunicatorId communicator) {
  switch (op.kind) {
    case OpKind::kCompute:
      return false;
    case OpKind::kCollective:
      return graph.collective_works[op.work].communicator == communicator;
    case OpKind::kHost:
      return false;
    case OpKind::kMessages:
      break;
  }
  for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
    if (graph.messages[m].communicator == communicator) return true;
  }
  return false;
}

CommunicatorId communicator_of(const OpGraph& graph, const Op& op) {
  return op.kind == OpKind::kCollective ? graph.collective_works[op.work].communicator
                                        : graph.messages[op.work].communicator;
}

// Returns the streams of `rank` that still have an op on the communicator. They could end the wait.
std::vector<RankStreamId> candidates(const OpGraph& graph, const Streams& streams, RankId rank,
                                     const Op& waiting) {
  std::vector<RankStreamId> result;
  const CommunicatorId communicator = communicator_of(graph, waiting);
  for (const RankStreamId id : streams.of(rank)) {
    if (streams.finished(id)) continue;
    const Stream& stream = streams.stream(id);
    const std::span<const Op> left = std::span(streams.program_of(id).ops)
                                         .subspan(stream.first_op, stream.ops)
                                         .subspan(streams.position(id));
    if (std::ranges::any_of(left, [&](const Op& op) {
          return op.kind == waiting.kind && uses_communicator(graph, op, communicator);
        })) {
      result.push_back(id);
    }
  }
  return result;
}

using WaitsOn = std::vector<std::vector<RankStreamId>>;  // by stream: the streams that it waits for

// CycleSearch finds a cycle among streams that wait for streams, depth first.
class CycleSearch {
 public:
  explicit CycleSearch(const WaitsOn& waits_on)
      : waits_on_(waits_on), state_(waits_on.size(), State::kNew) {}

  std::vector<RankStreamId> find() {
    for (std::uint32_t start = 0; start < waits_on_.size(); ++start) {
      if (state_[start] == State::kNew && !waits_on_[start].empty()) visit(RankStreamId(start));
      if (!cycle_.empty()) break;
    }
    return cycle_;
  }

 private:
  enum class State : std::uint8_t { kNew, kOnPath, kDone };

  // This is not recursive, because a path may be as long as there are streams.
  void visit(RankStreamId start) {
    std::vector<RankStreamId> path = {start};
    std::vector<std::size_t> next = {0};
    state_[start.index()] = State::kOnPath;
    while (!path.empty()) {
      const std::uint32_t at = path.back().index();
      if (next.back() == waits_on_[at].size()) {
        state_[at] = State::kDone;
        path.pop_back();
        next.pop_back();
        continue;
      }
      const RankStreamId to = waits_on_[at][next.back()++];
      State& state = state_[to.index()];
      if (state == State::kOnPath) {
        cycle_.assign(std::ranges::find(path, to), path.end());
        return;
      }
      if (state == State::kNew) {
        state = State::kOnPath;
        path.push_back(to);
        next.push_back(0);
      }
    }
  }

  const WaitsOn& waits_on_;
  std::vector<State> state_;
  std::vector<RankStreamId> cycle_;
};

// Describes in words what the next op of a stream waits for. Adds the streams that could end the
// wait to `waits_on`.
class Waits {
 public:
  Waits(const OpGraph& graph, Streams& streams, const Channels& channels,
        const CollectiveRuns& collectives, const Launches* launches)
      : graph_(graph),
        streams_(streams),
        channels_(channels),
        collectives_(collectives),
        launches_(launches) {}

  std::string of(RankStreamId stream, std::vector<RankStreamId>& waits_on) {
    if (streams_.running(stream)) return of_running(stream, waits_on);
    if (streams_.ready(stream)) return of_launch(stream, waits_on);
    const Streams::Wait on = streams_.wait_of(stream);
    waits_on.push_back(on.stream);
    const Stream& other = streams_.stream(on.stream);
    return "the end of op " + std::to_string((on.until - 1) % other.ops) + " of its stream '" +
           other.name + "'";
  }

 private:
  std::string of_launch(RankStreamId stream, std::vector<RankStreamId>& waits_on) {
    if (launches_ == nullptr) return {};
    const std::optional<RankStreamId> other = launches_->waits_for(streams_.rank_of(stream));
    if (!other) return "its launch";
    waits_on.push_back(*other);
    return "its launch by the host, which waits for stream '" + streams_.stream(*other).name + "'";
  }

  std::string of_running(RankStreamId stream, std::vector<RankStreamId>& waits_on) {
    const Op& op = streams_.op(stream);
    if (op.kind == OpKind::kHost) return "its host";
    std::vector<RankId> ranks;
    std::string wait = op.kind == OpKind::kMessages ? channels_.waits_for(stream, ranks)
                                                    : collectives_.waits_for(stream, ranks);
    for (const RankId rank : ranks) {
      const auto found = candidates(graph_, streams_, rank, op);
      waits_on.insert(waits_on.end(), found.begin(), found.end());
    }
    return wait;
  }

  const OpGraph& graph_;
  Streams& streams_;
  const Channels& channels_;
  const CollectiveRuns& collectives_;
  const Launches* launches_;
};

}  // namespace

std::string deadlock_report(const OpGraph& graph, Streams& streams, const Channels& channels,
                            const CollectiveRuns& collectives, const Launches* launches,
                            std::size_t most_lines) {
  WaitsOn waits_on(streams.count());
  Waits waits(graph, streams, channels, collectives, launches);
  std::string report = "deadlock: nothing can happen any more, but ops are waiting\n";
  std::size_t lines = 0;
  for (std::uint32_t i = 0; i < streams.count(); ++i) {
    const RankStreamId stream(i);
    if (streams.finished(stream)) continue;
    const std::string wait = waits.of(stream, waits_on[i]);
    if (++lines > most_lines) continue;
    report += "  " + name_of_op(graph, streams, stream) + " waits for " + wait + "\n";
  }
  if (lines > most_lines) {
    report += "  ... and " + std::to_string(lines - most_lines) + " more\n";
  }
  const std::vector<RankStreamId> cycle = CycleSearch(waits_on).find();
  if (cycle.empty()) return report;
  report += "cycle:\n";
  for (const RankStreamId stream : cycle) {
    report += "  " + name_of_op(graph, streams, stream) + ", which waits for\n";
  }
  return report + "  the first\n";
}

}  // namespace stepsim
