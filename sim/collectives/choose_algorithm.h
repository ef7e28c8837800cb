// choose_algorithm() turns a choice and the shape of a group into the algorithm that runs.
//
// `auto`: torus axes take multi-axis rings, a single wrapped axis a bidirectional ring, a line or a
// switched group one ring; members over several switched levels go hierarchically. On switches a
// second direction gains nothing: one ring already fills each port both ways.

#pragma once

#include <memory>
#include <string>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/collective.h"

namespace stepsim {

// What kAuto stands for in this group.
AlgorithmChoice resolve(AlgorithmChoice choice, const GroupShape& shape);

// REQUIRES: shape.members() > 1; bytes is a whole number of elements of `element` bytes.
std::unique_ptr<CollectiveAlgorithm> choose_algorithm(CollectiveOp op, AlgorithmChoice choice,
                                                      const GroupShape& shape, Bytes bytes,
                                                      Bytes element);

}  // namespace stepsim
