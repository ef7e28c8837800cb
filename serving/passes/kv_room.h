// kv_room() says how many blocks of a cache fit beside the weights, as engines find out when they
// start: they run the largest pass, and take what remains of their share of the memory.

#pragma once

#include <cstdint>

#include "experiment/experiment.h"
#include "sim/base/units.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

struct KvRoom {
  std::int64_t blocks = 0;  // of a replica; 0: not one fits
  Bytes of_block{};         // on the fullest chip that keeps any
  Bytes available{};        // there, for all blocks; may be below zero
  // There: weights, buffers of the largest pass, context and libraries; of a chip of experts, if
  // those don't fit.
  Bytes others{};
};

// Returns what a token takes in the cache on a chip of the stage that keeps most. With caches by
// request it is the mean of the tensor group's chips, with context ranks that of theirs.
Bytes cache_of_token(const ModelSpec& model, const ParallelPlan& plan);

// `budget`: most tokens of a step; `block`: tokens of a block; `fraction`: share of the memory that
// the engine uses (vLLM: gpu_memory_utilization, SGLang: mem_fraction_static). A layer with a
// window keeps its blocks like any other (vLLM's without hybrid allocation), and a state is a part
// of the first block of each request, which is not counted here. With data-parallel ranks the
// replica has the blocks of all. Simulates one pass. REQUIRES: a plan of inference without
// problems.
KvRoom kv_room(const Experiment& experiment, const Cluster& cluster, std::int64_t budget,
               std::int64_t block, double fraction);

}  // namespace stepsim
