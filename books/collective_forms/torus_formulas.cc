// Closed forms on tori. Along an axis of n members and links of W:
//
//   rings      a ring moves (n-1)/n of what is there, half of it each way: floor(n/2) rounds of a
//              shard, the last (or first) one of half a shard if n is even. The link of a line to
//              its end carries n-1 shards; of an all-reduce the scatter fills the links at one end
//              and the gather those at the other, n shards in all (B1, B3, B4, B7)
//   direct     data go along the axes in order. All pairs of members that differ by d < n/2 places
//              on an axis load a link with d shards of the whole line; of the ways that are equally
//              long the one ahead is taken: h (h+1)/2 with h = floor(n/2). The middle link of a
//              line is crossed by floor(n/2) ceil(n/2) pairs (after B6)
//   gather     all that is not on the root's own plane comes in over its two links of the last
//              axis: of a ring floor(n/2) planes over one of them, of a line all on one side (B11:
//              at least half of them); scatter leaves over the first axis in the same way
//
// Stepped, rotations of a torus with unequal axes meet on its axes. On rings all members see the
// same, so phase_schedule() is exact. On lines the middle is done before the ends.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "books/collective_forms/formula_parts.h"
#include "books/collective_forms/phase_schedule.h"
#include "sim/collectives/algorithms/rotation_shares.h"

