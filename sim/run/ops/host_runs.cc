#include "sim/run/ops/host_runs.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

HostRuns::HostRuns(const Job& job, const Streams& streams, Transport& transport)
    : job_(job),
      graph_(job.graph()),
      streams_(streams),
      transport_(transport),
      held_(job.quotient() == nullptr ? transport.cluster().hosts.count
                                      : job.quotient()->hosts.size()) {
  if (held_.empty()) return;
  for (std::uint32_t rank = 0; rank < job.ranks().size(); ++rank) {
    hold(RankId(rank), job.program(RankId(rank)).held_on_host, Time{});
  }
}

const HostWork& HostRuns::work_of(RankStreamId stream) const {
  return graph_.host_works[streams_.op(stream).work];
}

const HostPath& HostRuns::path_of(RankStreamId stream) const {
  return transport_.cluster().hosts.of_chip[job_.ranks()[streams_.rank_of(stream).index()].chip];
}

// The host of the rank holds more or less, for each of the ranks there that are like it.
void HostRuns::hold(RankId rank, Bytes change, Time now) {
  const HostId host = transport_.cluster().hosts.of_chip[job_.ranks()[rank.index()].chip].host;
  std::uint32_t number = host.index();
  std::int64_t times = 1;
  if (job_.quotient() != nullptr) {
    const Classes<HostId>& hosts = job_.quotient()->hosts;
    number = hosts.class_of[number];
    times = job_.count(rank) / hosts.sizes[number];
  }
  Held& held = held_[number];
  if (held.changed_at < now) held.peak = std::max(held.peak, held.bytes);
  held.changed_at = now;
  held.bytes += times * change;
}

std::vector<Bytes> HostRuns::peaks() const {
  std::vector<Bytes> peaks;
  for (std::uint32_t host = 0; host < transport_.cluster().hosts.count; ++host) {
    const Held& held =
        held_[job_.quotient() == nullptr ? host : job_.quotient()->hosts.class_of[host]];
    peaks.push_back(std::max(held.peak, held.bytes));
  }
  return peaks;
}

void HostRuns::start(RankStreamId stream, Time now) {
  const HostWork& work = work_of(stream);
  uses_.clear();
  Duration latency{};
  const auto use = [&](LinkId link) {
    uses_.push_back({link, 1.0});
    latency += transport_.cluster().fabric.link(link).latency;
  };
  switch (work.action) {
    case HostAction::kCopyOut:
      for (const LinkId link : path_of(stream).out) use(link);
      if (work.stays) hold(streams_.rank_of(stream), work.bytes, now);
      break;
    case HostAction::kCopyIn:
      for (const LinkId link : path_of(stream).in) use(link);
      break;
    case HostAction::kUpdate:
      use(path_of(stream).memory);
      break;
    case HostAction::kOther:
      latency = work.time;
      break;
  }
  if (work.action == HostAction::kCopyOut || work.action == HostAction::kCopyIn) {
    copied_[static_cast<std::size_t>(streams_.op(stream).axis)] +=
        std::int64_t{job_.count(streams_.rank_of(stream))} * work.bytes;
  }
  transport_.send(now, Transport::HostCopy{.bytes = work.bytes,
                                           .latency = latency,
                                           .uses = uses_,
                                           .owner = HostTransfer{stream},
                                           .order = TransferOrder::of_host(stream),
                                           .count = job_.count(streams_.rank_of(stream))});
}

void HostRuns::arrived(const HostTransfer& transfer, Time now, CommunicationReports& reports) {
  const RankStreamId stream = transfer.stream;
  const HostWork& work = work_of(stream);
  if (work.action == HostAction::kCopyIn && work.stays) {
    hold(streams_.rank_of(stream), Bytes(0) - work.bytes, now);
  }
  reports.ends.push_back({.stream = stream, .moving = streams_.started_at(stream)});
}

}  // namespace stepsim
