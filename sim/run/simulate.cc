#include "sim/run/simulate.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <random>
#include <utility>

#include "sim/engine/event_queue.h"
#include "sim/network/flow_network.h"
#include "sim/network/latency_bandwidth_network.h"
#include "sim/run/attribution.h"
#include "sim/run/channels.h"
#include "sim/run/checks.h"
#include "sim/run/collective_run.h"
#include "sim/run/compute.h"
#include "sim/run/critical_path.h"
#include "sim/run/deadlock_report.h"
#include "sim/run/host_runs.h"
#include "sim/run/memory_ledger.h"
#include "sim/run/recorder.h"
#include "sim/run/streams.h"
#include "sim/run/transport.h"

namespace stepsim {

std::string_view name_of(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kFlow:
      return "flow";
    case Fidelity::kPacket:
      return "packet";
    case Fidelity::kLatencyBandwidth:
      break;
  }
  return "latency-bandwidth";
}

std::string_view name_of(Granularity granularity) {
  return granularity == Granularity::kPipelined ? "pipelined" : "stepped";
}

namespace {

std::unique_ptr<Network> make_packet_network(const Cluster& cluster,
                                             const SimulationOptions& options) {
  if (options.granularity != Granularity::kStepped) {
    throw std::logic_error("packets need stepped collectives");
  }
  PacketOptions packets = options.packets;
  if (packets.spraying && packets.spraying->router == nullptr) {
    packets.spraying->router = cluster.router.get();
  }
  return make_packet_network(cluster.fabric, packets);
}

std::unique_ptr<Network> make_network(const Cluster& cluster, const SimulationOptions& options) {
  const Fabric& fabric = cluster.fabric;
  switch (options.fidelity) {
    case Fidelity::kFlow:
      return make_flow_network(fabric);
    case Fidelity::kPacket:
      return make_packet_network(cluster, options);
    case Fidelity::kLatencyBandwidth:
      break;
  }
  return make_latency_bandwidth_network(fabric);
}

constexpr std::uint32_t kComputeEnds = 0;  // event kind; its index is the rank

class Simulation {
 public:
  Simulation(const OpGraph& graph, const Cluster& cluster, const SimulationOptions& options)
      : graph_(graph),
        cluster_(cluster),
        options_(options),
        network_(make_network(cluster, options)),
        transport_(cluster, *network_, options.fidelity == Fidelity::kPacket),
        streams_(graph, options.steps),
        channels_(graph, streams_, transport_),
        collectives_(graph, streams_, transport_, options.granularity, options.fidelity),
        hosts_(graph, streams_, transport_),
        compute_(graph, cluster.chip),
        memory_(graph),
        path_(streams_.count(), graph.path_labels.size() + kAxes),
        attribution_(graph, streams_),
        recorder_(graph, streams_, cluster, options),
        random_(options.shuffle_seed) {
    left_in_step_.assign(options.steps, streams_.ops_total() / options.steps);
  }

  void run() {
    for (std::uint32_t stream = 0; stream < streams_.count(); ++stream) woken_.push_back(stream);
    start_woken();
    // Events that are left when the last op has ended are stale: they must not move the clock.
    while (streams_.ops_ended() != streams_.ops_total()) {
      network_->settle(now());
      const std::optional<Time> next = next_instant();
      if (!next) {
        throw DeadlockError(deadlock_report(graph_, streams_, channels_, collectives_) +
                            network_->blocked_report());
      }
      recorder_.links_until(*next, *network_);
      queue_.advance_to(*next);
      report_progress();
      // The network goes first, then the queue; what they wake starts before rates are settled.
      if (network_->next_event() == *next) {
        transfers_.clear();
        network_->advance(*next, transfers_);
        ++events_;
        for (const TransferId transfer : transfers_) arrived(transfer);
        flush_meetings();
      }
      while (!queue_.empty() && queue_.next_time() == *next) compute_event(queue_.pop());
      start_woken();
    }
  }

  SimulationResult result();

 private:
  Time now() const { return queue_.now(); }

