// Closed forms over switched levels, with a node as the innermost. There are M nodes of d members;
// W_node is the bandwidth inside a node, W that of a card. S_i is what the levels inside level i
// leave of S (C9). Levels whose routes begin at the same port of a member add up; all levels
// outside the node begin at its card.

#include <array>
#include <cmath>

#include "books/collective_forms/formula_parts.h"
#include "books/collective_forms/phase_schedule.h"

namespace stepsim {
namespace {

struct Outside {
  double per_byte = 0;  // 1/W of the slowest level outside the node
  double trip = 0;
};

Outside outside_of(const CollectiveFormulaInput& input) {
  Outside result;
  for (const FormulaLevel& level : input.levels.subspan(1)) {
    result.per_byte = std::max(result.per_byte, 1 / level.bandwidth.value());
    result.trip = std::max(result.trip, to_seconds(level.trip));
  }
  return result;
}

// Returns the rounds of one chunk of `bytes` through the levels: scatter, gather, or both.
std::vector<LaneRound> through_levels(const CollectiveFormulaInput& input, double bytes,
                                      std::vector<std::uint32_t>& last_of_phase) {
  std::vector<LaneRound> scatter;
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t i = 0; i < input.levels.size(); ++i) {
    const FormulaLevel& level = input.levels[i];
    const LaneRound round{.machine = level.port.value_or(i),
                          .trip = to_seconds(level.trip),
                          .work = bytes / level.size / level.bandwidth.value()};
    scatter.insert(scatter.end(), level.size - 1, round);
    lengths.push_back(level.size - 1);
    bytes /= level.size;
  }
  std::vector<LaneRound> rounds;
  std::vector<std::uint32_t> phases;
  if (input.op != CollectiveOp::kAllGather) {
    rounds = scatter;
    phases = lengths;
  }
  if (input.op != CollectiveOp::kReduceScatter) {
    rounds.insert(rounds.end(), scatter.rbegin(), scatter.rend());
    phases.insert(phases.end(), lengths.rbegin(), lengths.rend());
  }
  for (const std::uint32_t length : phases) {
    const auto first = static_cast<std::uint32_t>(last_of_phase.size());
    last_of_phase.insert(last_of_phase.end(), length, first + length - 1);
  }
  return rounds;
}

// Returns the time of chunks that follow each other: one enters a phase when the one before has
// left it.
double in_chunks(const std::vector<LaneRound>& chunk, const std::vector<std::uint32_t>& last,
                 std::uint32_t chunks, bool with_work) {
  std::vector<std::vector<LaneRound>> lanes(chunks, chunk);
  for (std::uint32_t lane = 0; lane < chunks; ++lane) {
    for (std::uint32_t round = 0; round < chunk.size(); ++round) {
      LaneRound& of = lanes[lane][round];
      if (!with_work) of.work = 0;
      if (lane > 0) of.after = {.lane = lane - 1, .round = last[round]};
    }
  }
  return phase_schedule(lanes);
}

// Returns the seconds that all rounds take on the busiest port.
double busiest_port(const std::vector<LaneRound>& rounds) {
  std::vector<double> seconds;
  for (const LaneRound& round : rounds) {
    if (seconds.size() <= round.machine) seconds.resize(round.machine + 1, 0.0);
    seconds[round.machine] += round.work;
  }
  return *std::ranges::max_element(seconds);
}

// Returns the trips of rings that visit all members of a node before they go on. Between nodes
// there is one trip per node, on the levels that are crossed there.
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

CollectiveFormula level_by_level(const CollectiveFormulaInput& input) {
  std::vector<std::uint32_t> last;
  const std::vector<LaneRound> rounds =
      through_levels(input, static_cast<double>(input.bytes.value()), last);
  double sum = 0;
  double trips = 0;
  for (const LaneRound& round : rounds) {
    sum += round.work;
    trips += round.trip;
  }
  return {.seconds = (input.overlapped ? busiest_port(rounds) : sum) + trips,
          .text = in_passes(input, std::string(input.overlapped ? "max" : "sum") +
                                       "_i (n_i-1)/n_i S_i/W_i + sum_i (n_i-1) t_i")};
}

}  // namespace

