#include "sim/run/simulate.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/network/transport/transport_network.h"
#include "sim/run/books/attribution.h"
#include "sim/run/books/memory_ledger.h"
#include "sim/run/books/recorder.h"
#include "sim/run/checks.h"
#include "sim/run/collectives/collective_runs.h"
#include "sim/run/deadlock_report.h"
#include "sim/run/folding/fold.h"
#include "sim/run/make_network.h"
#include "sim/run/ops/channels.h"
#include "sim/run/ops/communication_reports.h"
#include "sim/run/ops/compute_runs.h"
#include "sim/run/ops/critical_path.h"
#include "sim/run/ops/host_runs.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/last_cause.h"
#include "sim/run/ops/launches.h"
#include "sim/run/ops/streams.h"
#include "sim/run/ops/transport.h"
#include "sim/run/repeats.h"
#include "sim/run/summary.h"

namespace stepsim {
namespace {

// Kinds of events.
constexpr std::uint32_t kComputeEnds = 0;  // index: rank
constexpr std::uint32_t kLaunched = 1;     // index: stream of a rank

constexpr std::uint32_t kMostVainSkips = 64;  // periods that seemed to repeat themselves

class Simulation {
 public:
  // `fabric`: that of the cluster, or of a folded job.
  Simulation(const Job& job, const Cluster& cluster, const Fabric& fabric,
             const SimulationOptions& options, CollectivePlans& plans)
      : job_(job),
        graph_(job.graph()),
        cluster_(cluster),
        fabric_(fabric),
        options_(options),
        network_(make_network(cluster, fabric, options)),
        transport_(cluster, *network_, options.fidelity == Fidelity::kPacket, job.quotient()),
        streams_(job, options.steps),
        path_(streams_.count() + (graph_.host ? job.ranks().size() : 0),
              options.critical_path ? path_labels() : 0),
        last_cause_(job, streams_, path_),
        channels_(job, streams_, last_cause_, transport_),
        collectives_(job, streams_, last_cause_, transport_, plans),
        hosts_(job, streams_, transport_),
        compute_(job, cluster.chip),
        memory_(job),
        attribution_(job, streams_),
        recorder_(job, streams_, cluster, fabric, options),
        random_(options.shuffle_seed.value_or(0)),
        repeats_(Repeats::watch(job, streams_, options)) {
    left_in_step_.assign(options.steps, streams_.ops_total() / options.steps);
    if (options.steps == 1) begin_limit();
    if (graph_.host) launches_.emplace(job, streams_, cluster.chip, options.steps);
    for (const RankId rank : options.recorded_ranks) attribution_.record(job.simulated(rank));
  }

  void run() {
    for (std::uint32_t stream = 0; stream < streams_.count(); ++stream) woken_.emplace_back(stream);
    start_woken();
    // Events left after the last op has ended are stale and must not move the clock.
    while (streams_.ops_ended() != streams_.ops_total()) {
      network_->settle(now());
      const std::optional<Time> next = next_instant();
      if (!next) {
        if (job_.quotient() != nullptr) throw DeadlockError("a folded job doesn't finish");
        throw DeadlockError(deadlock_report(graph_, streams_, channels_, collectives_,
                                            launches_ ? &*launches_ : nullptr) +
                            network_->blocked_report());
      }
      recorder_.links_until(*next, *network_);
      queue_.advance_to(*next);
      if (latest_ && *next > *latest_) give_up();
      report_progress();
      // The network goes before the queue. Ops that they wake start before rates are settled.
      if (network_->next_event() == *next) {
        transfers_.clear();
        network_->advance(*next, transfers_);
        ++events_;
        for (const TransferId transfer : transfers_) arrived(transfer);
        hand_on_reports();
      }
      while (!queue_.empty() && queue_.next_time() == *next) event(queue_.pop());
      start_woken();
      if (repeats_ && repeats_->is_due()) look_for_repeats();
    }
  }

