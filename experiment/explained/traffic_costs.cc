#include "experiment/explained/traffic_costs.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_links.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/collectives/collective_edges.h"
#include "sim/run/collectives/collective_task.h"

namespace stepsim {
namespace {

bool on_torus(const FormulaGroup& group) {
  return std::ranges::all_of(group.levels, &FormulaLevel::torus_axis);
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

std::optional<double> seconds_of(const FormulaGroup& group, const CollectiveWork& work,
                                 AlgorithmChoice choice, const CollectiveAlgorithm& algorithm) {
  const auto formula = collective_formula({.op = work.op,
                                           .algorithm = choice,
                                           .bytes = work.bytes,
                                           .levels = group.levels,
                                           .farthest = group.farthest,
                                           .rounds = algorithm.rounds(),
                                           .lanes = algorithm.lanes(),
                                           .overlapped = true});
  if (!formula) return std::nullopt;
  return formula->seconds;
}

// Turns on one cause after the other. Each model says what it takes; the clamps keep rounding, and
// closed forms that are bounds only, from giving a cause the sign of another one.
class CauseSteps {
 public:
  explicit CauseSteps(double ideal) : costs_{.ideal = ideal}, at_(ideal) {}

  void less(TrafficCause cause, double seconds) { go(cause, std::min(at_, seconds)); }
  void more(TrafficCause cause, double seconds) { go(cause, std::max(at_, seconds)); }
  double at() const { return at_; }
  const TrafficCosts& costs() const { return costs_; }

 private:
  void go(TrafficCause cause, double seconds) {
    costs_.of(cause) += seconds - at_;
    at_ = seconds;
  }

  TrafficCosts costs_;
  double at_;
};

// Returns the most that one endpoint has on one link. `uses` are sorted by link.
template <typename Uses, typename Endpoint>
double most_of_one(Uses& uses, Endpoint endpoint) {
  std::ranges::sort(uses, {}, [&](const auto& use) { return std::pair(use.link, endpoint(use)); });
  double most = 0;
  double sum = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const bool same =
        i > 0 && uses[i].link == uses[i - 1].link && endpoint(uses[i]) == endpoint(uses[i - 1]);
    sum = (same ? sum : 0) + uses[i].seconds;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

const std::array<TrafficCauseRow, kTrafficCauses>& traffic_causes() {
  static constexpr std::array<TrafficCauseRow, kTrafficCauses> kRows{{
      {TrafficCause::kOwnPart, "a rank already has its own part: only (n-1)/n of V moves", false},
      {TrafficCause::kFewerBytes,
       "fewer bytes cross the slowest level: a node has its ranks' parts, or switches add", false},
      {TrafficCause::kUnequalAxes, "axes of unequal length: the longest carries most", true},
      {TrafficCause::kLines, "axes that do not wrap: lines, not rings", true},
      {TrafficCause::kAlgorithm, "the algorithm sends more over the links of a rank", true},
      {TrafficCause::kTrips, "latency of the trips", true},
      {TrafficCause::kLibrary, "the library: start, protocol, slower hops", true},
      {TrafficCause::kSharedLinks, "links shared by ranks of the group: cards, uplinks", true},
      {TrafficCause::kBatch, "messages of one batch move at the same time", false},
      {TrafficCause::kEarly, "the part of a rank ends before the whole collective does", false},
      {TrafficCause::kOthers, "links shared with other traffic; peers that are not there yet",
       true},
  }};
  return kRows;
}

double TrafficCosts::seconds() const {
  return std::accumulate(by_cause.begin(), by_cause.end(), ideal);
}

void TrafficCosts::add_rest(double simulated, TrafficCause less, TrafficCause more) {
  const double rest = simulated - seconds();
  of(rest < 0 ? less : more) += rest;
}

void TrafficCosts::add(const TrafficCosts& other, double share) {
  ideal += share * other.ideal;
  for (std::size_t i = 0; i < kTrafficCauses; ++i) by_cause[i] += share * other.by_cause[i];
}

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

const TrafficCosts& TrafficModel::collective(CollectiveWorkId work, GroupId group) {
  const auto [place, is_new] = collectives_.try_emplace({work, group});
  if (is_new) place->second = costs_of(work, group);
  return place->second;
}

TrafficModel::LinkTimes TrafficModel::times_of(std::uint32_t pattern, const EdgeWays& ways,
                                               const LibraryCost& cost) const {
  const MessagePattern& messages = plans_.pattern(pattern);
  const std::vector<CollectiveEdge>& edges = plans_.edges(messages.edges);
  std::vector<Use> uses;
  for (const EdgeWays::Part& part : ways.parts) {
    const auto kind = static_cast<std::size_t>(ways.kinds[part.edge]);
    const double bytes = static_cast<double>(messages.bytes[part.edge].value()) *
                         (part.of_adder ? 1 : cost.wire[kind]);
    uses.push_back({.link = part.use.link.index(),
                    .from = edges[part.edge].from,
                    .to = edges[part.edge].to,
                    .seconds = bytes / cluster_.fabric.width(part.use).value()});
  }
  return {.own = std::max(most_of_one(uses, [](const Use& use) { return use.from; }),
                          most_of_one(uses, [](const Use& use) { return use.to; })),
          .all = most_of_one(uses, [](const Use&) { return 0; })};
}

TrafficCosts TrafficModel::costs_of(CollectiveWorkId id, GroupId number) {
  const CollectiveWork& work = graph_.collective_works[id.index()];
  const ChosenCollective chosen = plans_.chosen_for(id, number);
  const AlgorithmChoice choice = chosen.way.algorithm;
  const GroupShape shape = describe(cluster_, chosen.chips);
  CollectiveTask task = task_of(graph_, work);
  task.in_one_piece = true;
  const auto algorithm = choose_algorithm(task, choice, shape);
  const FormulaGroup group =
      without_trips(formula_group(cluster_, chosen.chips, shape, {}, LinkSharing::kAlone));
  EdgeWays ways;
  const std::uint32_t pattern = plans_.pattern_of(id, number);
  plans_.find_ways(plans_.pattern(pattern).edges, work.communicator, number, ways);
  const LinkTimes data = times_of(pattern, ways, {});
  const LinkTimes wire = times_of(pattern, ways, plans_.pattern(pattern).cost);
  const double latency = to_seconds(plans_.latency_of(pattern, ways.latencies));
  std::size_t edge = 0;  // asked for in the order in which they were numbered
  const double trips = to_seconds(
      sum_edges(*algorithm, [&](const CollectiveEdge&) { return ways.latencies[edge++]; }).latency);

  const bool torus = on_torus(group);
  const bool rings = torus && is_ring_op(work.op);
  AlgorithmChoice on_rings = choice;
  if (rings) {
    on_rings =
        group.levels.size() > 1 ? AlgorithmChoice::kMultiAxis : AlgorithmChoice::kBidirectionalRing;
  }
  const auto ring = seconds_of(wrapped(group), work, on_rings, *algorithm);
  const auto as_wired = seconds_of(group, work, choice, *algorithm);
  const double passes = work.op == CollectiveOp::kAllReduce ? 2 : 1;
  const auto members = static_cast<double>(chosen.chips.size());
  const double whole = passes * static_cast<double>(work.bytes.value()) / bandwidth_of(group);
  const double most = torus ? data.all : data.own;
  CauseSteps steps(is_ring_op(work.op) ? whole : std::min(ring.value_or(most), most));
  if (is_ring_op(work.op)) steps.less(TrafficCause::kOwnPart, whole * (members - 1) / members);
  steps.less(TrafficCause::kFewerBytes, most);
  if (torus && ring && as_wired) {
    steps.more(TrafficCause::kUnequalAxes, std::min(*ring, most));
    steps.more(TrafficCause::kLines, std::min(*as_wired, most));
  }
  steps.more(TrafficCause::kAlgorithm, data.own);
  const double moving = steps.at();
  steps.more(TrafficCause::kTrips, moving + std::min(trips, latency));
  steps.more(TrafficCause::kLibrary, std::max(moving, wire.own) + latency);
  steps.more(TrafficCause::kSharedLinks, wire.all + latency);
  TrafficCosts costs = steps.costs();
  costs.algorithm = choice;
  return costs;
}

const FormulaLevel& TrafficModel::route(std::uint32_t from_chip, std::uint32_t to_chip) {
  const auto [place, is_new] = routes_.try_emplace({from_chip, to_chip});
  if (is_new) {
    const std::array<std::uint32_t, 2> chips = {from_chip, to_chip};
    place->second = formula_group(cluster_, chips, describe(cluster_, chips)).levels.front();
  }
  return place->second;
}

TrafficCosts TrafficModel::message(Bytes bytes, std::uint32_t from_chip, std::uint32_t to_chip) {
  const FormulaLevel& level = route(from_chip, to_chip);
  const CommunicationLibrary& library = cluster_.library;
  const std::uint32_t of_node = chips_per_node(cluster_.places);
  const HopKind kind =
      from_chip / of_node == to_chip / of_node ? library.inside : HopKind::kNetwork;
  const LibraryCost cost = cost_of_message(library, bytes, kind, level.bandwidth);
  const auto at = static_cast<std::size_t>(kind);
  TrafficCosts costs{.ideal = to_seconds(bytes / level.bandwidth)};
  costs.of(TrafficCause::kTrips) = to_seconds(level.trip);
  costs.of(TrafficCause::kLibrary) =
      to_seconds(cost.start + cost.hop[at]) + (cost.wire[at] - 1) * costs.ideal;
  return costs;
}

}  // namespace stepsim