namespace stepsim {
namespace {

double half_of(const FormulaLevel& level) {
  return std::floor(level.size / 2.0);
}

double rounds_along(const FormulaLevel& level) {
  return level.wraps ? half_of(level) : level.size - 1.0;
}

bool alike(const FormulaLevel& a, const FormulaLevel& b) {
  return a.size == b.size && a.wraps == b.wraps && a.trip == b.trip &&
         a.bandwidth.value() == b.bandwidth.value();
}

// Returns the rounds of a scatter of `bytes` along an axis. In reverse order they are the rounds of
// a gather.
std::vector<LaneRound> rounds_of(const FormulaLevel& level, std::uint32_t axis, double bytes) {
  const double shard = bytes / level.size / level.bandwidth.value();
  std::vector<LaneRound> rounds(static_cast<std::size_t>(rounds_along(level)),
                                {.machine = axis, .trip = to_seconds(level.trip), .work = shard});
  if (level.wraps && level.size % 2 == 0) rounds.front().work /= 2;
  return rounds;
}

struct Rotations {
  std::vector<double> busiest;  // seconds, by axis
  double alone = 0;             // seconds of the longest rotation when it runs alone
  std::vector<std::vector<LaneRound>> lanes;
};

// Returns the share of the data that each rotation carries (rotation_shares.h).
std::vector<double> shares_of(const CollectiveFormulaInput& input, std::size_t axes,
                              std::size_t rotations) {
  if (rotations == 1) return {1.0};
  std::vector<GroupDimension> dimensions;
  for (const FormulaLevel& level : input.levels.first(axes)) {
    dimensions.push_back({.size = level.size, .torus_axis = true, .wraps = level.wraps});
  }
  const std::vector<std::uint32_t> parts = rotation_shares(input.op, dimensions);
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<double> shares;
  for (const std::uint32_t part : parts) shares.push_back(part / all);
  return shares;
}

// Returns the axes of a torus in rotated orders, followed by the levels outside it. On those levels
// both directions of a ring share a port.
Rotations rotations_of(const CollectiveFormulaInput& input, std::size_t axes,
                       std::size_t rotations) {
  const double passes = input.op == CollectiveOp::kAllReduce ? 2 : 1;
  const std::vector<double> shares = shares_of(input, axes, rotations);
  Rotations result{.busiest = std::vector<double>(input.levels.size(), 0.0), .lanes = {}};
  for (std::size_t first = 0; first < rotations; ++first) {
    double bytes = static_cast<double>(input.bytes.value()) * shares[first];
    std::vector<LaneRound> scatter;
    for (std::size_t i = 0; i < input.levels.size(); ++i) {
      const std::size_t at = i < axes ? (first + i) % axes : i;
      FormulaLevel level = input.levels[at];
      if (!level.torus_axis) level.bandwidth = level.bandwidth / 2;
      level.wraps = level.wraps || !level.torus_axis;
      const double n = level.size;
      const double seconds = bytes / level.bandwidth.value();
      const double line = passes > 1 ? 1 : (n - 1) / n;
      const std::uint32_t port = level.port.value_or(static_cast<std::uint32_t>(at));
      result.busiest[port] += seconds * (level.wraps ? passes * (n - 1) / (2 * n) : line);
      const auto rounds = rounds_of(level, port, bytes);
      scatter.insert(scatter.end(), rounds.begin(), rounds.end());
      bytes /= n;
    }
    std::vector<LaneRound> lane;
    if (input.op != CollectiveOp::kAllGather) lane = scatter;
    if (input.op != CollectiveOp::kReduceScatter) {
      lane.insert(lane.end(), scatter.rbegin(), scatter.rend());
    }
    double alone = 0;
    for (const LaneRound& round : lane) alone += round.trip + round.work;
    result.alone = std::max(result.alone, alone);
    result.lanes.push_back(std::move(lane));
  }
  return result;
}

}  // namespace

std::optional<CollectiveFormula> torus_rings(const CollectiveFormulaInput& given) {
  const auto axes = static_cast<std::size_t>(std::ranges::count_if(
      given.levels, [](const FormulaLevel& level) { return level.torus_axis; }));
  const bool rotates = given.algorithm != AlgorithmChoice::kAxisAfterAxis;
  // Rotations begin with the shortest axis, lines before rings.
  std::vector<FormulaLevel> turned(given.levels.begin(), given.levels.end());
  if (rotates) {
    std::ranges::stable_sort(
        turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(axes), {},
        [](const FormulaLevel& level) { return std::pair(level.size, level.wraps); });
  }
  CollectiveFormulaInput input = given;
  input.levels = turned;
  const auto torus = input.levels.first(axes);
  const std::size_t rotations = rotates ? axes : 1;
  const Rotations all = rotations_of(input, axes, rotations);
  const bool equal = std::ranges::all_of(
      torus, [&](const FormulaLevel& level) { return alike(level, torus.front()); });
  const bool rings =
      std::ranges::all_of(torus, [](const FormulaLevel& level) { return level.wraps; });
  const bool lines =
      std::ranges::none_of(torus, [](const FormulaLevel& level) { return level.wraps; });
  const double busiest = *std::ranges::max_element(all.busiest);
  double trips = 0;
  for (const FormulaLevel& level : input.levels) {
    const double rounds = level.torus_axis ? rounds_along(level) : half_of(level);
    trips += rounds * to_seconds(level.trip);
  }
  if (input.op == CollectiveOp::kAllReduce) trips *= 2;

  CollectiveFormula formula;
  if (input.overlapped) {
    formula.seconds = busiest + trips;
  } else if (rings || equal || rotations == 1) {
    formula.seconds = phase_schedule(all.lanes);
  } else {
    formula.seconds = std::max(busiest, all.alone);
    formula.exact = false;
  }
  const std::string many = rotates && axes > 1 ? "M " : "";
  if (axes < input.levels.size()) {
    formula.text = "M rotations in the torus, then a ring between slices";
  } else if (!equal && rotates) {
    formula.text = input.overlapped ? "max_axis sum_rotations S_ir/W + trips"
                   : formula.exact  ? "M rotations that share the axes"
                                    : "max(busiest axis, longest rotation)";
  } else if (rings) {
    formula.text = in_passes(input, "(N-1)/N S/(2 " + many + "W) + sum_i floor(n_i/2) t");
  } else if (lines && input.overlapped && input.op == CollectiveOp::kAllReduce && axes == 1) {
    formula.text = "S/W + 2 (n-1) t";
  } else if (lines && input.op == CollectiveOp::kAllReduce && input.overlapped) {
    formula.text = "sum_rotations S_r/W + trips";
  } else if (lines) {
    formula.text = in_passes(input, "(N-1)/N S/(" + many + "W) + sum_i (n_i-1) t");
  } else {
    formula.text = in_passes(input,
                             "sum_i of rings (n_i-1)/(2 n_i) S_i/W, lines (n_i-1)/n_i S_i/W, "
                             "+ trips");
  }
  return formula;
}

std::optional<CollectiveFormula> torus_all_to_all(const CollectiveFormulaInput& input) {
  if (std::ranges::any_of(input.levels, &FormulaLevel::twists)) return std::nullopt;
  const auto bytes = static_cast<double>(input.bytes.value());
  const std::size_t axes = input.levels.size();
  const bool rings =
      std::ranges::all_of(input.levels, [](const FormulaLevel& level) { return level.wraps; });
  double busiest = 0;
  double trips = 0;
  for (const FormulaLevel& level : input.levels) {
    const double n = level.size;
    const double odd = level.size % 2;
    // B6: half of the data goes each way, over a quarter of a ring on average. A quarter of all
    // pairs cross the middle link of a line.
    const double ring = (n * n - odd) / (8 * n);
    busiest = std::max(busiest, (level.wraps ? ring : 2 * ring) * bytes / level.bandwidth.value());
    trips += rounds_along(level) * to_seconds(level.trip);
  }
  CollectiveFormula formula{.seconds = busiest + trips,
                            .text = "S max_i(n_i)/(8 W) + sum_i (n_i/2) t"};
  if (!rings) formula.text = "S max(n_i/8 of rings, n_i/4 of lines)/W + trips";
  if (input.overlapped) return formula;
  if (!rings) {
    formula.seconds = busiest;
    formula.exact = false;
    return formula;
  }
  // Each order of the axes has its share of the data. Hop h carries data that have more than h
  // places to go: 2 (floor(n/2) - h) shards of the line, one less if n is even, and half of them
  // each way.
  std::vector<std::vector<LaneRound>> lanes(axes);
  for (std::size_t order = 0; order < axes; ++order) {
    for (std::size_t i = 0; i < axes; ++i) {
      const std::size_t axis = (order + i) % axes;
      const FormulaLevel& level = input.levels[axis];
      for (double hop = 0; hop < rounds_along(level); ++hop) {
        const double halves = 2 * (half_of(level) - hop) - (level.size % 2 == 0 ? 1 : 0);
        lanes[order].push_back({.machine = static_cast<std::uint32_t>(axis),
                                .trip = to_seconds(level.trip),
                                .work = halves / 2 * bytes / level.size /
                                        static_cast<double>(axes) / level.bandwidth.value()});
      }
    }
  }
  formula.seconds = phase_schedule(lanes);
  formula.exact = false;  // orders that have drifted apart meet on links elsewhere
  return formula;
}

std::optional<CollectiveFormula> straight_on_torus(const CollectiveFormulaInput& input) {
  const auto bytes = static_cast<double>(input.bytes.value());
  double farthest = 0;
  double nearest = to_seconds(input.levels.front().trip);
  double members = 1;
  for (const FormulaLevel& level : input.levels) {
    const double hops = level.wraps ? half_of(level) : level.size - 1.0;
    farthest += hops * to_seconds(level.trip);
    nearest = std::min(nearest, to_seconds(level.trip));
    members *= level.size;
  }
  CollectiveFormula formula;
  double busiest = 0;
  if (input.op == CollectiveOp::kGather || input.op == CollectiveOp::kScatter) {
    if (input.rounds > 1) return std::nullopt;
    const FormulaLevel& level =
        input.op == CollectiveOp::kGather ? input.levels.back() : input.levels.front();
    const double ahead = level.size - 1.0 - level.root;
    const double planes = level.wraps ? half_of(level) : std::max<double>(level.root, ahead);
    busiest = planes / level.size * bytes / level.bandwidth.value();
    farthest = 0;
    for (const FormulaLevel& each : input.levels) {
      const double line = std::max<double>(each.root, each.size - 1.0 - each.root);
      farthest += (each.wraps ? half_of(each) : line) * to_seconds(each.trip);
    }
    formula.text = level.wraps ? "S floor(n/2)/(n W) + trips" : "S max side/(n W) + trips";
  } else {
    for (const FormulaLevel& level : input.levels) {
      const double h = half_of(level);
      const double pairs = level.wraps ? h * (h + 1) / 2 : h * (level.size - h);
      busiest = std::max(busiest, pairs / level.size * bytes / level.bandwidth.value());
    }
    formula.text = "S max_i h_i (h_i+1)/(2 n_i W) + trips, h = floor(n/2)";
  }
  if (input.overlapped) {
    formula.seconds = busiest + farthest;
    return formula;
  }
  // All members send at once. The busiest link is busy from the first neighbour's data on. The data
  // of the farthest member come last.
  const double pair = bytes / members / input.levels.front().bandwidth.value();
  formula.seconds = std::max(nearest + busiest, farthest + pair);
  formula.exact = false;
  return formula;
}

// Every neighbour of the root carries the data of an even share of the other members to or from it.
std::optional<CollectiveFormula> root_trees(const CollectiveFormulaInput& input) {
  const FormulaParts parts = parts_of(input);
  double ports = 0;
  for (const FormulaLevel& level : input.levels) {
    const bool ahead = level.wraps || level.root + 1 < level.size;
    const bool back = (level.wraps || level.root > 0) && (level.size > 2 || !ahead);
    ports += (ahead ? 1 : 0) + (back ? 1 : 0);
  }
  const double tree = std::ceil((parts.members - 1) / ports);
  const double busiest = tree / parts.members * parts.bytes / parts.bandwidth;
  const double trips = input.rounds * parts.trip;
  // Stepped, a member may wait for data from far away while its link to the root is idle.
  return CollectiveFormula{
      .seconds = input.overlapped ? busiest + trips : std::max(busiest + parts.trip, trips),
      .text = "ceil((N-1)/P)/N S/W + trips, P ports of the root",
      .exact = input.overlapped};
}

}  // namespace stepsim
