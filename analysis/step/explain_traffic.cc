// Communication: V / W, then the removal of one assumption after another.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/collective_forms/group_levels.h"
#include "analysis/step/explain_parts.h"
#include "schedules/plan/axis.h"
#include "sim/base/quantity_text.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/collectives/collective_plan.h"

namespace stepsim {
namespace {

bool on_torus(const FormulaGroup& group) {
  return std::ranges::all_of(group.levels, &FormulaLevel::torus_axis);
}

// Returns the rate in bytes/s at which an array passes: over both directions of all axes at once,
// or over the slowest level, which gets the bytes that the inner levels leave.
double bandwidth_of(const FormulaGroup& group) {
  double sum = 0;
  double slowest = 0;
  double inner = 1;
  for (const FormulaLevel& level : group.levels) {
    sum += 2 * level.bandwidth.value();
    const double passes = inner * level.bandwidth.value();
    slowest = slowest == 0 ? passes : std::min(slowest, passes);
    inner *= level.size;
  }
  return on_torus(group) ? sum : slowest;
}

struct Costs {
  double headline = 0;  // V / W
  double others = 0;    // the factor (n-1)/n
  double unequal = 0;   // torus axes of unequal length
  double lines = 0;     // axes that do not wrap
  double trips = 0;
  double library = 0;  // start, protocol, slower hops
  bool stated = true;  // whether the algorithm has a closed form
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;

  double idle() const { return headline + others + unequal + lines + trips + library; }
};

// -1: no closed form.
double seconds_of(const FormulaGroup& group, const CollectiveWork& work, AlgorithmChoice algorithm,
                  std::uint32_t rounds, std::uint32_t lanes) {
  const auto formula = collective_formula({.op = work.op,
                                           .algorithm = algorithm,
                                           .bytes = work.bytes,
                                           .levels = group.levels,
                                           .farthest = group.farthest,
                                           .rounds = rounds,
                                           .lanes = lanes,
                                           .overlapped = true});
  return formula ? formula->seconds : -1;
}

FormulaGroup without_trips(FormulaGroup group) {
  for (FormulaLevel& level : group.levels) level.trip = {};
  group.farthest = {};
  return group;
}

FormulaGroup wrapped(FormulaGroup group) {
  for (FormulaLevel& level : group.levels) level.wraps = level.torus_axis && level.size > 2;
  return group;
}

Costs costs_of(const Cluster& cluster, const std::vector<std::uint32_t>& chips,
               const CollectiveWork& work, const ChosenCollective& chosen) {
  const GroupShape shape = describe(cluster, chips);
  const FormulaGroup group = formula_group(cluster, chips, shape);
  const CollectiveWay& choice = chosen.way;
  const std::uint32_t rounds = chosen.algorithm->rounds();
  const std::uint32_t lanes = chosen.algorithm->lanes();
  Costs costs{.algorithm = choice.algorithm};
  AlgorithmChoice on_rings = choice.algorithm;
  if (on_torus(group) && is_ring_op(work.op)) {
    on_rings =
        group.levels.size() > 1 ? AlgorithmChoice::kMultiAxis : AlgorithmChoice::kBidirectionalRing;
  }
  const double ring = seconds_of(wrapped(without_trips(group)), work, on_rings, rounds, lanes);
  const double as_wired = seconds_of(without_trips(group), work, choice.algorithm, rounds, lanes);
  const double with_trips = seconds_of(group, work, choice.algorithm, rounds, lanes);
  const double with_library =
      to_seconds(choice.cost.start) + seconds_of(formula_group(cluster, chips, shape, choice.cost),
                                                 work, choice.algorithm, rounds, lanes);
  const double passes = work.op == CollectiveOp::kAllReduce ? 2 : 1;
  const auto whole = static_cast<double>(work.bytes.value());
  costs.stated = ring >= 0 && as_wired >= 0 && with_trips >= 0;
  costs.headline =
      is_ring_op(work.op) || !costs.stated ? passes * whole / bandwidth_of(group) : ring;
  if (!costs.stated) return costs;
  costs.others = ring - costs.headline;
  if (on_torus(group) && is_ring_op(work.op)) {
    costs.others = -costs.headline / static_cast<double>(chips.size());
    costs.unequal = ring - costs.headline - costs.others;
  }
  costs.lines = as_wired - ring;
  costs.trips = with_trips - as_wired;
  costs.library = with_library - with_trips;
  return costs;
}

std::vector<std::uint32_t> chips_of(const OpGraph& graph, const std::vector<RankId>& ranks) {
  std::vector<std::uint32_t> chips;
  for (const RankId rank : ranks) chips.push_back(graph.ranks[rank.index()].chip);
  return chips;
}

// Sums over the collectives of one communicator.
struct Sums {
  std::map<CollectiveOp, double> counts;
  double bytes = 0;
  Costs costs{.algorithm = {}};
  double unstated = 0;  // simulated time of collectives without a closed form
  double simulated = 0;
  double beside = 0;  // time in which other collectives of the same batch move too
  double waiting = 0;
  std::size_t ranks = 2;
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;
  Axis axis = Axis::kOther;
};

class Collector {
 public:
  explicit Collector(const FinishedRun& run)
      : run_(run), plans_(run.graph, run.cluster, Granularity::kPipelined, Fidelity::kFlow) {}

