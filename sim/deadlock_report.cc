#include "sim/deadlock_report.h"

#include <algorithm>
#include <vector>

namespace stepsim {
namespace {

std::string name_of_op(const OpGraph& graph, const Streams& streams, std::uint32_t stream) {
  const Program& program = streams.program_of(stream);
  const OpLabel& label = program.labels[streams.op(stream)];
  std::string text = "rank " + std::to_string(streams.rank_of(stream)) + ", stream '" +
                     program.streams[streams.local(stream)].name + "', op " +
                     std::to_string(streams.position(stream));
  if (label.name < graph.names.size()) text += " (" + graph.names[label.name];
  if (label.microbatch >= 0) text += ", micro-batch " + std::to_string(label.microbatch);
  return label.name < graph.names.size() ? text + ")" : text;
}

// The streams that could end the wait of each stream.
struct WaitGraph {
  std::vector<std::uint32_t> waiting;
  std::vector<std::vector<std::uint32_t>> on;  // by stream
};

// Follows the first wait of each stream until one comes twice.
std::vector<std::uint32_t> find_cycle(const WaitGraph& waits) {
  std::vector<std::uint32_t> seen(waits.on.size(), 0);
  for (std::uint32_t start = 0; start < waits.waiting.size(); ++start) {
    std::vector<std::uint32_t> path;
    std::uint32_t at = waits.waiting[start];
    while (seen[at] == 0) {
      seen[at] = start + 1;
      path.push_back(at);
      if (waits.on[at].empty()) break;
      at = waits.on[at].front();
    }
    const auto again = std::ranges::find(path, at);
    if (!waits.on[at].empty() && again != path.end()) return {again, path.end()};
  }
  return {};
}

}  // namespace

std::string deadlock_report(const OpGraph& graph, Streams& streams, const Channels& channels,
                            const CollectiveRuns& collectives, std::size_t most_lines) {
  WaitGraph waits;
  waits.on.resize(streams.count());
  std::string report = "deadlock: nothing can happen any more, but ops are waiting\n";
  std::size_t lines = 0;
  for (std::uint32_t stream = 0; stream < streams.count(); ++stream) {
    if (streams.finished(stream)) continue;
    std::string wait;
    if (streams.running(stream)) {
      const Op& op = streams.program_of(stream).ops[streams.op(stream)];
      std::vector<std::uint32_t> ranks;
      wait = op.kind == OpKind::kMessages ? channels.waits_for(stream, ranks)
                                          : collectives.waits_for(stream, ranks);
      for (const std::uint32_t rank : ranks) {
        for (std::uint32_t s = streams.first_of(rank); s < streams.first_of(rank + 1); ++s) {
          if (streams.finished(s) || s == stream) continue;
          const Op& other = streams.program_of(s).ops[streams.op(s)];
          if (other.kind == op.kind && !streams.running(s)) waits.on[stream].push_back(s);
        }
      }
    } else if (!streams.ready(stream)) {
      const Streams::Wait on = streams.wait_of(stream);
      wait = "the end of op " +
             std::to_string((on.until - 1) %
                            streams.program_of(on.stream).streams[streams.local(on.stream)].ops) +
             " of its stream '" +
             streams.program_of(on.stream).streams[streams.local(on.stream)].name + "'";
      waits.on[stream].push_back(on.stream);
    }
    waits.waiting.push_back(stream);
    if (++lines <= most_lines) {
      report += "  " + name_of_op(graph, streams, stream) + " waits for " + wait + "\n";
    }
  }
  if (lines > most_lines) {
    report += "  ... and " + std::to_string(lines - most_lines) + " more\n";
  }
  const std::vector<std::uint32_t> cycle = find_cycle(waits);
  if (!cycle.empty()) {
    report += "cycle:\n";
    for (const std::uint32_t stream : cycle) {
      report += "  " + name_of_op(graph, streams, stream) + "\n";
    }
    report += "  ... which waits for the first\n";
  }
  return report;
}

}  // namespace stepsim
