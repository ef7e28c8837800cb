#include "sim/run/ops/host_runs.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

HostRuns::HostRuns(const OpGraph& graph, const Streams& streams, Transport& transport)
    : graph_(graph),
      streams_(streams),
      transport_(transport),
      held_(transport.cluster().hosts.count),
      peaks_(held_.size()) {
  if (held_.empty()) return;
  for (const RankData& rank : graph.ranks) {
    hold(transport.cluster().hosts.of_chip[rank.chip].host,
         graph.programs[rank.program.index()].held_on_host);
  }
}

const HostWork& HostRuns::work_of(RankStreamId stream) const {
  return graph_.host_works[streams_.op(stream).work];
}

const HostPath& HostRuns::path_of(RankStreamId stream) const {
  return transport_.cluster().hosts.of_chip[graph_.ranks[streams_.rank_of(stream).index()].chip];
}

void HostRuns::hold(HostId host, Bytes change) {
  held_[host.index()] += change;
  peaks_[host.index()] = std::max(peaks_[host.index()], held_[host.index()]);
}

void HostRuns::start(RankStreamId stream, Time now) {
  const HostWork& work = work_of(stream);
  const HostPath& path = path_of(stream);
  uses_.clear();
  Duration latency{};
  const auto use = [&](LinkId link) {
    uses_.push_back({link, 1.0});
    latency += transport_.cluster().fabric.link(link).latency;
  };
  switch (work.action) {
    case HostAction::kCopyOut:
      for (const LinkId link : path.out) use(link);
      if (work.stays) hold(path.host, work.bytes);
      break;
    case HostAction::kCopyIn:
      for (const LinkId link : path.in) use(link);
      break;
    case HostAction::kUpdate:
      use(path.memory);
      break;
  }
  if (work.action != HostAction::kUpdate) {
    copied_[static_cast<std::size_t>(streams_.op(stream).axis)] += work.bytes;
  }
  transport_.start(now,
                   {.bytes = work.bytes,
                    .latency = latency,
                    .uses = uses_,
                    .order = TransferOrder::of_host(stream).key(),
                    .keeps_links = true},
                   HostTransfer{stream});
}

void HostRuns::arrived(const HostTransfer& transfer, CommunicationReports& reports) {
  const RankStreamId stream = transfer.stream;
  const HostWork& work = work_of(stream);
  if (work.action == HostAction::kCopyIn && work.stays) {
    hold(path_of(stream).host, Bytes(0) - work.bytes);
  }
  reports.ends.push_back({stream, streams_.started_at(stream), false});
}

}  // namespace stepsim
