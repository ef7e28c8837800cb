// Closed forms for a row of members around one switch, each with a port of bandwidth W one way (C1
// to C7, C24). Some also hold on a ring of links, if members only talk to their neighbours.

#include <algorithm>
#include <bit>
#include <cmath>

#include "books/collective_forms/formula_parts.h"
#include "sim/collectives/algorithms/flat_algorithm.h"

namespace stepsim {
namespace {

// Returns when a member of a binomial tree has everything from the members below it, in a stepped
// run. Its children are the members 2^k places on. Each child sends when it has everything itself:
// its own data only (reduce) or all data below it (gather). Arrivals that overlap share the port.
// For each arrival, consider the end of a port that serves this arrival and all later ones without
// a pause; the member is done at the latest of these times.
double gathered(std::uint32_t place, std::uint32_t n, bool subtrees, double unit, double trip) {
  struct Arrival {
    double at;
    double work;
  };
  std::vector<Arrival> arrivals;
  for (std::uint32_t distance = 1; place + distance < n; distance *= 2) {
    if ((place & distance) != 0) break;
    const std::uint32_t child = place + distance;
    const double below = std::min(distance, n - child);
    arrivals.push_back({.at = gathered(child, n, subtrees, unit, trip) + trip,
                        .work = unit * (subtrees ? below : 1)});
  }
  double done = 0;
  for (const Arrival& first : arrivals) {
    double end = first.at;
    for (const Arrival& later : arrivals) end += later.at >= first.at ? later.work : 0;
    done = std::max(done, end);
  }
  return done;
}

// Returns the load of the busiest port, in S/W, with two in-order trees that carry half of the data
// each. An inner node sends up and to two children; a leaf of the other tree sends up.
double tree_share(std::uint32_t n) {
  return n == 2 ? 1 : n == 3 ? 1.5 : 2;
}

// Row is a row of members around a switch, as all forms of this file see it.
struct Row {
  FormulaParts parts;
  std::uint32_t n = 0;
  double others = 0;  // (n - 1) / n
  double whole = 0;   // S/W in seconds
  double t = 0;
  double rounds = 0;
  bool power_of_two = false;
  double doublings = 0;  // ceil(log2 n)
};

bool is_ring_of_links(const CollectiveFormulaInput& input, const FormulaParts& parts) {
  return parts.torus && input.levels.size() == 1 && input.levels.front().wraps;
}

// Returns the members as a row; nullopt if more than their ports determines the time. `neighbours`:
// they only talk to neighbours, so links of a wrapped axis serve as ports. `levels`: in a pipelined
// run, the form also holds over several switched levels.
std::optional<Row> row_of(const CollectiveFormulaInput& input, bool neighbours = false,
                          bool levels = false) {
  const FormulaParts parts = parts_of(input);
  const bool on_links = neighbours && is_ring_of_links(input, parts);
  if (parts.any_torus && !on_links) return std::nullopt;
  if (input.levels.size() > 1 && !(levels && input.overlapped)) return std::nullopt;
  if (!input.one_switch && !input.overlapped && !on_links) return std::nullopt;
  const auto n = static_cast<std::uint32_t>(parts.members);
  return Row{.parts = parts,
             .n = n,
             .others = (parts.members - 1) / parts.members,
             .whole = parts.bytes / parts.bandwidth,
             .t = std::max(parts.trip, to_seconds(input.farthest)),
             .rounds = static_cast<double>(input.rounds),
             .power_of_two = std::has_single_bit(n),
             .doublings = static_cast<double>(std::bit_width(n - 1))};
}

// Every member exchanges data with every other one: all at once, or one partner after another.
std::optional<CollectiveFormula> exchange(const CollectiveFormulaInput& input, bool at_once) {
  const auto row = row_of(input, false, true);
  if (!row) return std::nullopt;
  const double trips = row->rounds * row->t;
  const std::string trips_text = at_once ? " + t" : " + (n-1) t";
  const bool several = input.levels.size() > 1;
  if (!input.busiest_ports.empty()) {
    double slowest = 0;
    for (std::size_t level = 0; level < input.levels.size(); ++level) {
      slowest = std::max(slowest, static_cast<double>(input.busiest_ports[level].value()) /
                                      input.levels[level].bandwidth.value());
    }
    return CollectiveFormula{
        .seconds = slowest + (input.overlapped || at_once ? trips : 0),
        .text = std::string(several ? "max_i busiest port_i/W_i" : "busiest port/W") + trips_text,
        .exact = input.overlapped};
  }
  // C7, C11: bytes that must leave the members of each level below, through a port of that level.
  double inner = 1;
  double slowest = 0;
  for (const FormulaLevel& level : input.levels) {
    slowest = std::max(slowest, (1 - inner / row->parts.members) / level.bandwidth.value());
    inner *= level.size;
  }
  return CollectiveFormula{
      .seconds = slowest * row->parts.bytes + trips,
      .text = std::string(several ? "max_i S (1-1/M_i)/W_i" : "(n-1)/n S/W") + trips_text,
      .exact = input.overlapped || !several};
}

// One message for each member.
std::optional<CollectiveFormula> pairs(const CollectiveFormulaInput& input) {
  const auto row = row_of(input, input.op == CollectiveOp::kSendReceive);
  if (!row) return std::nullopt;
  return CollectiveFormula{.seconds = row->whole + row->t, .text = "S/W + t"};
}

}  // namespace

// One ring through all members, in one direction or both. On a wrapped axis the directions do not
// share links. Around switches they share the port, but not the links between nodes.
std::optional<CollectiveFormula> flat_rings(const CollectiveFormulaInput& input) {
  const FormulaParts parts = parts_of(input);
  const bool both_ways = input.algorithm == AlgorithmChoice::kBidirectionalRing;
  const bool neighbours = parts.torus && input.levels.size() == 1 && input.levels.front().wraps;
  if (parts.any_torus && !neighbours) return std::nullopt;  // members share links
  if (both_ways && !neighbours && !input.overlapped && !input.one_switch) return std::nullopt;
  const double ways = both_ways && neighbours && parts.members > 2 ? 2 : 1;
  const double trip = std::max(parts.trip, to_seconds(input.farthest));
  const double n = parts.members;
  std::vector<RingHop> kinds;
  for (const FormulaLevel& level : input.levels) {
    kinds.push_back({.seconds = 1 / level.bandwidth.value(), .trip = to_seconds(level.trip)});
  }
  kinds.back().trip = std::max(kinds.back().trip, to_seconds(input.farthest));
  if (!input.overlapped && !are_alike(kinds)) return std::nullopt;
  return CollectiveFormula{
      .seconds =
          parts.passes * ((n - 1) / n * parts.bytes / (ways * parts.bandwidth) + (n - 1) * trip),
      .text =
          in_passes(input, std::string("(n-1)/n S/") + (ways > 1 ? "(2 W)" : "W") + " + (n-1) t")};
}

std::optional<CollectiveFormula> direct(const CollectiveFormulaInput& input) {
  if (input.op == CollectiveOp::kSendReceive || input.op == CollectiveOp::kPermute) {
    return pairs(input);
  }
  if (parts_of(input).torus) {
    return input.busiest_ports.empty() ? straight_on_torus(input) : std::nullopt;
  }
  if (input.op != CollectiveOp::kGather && input.op != CollectiveOp::kScatter) {
    return exchange(input, true);
  }
  const auto row = row_of(input, false, true);
  if (!row) return std::nullopt;
  return CollectiveFormula{.seconds = row->others * row->whole + row->t, .text = "(n-1)/n S/W + t"};
}

std::optional<CollectiveFormula> pairwise(const CollectiveFormulaInput& input) {
  return exchange(input, false);
}

std::optional<CollectiveFormula> chain(const CollectiveFormulaInput& input) {
  const auto row = row_of(input, true);
  if (!row) return std::nullopt;
  const std::uint32_t chunks = pipeline_chunks(input.bytes);
  // Stepped, chunks are equal; pipelined, they are of the size that chunks have when there are
  // many.
  Bytes chunk = input.bytes / std::int64_t{chunks};
  if (input.overlapped) chunk = std::max(chunk, std::min(input.bytes, kPipelineChunk));
  const double of_chunk = static_cast<double>(chunk.value()) / row->parts.bandwidth;
  return CollectiveFormula{.seconds = row->whole + (row->n - 2) * (row->t + of_chunk) + row->t,
                           .text = "S/W + (n-2) (t + c/W) + t"};
}

std::optional<CollectiveFormula> binomial_tree(const CollectiveFormulaInput& input) {
  const auto row = row_of(input);
  if (!row) return std::nullopt;
  const bool gathers = input.op == CollectiveOp::kGather;
  const bool to_root = gathers || input.op == CollectiveOp::kReduce;
  if (!input.overlapped && !row->power_of_two && to_root) {
    const double unit = gathers ? row->whole / row->parts.members : row->whole;
    return CollectiveFormula{
        .seconds = gathered(0, row->n, gathers, unit, row->t),
        .text = "T(v) = max_i (T_i + t + sum_(j no sooner) S_j/W) over the children of v"};
  }
  if (gathers || input.op == CollectiveOp::kScatter) return bruck(input);
  return CollectiveFormula{.seconds = row->doublings * (row->whole + row->t),
                           .text = "ceil(log2 n) (S/W + t)"};
}

std::optional<CollectiveFormula> bruck(const CollectiveFormulaInput& input) {
  const auto row = row_of(input);
  if (!row) return std::nullopt;
  return CollectiveFormula{
      .seconds = row->parts.passes * (row->others * row->whole + row->doublings * row->t),
      .text = in_passes(input, "(n-1)/n S/W + ceil(log2 n) t")};
}

std::optional<CollectiveFormula> halving_doubling(const CollectiveFormulaInput& input) {
  const auto row = row_of(input);
  if (!row) return std::nullopt;
  const bool exchanges_all = input.algorithm == AlgorithmChoice::kRecursiveDoubling &&
                             input.op == CollectiveOp::kAllReduce;
  const double power = std::bit_floor(row->n);
  const double levels = std::log2(power);
  const double sent = exchanges_all ? levels : row->parts.passes * (power - 1) / power;
  // One whole buffer goes in before, and one out after. Pipelined: ports carry both directions at
  // once. Stepped: a member that serves a neighbour does so one step after another, and may share
  // its port with members that do not wait for that.
  const double folds = row->power_of_two ? 0 : input.overlapped ? 1 : 2;
  // Stepped, the result may leave while the last message of the exchange does.
  const double early = row->power_of_two || input.overlapped ? 0 : 1;
  const std::string fold = row->power_of_two  ? ""
                           : input.overlapped ? " + S/W + 2 t"
                                              : " + 2 S/W + t";
  return CollectiveFormula{
      .seconds = (sent + folds) * row->whole + (row->rounds - early) * row->t,
      .text = (exchanges_all ? "log2(p) (S/W + t)" : in_passes(input, "(p-1)/p S/W + log2(p) t")) +
              fold,
      .exact = row->power_of_two || input.overlapped};
}

std::optional<CollectiveFormula> double_binary_tree(const CollectiveFormulaInput& input) {
  if (input.levels.size() > 1 && !parts_of(input).any_torus) return in_network(input);
  const auto row = row_of(input);
  if (!row) return std::nullopt;
  // rounds = C + D - 1, the chunks and the depth. Stepped: chunks going up and down meet in the
  // ports. The data that passes the busiest port last still has all levels below it to go.
  const double depth = row->doublings;
  const double share = tree_share(row->n) * row->whole;
  if (input.overlapped) {
    return CollectiveFormula{.seconds = share + 2 * depth * row->t, .text = "2 S/W + 2 D t"};
  }
  const double chunks = row->rounds - depth + 1;
  const double chunk = row->whole / 2 / chunks;
  return CollectiveFormula{
      .seconds = std::max(share + row->t + (depth - 1) * (chunk + row->t),
                          (2 * depth - 1) * (chunk + row->t) + (chunks - 1) * chunk),
      .text = "2 S/W + t + (D-1) (S/(2 C W) + t)",
      .exact = false};
}

std::optional<CollectiveFormula> reduce_broadcast(const CollectiveFormulaInput& input) {
  const auto row = row_of(input);
  if (!row) return std::nullopt;
  const double ways = input.overlapped ? 1 : 2;
  return CollectiveFormula{.seconds = ways * (row->parts.members - 1) * row->whole +
                                      (input.overlapped ? row->rounds : 2) * row->t,
                           .text = input.overlapped ? "(n-1) S/W + n t" : "2 (n-1) S/W + 2 t"};
}

std::optional<CollectiveFormula> packed_trees(const CollectiveFormulaInput& input) {
  if (!input.overlapped) return std::nullopt;  // rounds of unequal messages: counted
  const FormulaParts parts = parts_of(input);
  const double n = parts.members;
  const double bytes = parts.passes * (n - 1) / n * parts.bytes / input.ports.value();
  return CollectiveFormula{
      .seconds = bytes + input.rounds * to_seconds(input.way),
      .text = std::string(input.op == CollectiveOp::kAllReduce ? "2 " : "") + "(n-1)/n S/P + R t"};
}

std::optional<CollectiveFormula> dissemination(const CollectiveFormulaInput& input) {
  const auto row = row_of(input);
  if (!row) return std::nullopt;
  return CollectiveFormula{.seconds = row->doublings * row->t, .text = "ceil(log2 n) t"};
}

}  // namespace stepsim
