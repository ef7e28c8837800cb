// Whether the tokens of a pass travel to experts that other chips have.

#pragma once

#include "schedules/plan/plan_themes.h"

namespace stepsim {

// Experts are divided over tensor groups of several data-parallel ranks.
inline bool spans_groups(const Ranks& mesh) {
  return !mesh.splits_ffn() && mesh.tp > 1 && mesh.ep * mesh.etp > mesh.tp;
}

inline bool sends_in_pass(const Ranks& mesh) {
  return !mesh.splits_ffn() && mesh.ep > 1 && (mesh.tp == 1 || spans_groups(mesh));
}

}  // namespace stepsim
