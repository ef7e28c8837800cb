// rank_spread() says how far the ranks of a step differ: the breakdown of each pipeline stage, the
// ranks that compute most and least, and who waits for whom where a rank is slower than the others
// of its stage.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

struct StageSpread {
  std::uint32_t stage = 0;
  std::size_t ranks = 0;
  Breakdown mean{};  // of a step; each part is rounded down to a picosecond
};

// A rank that computes at least 0.5 % longer than the mean of its stage's ranks.
struct SlowRank {
  RankId rank;
  Duration compute{};   // of a step
  Duration of_stage{};  // mean of its stage
  Duration waited{};    // by how much longer its stage's ranks wait, in the mean, than it does
};

struct RankSpread {
  std::vector<StageSpread> stages;  // in order
  RankId most;                      // computes longest; of several the first
  RankId least;
  Duration most_compute{};
  Duration least_compute{};
  std::vector<SlowRank> slow;  // the three that are slowest beside their stage
};

// Without breakdowns there are no stages. O(ranks).
RankSpread rank_spread(const OpGraph& graph, const SimulationResult& result);

}  // namespace stepsim
