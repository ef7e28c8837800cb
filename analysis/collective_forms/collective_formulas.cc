#include "analysis/collective_forms/collective_formulas.h"

#include <algorithm>

#include "analysis/collective_forms/formula_parts.h"

namespace stepsim {
namespace {

using Choice = AlgorithmChoice;
// One ring through all members, one way or both. On a wrapped axis the ways do not share links; on
// switches they share the port, but not what lies between nodes.
std::optional<CollectiveFormula> flat_rings(const CollectiveFormulaInput& input,
                                            const FormulaParts& parts) {
  const bool both_ways = input.algorithm == Choice::kBidirectionalRing;
  const bool neighbours = parts.torus && input.levels.size() == 1 && input.levels.front().wraps;
  if (parts.any_torus && !neighbours) return std::nullopt;  // rows fold over the torus
  if (both_ways && !neighbours && !input.overlapped && !input.one_switch) return std::nullopt;
  const double ways = both_ways && neighbours && parts.members > 2 ? 2 : 1;
  const double trip = std::max(parts.trip, to_seconds(input.farthest));
  const double n = parts.members;
  return CollectiveFormula{
      .seconds =
          parts.passes * ((n - 1) / n * parts.bytes / (ways * parts.bandwidth) + (n - 1) * trip),
      .text =
          in_passes(input, std::string("(n-1)/n S/") + (ways > 1 ? "(2 W)" : "W") + " + (n-1) t")};
}

}  // namespace

FormulaParts parts_of(const CollectiveFormulaInput& input) {
  FormulaParts parts{.bytes = static_cast<double>(input.bytes.value()),
                     .passes = input.op == CollectiveOp::kAllReduce ? 2.0 : 1.0};
  for (const FormulaLevel& level : input.levels) {
    parts.members *= level.size;
    const double bandwidth = level.bandwidth.value();
    parts.bandwidth = parts.bandwidth == 0 ? bandwidth : std::min(parts.bandwidth, bandwidth);
    parts.trip = std::max(parts.trip, to_seconds(level.trip));
    parts.torus = parts.torus && level.torus_axis;
    parts.any_torus = parts.any_torus || level.torus_axis;
  }
  return parts;
}

std::string in_passes(const CollectiveFormulaInput& input, const std::string& text) {
  return input.op == CollectiveOp::kAllReduce ? "2 (" + text + ")" : text;
}

std::optional<CollectiveFormula> collective_formula(const CollectiveFormulaInput& input) {
  if (input.levels.empty()) {
    return CollectiveFormula{.seconds = 0, .text = "a group of one costs nothing"};
  }
  const FormulaParts parts = parts_of(input);
  switch (input.algorithm) {
    case Choice::kRing:
    case Choice::kBidirectionalRing:
      return flat_rings(input, parts);
    case Choice::kHierarchical:
      if (parts.torus && !std::ranges::all_of(input.levels, &FormulaLevel::wraps)) {
        return std::nullopt;  // the way back of a ring on a line meets the way there
      }
      return parts.any_torus && !parts.torus ? torus_rings(input) : level_by_level(input);
    case Choice::kAxisAfterAxis:
    case Choice::kMultiAxis:
      return torus_rings(input);
    case Choice::kTorusAllToAll:
      return torus_all_to_all(input);
    case Choice::kOverlappedLevels:
      return overlapped_levels(input);
    case Choice::kRotatedRings:
      return rotated_rings(input);
    case Choice::kPxn:
    case Choice::kNodeForwarding:
      return node_relay(input);
    case Choice::kNvls:
    case Choice::kSharp:
    case Choice::kNvlsTree:
      return in_network(input);
    case Choice::kDoubleBinaryTree:
      if (input.levels.size() > 1 && !parts.any_torus) return in_network(input);
      break;
    default:
      break;
  }
  const bool one_axis = parts.torus && input.levels.size() == 1 && input.levels.front().wraps;
  const bool pairs = input.op == CollectiveOp::kSendReceive || input.op == CollectiveOp::kPermute;
  if (parts.torus && input.algorithm == Choice::kDirect && !pairs) {
    if (!input.busiest_ports.empty()) return std::nullopt;
    return straight_on_torus(input);
  }
  // Ports say nothing where messages share links; neighbours on a wrapped axis share none.
  const bool neighbours =
      one_axis && (input.algorithm == Choice::kChain || input.op == CollectiveOp::kSendReceive);
  if (parts.any_torus && !neighbours) return std::nullopt;
  const bool exchanges =
      input.algorithm == Choice::kPairwise || (input.algorithm == Choice::kDirect && !pairs);
  if (input.levels.size() > 1 && !(exchanges && input.overlapped)) return std::nullopt;
  if (!input.one_switch && !input.overlapped && !neighbours) return std::nullopt;
  return on_one_switch(input);
}

double bus_factor(CollectiveOp op, std::uint32_t members) {
  const double others = (static_cast<double>(members) - 1) / members;
  switch (op) {
    case CollectiveOp::kAllReduce:
      return 2 * others;
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kAllToAll:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return others;
    default:
      return 1;
  }
}

}  // namespace stepsim
