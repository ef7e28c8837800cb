#include "experiment/explained/path_bill.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <unordered_map>

#include "experiment/explained/path_prices.h"

namespace stepsim {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

double length(Time from, Time to) {
  return static_cast<double>((to - from).count());
}

// One op of a timeline, and an instant of it: its start or its end.
struct Place {
  std::uint32_t timeline = kNone;
  std::uint32_t entry = 0;
  explicit operator bool() const { return timeline != kNone; }
};
using Instant = std::uint32_t;  // 2 x number of the op, + 1 for its end

// Cause is an instant that another one follows from, and the derivative with respect to it.
struct Cause {
  Instant instant = 0;
  double slope = 1;
};

struct MessageKey {
  std::uint32_t source = 0;  // timelines
  std::uint32_t destination = 0;
  std::int64_t microbatch = -1;
  std::int32_t boundary = 0;
  std::uint32_t step = 0;
  MessageKind kind = MessageKind::kActivation;
  friend bool operator==(const MessageKey&, const MessageKey&) = default;
};
struct MessageKeyHash {
  std::size_t operator()(const MessageKey& key) const {
    std::uint64_t hash = std::uint64_t{key.source} << 32 | key.destination;
    const auto mix = [&hash](std::uint64_t value) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32;
    };
    mix(static_cast<std::uint64_t>(key.microbatch));
    mix(std::uint64_t{static_cast<std::uint32_t>(key.boundary)} << 32 | key.step);
    mix(static_cast<std::uint64_t>(key.kind));
    return hash;
  }
};
struct Sides {
  Place sender;
  Place receiver;
};

// HostLine is what the host of a rank launched, op by op: since when it was busy, and with how many
// launches until the op's own.
struct Launched {
  Place since{};  // the end of the op that the host waited for; none: the start of the run
  double launches = 0;
};

// PathWalk finds the causes of each instant, and books what the ops themselves take.
class PathWalk {
 public:
  PathWalk(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result);

  PathBill bill();

 private:
  struct Hold {
    Time at;
    Instant instant = 0;
    PathBill::Collective collective;
    bool begins = false;
  };
  static void change(const Hold& hold, std::vector<PathBill::Collective>& held);

  const Timeline& timeline(std::uint32_t number) const { return result_.timelines[number]; }
  const Program& program(std::uint32_t number) const {
    return graph_.programs[graph_.ranks[timeline(number).rank.index()].program.index()];
  }
  const TimelineOp& at(Place place) const { return timeline(place.timeline).ops[place.entry]; }
  const Op& op(Place place) const { return program(place.timeline).ops[at(place).op]; }
  Instant start_of(Place place) const { return 2 * (first_[place.timeline] + place.entry); }
  Instant end_of(Place place) const { return start_of(place) + 1; }
  Place place_of(Instant instant) const;
  Place run_of(std::uint32_t timeline, std::uint32_t step, std::uint32_t op) const;
  std::uint32_t timeline_of(RankId rank) const { return result_.recorded[rank.index()].timeline; }
  const Stream& stream_of(Place place) const;

  void find_holds(std::uint32_t timeline);
  void find_messages();
  void launch_all(std::uint32_t timeline);
  Place last_of_step(std::uint32_t step) const;

  // Appends the causes of an instant. With `slope`, also books what it adds to them, times that.
  void causes_of(Instant instant, const double* slope, std::vector<Cause>& causes);
  void causes_of_start(Place place, const double* slope, std::vector<Cause>& causes);
  void causes_of_compute(Place place, const double* slope, std::vector<Cause>& causes);
  void causes_of_collective(Place place, const double* slope, std::vector<Cause>& causes);
  void causes_of_messages(Place place, const double* slope, std::vector<Cause>& causes);
  PathBill::Collective collective_of(Place place) const;
  bool is_alone(const PathBill::Collective& collective) const;
  void book(const PathTransfer& alone, double took, double slope, PathAmount& amount);

  std::vector<Instant> in_order_of_causes(std::span<const Instant> roots);

  const OpGraph& graph_;
  const SimulationResult& result_;
  PathPrices prices_;
  PathBill bill_;

