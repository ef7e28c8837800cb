#include "sim/run/deadlock_report.h"

#include <algorithm>
#include <span>
#include <vector>

namespace stepsim {
namespace {

std::string name_of_op(const OpGraph& graph, const Streams& streams, std::uint32_t stream) {
  const Program& program = streams.program_of(stream);
  const OpLabel& label = program.labels[streams.op(stream)];
  std::string text = "rank " + std::to_string(streams.rank_of(stream)) + ", stream '" +
                     program.streams[streams.local(stream)].name + "', op " +
                     std::to_string(streams.position(stream));
  if (label.name >= graph.names.size()) return text;
  text += " (" + graph.names[label.name];
  if (label.microbatch >= 0) text += ", micro-batch " + std::to_string(label.microbatch);
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

// Streams of `rank` that still have an op on the communicator: those that could end the wait.
std::vector<std::uint32_t> candidates(const OpGraph& graph, const Streams& streams,
                                      std::uint32_t rank, const Op& waiting) {
  std::vector<std::uint32_t> result;
  const CommunicatorId communicator = communicator_of(graph, waiting);
  for (std::uint32_t s = streams.first_of(rank); s < streams.first_of(rank + 1); ++s) {
    if (streams.finished(s)) continue;
    const Program& program = streams.program_of(s);
    const Stream& stream = program.streams[streams.local(s)];
    const std::span<const Op> left =
        std::span(program.ops).subspan(stream.first_op, stream.ops).subspan(streams.position(s));
    if (std::ranges::any_of(left, [&](const Op& op) {
          return op.kind == waiting.kind && uses_communicator(graph, op, communicator);
        })) {
      result.push_back(s);
    }
  }
  return result;
}

// A cycle among the streams that wait for streams, found depth first.
class CycleSearch {
 public:
  explicit CycleSearch(const std::vector<std::vector<std::uint32_t>>& waits_on)
      : waits_on_(waits_on), state_(waits_on.size(), State::kNew) {}

  std::vector<std::uint32_t> find() {
    for (std::uint32_t start = 0; start < waits_on_.size(); ++start) {
      if (state_[start] == State::kNew && !waits_on_[start].empty()) visit(start);
      if (!cycle_.empty()) break;
    }
    return cycle_;
  }

 private:
  enum class State : std::uint8_t { kNew, kOnPath, kDone };

  // Without recursion: a path may be as long as there are streams.
  void visit(std::uint32_t start) {
    std::vector<std::uint32_t> path = {start};
    std::vector<std::size_t> next = {0};
    state_[start] = State::kOnPath;
    while (!path.empty()) {
      const std::uint32_t at = path.back();
      if (next.back() == waits_on_[at].size()) {
        state_[at] = State::kDone;
        path.pop_back();
        next.pop_back();
        continue;
      }
      const std::uint32_t to = waits_on_[at][next.back()++];
      if (state_[to] == State::kOnPath) {
        cycle_.assign(std::ranges::find(path, to), path.end());
        return;
      }
      if (state_[to] == State::kNew) {
        state_[to] = State::kOnPath;
        path.push_back(to);
        next.push_back(0);
      }
    }
  }

  const std::vector<std::vector<std::uint32_t>>& waits_on_;
  std::vector<State> state_;
  std::vector<std::uint32_t> cycle_;
};

}  // namespace

std::string deadlock_report(const OpGraph& graph, Streams& streams, const Channels& channels,
                            const CollectiveRuns& collectives, std::size_t most_lines) {
  std::vector<std::vector<std::uint32_t>> waits_on(streams.count());
  std::string report = "deadlock: nothing can happen any more, but ops are waiting\n";
  std::size_t lines = 0;
  for (std::uint32_t stream = 0; stream < streams.count(); ++stream) {
    if (streams.finished(stream)) continue;
    std::string wait;
    if (streams.running(stream)) {
      const Op& op = streams.program_of(stream).ops[streams.op(stream)];
      std::vector<std::uint32_t> ranks;
      if (op.kind == OpKind::kHost) {
        wait = "its host";
      } else {
        wait = op.kind == OpKind::kMessages ? channels.waits_for(stream, ranks)
                                            : collectives.waits_for(stream, ranks);
      }
      for (const std::uint32_t rank : ranks) {
        const auto found = candidates(graph, streams, rank, op);
        waits_on[stream].insert(waits_on[stream].end(), found.begin(), found.end());
      }
    } else if (!streams.ready(stream)) {
      const Streams::Wait on = streams.wait_of(stream);
      const Stream& other = streams.program_of(on.stream).streams[streams.local(on.stream)];
      wait = "the end of op " + std::to_string((on.until - 1) % other.ops) + " of its stream '" +
             other.name + "'";
      waits_on[stream].push_back(on.stream);
    }
    if (++lines <= most_lines) {
      report += "  " + name_of_op(graph, streams, stream) + " waits for " + wait + "\n";
    }
  }
  if (lines > most_lines) {
    report += "  ... and " + std::to_string(lines - most_lines) + " more\n";
  }
  const std::vector<std::uint32_t> cycle = CycleSearch(waits_on).find();
  if (!cycle.empty()) {
    report += "cycle:\n";
    for (const std::uint32_t stream : cycle) {
      report += "  " + name_of_op(graph, streams, stream) + ", which waits for\n";
    }
    report += "  the first\n";
  }
  return report;
}

}  // namespace stepsim
