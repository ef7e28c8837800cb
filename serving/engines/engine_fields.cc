#include "serving/engines/engine_fields.h"

#include <iterator>
#include <string>

#include "serving/requests/request.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<QueuePolicy> = kQueuePolicies;
template <>
inline constexpr std::size_t kValuesOf<Drafter> = kDrafters;

namespace {

constexpr std::string_view kKeysOfAllEngines[] = {
    "sequences",    "max_length",  "host_time",      "front_time",     "block",
    "kv_blocks",    "kv_fraction", "unseen_memory",  "context_memory", "collective_memory",
    "graph_memory", "logit_bytes", "picture_tokens", "profiles",       "hybrid_cache",
    "window_share", "state_share", "state_slots"};

using Options = EngineOptions;

constexpr double kMostBlockTokens = 1 << 20;
constexpr double kMostBlocks = 1 << 27;
constexpr double kMostDrafts = 1024;
constexpr double kMostHostSeconds = 1000;
constexpr double kMostHostBytes = 1e15;
constexpr double kMostStateShare = 1000;
static_assert(kMostBlocks * kMostBlockTokens < 0x1p63, "tokens of a cache");
static_assert(kMostBlocks < 0x1p31, "KvPool numbers blocks in 31 bits");
static_assert(kMostDrafts * kMostHostSeconds * 1e12 < 0x1p63, "picoseconds of a step's drafts");

void add_step_fields(FieldTable<Options>& table) {
  table.theme("A step");
  table.add_inner(
      "budget", &Options::batching, &Batching::budget, Limits::between(1, kMostStepTokens),
      {.help = "Tokens that a step computes at most (max_num_batched_tokens), on each "
               "data-parallel rank.",
       .advice = "A larger one prefills sooner and makes the tokens of others wait longer."});
  table.add_inner("sequences", &Options::batching, &Batching::sequences,
                  Limits::between(1, static_cast<double>(kMostRequests)),
                  {.help = "Requests that run at one time, at most (max_num_seqs)."});
  table.add_inner(
      "chunked_prefill", &Options::batching, &Batching::chunked_prefill,
      {.help = "Cuts prompts that don't fit the budget of a step into chunks. Without it a "
               "prompt waits for a step that holds all of it."});
  table.add_inner(
      "long_prefill_threshold", &Options::batching, &Batching::long_prefill_threshold,
      Limits::between(1, kMostRequestTokens),
      {.help = "Tokens that one request computes in a step, at most.", .unset = "no limit"});
  table.add_inner(
      "max_length", &Options::batching, &Batching::max_length,
      Limits::between(2, kMostRequestTokens),
      {.help = "Tokens of a prompt and its answer that the model takes.", .unset = "no limit"});
  table.add_inner(
      "policy", &Options::batching, &Batching::policy,
      {.help = "Who goes first: in order of arrival, by the priority of requests, or who "
               "finds most of its prompt in the prefix cache (sglang)."});
}

void add_host_fields(FieldTable<Options>& table) {
  table.theme("The host");
  table.add_inner("async", &Options::host, &HostTimes::async,
                  {.help = "Forms a step while the one before runs: host_time hides behind it, and "
                           "requests that arrive meanwhile come a step later."});
  table.add_inner("host_time", &Options::host, &HostTimes::host_time,
                  Limits::between(0, kMostHostSeconds),
                  {.help = "Time of the host between steps: scheduling, sampling, answers."});
  table.add_inner(
      "front_time", &Options::host, &HostTimes::front_time, Limits::between(0, kMostHostSeconds),
      {.help = "Time from a request's arrival until the scheduler sees it: HTTP, and the text "
               "made into tokens.",
       .advice = "With --prefill and --decode that of the prefill replicas counts."});
}

void add_cache_fields(FieldTable<Options>& table) {
  table.theme("KV cache");
  table.add_inner("block", &Options::cache, &CacheOptions::block,
                  Limits::between(1, kMostBlockTokens), {.help = "Tokens of a KV block."});
  table.add_inner(
      "kv_blocks", &Options::cache, &CacheOptions::kv_blocks, Limits::between(1, kMostBlocks),
      {.help = "Blocks of the KV cache of a replica.",
       .unset = "with --model as many as fit (kv_fraction), else room for the longest request "
                "as often as sequences may run"});
  table.add_inner(
      "kv_fraction", &Options::cache, &CacheOptions::kv_fraction, Limits::fraction(),
      {.help = "Share of a chip's memory that the engine uses: what weights and the largest "
               "pass leave of it becomes KV blocks (gpu_memory_utilization).",
       .advice = "Acts with --model, where kv_blocks is not given."});
  table.add_inner(
      "prefix_cache", &Options::cache, &CacheOptions::prefix_cache,
      {.help = "Keeps blocks that are free until they are needed, and finds the beginnings "
               "of later requests in them. The least recently freed goes first."});
  table.add_inner(
      "reserve_whole_sequence", &Options::cache, &CacheOptions::reserve_whole_sequence,
      {.help = "The gate: a request is admitted only if blocks for all of its known tokens "
               "are free, though only those of its first chunk are taken."});
  table.add_inner(
      "watermark", &Options::cache, &CacheOptions::watermark, Limits::between(0, 1),
      {.help = "Share of the blocks that waiting requests must leave free while others run."});
  table.add_inner(
      "host_blocks", &Options::cache, &CacheOptions::host_blocks, Limits::between(0, kMostBlocks),
      {.help = "Blocks that a replica keeps in the memory of its host: those that the KV cache "
               "loses go there, and come back for requests that begin with them.",
       .advice = "A request waits until its blocks are there; others go on meanwhile.",
       .rules = "Must stand with prefix_cache.",
       .unset = "none"});
  table.add_inner("host_memory", &Options::cache, &CacheOptions::host_memory,
                  Limits::between(0, kMostHostBytes),
                  {.help = "The same as a size, of all chips of a replica.",
                   .rules = "Must stand with prefix_cache and --model, and without host_blocks.",
                   .unset = "none"});
}

void add_memory_fields(FieldTable<Options>& table) {
  using Memory = EngineMemory;
  constexpr auto kMemory = &Options::memory;
  constexpr double kMostBytes = 1e13;
  const Limits bytes = Limits::between(0, kMostBytes);
  table.theme("Memory that the cache does not get");
  table.add_inner("unseen_memory", kMemory, &Memory::unseen_memory, bytes,
                  {.help = "What the driver keeps of a chip's memory: kv_fraction is of the rest.",
                   .advice = "This and the next keys act with --model; releases have them."});
  table.add_inner("context_memory", kMemory, &Memory::context_memory, bytes,
                  {.help = "What the engine counts for its context and libraries.",
                   .unset = "the chip's fixed_memory"});
  table.add_inner("collective_memory", kMemory, &Memory::collective_memory, bytes,
                  {.help = "The same for collectives of replicas of several chips, where their "
                           "switch adds (NVLS)."});
  table.add_inner("graph_memory", kMemory, &Memory::graph_memory, bytes,
                  {.help = "What the engine leaves for CUDA graphs."});
  table.add_inner("logit_bytes", kMemory, &Memory::logit_bytes, Limits::between(0, 1000),
                  {.help = "Bytes that the profile run's sampler takes for each of `sequences` "
                           "requests and each word of the vocabulary. The larger of this and the "
                           "largest pass counts."});
  table.add_inner("picture_tokens", kMemory, &Memory::picture_tokens,
                  Limits::between(0, kMostRequestTokens),
                  {.help = "Tokens of pictures that the profile run encodes, of models that see."});
  table.add_inner("profiles", kMemory, &Memory::profiles,
                  {.help = "The engine runs the largest pass and leaves what that takes. Without "
                           "it context and collectives are no part of what kv_fraction shares, "
                           "and passes have what it leaves."});
  table.add_inner("hybrid_cache", kMemory, &Memory::hybrid_cache,
                  {.help = "Layers with a window keep its tokens only. Without it they keep all."});
  table.add_inner("window_share", kMemory, &Memory::window_share, Limits::between(0, 1),
                  {.help = "Tokens in the pool of layers with a window, to those in the pool of "
                           "others; 0: one pool for all (swa_full_tokens_ratio)."});
  table.add_inner("state_share", kMemory, &Memory::state_share, Limits::between(0, kMostStateShare),
                  {.help = "Memory for recurrent states, to that of keys and values; 0: one pool "
                           "for all (mamba_full_memory_ratio)."});
  table.add_inner("state_slots", kMemory, &Memory::state_slots, Limits::between(1, 1024),
                  {.help = "States in that pool for each request that may run; without "
                           "prefix_cache 1."});
}

void add_speculation_fields(FieldTable<Options>& table) {
  table.theme("Speculation");
  table.add_inner("drafts", &Options::speculation, &Speculation::drafts,
                  Limits::between(0, kMostDrafts),
                  {.help = "Drafts that are tried behind the newest token of a request."});
  table.add_inner("accepted", &Options::speculation, &Speculation::accepted,
                  Limits::between(0, kMostDrafts),
                  {.help = "Drafts that are right every time.", .unset = "acceptance says it"});
  table.add_inner("acceptance", &Options::speculation, &Speculation::acceptance,
                  Limits::between(0, 1),
                  {.help = "Probability that a draft is right if those before it are.",
                   .unset = "accepted says it"});
  table.add_inner("drafter", &Options::speculation, &Speculation::drafter,
                  {.help = "Where drafts come from. A draft model and MTP hold KV blocks ahead."});
  table.add_inner(
      "draft_time", &Options::speculation, &Speculation::draft_time,
      Limits::between(0, kMostHostSeconds),
      {.help = "Time to make one draft for all requests of a step; a step with drafts takes "
               "drafts x draft_time longer."});
}

}  // namespace