  std::vector<std::uint32_t> first_;                 // by timeline: number of its first op
  std::vector<std::vector<std::uint32_t>> entries_;  // by timeline: by step and op
  std::vector<std::vector<Hold>> holds_;             // by timeline, in order of time
  // By op that runs kernels: the collectives that hold shares of its chip when it starts. None if
  // it is missing.
  std::unordered_map<std::uint32_t, std::vector<PathBill::Collective>> active_;
  std::vector<std::vector<Launched>> launched_;  // by timeline, by entry; empty without hosts
  std::unordered_map<MessageKey, Sides, MessageKeyHash> messages_;
  std::unordered_map<std::uint32_t, Place> late_;  // by op: the last one to post its collective
};

PathWalk::PathWalk(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result)
    : graph_(graph), result_(result), prices_(graph, cluster) {
  std::uint32_t number = 0;
  for (std::uint32_t t = 0; t < result.timelines.size(); ++t) {
    first_.push_back(number);
    const std::size_t ops = program(t).ops.size();
    std::vector<std::uint32_t>& entries = entries_.emplace_back(ops * result.steps, kNone);
    for (std::uint32_t entry = 0; entry < timeline(t).ops.size(); ++entry) {
      const TimelineOp& one = timeline(t).ops[entry];
      entries[one.step * ops + one.op] = entry;
    }
    number += static_cast<std::uint32_t>(timeline(t).ops.size());
  }
  first_.push_back(number);
  for (const TimelineFlow& flow : result.flows) {
    const Place from{flow.from_timeline, flow.from_entry};
    const Place to{flow.to_timeline, flow.to_entry};
    if (op(to).kind == OpKind::kCollective) late_[start_of(to) / 2] = from;
  }
  for (std::uint32_t t = 0; t < result.timelines.size(); ++t) find_holds(t);
  find_messages();
  if (!graph.host) return;
  for (std::uint32_t t = 0; t < result.timelines.size(); ++t) launch_all(t);
}

Place PathWalk::place_of(Instant instant) const {
  const auto behind = std::ranges::upper_bound(first_, instant / 2);
  const auto timeline = static_cast<std::uint32_t>(std::prev(behind) - first_.begin());
  return {timeline, instant / 2 - first_[timeline]};
}

Place PathWalk::run_of(std::uint32_t timeline, std::uint32_t step, std::uint32_t op) const {
  return {timeline, entries_[timeline][step * program(timeline).ops.size() + op]};
}

const Stream& PathWalk::stream_of(Place place) const {
  const std::vector<Stream>& streams = program(place.timeline).streams;
  // Of streams without ops, the one behind them has the op.
  return *std::prev(std::ranges::upper_bound(streams, at(place).op, {}, &Stream::first_op));
}

PathBill::Collective PathWalk::collective_of(Place place) const {
  const CollectiveWorkId work(op(place).work);
  const Communicator& communicator =
      graph_.communicators[graph_.collective_works[work.index()].communicator.index()];
  const RankId rank = timeline(place.timeline).rank;
  return {work, GroupId(communicator.seat_of[rank.index()].group)};
}

void PathWalk::change(const Hold& hold, std::vector<PathBill::Collective>& held) {
  const auto found = std::ranges::lower_bound(held, hold.collective);
  if (hold.begins) {
    held.insert(found, hold.collective);
  } else {
    held.erase(found);
  }
}

// Finds when collectives begin and stop to hold a share of the chip, and which ones do when each
// run of kernels starts.
void PathWalk::find_holds(std::uint32_t number) {
  std::vector<Hold>& holds = holds_.emplace_back();
  std::vector<Place> computes;
  for (std::uint32_t entry = 0; entry < timeline(number).ops.size(); ++entry) {
    const Place place{number, entry};
    if (op(place).kind == OpKind::kCompute) computes.push_back(place);
    if (op(place).kind != OpKind::kCollective || at(place).started == at(place).ended) continue;
    const PathBill::Collective collective = collective_of(place);
    if (is_alone(collective) || !prices_.takes(collective)) continue;
    holds.push_back({at(place).started, start_of(place), collective, true});
    holds.push_back({at(place).ended, end_of(place), collective, false});
  }
  std::ranges::stable_sort(holds, {}, &Hold::at);
  std::vector<PathBill::Collective> held;
  auto hold = holds.begin();
  for (const Place place : computes) {
    for (; hold != holds.end() && hold->at <= at(place).started; ++hold) change(*hold, held);
    if (!held.empty()) active_[start_of(place) / 2] = held;
  }
}