  std::optional<Time> next_instant() const {
    std::optional<Time> next = network_->next_event();
    if (!queue_.empty() && (!next || queue_.next_time() < *next)) next = queue_.next_time();
    return next;
  }

  void report_progress() {
    if (options_.progress == nullptr || (++instants_ & 0xfff) != 0) return;
    if (!options_.progress(options_.progress_context, now(), streams_.ops_ended(),
                           streams_.ops_total())) {
      throw SimulationInterrupted("interrupted at " +
                                  std::to_string(to_seconds(now().since_start)) +
                                  " s of simulated time");
    }
  }

  // Starts every op that may start now, and what becomes ready by ops of no duration.
  void start_woken() {
    while (!woken_.empty()) {
      if (options_.shuffle_seed != 0) std::swap(woken_[random_() % woken_.size()], woken_.back());
      const std::uint32_t stream = woken_.back();
      woken_.pop_back();
      if (streams_.ready(stream)) start(stream);
      flush_meetings();
    }
  }

  void start(std::uint32_t stream) {
    const std::uint32_t rank = streams_.rank_of(stream);
    const std::uint32_t op_id = streams_.op(stream);
    const Op& op = streams_.program_of(stream).ops[op_id];
    path_.inherit(stream, streams_.releaser(stream, now()));
    streams_.start(stream, now());
    change_memory(stream, false);
    if (recorder_.records(rank)) recorder_.started(stream, now());
    switch (op.kind) {
      case OpKind::kCompute:
        attribution_.compute_starts(rank, now());
        queue_.schedule(compute_.start(rank, op.work, jitter(stream, op_id), now()),
                        Event(kComputeEnds, rank));
        break;
      case OpKind::kCollective:
        hold_chip(stream, +1);
        collectives_.post(stream, now(), meetings_);
        break;
      case OpKind::kMessages:
        channels_.post(stream, now(), meetings_);
        break;
      case OpKind::kHost:
        hosts_.start(stream, now());
        break;
    }
  }

  double jitter(std::uint32_t stream, std::uint32_t op) const {
    if (graph_.jitter.deviation == 0) return 1;
    return factor_of(graph_.jitter, streams_.step(stream), streams_.rank_of(stream), op);
  }

  void compute_event(Event event) {
    ++events_;
    const std::uint32_t rank = event.index();
    if (!compute_.running(rank) || compute_.ends_at(rank) != now()) return;  // stale
    compute_.end(rank);
    const std::uint32_t stream = attribution_.compute_stream(rank);
    const Op& op = streams_.program_of(stream).ops[streams_.op(stream)];
    attribution_.compute_ends(rank, now());
    path_.add(stream, graph_.compute_works[op.work].path_label, streams_.started_at(stream), now());
    end(stream, streams_.started_at(stream));
  }

  void arrived(TransferId transfer) {
    const TransferOwner owner = transport_.take(transfer);
    if (owner.collective) {
      collectives_.arrived(owner, now(), meetings_);
    } else if (owner.host) {
      hosts_.arrived(owner, meetings_);
    } else {
      channels_.arrived(owner, meetings_);
    }
  }

  // Hands on what channels and collectives have reported.
  void flush_meetings() {
    for (const Join& join : meetings_.joins) path_.inherit(join.stream, join.from);
    for (const Join& arrow : meetings_.arrows) {
      if (recorder_.records(streams_.rank_of(arrow.from))) recorder_.arrow(arrow);
    }
    for (const CommunicationEnd& ended : meetings_.ends) {
      const Op& op = streams_.program_of(ended.stream).ops[streams_.op(ended.stream)];
      if (op.kind == OpKind::kCollective) hold_chip(ended.stream, -1);
      attribution_.communication_ends(ended.stream, ended.moving, ended.waited_for_other_stage,
                                      now());
      path_.add(ended.stream, graph_.path_labels.size() + static_cast<std::size_t>(op.axis),
                std::max(ended.moving, streams_.started_at(ended.stream)), now());
      end(ended.stream, ended.moving);
    }
    meetings_.clear();
  }

