// RankCost is what a pipeline rank of a plan costs at least: its passes, its optimizer, and the
// bytes that it holds all the time.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "experiment/passes/pass_cost.h"

namespace stepsim {

// FSDP gathers a layer that often for a micro-batch: for its forward and for its backward.
inline constexpr std::int64_t kVisits = 2;

// What one chunk of a rank costs for a micro-batch.
struct ChunkCost {
  std::int32_t stage = 0;
  PassCost forward{};
  PassCost backward{};  // whole
  PassCost input{};     // the two parts of a split backward
  PassCost weight{};
  // Picoseconds in which data of replicas move, one after the other: FSDP's gathers (dense,
  // experts) for one visit to each layer; reductions, with zero 2 and 3 of a micro-batch, else of
  // all together.
  std::array<std::int64_t, 2> gathers{};
  std::array<std::int64_t, 2> reductions{};
  std::array<std::int64_t, 2> parameter_gathers{};  // zero 1 and 2, once a step
  LinkLoads gather_loads{};                         // FSDP: of one gather of each of its layers
};

struct RankCost {
  std::int64_t resident = 0;   // bytes
  std::int64_t optimizer = 0;  // picoseconds
  // Of the traffic of its replicas: of one micro-batch, and of what moves once a step.
  LinkLoads loads_of_microbatch{};
  LinkLoads loads_of_step{};
  // Share of its time that a dense run of kernels loses at least while such traffic moves.
  double slowdown = 0;
  std::vector<ChunkCost> chunks{};

  std::int32_t first_stage() const {
    return std::ranges::min_element(chunks, {}, &ChunkCost::stage)->stage;
  }
};

}  // namespace stepsim