bool PathWalk::is_alone(const PathBill::Collective& collective) const {
  const CollectiveWork& work = graph_.collective_works[collective.work.index()];
  const Communicator& communicator = graph_.communicators[work.communicator.index()];
  return communicator.groups[collective.group.index()].size() == 1;
}

void PathWalk::find_messages() {
  for (std::uint32_t number = 0; number < result_.timelines.size(); ++number) {
    for (std::uint32_t entry = 0; entry < timeline(number).ops.size(); ++entry) {
      const Place place{number, entry};
      const Op& posted = op(place);
      if (posted.kind != OpKind::kMessages) continue;
      for (std::uint32_t m = posted.work; m < posted.work + posted.work_count; ++m) {
        const Message& message = graph_.messages[m];
        const Communicator& communicator = graph_.communicators[message.communicator.index()];
        const RankId self = timeline(number).rank;
        const std::uint32_t group = communicator.seat_of[self.index()].group;
        const std::uint32_t peer = timeline_of(communicator.groups[group][message.peer]);
        Sides& sides = messages_[{.source = message.is_send ? number : peer,
                                  .destination = message.is_send ? peer : number,
                                  .microbatch = message.microbatch.value_or(-1),
                                  .boundary = message.boundary,
                                  .step = at(place).step,
                                  .kind = message.kind}];
        (message.is_send ? sides.sender : sides.receiver) = place;
      }
    }
  }
}

// Plays the time line of a rank's host (sim/run/ops/launches.h) with the ends of its ops.
void PathWalk::launch_all(std::uint32_t number) {
  std::vector<Launched>& launched = launched_.emplace_back(timeline(number).ops.size());
  const Program& of_rank = program(number);
  std::vector<std::uint64_t> ends;  // launches of the compute stream, by op of it
  std::vector<std::uint64_t> before;
  std::uint64_t sum = 0;
  const auto computes = std::ranges::find(of_rank.streams, true, &Stream::computes);
  const std::uint32_t first = computes->first_op;
  const auto is_compute = [&](OpId op) {
    return op.index() >= first && op.index() < first + computes->ops;
  };
  for (const LaunchCall& call : of_rank.launches) {
    before.push_back(sum);
    if (!is_compute(call.op)) continue;
    sum += call.launches;
    ends.push_back(sum);
  }
  Time until;
  Launched line;
  const auto wait_for = [&](Place place) {
    if (at(place).ended <= until) return;
    until = at(place).ended;
    line = {.since = place, .launches = 0};
  };
  for (std::uint32_t step = 0; step < result_.steps; ++step) {
    for (std::size_t i = 0; i < of_rank.launches.size(); ++i) {
      const LaunchCall& call = of_rank.launches[i];
      const std::uint64_t passed = step * sum + before[i];
      if (is_compute(call.op) && passed >= graph_.host->queue_depth) {
        const std::uint64_t freeing = passed - graph_.host->queue_depth;
        const auto freed = std::ranges::upper_bound(ends, freeing % sum) - ends.begin();
        wait_for(run_of(number, static_cast<std::uint32_t>(freeing / sum),
                        first + static_cast<std::uint32_t>(freed)));
      }
      const Place place = run_of(number, step, call.op.index());
      launched[place.entry] = line;
      until = until + std::int64_t{call.launches} * graph_.host->launch;
      line.launches += call.launches;
      if (call.waits) wait_for(place);
    }
  }
}