std::optional<CollectiveFormula> hierarchical(const CollectiveFormulaInput& input) {
  const FormulaParts parts = parts_of(input);
  if (parts.any_torus && !parts.torus) return torus_rings(input);
  // On a line a ring's way back uses the links of its way there.
  const bool rings = std::ranges::all_of(input.levels, &FormulaLevel::wraps);
  if (parts.torus && !rings) return std::nullopt;
  return level_by_level(input);
}

// C9 with all levels at work. Pipelined: only the trips are paid chunk after chunk. Stepped: the
// last chunk goes through what the others have left.
std::optional<CollectiveFormula> overlapped_levels(const CollectiveFormulaInput& input) {
  const auto bytes = static_cast<double>(input.bytes.value());
  std::vector<std::uint32_t> last;
  const std::vector<LaneRound> chunk = through_levels(input, bytes / input.lanes, last);
  if (!input.overlapped) {
    return CollectiveFormula{
        .seconds = in_chunks(chunk, last, input.lanes, true),
        .text = "sum_i p_i + (C-1) max p_i, p_i = (n_i-1) (S_i/(C n_i W_i) + t_i)" +
                std::string(input.op == CollectiveOp::kAllReduce ? ", there and back" : "")};
  }
  const double trips = in_chunks(chunk, last, input.lanes, false);
  return CollectiveFormula{
      .seconds = busiest_port(chunk) * input.lanes + trips,
      .text = in_passes(input, "max_i (n_i-1)/n_i S_i/W_i") + " + trips of C chunks"};
}

// One ring per card. Each carries a member's traffic to other nodes over its card, and inside the
// node to d - 1 others.
std::optional<CollectiveFormula> rotated_rings(const CollectiveFormulaInput& input) {
  if (input.levels.size() < 2) return std::nullopt;  // nodes of different sizes
  const FormulaParts parts = parts_of(input);
  const double cards = input.levels.front().size;
  const Outside outside = outside_of(input);
  const double inside_per_byte = (cards - 1) / input.levels.front().bandwidth.value();
  const double slowest = std::max(outside.per_byte, inside_per_byte) / cards;
  const double n = parts.members;
  // The last byte goes all the way round except for one hop per pass, which is one of the shortest.
  // Stepped, members with short hops run ahead of others, which only the messages tell.
  if (!input.overlapped) return std::nullopt;
  const double inside = to_seconds(input.levels.front().trip);
  const bool both_inside = cards > parts.passes;
  const double left_out =
      both_inside ? parts.passes * inside : inside + to_seconds(input.levels[1].trip);
  const double trips = parts.passes * round_trip(input) - left_out;
  return CollectiveFormula{
      .seconds = parts.passes * (n - 1) / n * parts.bytes * slowest + trips,
      .text = in_passes(input, "(n-1)/n S max(1/(d W), (d-1)/(d W_node)) + (n-1) t")};
}

// Inside the node (d-1)/d of the data moves, over the cards (M-1)/M. The data go in chunks: one is
// in the second leg while the next is in the first.
std::optional<CollectiveFormula> node_relay(const CollectiveFormulaInput& input) {
  if (!input.busiest_ports.empty()) return std::nullopt;
  const FormulaParts parts = parts_of(input);
  const FormulaLevel& inside = input.levels.front();
  const Outside outside = outside_of(input);
  const double d = inside.size;
  const double nodes = parts.members / d;
  const double bytes = parts.bytes / input.lanes;
  std::vector<LaneRound> legs(static_cast<std::size_t>(d) - 1,
                              {.machine = 0,
                               .trip = to_seconds(inside.trip),
                               .work = bytes / d / inside.bandwidth.value()});
  legs.insert(legs.end(), static_cast<std::size_t>(nodes) - 1,
              {.machine = 1, .trip = outside.trip, .work = bytes / nodes * outside.per_byte});
  if (input.algorithm == AlgorithmChoice::kNodeForwarding) std::ranges::reverse(legs);
  std::vector<std::uint32_t> last;
  for (const std::uint32_t machine : {legs.front().machine, legs.back().machine}) {
    const auto length = static_cast<std::size_t>(std::ranges::count_if(
        legs, [&](const LaneRound& round) { return round.machine == machine; }));
    last.insert(last.end(), length, static_cast<std::uint32_t>(last.size() + length) - 1);
  }
  if (!input.overlapped) {
    return CollectiveFormula{
        .seconds = in_chunks(legs, last, input.lanes, true),
        .text =
            "p + q + (C-1) max(p, q), p = (d-1) (S/(C d W_node) + t), q = (M-1) (S/(C M W) + t)"};
  }
  return CollectiveFormula{
      .seconds = busiest_port(legs) * input.lanes + in_chunks(legs, last, input.lanes, false),
      .text = "S max((d-1)/(d W_node), (M-1)/(M W)) + trips of C chunks"};
}