  void end(std::uint32_t stream, Time moving) {
    change_memory(stream, true);
    if (recorder_.records(streams_.rank_of(stream))) recorder_.ended(stream, moving, now());
    const std::uint32_t step = streams_.step(stream);
    streams_.end(stream, now(), woken_);
    if (--left_in_step_[step] == 0) end_step(stream);
  }

  void end_step(std::uint32_t stream) {
    step_ends_.push_back(now());
    last_stream_ = stream;
    if (step_ends_.size() == 1 && options_.steps > 1) {
      path_.begin_window(now());
      attribution_.begin_window(now());
    }
  }

  void change_memory(std::uint32_t stream, bool at_end) {
    const Program& program = streams_.program_of(stream);
    const std::uint32_t rank = streams_.rank_of(stream);
    bool changed = false;
    for (const MemoryChange& change : program.memory_changes_of(streams_.op(stream))) {
      if (change.at_end != at_end) continue;
      memory_.change(rank, now(), streams_.op(stream), change.category,
                     at_end ? Bytes(0) - change.bytes : change.bytes);
      changed = true;
    }
    if (changed && recorder_.records(rank)) recorder_.memory(rank, now(), memory_.balance(rank));
  }

  // What the collective of `stream` takes of its chip (+1: from now on, -1: no longer).
  void hold_chip(std::uint32_t stream, int change) {
    const std::uint32_t rank = streams_.rank_of(stream);
    if (compute_.change_communication(rank, collectives_.taken(stream), change, now())) {
      queue_.schedule(compute_.ends_at(rank), Event(kComputeEnds, rank));
    }
  }

  void summarise_breakdown(SimulationResult& result);
  void summarise_path(SimulationResult& result);

  const OpGraph& graph_;
  const Cluster& cluster_;
  const SimulationOptions& options_;
  EventQueue queue_;
  std::unique_ptr<Network> network_;
  Transport transport_;
  Streams streams_;
  Channels channels_;
  CollectiveRuns collectives_;
  HostRuns hosts_;
  ComputeRuns compute_;
  MemoryLedger memory_;
  CriticalPath path_;
  Attribution attribution_;
  Recorder recorder_;
  std::mt19937 random_;