// Returns the op that ends last; of several, that of the lowest stage and program.
Place PathWalk::last_of_step(std::uint32_t step) const {
  Place last;
  const auto key = [&](Place place) {
    const RankData& rank = graph_.ranks[timeline(place.timeline).rank.index()];
    const Stream& stream = stream_of(place);
    return std::tuple(rank.pp, rank.program, stream.first_op + stream.ops, place.timeline);
  };
  for (std::uint32_t number = 0; number < result_.timelines.size(); ++number) {
    for (std::uint32_t entry = 0; entry < timeline(number).ops.size(); ++entry) {
      const Place place{number, entry};
      if (at(place).step != step) continue;
      if (last && at(place).ended < at(last).ended) continue;
      if (!last || at(last).ended < at(place).ended || key(place) < key(last)) last = place;
    }
  }
  return last;
}

void PathWalk::book(const PathTransfer& alone, double took, double slope, PathAmount& amount) {
  // A picosecond of rounding for the latency, and one for the rest.
  constexpr double kRounding = 3;
  const double flowing = std::max(0.0, took - alone.latency);
  amount.times += slope;
  amount.flowing += slope * flowing;
  bill_.path += slope * took;
  if (std::abs(flowing - alone.flowing) > kRounding + 1e-9 * flowing) {
    bill_.shared += slope * flowing;
  }
}

void PathWalk::causes_of(Instant instant, const double* slope, std::vector<Cause>& causes) {
  const Place place = place_of(instant);
  if (instant % 2 == 0) return causes_of_start(place, slope, causes);
  const TimelineOp& one = at(place);
  if (one.started == one.ended) {
    causes.push_back({start_of(place)});
    return;
  }
  switch (op(place).kind) {
    case OpKind::kCompute:
      return causes_of_compute(place, slope, causes);
    case OpKind::kCollective:
      return causes_of_collective(place, slope, causes);
    case OpKind::kMessages:
      return causes_of_messages(place, slope, causes);
    case OpKind::kHost: {
      causes.push_back({start_of(place)});
      if (slope == nullptr) return;
      const PathBill::Host host{graph_.ranks[timeline(place.timeline).rank.index()].chip,
                                op(place).work};
      book(prices_.host(host), length(one.started, one.ended), *slope, bill_.hosts[host]);
      return;
    }
  }
}

void PathWalk::causes_of_start(Place place, const double* slope, std::vector<Cause>& causes) {
  const TimelineOp& one = at(place);
  if (one.ready < one.started && graph_.host) {
    const Launched& line = launched_[place.timeline][place.entry];
    if (line.since) causes.push_back({end_of(line.since)});
    if (slope == nullptr) return;
    const Op& launched = op(place);
    const std::optional<std::uint32_t> work =
        launched.kind == OpKind::kCompute ? std::optional(launched.work) : std::nullopt;
    bill_.launches += *slope * line.launches;
    bill_.leads[work] += *slope;
    bill_.path += *slope * length(line.since ? at(line.since).ended : Time(), one.started);
    return;
  }
  // The op that released it: of those that ended then, the first one of the program.
  const Program& of_rank = program(place.timeline);
  const Stream& stream = stream_of(place);
  Place best;
  const auto offer = [&](std::uint32_t step, std::uint32_t op) {
    const Place from = run_of(place.timeline, step, op);
    if (from.entry == kNone || at(from).ended != one.ready) return;
    if (!best || op < at(best).op) best = from;
  };
  if (one.op > stream.first_op) {
    offer(one.step, one.op - 1);
  } else if (one.step > 0) {
    offer(one.step - 1, stream.first_op + stream.ops - 1);
  }
  for (const Dependency& dependency : of_rank.dependencies_of(OpId(one.op))) {
    if (dependency.previous_step && one.step == 0) continue;
    offer(one.step - (dependency.previous_step ? 1 : 0),
          of_rank.streams[dependency.stream.index()].first_op + dependency.position);
  }
  if (best) causes.push_back({end_of(best)});
}