  SimulationResult result();

 private:
  // Time passes in periods that are not simulated, too, but not on the clock of the queue.
  Time now() const { return queue_.now(); }
  Time passed() const { return now() + skipped_; }

  std::optional<Time> next_instant() const {
    std::optional<Time> next = network_->next_event();
    if (!queue_.empty() && (!next || queue_.next_time() < *next)) next = queue_.next_time();
    return next;
  }

  void report_progress() {
    if (options_.progress == nullptr || (instants_++ & 0xfff) != 0) return;
    if (!options_.progress(options_.progress_context, passed(), streams_.ops_ended(),
                           streams_.ops_total())) {
      throw SimulationInterrupted("interrupted at " +
                                  std::to_string(to_seconds(passed().since_start)) +
                                  " s of simulated time");
    }
  }

  // Starts every op that may start now, and ops that become ready through ops of no duration.
  void start_woken() {
    while (!woken_.empty()) {
      if (options_.shuffle_seed) std::swap(woken_[random_() % woken_.size()], woken_.back());
      const RankStreamId stream = woken_.back();
      woken_.pop_back();
      if (streams_.ready(stream) && launched(stream)) start(stream);
      hand_on_reports();
    }
  }

  // Returns whether the host lets the op start now. If not, the stream is woken when it does.
  bool launched(RankStreamId stream) {
    if (!launches_) return true;
    const std::optional<Time> at = launches_->launched(stream, now());
    if (!at) return false;
    if (*at <= now()) return true;
    if (launches_->begins_to_wait(stream)) queue_.schedule(*at, Event(kLaunched, stream.index()));
    return false;
  }

  // Returns when the op of `stream`, which starts or runs, could have started without its host.
  Time ready_at(RankStreamId stream, Time started) const {
    return launches_ ? launches_->ready_at(stream) : started;
  }

  RankStreamId host_path(RankId rank) const {
    return RankStreamId(streams_.count() + rank.index());
  }

  void inherit_path(RankStreamId stream) {
    if (ready_at(stream, now()) == now()) {
      return path_.start(stream, streams_.releaser(stream, now()));
    }
    const RankId rank = streams_.rank_of(stream);
    path_.start(stream, host_path(rank));
    path_.add(stream, graph_.path_labels.size() + kMostAxes, launches_->busy_since(rank), now());
  }

  void start(RankStreamId stream) {
    const RankId rank = streams_.rank_of(stream);
    const Op& op = streams_.op(stream);
    inherit_path(stream);
    if (launches_) launches_->start(stream);
    streams_.start(stream, now());
    change_memory(stream, false);
    if (recorder_.records(rank)) recorder_.started(stream, ready_at(stream, now()), now());
    switch (op.kind) {
      case OpKind::kCompute:
        attribution_.compute_starts(rank, ready_at(stream, now()), now());
        schedule_end(rank, compute_.start(rank, ComputeWorkId(op.work), jitter(stream), now()));
        break;
      case OpKind::kCollective:
        hold_chip(stream, +1);
        collectives_.post(stream, now(), reports_);
        break;
      case OpKind::kMessages:
        channels_.post(stream, now(), reports_);
        break;
      case OpKind::kHost:
        hosts_.start(stream, now());
        break;
    }
  }

  double jitter(RankStreamId stream) const {
    if (graph_.jitter.deviation == 0) return 1;
    return factor_of(graph_.jitter, streams_.step(stream), streams_.rank_of(stream),
                     streams_.op_id(stream));
  }

  void schedule_end(RankId rank, Time at) {
    queue_.schedule(at, Event(kComputeEnds, rank.index()));
  }

  void event(Event event) {
    ++events_;
    if (event.kind() == kLaunched) {
      woken_.emplace_back(event.index());
    } else {
      compute_ends(RankId(event.index()));
    }
  }

