// Closed forms of one row of members around one switch, each with a port of W one way (C1 to C7,
// C24), or on a ring of links where they only talk to neighbours. A chain over several hops too.

#include <bit>
#include <cmath>

#include "analysis/collective_forms/formula_parts.h"

namespace stepsim {
namespace {

using Choice = AlgorithmChoice;
// When a member of a binomial tree has everything from below it, stepped. Its children are the
// members 2^k places on; each sends when it has everything itself, of its own data only (reduce) or
// of all below it (gather). What arrives while more is coming shares the port: with the arrivals in
// order, the port is done when for some of them it has served all that came from then on.
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

// S/W of the busiest port of two in-order trees, half of the data each: an inner node sends up and
// to two children, and a leaf of the other tree sends up.
double tree_share(std::uint32_t n) {
  return n == 2 ? 1 : n == 3 ? 1.5 : 2;
}

std::optional<CollectiveFormula> ragged(const CollectiveFormulaInput& input, double trips) {
  double slowest = 0;
  for (std::size_t level = 0; level < input.levels.size(); ++level) {
    slowest = std::max(slowest, static_cast<double>(input.busiest_ports[level].value()) /
                                    input.levels[level].bandwidth.value());
  }
  const bool at_once = input.algorithm == Choice::kDirect;
  if (!at_once && input.algorithm != Choice::kPairwise) return std::nullopt;
  return CollectiveFormula{
      .seconds = slowest + (input.overlapped || at_once ? trips : 0),
      .text = std::string(input.levels.size() > 1 ? "max_i busiest port_i/W_i" : "busiest port/W") +
              (at_once ? " + t" : " + (n-1) t"),
      .exact = input.overlapped};
}

}  // namespace

std::optional<CollectiveFormula> on_one_switch(const CollectiveFormulaInput& input) {
  const FormulaParts parts = parts_of(input);
  const auto n = static_cast<std::uint32_t>(parts.members);
  const double others = (parts.members - 1) / parts.members;
  const double whole = parts.bytes / parts.bandwidth;  // S/W
  const double t = std::max(parts.trip, to_seconds(input.farthest));
  const double rounds = input.rounds;
  const bool power_of_two = std::has_single_bit(n);
  const double doublings = std::bit_width(n - 1);
  if (!input.busiest_ports.empty()) return ragged(input, rounds * t);
  switch (input.algorithm) {
    case Choice::kDirect:
    case Choice::kPairwise: {
      if (input.op == CollectiveOp::kSendReceive || input.op == CollectiveOp::kPermute) {
        return CollectiveFormula{.seconds = whole + t, .text = "S/W + t"};
      }
      if (input.op == CollectiveOp::kGather || input.op == CollectiveOp::kScatter) {
        return CollectiveFormula{
            .seconds = others * whole + rounds * t,
            .text = rounds > 1 ? "(n-1)/n S/W + ceil((n-1)/16) t" : "(n-1)/n S/W + t"};
      }
      // C7, C11: what must leave the members of each level below, through a port of that level.
      double inner = 1;
      double slowest = 0;
      for (const FormulaLevel& level : input.levels) {
        slowest = std::max(slowest, (1 - inner / parts.members) / level.bandwidth.value());
        inner *= level.size;
      }
      const bool at_once = input.algorithm == Choice::kDirect;
      return CollectiveFormula{
          .seconds = slowest * parts.bytes + rounds * t,
          .text = std::string(input.levels.size() > 1 ? "max_i S (1-1/M_i)/W_i" : "(n-1)/n S/W") +
                  (at_once ? " + t" : " + (n-1) t"),
          .exact = input.overlapped || input.levels.size() == 1};
    }
    case Choice::kChain: {
      if (input.overlapped) {
        return CollectiveFormula{.seconds = whole + rounds * t, .text = "S/W + (n-2+C) t"};
      }
      const double chunks = rounds - parts.members + 2;
      return CollectiveFormula{.seconds = rounds * (t + whole / chunks),
                               .text = "(n-2+C) (S/(C W) + t)"};
    }
    case Choice::kBinomialTree: {
      const bool gathers = input.op == CollectiveOp::kGather;
      if (!input.overlapped && !power_of_two && (gathers || input.op == CollectiveOp::kReduce)) {
        return CollectiveFormula{
            .seconds = gathered(0, n, gathers, gathers ? whole / parts.members : whole, t),
            .text = "T(v) = max_i (T_i + t + sum_(j no sooner) S_j/W) over the children of v"};
      }
      if (gathers || input.op == CollectiveOp::kScatter) {
        return CollectiveFormula{.seconds = others * whole + doublings * t,
                                 .text = "(n-1)/n S/W + ceil(log2 n) t"};
      }
      return CollectiveFormula{.seconds = doublings * (whole + t),
                               .text = "ceil(log2 n) (S/W + t)"};
    }
    case Choice::kBruck:
      return CollectiveFormula{.seconds = others * whole + doublings * t,
                               .text = "(n-1)/n S/W + ceil(log2 n) t"};
    case Choice::kHalvingDoubling:
    case Choice::kRecursiveDoubling: {
      const bool exchanges_all =
          input.algorithm == Choice::kRecursiveDoubling && input.op == CollectiveOp::kAllReduce;
      const double power = std::bit_floor(n);
      const double levels = std::log2(power);
      const double sent = exchanges_all ? levels : parts.passes * (power - 1) / power;
      // A whole buffer in before, one out after. Pipelined, ports go both ways at once. Stepped,
      // who takes in a neighbour does all of it one after another, and may have to share its port
      // with those that do not wait for that.
      const double folds = power_of_two ? 0 : input.overlapped ? 1 : 2;
      const std::string fold = power_of_two       ? ""
                               : input.overlapped ? " + S/W + 2 t"
                                                  : " + 2 (S/W + t)";
      return CollectiveFormula{
          .seconds = (sent + folds) * whole + rounds * t,
          .text =
              (exchanges_all ? "log2(p) (S/W + t)" : in_passes(input, "(p-1)/p S/W + log2(p) t")) +
              fold,
          .exact = power_of_two || input.overlapped};
    }
    case Choice::kDoubleBinaryTree: {
      // rounds = C + D - 1: chunks and depth. Stepped, chunks up and down meet in the ports. What
      // passes the busiest port last still has all levels below it to go.
      if (input.overlapped) {
        return CollectiveFormula{.seconds = tree_share(n) * whole + (rounds + doublings) * t,
                                 .text = "2 S/W + (C + 2 D - 1) t"};
      }
      const double chunks = rounds - doublings + 1;
      const double chunk = whole / 2 / chunks;
      return CollectiveFormula{
          .seconds = std::max(tree_share(n) * whole + t + (doublings - 1) * (chunk + t),
                              (2 * doublings - 1) * (chunk + t) + (chunks - 1) * chunk),
          .text = "2 S/W + t + (D-1) (S/(2 C W) + t)",
          .exact = false};
    }
    case Choice::kReduceBroadcast:
      return CollectiveFormula{
          .seconds = (input.overlapped ? 1 : 2) * (parts.members - 1) * whole + rounds * t,
          .text = input.overlapped ? "(n-1) S/W + n t" : "2 (n-1) S/W + n t"};
    case Choice::kDissemination:
      return CollectiveFormula{.seconds = doublings * t, .text = "ceil(log2 n) t"};
    default:
      return std::nullopt;
  }
}

}  // namespace stepsim