// sum over paces of (time at that pace) / pace = 1, so with the paces p(k) between the instants
// t(k): dt(end) = p(last) x [dt(0) / p(0) + sum dt(k) (1/p(k) - 1/p(k-1)) + sum time(k) dp(k) /
// p(k)^2].
void PathWalk::causes_of_compute(Place place, const double* slope, std::vector<Cause>& causes) {
  const TimelineOp& one = at(place);
  struct Piece {
    PathBill::Compute compute;
    double pace = 0;
    double took = 0;
  };
  std::vector<Piece> pieces;
  std::vector<Instant> changes;  // at the start of each piece but the first
  PathBill::Compute now{.work = op(place).work, .beside = {}};
  Time since = one.started;
  const auto close = [&](Time until) {
    pieces.push_back({now, prices_.compute(now), length(since, until)});
    since = until;
  };
  const auto active = active_.find(start_of(place) / 2);
  if (active != active_.end()) now.beside = active->second;
  const std::vector<Hold>& holds = holds_[place.timeline];
  for (auto hold = std::ranges::upper_bound(holds, one.started, {}, &Hold::at);
       hold != holds.end() && hold->at < one.ended; ++hold) {
    close(hold->at);
    changes.push_back(hold->instant);
    change(*hold, now.beside);
  }
  close(one.ended);
  double done = 0;  // at the paces of the chip; stragglers and jitter are slower
  for (const Piece& piece : pieces) done += piece.pace > 0 ? piece.took / piece.pace : 0;
  if (slope != nullptr) bill_.path += *slope * length(one.started, one.ended);
  const double last = pieces.back().pace;
  if (done <= 0 || last <= 0) {
    causes.push_back({start_of(place)});
    return;
  }
  causes.push_back({start_of(place), last / pieces.front().pace});
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double weight = last / pieces[i + 1].pace - last / pieces[i].pace;
    if (weight != 0) causes.push_back({changes[i], weight});
  }
  if (slope == nullptr) return;
  for (const Piece& piece : pieces) {
    if (piece.took > 0) bill_.computes[piece.compute] += *slope * piece.took * last / piece.pace;
  }
}

void PathWalk::causes_of_collective(Place place, const double* slope, std::vector<Cause>& causes) {
  const TimelineOp& one = at(place);
  Place last = place;
  if (one.moving != one.started) {
    const auto found = late_.find(start_of(place) / 2);
    if (found != late_.end()) last = found->second;
  }
  causes.push_back({start_of(last)});
  if (slope == nullptr) return;
  const PathBill::Collective collective = collective_of(place);
  book(prices_.collective(collective), length(at(last).started, one.ended), *slope,
       bill_.collectives[collective]);
}

// The op ends with the last of its messages.
void PathWalk::causes_of_messages(Place place, const double* slope, std::vector<Cause>& causes) {
  const TimelineOp& one = at(place);
  const Op& posted = op(place);
  const std::uint32_t number = place.timeline;
  Place cause = place;
  PathBill::Message last;
  double latest = -1;
  for (std::uint32_t m = posted.work; m < posted.work + posted.work_count; ++m) {
    const Message& message = graph_.messages[m];
    const Communicator& communicator = graph_.communicators[message.communicator.index()];
    const RankId self = timeline(number).rank;
    const std::uint32_t group = communicator.seat_of[self.index()].group;
    const RankId peer = communicator.groups[group][message.peer];
    const std::uint32_t other = timeline_of(peer);
    const Sides& sides = messages_.at({.source = message.is_send ? number : other,
                                       .destination = message.is_send ? other : number,
                                       .microbatch = message.microbatch.value_or(-1),
                                       .boundary = message.boundary,
                                       .step = one.step,
                                       .kind = message.kind});
    const RankId from = message.is_send ? self : peer;
    const RankId to = message.is_send ? peer : self;
    // The chips of a message are those of its sender's representative.
    const PathBill::Message key{graph_.ranks[from.index()].chip, graph_.ranks[to.index()].chip,
                                message.bytes.value()};
    bool eager = message.eager;
    if (!message.is_send) {
      const Op& sent = op(sides.sender);
      for (std::uint32_t s = sent.work; s < sent.work + sent.work_count; ++s) {
        const Message& send = graph_.messages[s];
        if (send.is_send && send.kind == message.kind && send.boundary == message.boundary &&
            send.microbatch == message.microbatch) {
          eager = send.eager;
        }
      }
    }
    Place late = sides.sender;
    if (!eager && at(sides.receiver).started > at(late).started) late = sides.receiver;
    if (at(late).started == at(place).started) late = place;
    const PathTransfer alone = prices_.message(key);
    const double arrives = length(Time(), at(late).started) + alone.latency + alone.flowing;
    if (arrives <= latest) continue;
    latest = arrives;
    cause = late;
    last = key;
  }
  causes.push_back({start_of(cause)});
  if (slope == nullptr || latest < 0) return;
  book(prices_.message(last), length(at(cause).started, one.ended), *slope, bill_.messages[last]);
}

