// Passes of inference and served requests for the studies: the models of the catalog, lowered and
// simulated as `stepsim run` and `stepsim serve` do it, on chips that reach the sources' peaks.
//
//   const Cluster slice = book_v5e({4, 2});
//   pass_seconds(laboratory, load_model("llama2-13b"),
//   "inference=decode,tp=8,batch=16,context=8192",
//                slice);

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "books/laboratory/laboratory.h"
#include "experiment/experiment.h"
#include "serving/serve.h"
#include "serving/serving_metrics.h"
#include "sim/hardware/cluster.h"
#include "workload/model/model_spec.h"

namespace stepsim {

inline constexpr double kSliceFlops = 1.97e14;  // FLOP/s, bf16
inline constexpr double kSliceMemory = 8.2e11;  // B/s
inline constexpr double kSliceLink = 45e9;      // B/s, one way
inline constexpr double kSliceCapacity = 16e9;  // B

// A slice of TPU v5e: its axes do not wrap around below 16 chips unless `wraps` says so; a hop
// takes 1 us.
struct BookSlice {
  std::vector<int> sizes{};
  double flops = kSliceFlops;
  double memory = kSliceMemory;
  double capacity = kSliceCapacity;
  bool has_links = true;  // false: communication takes no time
  bool wraps = false;     // all axes
};
Cluster book_v5e(const BookSlice& slice);

// Returns the experiment of a pass: `plan` has the keys of --plan. Throws std::logic_error if the
// plan is not valid.
Experiment pass_of(const ModelSpec& model, const std::string& plan, const Cluster& cluster);

double pass_seconds(const Laboratory& laboratory, const ModelSpec& model, const std::string& plan,
                    const Cluster& cluster);

// Returns the caches of so many tokens that fit beside the weights and the buffers of a pass of
// `buffered` tokens, as an engine finds out that uses all of the memory.
std::int64_t caches_that_fit(const ModelSpec& model, const std::string& plan,
                             const Cluster& cluster, std::int64_t tokens, std::int64_t buffered);

// Returns `count` requests of these lengths, all there at the start.
RequestList requests_at_once(std::int64_t count, std::int32_t input, std::int32_t output);

// Returns the list as a closed loop, with so many requests in the system.
RequestList in_a_loop(RequestList list, std::int64_t concurrency);

// An engine under vLLM's rules with blocks of one token and a budget for whole prompts.
EngineOptions book_engine(std::int64_t sequences, std::int64_t prompt);

// Serves requests whose prompts come computed and whose caches move in no time: each step of the
// one replica is a pass of `model` under `plan`. All requests are taken in at once, as far as
// `engine` has room.
// Throws StudySkipped on packets.
ServingResult serve_with_passes(const Laboratory& laboratory, const RequestList& list,
                                const ModelSpec& model, const std::string& plan,
                                const BookSlice& slice, const EngineOptions& engine);

double requests_per_second(const RequestList& list, ServingResult& result);

}  // namespace stepsim