const FieldTable<EngineOptions>& engine_fields() {
  static const FieldTable<EngineOptions> kTable = [] {
    FieldTable<EngineOptions> table("Engine");
    add_step_fields(table);
    add_host_fields(table);
    add_cache_fields(table);
    add_memory_fields(table);
    add_speculation_fields(table);
    for (const EngineRow& row : engine_table()) {
      if (row.add_own_fields == nullptr) continue;
      table.theme(row.name);
      row.add_own_fields(table);
    }
    return table;
  }();
  return kTable;
}

std::vector<std::string_view> keys_of(const EngineRow& engine) {
  std::vector<std::string_view> keys(std::begin(kKeysOfAllEngines), std::end(kKeysOfAllEngines));
  keys.insert(keys.end(), engine.keys.begin(), engine.keys.end());
  FieldTable<EngineOptions> own("Engine");
  if (engine.add_own_fields != nullptr) engine.add_own_fields(own);
  for (const auto& field : own.fields()) keys.push_back(field->name());
  return keys;
}

std::vector<Problem> check_engine(const EngineOptions& options, std::string_view option) {
  const Speculation& speculation = options.speculation;
  const CacheOptions& cache = options.cache;
  std::vector<Problem> problems;
  const auto complain = [&](const char* key, std::string message) {
    problems.push_back({std::string(option) + " " + key, std::move(message)});
  };
  if (speculation.drafts > 0 &&
      speculation.accepted.has_value() == speculation.acceptance.has_value()) {
    complain("drafts", "must stand with either accepted or acceptance");
  }
  if (speculation.drafts == 0 && (speculation.accepted || speculation.acceptance)) {
    complain(speculation.accepted ? "accepted" : "acceptance", "must stand with drafts above 0");
  }
  if (speculation.accepted && *speculation.accepted > speculation.drafts) {
    complain("accepted", "must be at most drafts, " + std::to_string(speculation.drafts) + ", is " +
                             std::to_string(*speculation.accepted));
  }
  if (speculation.draft_time > Duration() && speculation.drafter == Drafter::kNGram) {
    complain("draft-time", "must stand with drafter=draft-model or drafter=mtp");
  }
  const bool has_host_memory = cache.host_memory > Bytes(0);
  if ((cache.host_blocks > 0 || has_host_memory) && !cache.prefix_cache) {
    complain(has_host_memory ? "host_memory" : "host_blocks", "must stand with prefix_cache=true");
  }
  if (cache.host_blocks > 0 && cache.host_memory > Bytes(0)) {
    complain("host_memory", "must not stand with host_blocks, which is the same");
  }
  return problems;
}

}  // namespace stepsim