  void add(const ExplainedRole& role) {
    const OpGraph& graph = run_.graph;
    const Program& program = graph.programs[role.program];
    for (const TimelineOp& entry : role.timeline->ops) {
      if (entry.step + 1 != run_.result.steps) continue;
      const Op& op = program.ops[entry.op];
      const double moving = role.share * to_seconds(entry.ended - entry.moving);
      const double waiting = role.share * to_seconds(entry.moving - entry.started);
      if (op.kind == OpKind::kCollective) {
        add_collective(CollectiveWorkId(op.work), op.axis, role, moving, waiting);
      } else if (op.kind == OpKind::kMessages && op.axis == Axis::kPipeline) {
        add_messages(op, role, moving, waiting);
      }
    }
  }

  std::vector<ExplainedTraffic> take() const {
    std::vector<ExplainedTraffic> all;
    for (const auto& [communicator, sums] : sums_) {
      all.push_back(explained(run_.graph.communicators[communicator].name, sums));
    }
    if (messages_.simulated > 0) all.push_back(explained("pipeline messages", messages_));
    return all;
  }

 private:
  void add_collective(CollectiveWorkId id, Axis axis, const ExplainedRole& role, double moving,
                      double waiting) {
    const CollectiveWork& work = run_.graph.collective_works[id.index()];
    const Communicator& communicator = run_.graph.communicators[work.communicator.index()];
    const auto seat = communicator.seat_of[role.timeline->rank.index()];
    const std::vector<RankId>& members = communicator.groups[seat.group];
    if (members.size() < 2) return;
    const auto work_key = std::tuple(work.communicator.index(), seat.group, work.op,
                                     work.bytes.value(), work.algorithm);
    if (!costs_.contains(work_key)) {
      costs_.emplace(work_key, costs_of(run_.cluster, chips_of(run_.graph, members), work,
                                        plans_.chosen_for(id, GroupId(seat.group))));
    }
    const Costs& costs = costs_.at(work_key);
    Sums& sums = sums_[work.communicator.index()];
    sums.axis = axis;
    sums.ranks = members.size();
    sums.algorithm = costs.algorithm;
    sums.counts[work.op] += role.share;
    sums.bytes += role.share * static_cast<double>(work.bytes.value());
    add_costs(sums, costs, role.share);
    if (!costs.stated) sums.unstated += moving - role.share * costs.headline;
    sums.simulated += moving;
    sums.waiting += waiting;
  }

  void add_messages(const Op& op, const ExplainedRole& role, double moving, double waiting) {
    const OpGraph& graph = run_.graph;
    for (std::uint32_t i = 0; i < op.work_count; ++i) {
      const Message& message = graph.messages[op.work + i];
      if (!message.is_send) continue;
      const Communicator& communicator = graph.communicators[message.communicator.index()];
      const std::uint32_t rank = role.timeline->rank.index();
      const RankId peer = communicator.groups[communicator.seat_of[rank].group][message.peer];
      const auto key = std::pair(graph.ranks[rank].chip, graph.ranks[peer.index()].chip);
      if (!routes_.contains(key)) {
        const std::array<std::uint32_t, 2> pair = {key.first, key.second};
        routes_.emplace(key, formula_group(run_.cluster, pair, describe(run_.cluster, pair)));
      }
      const FormulaLevel& level = routes_.at(key).levels.front();
      const Costs costs = costs_of_message(message.bytes, key, level);
      messages_.axis = op.axis;
      messages_.counts[CollectiveOp::kSendReceive] += role.share;
      messages_.bytes += role.share * static_cast<double>(message.bytes.value());
      add_costs(messages_, costs, role.share);
      messages_.simulated += moving / op.work_count;
      messages_.beside += moving - moving / op.work_count;
      messages_.waiting += waiting / op.work_count;
    }
  }

