// fit_cache() says how many blocks of a cache fit beside the weights, as engines find out when they
// start, and gives them to the engine. What a request takes is what `run --pass` says that it keeps
// (cache_size() of workload/inference.h), on the chip that keeps most.
//
//   const KvRoom room = fit_cache(experiment, cluster, engine);
//
// With M the memory of a chip, f kv_fraction, W the weights and the keys of EngineMemory (unseen,
// context, collective, graph), an engine that profiles (vLLM: gpu_worker.py,
// determine_available_memory) leaves
//
//   f (M - unseen) - W - max(largest pass, logit_bytes x requests x vocabulary)
//     - context - collective - graph
//
// and one that does not (SGLang: pool configurator, profile_available_bytes)
//
//   f (M - unseen - context - collective) - W
//
// bytes for caches. In one pool (vLLM) a request takes blocks for its tokens, its windows and its
// states out of these (cache_shape.h). With pools of their own (SGLang) states get state_share /
// (1 + state_share) of them, of which each request that may run has state_slots, so there are no
// more such requests; and with window_share s a token takes a + s w bytes, a in layers that keep
// all and w in those with windows.
//
// Not modelled: prefix caching of states (a request that finds its beginning finds the state too),
// the tokens of a page that a state fills (vLLM's larger blocks of hybrid models).

#pragma once

#include <cstdint>

#include "experiment/experiment.h"
#include "serving/engines/engine_options.h"
#include "sim/base/units.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// What a chip holds beside caches in the largest pass of an engine, on the fullest chip.
struct LargestPass {
  Bytes weights{};
  Bytes buffers{};
  Bytes fixed{};       // context and libraries, as the chip's file says
  Bytes of_experts{};  // all of it, on chips of experts, which keep no cache
};

struct KvRoom {
  std::int64_t blocks = 0;  // of a replica; 0: not one fits
  Bytes of_block{};         // on the fullest chip that keeps any
  Bytes available{};        // there, for all blocks; may be below zero
  Bytes others{};           // there; of a chip of experts, if those don't fit
};

// Returns what a token takes in the cache on a chip of the stage that keeps most. With caches by
// request it is the mean of the tensor group's chips, with context ranks that of theirs.
Bytes cache_of_token(const ModelSpec& model, const ParallelPlan& plan);

// Returns what a request takes in blocks of so many tokens, on a chip of the stage that keeps most.
CacheShape shape_of_cache(const ModelSpec& model, const ParallelPlan& plan, std::int64_t block);

// Simulates one pass of the tokens that a step may compute. REQUIRES: a plan of inference without
// problems; `engine` is that of all data-parallel ranks (of_ranks()).
LargestPass largest_pass(const Experiment& experiment, const Cluster& cluster,
                         const EngineOptions& engine);

// Gives the engine its blocks, their shape and how many requests may run, unless it says how many
// blocks it has. With data-parallel ranks the replica has the blocks of all. Gives it none where
// blocks would be 0. REQUIRES: as above.
KvRoom fit_cache(const LargestPass& pass, const Experiment& experiment, const Cluster& cluster,
                 EngineOptions& engine);
inline KvRoom fit_cache(const Experiment& experiment, const Cluster& cluster,
                        EngineOptions& engine) {
  return fit_cache(largest_pass(experiment, cluster, engine), experiment, cluster, engine);
}

}  // namespace stepsim
