// EngineOptions says how an engine forms the steps of one replica: the options that several engines
// have, by themes, and those of the engine alone. The table of engines
// (serving/engines/engine_table.h) gives each its defaults and says which options it has;
// serving/engines/engine_fields.h documents them.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "serving/engines/engine_list.h"
#include "serving/kv/cache_shape.h"
#include "sim/base/units.h"

namespace stepsim {

// QueuePolicy orders the requests that wait.
enum class QueuePolicy { kArrival, kPriority, kLongestPrefix };
inline constexpr std::size_t kQueuePolicies = 3;
std::string_view name_of(QueuePolicy policy);

// Drafter makes the drafts of speculative decoding.
enum class Drafter {
  kNGram,       // from the text so far: no time, no KV cache
  kDraftModel,  // a small model, a pass for each draft
  kMtp,         // heads of the model itself (MTP, EAGLE), a pass for each draft
};
inline constexpr std::size_t kDrafters = 3;
std::string_view name_of(Drafter drafter);

// Batching says what goes into a step.
struct Batching {
  std::int64_t budget = 8192;     // tokens of a step
  std::int64_t sequences = 1024;  // running at most
  bool chunked_prefill = true;
  std::optional<std::int64_t> long_prefill_threshold{};  // of a request in a step
  std::optional<std::int64_t> max_length{};              // of a sequence, prompt and answer
  QueuePolicy policy = QueuePolicy::kArrival;
  std::int64_t ranks = 1;  // data-parallel ones, whose sums the numbers above are; no key

  // Tokens of a step that one rank computes, and so of one prompt at most.
  std::int64_t budget_of_rank() const { return budget / ranks; }
};

// HostTimes say what the host does between steps.
struct HostTimes {
  bool async = false;
  Duration host_time{};
  Duration front_time{};  // from a request's arrival to its place in the queue
};

struct CacheOptions {
  std::int64_t block = 16;                  // tokens of a KV block
  std::optional<std::int64_t> kv_blocks{};  // unset: as many as are ever needed
  double kv_fraction = 0.9;                 // of the memory, where a model says what it needs
  bool prefix_cache = true;
  bool reserve_whole_sequence = true;  // the gate
  double watermark = 0;
  std::int64_t host_blocks = 0;  // of a replica, in the host's memory
  Bytes host_memory{};           // the same as a size, where a model says what a block takes
  CacheShape shape{};            // what a model's requests take of blocks; no key
  double shown_share = 1;        // of the blocks, those that engines count (EngineState); no key
};

// EngineMemory says what an engine leaves of a chip's memory for its cache, beside weights, and how
// it divides that. serving/passes/kv_room.h has the sum. Releases have the values of engines.
struct EngineMemory {
  Bytes unseen_memory{};                  // kept by the driver
  std::optional<Bytes> context_memory{};  // context and libraries; unset: the chip's fixed_memory
  Bytes collective_memory{};              // of replicas of several chips whose switch adds
  Bytes graph_memory{};
  double logit_bytes = 0;           // of the sampler, for each request and word of the vocabulary
  std::int64_t picture_tokens = 0;  // that the profile run encodes
  bool profiles = true;             // the largest pass is run, and what it takes is left out
  bool hybrid_cache = true;         // windows keep their tokens only
  double window_share = 0;          // of the tokens of other layers; 0: one pool for all
  double state_share = 0;           // states to the rest of the cache; 0: one pool for all
  std::int64_t state_slots = 1;     // of a request, where states have a pool of their own
};

struct Speculation {
  std::int64_t drafts = 0;
  std::optional<std::int64_t> accepted{};
  std::optional<double> acceptance{};
  Drafter drafter = Drafter::kNGram;
  Duration draft_time{};
};

struct EngineOptions {
  Batching batching{};
  HostTimes host{};
  CacheOptions cache{};
  Speculation speculation{};
  EngineMemory memory{};
  OwnOptions own{};
};

// Returns the options that one engine alone has. They have their defaults where none are given.
template <class Own>
const Own& own_options(const EngineOptions& options) {
  static const Own kDefaults{};
  const Own* const held = std::get_if<Own>(&options.own);
  return held != nullptr ? *held : kDefaults;
}

// Returns the options of a replica of so many data-parallel ranks, each of which has the budget and
// the sequences of `one` for itself. A prompt belongs to one rank: it gets no more of a step than
// that rank's budget.
EngineOptions of_ranks(const EngineOptions& one, std::int64_t ranks);

}  // namespace stepsim
