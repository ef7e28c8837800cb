#include "analysis/collective_formulas.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

namespace stepsim {
namespace {

using Choice = AlgorithmChoice;
using Op = CollectiveOp;

struct Group {
  double members = 1;
  double bandwidth = 0;  // of the slowest level
  double trip = 0;       // of the longest
  double hops = 0;       // sum of size - 1
  bool torus = true;
  bool wraps = true;
  bool equal = true;  // all sizes
};

Group group_of(std::span<const FormulaLevel> levels) {
  Group group;
  for (const FormulaLevel& level : levels) {
    group.members *= level.size;
    const double bandwidth = level.bandwidth.value();
    group.bandwidth = group.bandwidth == 0 ? bandwidth : std::min(group.bandwidth, bandwidth);
    group.trip = std::max(group.trip, to_seconds(level.trip));
    group.hops += level.size - 1;
    group.torus = group.torus && level.torus_axis;
    group.wraps = group.wraps && level.wraps;
    group.equal = group.equal && level.size == levels.front().size;
  }
  return group;
}

double passes_of(Op op) {
  return op == Op::kAllReduce ? 2 : 1;
}

std::string in_passes(Op op, const std::string& text) {
  return op == Op::kAllReduce ? "2 (" + text + ")" : text;
}

// Level after level on what the inner ones have left: the slowest of them, or their sum (C9).
CollectiveFormula level_by_level(const CollectiveFormulaInput& input, double directions) {
  double bytes = static_cast<double>(input.bytes.value());
  double slowest = 0;
  double sum = 0;
  double trips = 0;
  for (const FormulaLevel& level : input.levels) {
    const double seconds =
        bytes * (level.size - 1) / level.size / (directions * level.bandwidth.value());
    slowest = std::max(slowest, seconds);
    sum += seconds;
    trips += (level.size - 1) * to_seconds(level.trip);
    bytes /= level.size;
  }
  const double passes = passes_of(input.op);
  return {
      passes * ((input.overlapped ? slowest : sum) + trips),
      in_passes(input.op, std::string(input.overlapped ? "max" : "sum") + "_i (n_i-1)/n_i S_i/" +
                              (directions > 1 ? "(2 W)" : "W_i") + " + sum_i (n_i-1) t_i")};
}

// B4, B5. Of unequal axes each is the first in one rotation of the order, and carries less in the
// others; the busiest counts.
std::optional<CollectiveFormula> multi_axis(const CollectiveFormulaInput& input,
                                            const Group& group) {
  if (!group.equal && !input.overlapped) return std::nullopt;
  const auto axes = static_cast<double>(input.levels.size());
  const std::size_t count = input.levels.size();
  double busiest = 0;
  for (std::size_t axis = 0; axis < count; ++axis) {
    double share = 0;
    for (std::size_t first = 0; first < count; ++first) {
      double left = 1;
      for (std::size_t i = first; i % count != axis; ++i) left /= input.levels[i % count].size;
      const double size = input.levels[axis].size;
      share += left * (size - 1) / size / axes;
    }
    busiest = std::max(busiest, share / input.levels[axis].bandwidth.value());
  }
  const double bytes = static_cast<double>(input.bytes.value());
  const double seconds = busiest * bytes / (group.wraps ? 2 : 1) + group.hops * group.trip;
  return CollectiveFormula{
      passes_of(input.op) * seconds,
      in_passes(input.op,
                std::string("(n-1)/n S/(") + (group.wraps ? "2 " : "") + "M W) + sum_i (n_i-1) t")};
}

// B6: half of the data each way, a quarter of a ring on average; the middle link of a line is
// crossed by a quarter of all pairs.
std::optional<CollectiveFormula> torus_all_to_all(const CollectiveFormulaInput& input,
                                                  const Group& group) {
  if (!input.overlapped && (!group.equal || !group.wraps)) return std::nullopt;
  double busiest = 0;
  double hops = 0;
  for (const FormulaLevel& level : input.levels) {
    const double n = level.size;
    const double odd = level.size % 2;
    const double ring = (n * n - odd) / (8 * n);
    busiest = std::max(busiest, (level.wraps ? ring : 2 * ring) / level.bandwidth.value());
    hops += level.wraps ? std::floor(n / 2) : n - 1;
  }
  return CollectiveFormula{busiest * static_cast<double>(input.bytes.value()) + hops * group.trip,
                           "S max_i(n_i)/(8 W) + sum_i (n_i/2) t"};
}

// Chunks that follow each other through phases, whose trips are these: each trip of the first
// chunk, and for every later one those of the longest phase.
double trips_in_chunks(const std::vector<double>& phases, double chunks) {
  double sum = 0;
  double longest = 0;
  for (const double phase : phases) {
    sum += phase;
    longest = std::max(longest, phase);
  }
  return sum + (chunks - 1) * longest;
}

// C9 with all levels at work; only their trips are chunk after chunk.
std::optional<CollectiveFormula> overlapped_levels(const CollectiveFormulaInput& input) {
  if (!input.overlapped) return std::nullopt;  // filling and emptying the levels
  CollectiveFormulaInput without_trips = input;
  std::vector<FormulaLevel> levels(input.levels.begin(), input.levels.end());
  std::vector<double> phases;
  for (FormulaLevel& level : levels) {
    phases.push_back((level.size - 1) * to_seconds(level.trip));
    level.trip = {};
  }
  if (input.op == Op::kAllReduce) phases.insert(phases.end(), phases.begin(), phases.end());
  without_trips.levels = levels;
  const CollectiveFormula bytes = level_by_level(without_trips, 1);
  return CollectiveFormula{bytes.seconds + trips_in_chunks(phases, input.lanes),
                           in_passes(input.op, "max_i (n_i-1)/n_i S_i/W_i") + " + trips"};
}

// The trips round rings that pass all of a node before they go on: between nodes one a node, of the
// levels that are crossed there.
double round_trip(const CollectiveFormulaInput& input) {
  double members = 1;
  for (const FormulaLevel& level : input.levels) members *= level.size;
  double trips = 0;
  for (const FormulaLevel& level : input.levels) {
    members /= level.size;
    const bool outermost = &level == &input.levels.back();
    trips += (members * (level.size - 1) + (outermost ? 1 : 0)) * to_seconds(level.trip);
  }
  return trips;
}

// A ring a card: what leaves a member over its card, and inside the node to d - 1 others.
std::optional<CollectiveFormula> rotated_rings(const CollectiveFormulaInput& input,
                                               const Group& group) {
  const double cards = input.levels.front().size;
  double outside = 0;
  for (const FormulaLevel& level : input.levels.subspan(1)) {
    outside = std::max(outside, 1 / level.bandwidth.value());
  }
  const double slowest =
      std::max(outside, (cards - 1) / input.levels.front().bandwidth.value()) / cards;
  const double bytes = static_cast<double>(input.bytes.value());
  const double n = group.members;
  const double passes = passes_of(input.op);
  // The last byte has a hop less to go than all the way round, once a pass.
  const double inside = to_seconds(input.levels.front().trip);
  const bool both_inside = cards > passes;
  const double left_out = both_inside ? passes * inside : inside + to_seconds(input.levels[1].trip);
  const double longest = std::max(group.trip, to_seconds(input.farthest));
  const double trips =
      input.overlapped ? passes * round_trip(input) - left_out : passes * (n - 1) * longest;
  return CollectiveFormula{
      passes * (n - 1) / n * bytes * slowest + trips,
      in_passes(input.op, "(n-1)/n S max(1/(d W), (d-1)/(d W_node)) + (n-1) t")};
}

// In the node (d-1)/d of the data, over the cards (M-1)/M.
std::optional<CollectiveFormula> node_relay(const CollectiveFormulaInput& input,
                                            const Group& group) {
  if (!input.overlapped || input.busiest_port) return std::nullopt;
  const FormulaLevel& inside = input.levels.front();
  double outside = 0;
  double trip = 0;
  for (const FormulaLevel& level : input.levels.subspan(1)) {
    outside = std::max(outside, 1 / level.bandwidth.value());
    trip = std::max(trip, to_seconds(level.trip));
  }
  const double d = inside.size;
  const double nodes = group.members / d;
  const double slowest =
      std::max((d - 1) / d / inside.bandwidth.value(), (nodes - 1) / nodes * outside);
  const double trips =
      trips_in_chunks({(d - 1) * to_seconds(inside.trip), (nodes - 1) * trip}, input.lanes);
  return CollectiveFormula{slowest * static_cast<double>(input.bytes.value()) + trips,
                           "S max((d-1)/(d W_node), (M-1)/(M W)) + trips"};
}

// C12, C17: once up and once down every link; of shards, all but those of one's own.
// Over nodes without a tree of all: rings in the node, the d-th of the data over each rail's tree.
std::optional<CollectiveFormula> in_network(const CollectiveFormulaInput& input,
                                            const Group& group) {
  if (input.rail_trees) {
    const FormulaLevel& inside = input.levels.front();
    const double d = inside.size;
    double outside = 0;
    double trip = 0;
    for (const FormulaLevel& level : input.levels.subspan(1)) {
      outside = std::max(outside, 1 / level.bandwidth.value());
      trip = std::max(trip, to_seconds(level.trip));
    }
    const double slowest = std::max(2 * (d - 1) / d / inside.bandwidth.value(), outside / d);
    return CollectiveFormula{slowest * static_cast<double>(input.bytes.value()) +
                                 2 * (d - 1) * to_seconds(inside.trip) + trip,
                             "S max(2 (d-1)/(d W_node), 1/(d W)) + trips"};
  }
  const bool sharded = input.op == Op::kAllGather || input.op == Op::kReduceScatter;
  const double share = sharded ? (group.members - 1) / group.members : 1;
  const double trips = input.rounds * to_seconds(input.levels.front().trip);
  return CollectiveFormula{
      share * static_cast<double>(input.bytes.value()) / group.bandwidth + trips,
      sharded ? "(n-1)/n S/W + trips of the tree" : "S/W + trips of the tree"};
}

// C7, C11: what must leave the members of each level below, through a port of that level.
double exchange_seconds(const CollectiveFormulaInput& input, const Group& group) {
  double inner = 1;
  double slowest = 0;
  for (const FormulaLevel& level : input.levels) {
    slowest = std::max(slowest, (1 - inner / group.members) / level.bandwidth.value());
    inner *= level.size;
  }
  return slowest * static_cast<double>(input.bytes.value());
}

// Algorithms of one row of members, whose ports are all that counts.
std::optional<CollectiveFormula> on_ports(const CollectiveFormulaInput& input, const Group& group) {
  const auto n = static_cast<std::uint32_t>(group.members);
  const double others = (group.members - 1) / group.members;
  const double whole = static_cast<double>(input.bytes.value()) / group.bandwidth;  // S/W
  const double t = std::max(group.trip, to_seconds(input.farthest));
  const double rounds = input.rounds;
  const bool power_of_two = std::has_single_bit(n);
  const double doublings = std::bit_width(n - 1);
  const double passes = passes_of(input.op);
  if (input.busiest_port) {
    const bool at_once = input.algorithm == Choice::kDirect;
    const bool alone = input.levels.size() == 1 && (at_once || input.overlapped);
    if (!alone || (!at_once && input.algorithm != Choice::kPairwise)) return std::nullopt;
    return CollectiveFormula{
        static_cast<double>(input.busiest_port->value()) / group.bandwidth + rounds * t,
        at_once ? "busiest port/W + t" : "busiest port/W + (n-1) t"};
  }
  switch (input.algorithm) {
    case Choice::kDirect:
      if (input.op == Op::kSendReceive || input.op == Op::kPermute) {
        return CollectiveFormula{whole + t, "S/W + t"};
      }
      if (input.op == Op::kGather || input.op == Op::kScatter) {
        return CollectiveFormula{others * whole + rounds * t, "(n-1)/n S/W + t"};
      }
      return CollectiveFormula{exchange_seconds(input, group) + t, "max_i S (1-1/M_i)/W_i + t"};
    case Choice::kPairwise:
      return CollectiveFormula{exchange_seconds(input, group) + rounds * t,
                               "max_i S (1-1/M_i)/W_i + (n-1) t"};
    case Choice::kChain: {
      if (input.overlapped) return CollectiveFormula{whole + rounds * t, "S/W + (n-2+C) t"};
      if (input.levels.size() > 1) return std::nullopt;  // it fills at the pace of each hop
      const double chunks = rounds - group.members + 2;
      return CollectiveFormula{rounds * (t + whole / chunks), "(n-2+C) (S/(C W) + t)"};
    }
    case Choice::kBinomialTree:
      if (input.op == Op::kBroadcast || input.op == Op::kReduce) {
        return CollectiveFormula{doublings * (whole + t), "ceil(log2 n) (S/W + t)"};
      }
      if (!power_of_two) return std::nullopt;
      return CollectiveFormula{others * whole + doublings * t, "(n-1)/n S/W + log2(n) t"};
    case Choice::kBruck:
      return CollectiveFormula{others * whole + doublings * t, "(n-1)/n S/W + ceil(log2 n) t"};
    case Choice::kHalvingDoubling:
    case Choice::kRecursiveDoubling: {
      const bool exchanges_all =
          input.algorithm == Choice::kRecursiveDoubling && input.op == Op::kAllReduce;
      // The members that fold share the ports of those that exchange already.
      if (!power_of_two && !input.overlapped) return std::nullopt;
      const double power = std::bit_floor(n);
      const double levels = std::log2(power);
      const double sent = exchanges_all ? levels : passes * (power - 1) / power;
      const double folds = power_of_two ? 0 : 1;  // a whole buffer in, one out: ports go both ways
      return CollectiveFormula{(sent + folds) * whole + rounds * t,
                               exchanges_all ? "log2(p) (S/W + t) [+ S/W + 2 t]"
                                             : "passes ((p-1)/p S/W + log2(p) t) [+ S/W + 2 t]"};
    }
    case Choice::kDoubleBinaryTree:
      if (!input.overlapped || n < 4) return std::nullopt;
      return CollectiveFormula{2 * whole + (rounds + doublings) * t, "2 S/W + (C + 2 D - 1) t"};
    case Choice::kReduceBroadcast:
      return CollectiveFormula{
          (input.overlapped ? 1 : 2) * (group.members - 1) * whole + rounds * t,
          input.overlapped ? "(n-1) S/W + n t" : "2 (n-1) S/W + n t"};
    case Choice::kDissemination:
      return CollectiveFormula{doublings * t, "ceil(log2 n) t"};
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<CollectiveFormula> collective_formula(const CollectiveFormulaInput& input) {
  if (input.levels.empty()) return CollectiveFormula{0, "a group of one costs nothing"};
  const Group group = group_of(input.levels);
  switch (input.algorithm) {
    case Choice::kRing:
    case Choice::kBidirectionalRing: {
      const bool both = input.algorithm == Choice::kBidirectionalRing && input.levels.size() == 1 &&
                        group.wraps && group.members > 2;
      const double trip = std::max(group.trip, to_seconds(input.farthest));
      const double seconds = static_cast<double>(input.bytes.value()) * (group.members - 1) /
                             group.members / ((both ? 2 : 1) * group.bandwidth);
      return CollectiveFormula{
          passes_of(input.op) * (seconds + (group.members - 1) * trip),
          in_passes(input.op, std::string("(n-1)/n S/") + (both ? "(2 W)" : "W") + " + (n-1) t")};
    }
    case Choice::kHierarchical:
      return level_by_level(input, 1);
    case Choice::kAxisAfterAxis:
      return level_by_level(input, group.wraps ? 2 : 1);
    case Choice::kMultiAxis:
      return multi_axis(input, group);
    case Choice::kTorusAllToAll:
      return torus_all_to_all(input, group);
    case Choice::kOverlappedLevels:
      return overlapped_levels(input);
    case Choice::kRotatedRings:
      return rotated_rings(input, group);
    case Choice::kPxn:
    case Choice::kNodeForwarding:
      return node_relay(input, group);
    case Choice::kNvls:
    case Choice::kSharp:
      return in_network(input, group);
    default:
      break;
  }
  // Ports say nothing where messages share links; neighbours on a wrapped axis share none.
  const bool neighbours = input.levels.size() == 1 && group.wraps &&
                          (input.algorithm == Choice::kChain || input.op == Op::kSendReceive);
  if (group.torus && !neighbours) return std::nullopt;
  return on_ports(input, group);
}

double bus_factor(CollectiveOp op, std::uint32_t members) {
  const double others = (static_cast<double>(members) - 1) / members;
  switch (op) {
    case Op::kAllReduce:
      return 2 * others;
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll:
    case Op::kGather:
    case Op::kScatter:
      return others;
    default:
      return 1;
  }
}

}  // namespace stepsim