  Meetings meetings_;
  std::vector<std::uint32_t> woken_;
  std::vector<TransferId> transfers_;
  std::vector<std::uint64_t> left_in_step_;
  std::vector<Time> step_ends_;
  std::uint32_t last_stream_ = 0;  // of the op that ended last
  std::uint64_t events_ = 0;
  std::uint64_t instants_ = 0;
};

// Splits `total` picoseconds over parts: each is floored, and what that loses goes to the largest.
void give_rest_to_largest(std::vector<Duration*> parts, Duration total) {
  Duration sum{};
  for (const Duration* part : parts) sum += *part;
  **std::ranges::max_element(parts, {}, [](const Duration* part) { return *part; }) += total - sum;
}

void Simulation::summarise_breakdown(SimulationResult& result) {
  const auto count =
      static_cast<std::int64_t>(graph_.ranks.size() * std::max(1U, options_.steps - 1));
  Breakdown& mean = result.breakdown;
  for (const Breakdown& of_rank : result.breakdowns) {
    mean.compute += of_rank.compute;
    mean.bubble += of_rank.bubble;
    mean.idle += of_rank.idle;
    for (std::size_t axis = 0; axis < kAxes; ++axis) {
      mean.exposed_communication[axis] += of_rank.exposed_communication[axis];
    }
  }
  std::vector<Duration*> parts = {&mean.compute, &mean.bubble, &mean.idle};
  for (Duration& part : mean.exposed_communication) parts.push_back(&part);
  for (Duration* part : parts) *part /= count;
  give_rest_to_largest(parts, result.step_time);
}

void Simulation::summarise_path(SimulationResult& result) {
  const std::vector<std::int64_t> parts = path_.parts(last_stream_);
  check_path(parts, result.window);
  std::vector<Duration*> durations;
  for (std::size_t label = 0; label < parts.size(); ++label) {
    const std::size_t axis = label - graph_.path_labels.size();
    result.critical_path.push_back(
        {.label = label < graph_.path_labels.size() ? graph_.path_labels[label]
                                                    : std::string(name_of(static_cast<Axis>(axis))),
         .duration = Duration(parts[label] / std::max(1U, options_.steps - 1))});
  }
  for (PathPart& part : result.critical_path) durations.push_back(&part.duration);
  give_rest_to_largest(durations, result.step_time);
  std::erase_if(result.critical_path,
                [](const PathPart& part) { return part.duration.count() == 0; });
  std::ranges::stable_sort(result.critical_path, std::ranges::greater{}, &PathPart::duration);
}

SimulationResult Simulation::result() {
  SimulationResult result;
  result.end = now();
  result.steps = options_.steps;
  const Time window_start = options_.steps > 1 ? step_ends_.front() : Time{};
  result.window = now() - window_start;
  result.step_time = result.window / std::max(1U, options_.steps - 1);
  result.breakdowns = attribution_.finish(now());
  summarise_breakdown(result);
  summarise_path(result);
  result.memory_peaks = memory_.peaks();
  for (std::uint32_t rank = 0; rank < result.memory_peaks.size(); ++rank) {
    if (result.memory_peaks[rank].bytes > result.memory_peaks[result.peak_rank.index()].bytes) {
      result.peak_rank = RankId(rank);
    }
  }
  constexpr auto kHost = static_cast<std::size_t>(Axis::kHost);
  std::array<Bytes, kAxes> asked{};
  for (std::size_t axis = 0; axis < kAxes; ++axis) {
    const Bytes sent =
        channels_.sent(static_cast<Axis>(axis)) + collectives_.sent(static_cast<Axis>(axis));
    result.bytes_by_axis[axis] = sent / std::int64_t{options_.steps};
    asked[axis] =
        channels_.sent(static_cast<Axis>(axis)) + collectives_.asked(static_cast<Axis>(axis));
  }
  result.bytes_by_axis[kHost] += hosts_.copied() / std::int64_t{options_.steps};
  asked[kHost] += hosts_.copied();
  result.host_peaks = hosts_.peaks();
  for (const RankData& rank : graph_.ranks) {
    for (const Op& op : graph_.programs[rank.program.index()].ops) {
      if (op.kind == OpKind::kCompute) result.flops += compute_.flops(op.work);
    }
  }
  // Of what links carry, the share of the library (flags, gaps) is no data; sprayed packets take
  // other links than those that were routed.
  const bool sprayed = options_.fidelity == Fidelity::kPacket && options_.packets.spraying;
  for (std::uint32_t i = 0; i < cluster_.fabric.links().size(); ++i) {
    const double carried = network_->carried(LinkId(i), now());
    const double capacity = cluster_.fabric.link(LinkId(i)).bandwidth.value();
    const double seconds = to_seconds(now().since_start);
    result.links.push_back({.link = LinkId(i),
                            .bytes = sprayed ? carried : transport_.data_of(LinkId(i), carried),
                            .utilization = seconds > 0 ? carried / (capacity * seconds) : 0});
  }
  recorder_.finish(now(), *network_, result);
  const NetworkStatistics network = network_->statistics();
  result.statistics.ops = streams_.ops_ended();
  result.statistics.events = events_;
  result.statistics.transfers = network.transfers;
  result.statistics.rate_updates = network.rate_updates;
  result.statistics.packet_hops = network.packet_hops;
  check_streams(streams_);
  if (sprayed) {
    check_sprayed_links(cluster_, transport_.routed_bytes(), *network_, now());
  } else {
    check_links(cluster_, transport_.routed_bytes(), *network_, now());
  }
  check_planned_bytes(graph_, asked, options_.steps);
  check_memory(graph_, memory_);
  check_breakdowns(result);
  return result;
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

}  // namespace

SimulationResult simulate(const OpGraph& graph, const Cluster& cluster,
                          const SimulationOptions& options) {
  const auto wall = std::chrono::steady_clock::now();
  const double cpu = cpu_seconds();
  Simulation simulation(graph, cluster, options);
  simulation.run();
  SimulationResult result = simulation.result();
  result.statistics.cpu_s = cpu_seconds() - cpu;
  result.statistics.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.statistics.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  return result;
}

}  // namespace stepsim
