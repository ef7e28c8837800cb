#include "books/collective_forms/collective_formulas.h"

#include <algorithm>

#include "books/collective_forms/form_table.h"
#include "books/collective_forms/formula_parts.h"

namespace stepsim {
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

bool are_alike(std::span<const RingHop> kinds) {
  return std::ranges::all_of(kinds, [&](const RingHop& kind) {
    return kind.seconds == kinds.front().seconds && kind.trip == kinds.front().trip;
  });
}

std::optional<CollectiveFormula> collective_formula(const CollectiveFormulaInput& input) {
  if (input.levels.empty()) {
    return CollectiveFormula{.seconds = 0, .text = "a group of one member costs nothing"};
  }
  const CollectiveForm form = form_of(input.algorithm);
  return form == nullptr ? std::nullopt : form(input);
}

}  // namespace stepsim
