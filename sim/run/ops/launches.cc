#include "sim/run/ops/launches.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace stepsim {
namespace {

const Stream& stream_with(const Program& program, OpId op) {
  return *std::prev(std::ranges::upper_bound(program.streams, op.index(), {}, &Stream::first_op));
}

// Returns the time from the first launch of a run to its start (the header's formula).
Duration lead_of(const ComputeWork& work, const ChipSpec& chip, Duration launch) {
  Duration lead{};
  Duration before{};
  std::int64_t launches = 0;
  for (const Kernel& kernel : work.kernels) {
    launches += kernel.launches;
    lead = std::max(lead, std::max<std::int64_t>(launches, 1) * launch - before);
    before += time_of(kernel, chip).total;
  }
  return std::max(lead, launch);
}

}  // namespace

Launches::Launches(const Job& job, const Streams& streams, const ChipSpec& chip,
                   std::uint32_t steps)
    : streams_(streams),
      cost_(*job.graph().host),
      steps_(steps),
      hosts_(job.ranks().size()),
      queues_(streams.count()) {
  std::vector<Duration> leads;
  for (const ComputeWork& work : job.graph().compute_works) {
    leads.push_back(lead_of(work, chip, cost_.launch));
  }
  for (const Program& program : job.graph().programs) programs_.push_back(calls_of(program, leads));
  std::vector<RankStreamId> nobody;
  for (std::uint32_t rank = 0; rank < hosts_.size(); ++rank) {
    hosts_[rank].program = &programs_[job.ranks()[rank].program.index()];
    hosts_[rank].first_stream = (*streams.of(RankId(rank)).begin()).index();
    launch(hosts_[rank], nobody);
  }
}

Launches::Calls Launches::calls_of(const Program& program,
                                   const std::vector<Duration>& leads) const {
  assert(program.launches.size() == program.ops.size());
  Calls result;
  std::uint64_t sum = 0;
  for (const LaunchCall& call : program.launches) {
    const Op& op = program.ops[call.op.index()];
    const Stream& stream = stream_with(program, call.op);
    result.calls.push_back({.stream = static_cast<std::uint32_t>(&stream - program.streams.data()),
                            .position = call.op.index() - stream.first_op,
                            .before = sum,
                            .cost = std::int64_t{call.launches} * cost_.launch,
                            .lead = op.kind == OpKind::kCompute ? leads[op.work] : cost_.launch,
                            .waits = call.waits});
    if (!stream.computes) continue;
    result.compute = result.calls.back().stream;
    sum += call.launches;
    result.ends.push_back(sum);
  }
  return result;
}

std::optional<Time> Launches::launched(RankStreamId stream, Time now) {
  Queue& queue = queues_[stream.index()];
  if (!std::exchange(queue.ready, true)) queue.ready_at = now;
  queue.waits_for_launch = queue.first == queue.starts.size();
  if (queue.waits_for_launch) return std::nullopt;
  return queue.starts[queue.first];
}

bool Launches::begins_to_wait(RankStreamId stream) {
  return !std::exchange(queues_[stream.index()].waits_for_instant, true);
}

void Launches::start(RankStreamId stream) {
  Queue& queue = queues_[stream.index()];
  queue.ready = queue.waits_for_instant = false;
  if (++queue.first < queue.starts.size() / 2) return;
  queue.starts.erase(queue.starts.begin(),
                     queue.starts.begin() + static_cast<std::ptrdiff_t>(queue.first));
  queue.first = 0;
}

bool Launches::end(RankStreamId stream, Time now, std::vector<RankStreamId>& woken) {
  Host& host = hosts_[streams_.rank_of(stream).index()];
  if (!host.wait || host.wait->stream != stream || !is_over(*host.wait)) return false;
  host.wait.reset();
  const bool was_idle = host.until < now;
  if (was_idle) host.since = host.until = now;
  launch(host, woken);
  return was_idle;
}

std::optional<RankStreamId> Launches::waits_for(RankId rank) const {
  const std::optional<Wait>& wait = hosts_[rank.index()].wait;
  return wait ? std::optional(wait->stream) : std::nullopt;
}

std::optional<Launches::Wait> Launches::wait_for_queue(const Host& host, const Call& call) const {
  const Calls& program = *host.program;
  if (call.stream != program.compute) return std::nullopt;
  const std::uint64_t of_a_step = program.ends.back();
  const std::uint64_t before = host.step * of_a_step + call.before;
  if (before < cost_.queue_depth) return std::nullopt;
  const std::uint64_t freeing = before - cost_.queue_depth;  // number of a launch, from 0
  const auto op = std::ranges::upper_bound(program.ends, freeing % of_a_step);
  const auto position = static_cast<std::uint64_t>(op - program.ends.begin());
  return Wait{.stream = RankStreamId(host.first_stream + call.stream),
              .ended = freeing / of_a_step * program.ends.size() + position + 1};
}

void Launches::launch(Host& host, std::vector<RankStreamId>& woken) {
  const std::vector<Call>& calls = host.program->calls;
  while (host.step < steps_ && !calls.empty()) {
    const Call& call = calls[host.next];
    host.wait = wait_for_queue(host, call);
    if (host.wait && !is_over(*host.wait)) return;
    host.wait.reset();
    const RankStreamId stream(host.first_stream + call.stream);
    Queue& queue = queues_[stream.index()];
    queue.starts.push_back(host.until + call.lead);
    if (std::exchange(queue.waits_for_launch, false)) woken.push_back(stream);
    host.until = host.until + call.cost;
    if (call.waits) {
      host.wait =
          Wait{.stream = stream,
               .ended = host.step * std::uint64_t{streams_.stream(stream).ops} + call.position + 1};
    }
    if (++host.next == calls.size()) {
      host.next = 0;
      ++host.step;
    }
    if (host.wait) return;
  }
}

}  // namespace stepsim