  void compute_ends(RankId rank) {
    if (!compute_.running(rank) || compute_.ends_at(rank) != now()) return;  // stale
    compute_.end(rank);
    const RankStreamId stream = attribution_.compute_stream(rank);
    attribution_.compute_ends(rank, now());
    path_.add(stream, graph_.compute_works[streams_.op(stream).work].path_label,
              streams_.started_at(stream), now());
    if (latest_) check_limit(rank, stream);
    end(stream, streams_.started_at(stream));
  }

  // ---- the limit of a step ----

  std::int64_t counted_steps() const { return std::max(1U, options_.steps - 1); }
  // The steps that count begin now.
  void begin_limit() {
    if (!options_.limit) return;
    // A step is the mean of those that count, rounded down.
    latest_ = now() + ((options_.limit->most + Duration(1)) * counted_steps() - Duration(1));
    watch_first_ranks();
  }
  // What is left behind the ops of a program holds for the first rank that runs it: the network may
  // be slower there than around others.
  void watch_first_ranks() {
    std::vector<bool> is_watched(graph_.programs.size());
    watched_.assign(job_.ranks().size(), false);
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      const std::size_t program = graph_.ranks[rank].program.index();
      if (is_watched[program]) continue;
      is_watched[program] = true;
      watched_[job_.simulated(RankId(rank)).index()] = true;
    }
  }
  // The op that runs on the compute stream of `rank` ends.
  void check_limit(RankId rank, RankStreamId stream) const {
    if (!watched_[rank.index()] || streams_.step(stream) + 1 != options_.steps) return;
    const std::size_t program = job_.ranks()[rank.index()].program.index();
    if (program >= options_.limit->behind.size()) return;
    const std::vector<Duration>& behind = options_.limit->behind[program];
    const std::uint32_t position = streams_.position(stream);
    if (position < behind.size() && now() + behind[position] > *latest_) give_up();
  }
  [[noreturn]] void give_up() const { throw StepTooLong(streams_.ops_total()); }

  void arrived(TransferId transfer) {
    const TransferOwner owner = transport_.take(transfer);
    if (const auto* collective = std::get_if<CollectiveTransfer>(&owner)) {
      collectives_.arrived(*collective, now(), reports_);
    } else if (const auto* message = std::get_if<MessageTransfer>(&owner)) {
      channels_.arrived(*message, reports_);
    } else {
      hosts_.arrived(std::get<HostTransfer>(owner), now(), reports_);
    }
  }

  void hand_on_reports() {
    for (const Join& join : reports_.joins) path_.join(join.stream, join.from);
    for (const Join& arrow : reports_.arrows) {
      if (recorder_.records(streams_.rank_of(arrow.from))) recorder_.arrow(arrow);
    }
    for (const CommunicationEnd& ended : reports_.ends) {
      const Op& op = streams_.op(ended.stream);
      if (op.kind == OpKind::kCollective) hold_chip(ended.stream, -1);
      attribution_.communication_ends(
          ended, ready_at(ended.stream, streams_.started_at(ended.stream)), now());
      path_.add(ended.stream, graph_.path_labels.size() + static_cast<std::size_t>(op.axis),
                std::max(ended.moving, streams_.started_at(ended.stream)), now());
      end(ended.stream, ended.moving);
    }
    reports_.clear();
  }

  void end(RankStreamId stream, Time moving) {
    change_memory(stream, true);
    if (repeats_) repeats_->ends(stream, now());
    if (recorder_.records(streams_.rank_of(stream))) recorder_.ended(stream, moving, now());
    const std::uint32_t step = streams_.step(stream);
    if (!streams_.ended_at_instant(stream, now())) path_.end(stream);
    streams_.end(stream, now(), woken_);
    if (launches_ && launches_->end(stream, now(), woken_)) {
      path_.follow(host_path(streams_.rank_of(stream)), stream);
    }
    if (--left_in_step_[step] == 0) end_step();
  }