  Costs costs_of_message(Bytes bytes, const std::pair<std::uint32_t, std::uint32_t>& chips,
                         const FormulaLevel& level) const {
    const CommunicationLibrary& library = run_.cluster.library;
    const std::uint32_t of_node = chips_per_node(run_.cluster.places);
    const HopKind kind =
        chips.first / of_node == chips.second / of_node ? library.inside : HopKind::kNetwork;
    const LibraryCost cost = cost_of_message(library, bytes, kind, level.bandwidth);
    const auto at = static_cast<std::size_t>(kind);
    Costs costs{.headline = to_seconds(bytes / level.bandwidth), .trips = to_seconds(level.trip)};
    costs.library = to_seconds(cost.start + cost.hop[at]) + (cost.wire[at] - 1) * costs.headline;
    return costs;
  }

  static void add_costs(Sums& sums, const Costs& costs, double share) {
    sums.costs.headline += share * costs.headline;
    sums.costs.others += share * costs.others;
    sums.costs.unequal += share * costs.unequal;
    sums.costs.lines += share * costs.lines;
    sums.costs.trips += share * costs.trips;
    sums.costs.library += share * costs.library;
  }

  static ExplainedTraffic explained(const std::string& name, const Sums& sums) {
    std::string what;
    for (const auto& [op, count] : sums.counts) {
      what += fmt::format("{}{:.4g} {}", what.empty() ? "" : ", ", count,
                          op == CollectiveOp::kSendReceive ? "send" : name_of(op));
      if (count != 1) what += 's';
    }
    ExplainedTraffic traffic{
        .name = name,
        .axis = std::string(name_of(sums.axis)),
        .text = fmt::format(
            "{} of {} in all{}", what, to_text(Bytes(static_cast<std::int64_t>(sums.bytes))),
            name == "pipeline messages"
                ? ""
                : fmt::format(" in groups of {}, {}", sums.ranks, name_of(sums.algorithm))),
        .predicted = sums.costs.headline,
        .simulated = sums.simulated,
        .waiting = sums.waiting,
        .causes = {}};
    const double scale = std::max(sums.simulated, sums.costs.headline);
    const auto add = [&](const char* text, double amount) {
      add_cause(traffic.causes, text, amount, scale);
    };
    add("a rank already has its own part: only (n-1)/n of V moves", sums.costs.others);
    add("axes of unequal length: the longest carries most", sums.costs.unequal);
    add("axes that do not wrap: lines, not rings", sums.costs.lines);
    add("latency of the trips", sums.costs.trips);
    add("the library: start, protocol, slower hops", sums.costs.library);
    add("algorithms without a closed form", sums.unstated);
    add("shares links with other messages of a batch", -sums.beside);
    add("links shared with other traffic; peers that are not there yet",
        sums.simulated + sums.beside - sums.costs.idle() - sums.unstated);
    return traffic;
  }

  const FinishedRun& run_;
  CollectivePlans plans_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, FormulaGroup> routes_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, CollectiveOp, std::int64_t, AlgorithmChoice>,
           Costs>
      costs_;
  std::map<std::uint32_t, Sums> sums_;  // by communicator
  Sums messages_;
};

}  // namespace

std::vector<ExplainedTraffic> explain_traffic(const FinishedRun& run,
                                              const std::vector<ExplainedRole>& roles) {
  Collector collector(run);
  for (const ExplainedRole& role : roles) collector.add(role);
  return collector.take();
}

double group_bandwidth(const FinishedRun& run, const Communicator& communicator) {
  for (const std::vector<RankId>& group : communicator.groups) {
    if (group.size() < 2) continue;
    const std::vector<std::uint32_t> chips = chips_of(run.graph, group);
    return bandwidth_of(formula_group(run.cluster, chips, describe(run.cluster, chips)));
  }
  return 0;
}

const Communicator* find_communicator(const OpGraph& graph, Axis axis) {
  const auto largest = [](const Communicator& communicator) {
    std::size_t size = 0;
    for (const auto& group : communicator.groups) size = std::max(size, group.size());
    return size;
  };
  const Communicator* found = nullptr;
  for (const Communicator& communicator : graph.communicators) {
    if (communicator.axis != axis || largest(communicator) < 2) continue;
    if (found == nullptr || largest(communicator) > largest(*found)) found = &communicator;
  }
  return found;
}

}  // namespace stepsim
