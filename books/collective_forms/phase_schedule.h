// phase_schedule() returns when lanes of rounds end that share machines. Examples are chunks that
// follow each other through the levels of a cluster, and rotations of a torus that meet on an axis.
//
// A round first takes its trip, which uses no machine. Then it takes its work on a machine, which
// all lanes that work on it at that time share evenly. A lane runs its rounds in order. A round may
// also wait for a round of another lane.
//
// This is the closed form of collectives in which all members do the same at the same time, as one
// member sees them: its ports are the machines. C equal chunks through phases of p_i each, on
// separate machines, take sum p_i + (C - 1) max p_i (the flow shop of Johnson, 1954). If phases
// return to a machine or lanes meet on it, no formula is shorter than this recurrence.
//
// O(rounds x lanes).

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stepsim {

struct LaneRound {
  std::uint32_t machine = 0;
  double trip = 0;  // seconds
  double work = 0;  // seconds, alone on the machine
  struct After {
    std::uint32_t lane = 0;
    std::uint32_t round = 0;
  };
  std::optional<After> after{};
};

// Returns the seconds until the last round ends. REQUIRES: no two rounds wait for each other.
double phase_schedule(const std::vector<std::vector<LaneRound>>& lanes);

}  // namespace stepsim