  void end_step() {
    step_ends_.push_back(passed());
    if (step_ends_.size() == 1 && options_.steps > 1) {
      path_.begin_window(now());
      attribution_.begin_window(now());
      begin_limit();
    }
  }

  void change_memory(RankStreamId stream, bool at_end) {
    const OpId op = streams_.op_id(stream);
    const RankId rank = streams_.rank_of(stream);
    bool changed = false;
    for (const MemoryChange& change : streams_.program_of(stream).memory_changes_of(op)) {
      if (change.at_end != at_end) continue;
      memory_.change(rank, passed(), op, change.category,
                     at_end ? Bytes(0) - change.bytes : change.bytes);
      changed = true;
    }
    if (changed && recorder_.records(rank)) recorder_.memory(rank, now(), memory_.balance(rank));
  }

  // ---- periods that only repeat what was before ----

  // State is what has come together until a moment.
  struct State {
    std::vector<Breakdown> breakdowns;
    std::vector<MemoryBytes> memory;  // by simulated rank
    std::vector<Duration> paths;
    CollectiveRuns::Past collectives;
    Channels::Past channels;
    Transport::Past transport;
  };

  void look_for_repeats() {
    switch (repeats_->close(now())) {
      case Repeats::Found::kNothing:
        return;
      case Repeats::Found::kAgain:
        if (skip()) return;
        if (++vain_skips_ == kMostVainSkips) return repeats_.reset();
        [[fallthrough]];
      case Repeats::Found::kBegin:
        repeats_->begin(now());
        past_ = {.breakdowns = attribution_.breakdowns(),
                 .memory = balances(),
                 .paths = path_.past(),
                 .collectives = collectives_.past(),
                 .channels = channels_.past(),
                 .transport = transport_.past()};
    }
  }

  std::vector<MemoryBytes> balances() const {
    std::vector<MemoryBytes> balances;
    for (std::uint32_t rank = 0; rank < job_.ranks().size(); ++rank) {
      balances.push_back(memory_.balance(RankId(rank)));
    }
    return balances;
  }

  // Passes over the periods that repeat the one since past_. Returns whether there are any.
  bool skip() {
    if (balances() != past_.memory) return false;
    const Repeats::Skip skip = repeats_->find_skip(now());
    if (skip.times == 0) return false;
    const auto moved = [&](RankStreamId stream) { return skip.moved[stream.index()] > 0; };
    const auto growth = path_.growth(
        past_.paths, moved, [this](RankStreamId stream) { return streams_.running(stream); });
    if (!growth) return false;
    const auto times = static_cast<std::int64_t>(skip.times);
    path_.grow(times, *growth, moved);
    attribution_.repeat(skip.times, past_.breakdowns, skip.moved);
    collectives_.repeat(skip.times, past_.collectives);
    channels_.repeat(skip.times, past_.channels, skip.microbatches);
    transport_.repeat(skip.times, past_.transport);
    for (std::uint32_t number = 0; number < streams_.count(); ++number) {
      const RankStreamId stream(number);
      const std::uint64_t ops = skip.times * skip.moved[number];
      if (ops == 0) continue;
      left_in_step_[streams_.step(stream)] -= ops;
      repeated_ops_ += ops;
      streams_.skip(stream, ops);
    }
    const Time before = passed();
    skipped_ += times * skip.period;
    memory_.skip(before, passed());
    if (latest_) latest_ = Time{latest_->since_start - times * skip.period};
    repeats_->forget(now());
    for (std::uint32_t stream = 0; stream < streams_.count(); ++stream) woken_.emplace_back(stream);
    start_woken();
    return true;
  }

  // The collective of `stream` starts (+1) or stops (-1) holding its share of the chip.
  void hold_chip(RankStreamId stream, int change) {
    const RankId rank = streams_.rank_of(stream);
    if (compute_.change_communication(rank, collectives_.taken(stream), change, now())) {
      schedule_end(rank, compute_.ends_at(rank));
    }
  }

