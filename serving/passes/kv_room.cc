#include "serving/passes/kv_room.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "experiment/simulate_experiment.h"
#include "schedules/plan/plan_schedule.h"
#include "workload/inference.h"

namespace stepsim {
namespace {

// Tokens of a sequence behind every window: a cache grows evenly from here on.
constexpr std::int64_t kLong = 1 << 24;

// What the layers of a stage keep of a request on a chip, as a function of its tokens.
struct StageCache {
  Bytes of_long{};  // of kLong tokens, in layers that keep all
  Bytes of_request{};
  std::map<std::int64_t, Bytes> windows{};  // of a full one, by its tokens
};

void add_layer(const ModelSpec& model, const BlockKind& kind, std::int64_t tensor, DataType type,
               StageCache& cache) {
  const auto size = [&](std::int64_t tokens) {
    return cache_size(model, kind, tensor, type, tokens);
  };
  const Bytes at_once = size(0);
  const Bytes growing = size(2 * kLong) - size(kLong);
  cache.of_request += at_once;
  cache.of_long += growing;
  const Bytes in_window = size(kLong) - at_once - growing;
  if (in_window <= Bytes(0)) return;
  cache.windows[as_in(model, kind).attention.window] += in_window;
}

// Returns the larger parts of all stages.
StageCache fullest_stage(const ModelSpec& model, const ParallelPlan& plan) {
  const std::int64_t parts = plan.cache.split == CacheSplit::kRequests ? plan.mesh.tp : 1;
  StageCache most;
  std::int64_t layer = 0;
  for (const std::int64_t layers : layers_of_stages(plan, model.layers)) {
    StageCache own;
    for (std::int64_t i = 0; i < layers; ++i, ++layer) {
      add_layer(model, kind_of(model, layer), plan.mesh.tp / parts, plan.cached(), own);
    }
    most.of_long = std::max(most.of_long, own.of_long);
    most.of_request = std::max(most.of_request, own.of_request);
    for (const auto& [tokens, bytes] : own.windows) {
      most.windows[tokens] = std::max(most.windows[tokens], bytes);
    }
  }
  const std::int64_t shares = parts * plan.mesh.cp;
  const auto share = [shares](Bytes& bytes) { bytes = (bytes + Bytes(shares - 1)) / shares; };
  share(most.of_long);
  share(most.of_request);
  for (auto& [tokens, bytes] : most.windows) share(bytes);
  return most;
}

Bytes of_tokens(const StageCache& cache, std::int64_t tokens) {
  return Bytes(static_cast<std::int64_t>(
      std::ceil(static_cast<double>(cache.of_long.value()) * static_cast<double>(tokens) /
                static_cast<double>(kLong))));
}

CacheShape shape_of(StageCache cache, std::int64_t block) {
  CacheShape shape{.of_block = of_tokens(cache, block), .of_request = cache.of_request};
  if (shape.of_block == Bytes(0) && !cache.windows.empty()) {
    const auto longest = std::prev(cache.windows.end());
    shape.most_chain = (longest->first + block - 1) / block;
    shape.of_block = (block * longest->second + Bytes(longest->first - 1)) / longest->first;
    cache.windows.erase(longest);
  } else if (shape.of_block == Bytes(0)) {
    shape.most_chain = 0;
    shape.of_block = cache.of_request;
  }
  for (const auto& [tokens, bytes] : cache.windows) {
    shape.windows.push_back({tokens, (bytes + Bytes(tokens - 1)) / tokens});
  }
  return shape;
}

// Layers with windows keep all tokens.
void keep_all(StageCache& cache, double share) {
  for (const auto& [tokens, bytes] : cache.windows) {
    const double of_token = static_cast<double>(bytes.value()) / static_cast<double>(tokens);
    cache.of_long += Bytes(std::llround(share * of_token * static_cast<double>(kLong)));
  }
  cache.windows.clear();
}

Bytes part_of(Bytes bytes, double share) {
  return Bytes(static_cast<std::int64_t>(std::floor(share * static_cast<double>(bytes.value()))));
}

// States get a pool of their own, of which as many requests may run as have their slots.
void divide_states(StageCache& cache, Bytes& available, std::int64_t ranks, EngineOptions& engine) {
  const double ratio = engine.memory.state_share;
  if (ratio == 0 || cache.of_request == Bytes(0) || available <= Bytes(0)) return;
  const std::int64_t states =
      part_of(available, ratio / (1 + ratio)).value() / cache.of_request.value();
  const std::int64_t slots = engine.cache.prefix_cache ? engine.memory.state_slots : 1;
  engine.batching.sequences = std::min(engine.batching.sequences, ranks * (states / slots));
  available -= states * cache.of_request;
  cache.of_request = Bytes(0);
}

// Engines count the tokens of as many requests of the largest length as fit
// (vLLM: get_max_concurrency_for_kv_cache_config), whose windows hold a chunk besides.
double shown_share(const CacheShape& shape, const EngineOptions& engine, std::int64_t ranks) {
  constexpr std::int64_t kLongest = 1 << 18;  // tokens that models of 2026 take
  if (shape.most_chain < kLongest || (shape.windows.empty() && shape.of_request == Bytes(0))) {
    return 1;
  }
  CacheShape longest = shape;
  for (CacheShape::Window& window : longest.windows) {
    window.tokens += engine.batching.budget / ranks - 1;
  }
  const std::int64_t tokens = engine.batching.max_length.value_or(kLongest);
  const std::int64_t chain = longest.chain(tokens, engine.cache.block);
  return static_cast<double>(chain) /
         static_cast<double>(longest.whole(tokens, engine.cache.block));
}

}  // namespace

Bytes cache_of_token(const ModelSpec& model, const ParallelPlan& plan) {
  StageCache cache = fullest_stage(model, plan);
  keep_all(cache, 1);
  return of_tokens(cache, 1);
}

CacheShape shape_of_cache(const ModelSpec& model, const ParallelPlan& plan, std::int64_t block) {
  return shape_of(fullest_stage(model, plan), block);
}

LargestPass largest_pass(const Experiment& experiment, const Cluster& cluster,
                         const EngineOptions& engine) {
  Experiment largest = experiment;
  const std::int64_t ranks = experiment.plan.mesh.dp;
  const std::int64_t tokens = (engine.batching.budget + ranks - 1) / ranks;
  largest.plan.pass.own_requests = {.groups = {{.queries = tokens}},
                                    .cache = experiment.plan.cached()};
  if (experiment.model.vision.layers > 0) {
    largest.plan.batch.vision_tokens = engine.memory.picture_tokens;
  }
  const SimulatedExperiment done = simulate_experiment(largest, cluster, {});
  const SimulationResult& result = done.runs.front().result;
  LargestPass pass;
  const auto keepers = static_cast<std::size_t>(experiment.plan.mesh.mesh_ranks());
  Bytes most;
  for (std::size_t rank = 0; rank < result.memory_peaks.size(); ++rank) {
    const MemoryPeak& peak = result.memory_peaks[rank];
    const auto of = [&peak](MemoryCategory category) {
      return peak.by_category[static_cast<std::size_t>(category)];
    };
    const Bytes whole = peak.bytes - of(MemoryCategory::kCache);
    if (rank >= keepers) pass.of_experts = std::max(pass.of_experts, whole);
    if (rank >= keepers || whole <= most) continue;
    most = whole;
    pass.weights = of(MemoryCategory::kParameters);
    pass.fixed = of(MemoryCategory::kFixedOverhead);
    pass.buffers = whole - pass.weights - pass.fixed;
  }
  return pass;
}

KvRoom fit_cache(const LargestPass& pass, const Experiment& experiment, const Cluster& cluster,
                 EngineOptions& engine) {
  const EngineMemory& memory = engine.memory;
  const std::int64_t ranks = experiment.plan.mesh.dp;
  const bool adds = experiment.plan.mesh.ranks() > 1 && cluster.chip.communication.nvls;
  const Bytes apart =
      memory.context_memory.value_or(pass.fixed) + (adds ? memory.collective_memory : Bytes(0));
  Bytes seen = cluster.chip.memory_capacity - memory.unseen_memory;
  KvRoom room{.others = pass.weights};
  if (memory.profiles) {
    const double logits = static_cast<double>(experiment.model.embedding.vocabulary) *
                          static_cast<double>(engine.batching.sequences / ranks);
    const Bytes sampler(std::llround(memory.logit_bytes * logits));
    room.others += std::max(pass.buffers, sampler) + apart + memory.graph_memory;
  } else {
    seen -= apart;
  }
  const Bytes given = part_of(seen, engine.cache.kv_fraction);
  if (pass.of_experts > given) room.others = pass.of_experts;
  room.available = given - room.others;

  StageCache cache = fullest_stage(experiment.model, experiment.plan);
  if (!memory.hybrid_cache || memory.window_share > 0) {
    keep_all(cache, memory.hybrid_cache ? memory.window_share : 1);
  }
  divide_states(cache, room.available, ranks, engine);
  const CacheShape shape = shape_of(cache, engine.cache.block);
  room.of_block = shape.of_block;
  if (room.of_block > Bytes(0) && room.available > Bytes(0)) {
    room.blocks = ranks * (room.available.value() / room.of_block.value());
  }
  engine.cache.shape = shape;
  engine.cache.shown_share = shown_share(shape, engine, ranks);
  if (room.blocks > 0 && !engine.cache.kv_blocks) engine.cache.kv_blocks = room.blocks;
  return room;
}

}  // namespace stepsim