namespace {

// Trees over whole nodes. If a node's switch adds, an all-reduce sends the whole buffer over every
// link of the node once in each direction; otherwise the members exchange shares inside the node.
// Each card carries a d-th. In an all-gather or reduce-scatter the cards carry the shards of the
// other members on the rail.
CollectiveFormula whole_nodes(const CollectiveFormulaInput& input, bool sharded) {
  const FormulaParts parts = parts_of(input);
  const double d = input.levels.front().size;
  const double nodes = parts.members / d;
  const Outside outside = outside_of(input);
  double inside = input.node_trees ? 1 : (d - 1) / d;
  double card = 1 / d;
  std::string text = input.node_trees ? "S max(1/W_node, 1/(d W)) + trips of the trees"
                                      : "S max((d-1)/(d W_node), 1/(d W)) + trips of the trees";
  if (input.op == CollectiveOp::kAllReduce && !input.node_trees) {
    inside *= 2;
    text = "S max(2 (d-1)/(d W_node), 1/(d W)) + trips of the trees";
  }
  if (input.algorithm == AlgorithmChoice::kDoubleBinaryTree) {
    card = (nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2) / d;
    inside = 2 * (d - 1) / d;
    text = "S max(2 (d-1)/(d W_node), 2/(d W)) + trips of the trees";
  }
  if (input.algorithm == AlgorithmChoice::kNvlsTree) {
    inside = 1;
    card = (nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2) / d;
    text = "S max(1/W_node, 2/(d W)) + trips of the trees";
  }
  if (sharded) {
    card = (nodes - 1) / nodes / d;
    inside = (d - 1) / d;
    text = "S max((d-1)/(d W_node), (M-1)/(n W)) + trips of the trees";
  }
  if (input.op == CollectiveOp::kBarrier) return {.seconds = 0, .text = "trips of the tree"};
  return {.seconds = parts.bytes * std::max(inside / input.levels.front().bandwidth.value(),
                                            card * outside.per_byte),
          .text = text,
          .exact = input.overlapped};
}

}  // namespace

// C12, C17: the data go once up and once down every link. Of shards, a link carries all except the
// member's own.
std::optional<CollectiveFormula> in_network(const CollectiveFormulaInput& input) {
  const FormulaParts parts = parts_of(input);
  const bool sharded =
      input.op == CollectiveOp::kAllGather || input.op == CollectiveOp::kReduceScatter;
  if (input.rail_trees || input.algorithm == AlgorithmChoice::kNvlsTree ||
      input.algorithm == AlgorithmChoice::kDoubleBinaryTree) {
    return whole_nodes(input, sharded);
  }
  double share = sharded ? (parts.members - 1) / parts.members : 1;
  if (input.op == CollectiveOp::kBarrier) share = 0;
  const double trips = input.rounds * to_seconds(input.levels.front().trip);
  return CollectiveFormula{
      .seconds = share * parts.bytes / parts.bandwidth + trips,
      .text = sharded ? "(n-1)/n S/W + trips of the tree" : "S/W + trips of the tree"};
}

}  // namespace stepsim