  bool has_transport() const {
    return options_.fidelity == Fidelity::kPacket && options_.transport.has_value();
  }
  // Returns whether packets take other links than those of the route.
  bool sprays() const {
    return options_.fidelity == Fidelity::kPacket && options_.packets.spraying.has_value();
  }
  Bytes asked(Axis axis) const {
    return channels_.sent(axis) + collectives_.asked(axis) + hosts_.copied(axis);
  }
  Bytes sent(Axis axis) const {
    return channels_.sent(axis) + collectives_.sent(axis) + hosts_.copied(axis);
  }
  std::vector<LinkTotal> totals_of_links() const;
  SimulatorStatistics statistics() const;
  void check(const std::vector<Breakdown>& breakdowns, Duration window) const;

  std::size_t path_labels() const {
    return graph_.path_labels.size() + kMostAxes + (graph_.host ? 1 : 0);
  }

  const Job& job_;
  const OpGraph& graph_;
  const Cluster& cluster_;
  const Fabric& fabric_;
  const SimulationOptions& options_;
  EventQueue queue_;
  std::unique_ptr<Network> network_;
  Transport transport_;
  Streams streams_;
  CriticalPath path_;
  LastCause last_cause_;
  Channels channels_;
  CollectiveRuns collectives_;
  HostRuns hosts_;
  ComputeRuns compute_;
  std::optional<Launches> launches_;
  MemoryLedger memory_;
  Attribution attribution_;
  Recorder recorder_;
  std::mt19937 random_;