// Returns the instants that the roots follow from, each before its causes.
std::vector<Instant> PathWalk::in_order_of_causes(std::span<const Instant> roots) {
  struct Visit {
    Instant instant = 0;
    std::vector<Cause> causes{};
    std::size_t next = 0;
  };
  std::vector<bool> seen(2 * std::size_t{first_.back()});
  std::vector<Instant> order;
  std::vector<Visit> stack;
  const auto visit = [&](Instant instant) {
    if (seen[instant]) return;
    seen[instant] = true;
    stack.push_back({.instant = instant});
    causes_of(instant, nullptr, stack.back().causes);
  };
  for (const Instant root : roots) {
    visit(root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      if (top.next < top.causes.size()) {
        visit(top.causes[top.next++].instant);
      } else {
        order.push_back(top.instant);
        stack.pop_back();
      }
    }
  }
  std::ranges::reverse(order);
  return order;
}

PathBill PathWalk::bill() {
  bill_.steps = std::max(1U, result_.steps - 1);
  std::vector<Instant> roots;
  std::unordered_map<Instant, double> slopes;
  if (first_.back() == 0) return std::move(bill_);
  roots.push_back(end_of(last_of_step(result_.steps - 1)));
  slopes[roots.back()] += 1;
  if (result_.steps > 1) {
    roots.push_back(end_of(last_of_step(0)));
    slopes[roots.back()] -= 1;
  }
  std::vector<Cause> causes;
  for (const Instant instant : in_order_of_causes(roots)) {
    const auto found = slopes.find(instant);
    if (found == slopes.end()) continue;
    const double slope = found->second;
    slopes.erase(found);
    if (slope == 0) continue;
    causes.clear();
    causes_of(instant, &slope, causes);
    for (const Cause& cause : causes) slopes[cause.instant] += slope * cause.slope;
  }
  return std::move(bill_);
}

// Returns the time of a bill, in picoseconds, with transfers and kernels in logarithms: only
// differences between hardware that is nearly alike mean something.
class PricedBill {
 public:
  PricedBill(const PathBill& bill, const OpGraph& graph, const PricedHardware& hardware)
      : bill_(bill), prices_(graph, hardware.cluster), host_(hardware.host) {}

  double value() {
    double sum = 0;
    for (const auto& [compute, took] : bill_.computes) {
      sum += flowing(took, prices_.compute(compute));
    }
    for (const auto& [collective, amount] : bill_.collectives) {
      sum += value_of(amount, prices_.collective(collective));
    }
    for (const auto& [message, amount] : bill_.messages) {
      sum += value_of(amount, prices_.message(message));
    }
    for (const auto& [host, amount] : bill_.hosts) sum += value_of(amount, prices_.host(host));
    if (!host_) return sum;
    sum += bill_.launches * static_cast<double>(host_->launch.count());
    for (const auto& [work, times] : bill_.leads) {
      sum += times * prices_.lead(work, host_->launch);
    }
    return sum;
  }

 private:
  static double flowing(double took, double alone) {
    return alone > 0 ? took * std::log(alone) : 0;
  }
  static double value_of(const PathAmount& amount, const PathTransfer& alone) {
    return amount.times * alone.latency + flowing(amount.flowing, alone.flowing);
  }

  const PathBill& bill_;
  PathPrices prices_;
  std::optional<HostCost> host_;
};

}  // namespace

PathBill path_bill(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result) {
  return PathWalk(graph, cluster, result).bill();
}

double change_of(const PathBill& bill, const OpGraph& graph, const PricedHardware& less,
                 const PricedHardware& more) {
  return (PricedBill(bill, graph, more).value() - PricedBill(bill, graph, less).value()) /
         static_cast<double>(bill.steps);
}

}  // namespace stepsim