  CommunicationReports reports_;
  std::vector<RankStreamId> woken_;
  std::vector<TransferId> transfers_;
  std::vector<std::uint64_t> left_in_step_;
  std::vector<Time> step_ends_;
  std::vector<bool> watched_{};   // by simulated rank
  std::optional<Time> latest_{};  // end of a run within its limit, once the steps that count begin
  std::uint64_t events_ = 0;
  std::uint64_t instants_ = 0;
  std::optional<Repeats> repeats_;
  State past_{};  // when the period of repeats_ began
  std::uint32_t vain_skips_ = 0;
  Duration skipped_{};  // time of the periods that are not simulated
  std::uint64_t repeated_ops_ = 0;
};

std::vector<LinkTotal> Simulation::totals_of_links() const {
  if (sprays() || has_transport()) return sprayed_totals(fabric_, *network_, now());
  if (options_.fidelity == Fidelity::kPacket) {
    return packet_totals(cluster_, transport_, *network_, now());
  }
  return link_totals(cluster_, transport_, job_.quotient(), passed());
}

SimulatorStatistics Simulation::statistics() const {
  const NetworkStatistics network = network_->statistics();
  const auto* const transport = dynamic_cast<const TransportNetwork*>(network_.get());
  return {.ops = streams_.ops_ended(),
          .repeated_ops = repeated_ops_,
          .events = events_,
          .transfers = network.transfers,
          .rate_updates = network.rate_updates,
          .packet_hops = network.packet_hops,
          .transport = transport != nullptr ? std::optional(transport->totals()) : std::nullopt};
}

void Simulation::check(const std::vector<Breakdown>& breakdowns, Duration window) const {
  check_streams(streams_);
  if (has_transport()) {
    // Headers, answers and what is lost or cut: a link carries more or less than the messages.
  } else if (sprays()) {
    check_sprayed_links(fabric_, transport_.routed_bytes(), *network_, now());
  } else {
    check_links(fabric_, transport_.routed_bytes(), *network_, now(),
                options_.fidelity != Fidelity::kPacket);
  }
  std::array<Bytes, kMostAxes> all_asked{};
  for (std::size_t i = 0; i < kMostAxes; ++i) all_asked[i] = asked(static_cast<Axis>(i));
  check_planned_bytes(graph_, all_asked, options_.steps);
  check_memory(job_, memory_);
  check_breakdowns(breakdowns, window);
}

SimulationResult Simulation::result() {
  const std::int64_t counted_steps = this->counted_steps();
  SimulationResult result;
  result.end = passed();
  result.steps = options_.steps;
  result.window = passed() - (options_.steps > 1 ? step_ends_.front() : Time{});
  result.step_time = result.window / counted_steps;
  collectives_.book_transfers();
  const std::vector<Breakdown> breakdowns = attribution_.finish(now());
  check(breakdowns, result.window);
  collectives_.book_repeats();
  transport_.book_repeats();
  result.breakdown = mean_breakdown(job_, breakdowns, counted_steps, result.step_time);
  result.breakdowns = of_all_ranks(job_, breakdowns);
  if (options_.critical_path) {
    const std::vector<Duration> path = path_.parts(last_stream(job_, streams_, path_, now()));
    check_path(path, result.window);
    result.critical_path = path_of_step(graph_, path, counted_steps, result.step_time);
  }
  result.memory_peaks = of_all_ranks(job_, memory_.peaks());
  result.peak_rank = peak_rank(result.memory_peaks);
  result.host_peaks = hosts_.peaks();
  for (std::size_t i = 0; i < kMostAxes; ++i) {
    result.bytes_by_axis[i] = sent(static_cast<Axis>(i)) / std::int64_t{options_.steps};
  }
  result.flops = flops_of_step(graph_, compute_);
  result.links = totals_of_links();
  recorder_.finish(now(), *network_, result);
  for (Timeline& timeline : result.timelines) {
    timeline.waits = attribution_.waits(job_.simulated(timeline.rank));
  }
  result.statistics = statistics();
  return result;
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// Returns nullopt if the job turns out not to finish, whose report names ranks of the whole job.
std::optional<SimulationResult> simulate_folded(const OpGraph& graph, const Cluster& cluster,
                                                const Quotient& quotient,
                                                const SimulationOptions& options,
                                                CollectivePlans& plans) {
  try {
    const Job job(graph, quotient);
    const Fabric fabric = folded_fabric(cluster.fabric, quotient.links);
    Simulation simulation(job, cluster, fabric, options, plans);
    simulation.run();
    return simulation.result();
  } catch (const DeadlockError&) {
    return std::nullopt;
  } catch (const MismatchError&) {
    return std::nullopt;
  }
}

SimulationResult simulate_all(const OpGraph& graph, const Cluster& cluster,
                              const SimulationOptions& options, CollectivePlans& plans) {
  const Job job(graph);
  Simulation simulation(job, cluster, cluster.fabric, options, plans);
  simulation.run();
  return simulation.result();
}

SimulationResult simulate_as_asked(const OpGraph& graph, const Cluster& cluster,
                                   const SimulationOptions& options) {
  Fold folded{.statistics = {.ranks = graph.ranks.size(),
                             .classes = graph.ranks.size(),
                             .why_not = "it was not asked for"}};
  CollectivePlans plans(graph, cluster, options.granularity, options.fidelity);
  if (options.fold) folded = fold(graph, cluster, options, plans);
  std::optional<SimulationResult> result;
  if (folded.quotient) result = simulate_folded(graph, cluster, *folded.quotient, options, plans);
  if (!result) result = simulate_all(graph, cluster, options, plans);
  result->statistics.folding = folded.statistics;
  return std::move(*result);
}

}  // namespace

SimulationResult simulate(const OpGraph& graph, const Cluster& cluster,
                          const SimulationOptions& options) {
  const auto wall = std::chrono::steady_clock::now();
  const double cpu = cpu_seconds();
  SimulationResult result = simulate_as_asked(graph, cluster, options);
  result.statistics.cpu_s = cpu_seconds() - cpu;
  result.statistics.wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.statistics.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  return result;
}

}  // namespace stepsim
