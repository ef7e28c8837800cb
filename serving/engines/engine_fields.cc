#include "serving/engines/engine_fields.h"

#include <string>

#include "serving/requests/request.h"
#include "sim/base/quantity_field.h"

namespace stepsim {

template <>
inline constexpr std::size_t kValuesOf<QueuePolicy> = kQueuePolicies;
template <>
inline constexpr std::size_t kValuesOf<Drafter> = kDrafters;
template <>
inline constexpr std::size_t kValuesOf<CapacityPolicy> = kCapacityPolicies;

namespace {

using Options = EngineOptions;

constexpr double kMostBudget = 1 << 30;
constexpr double kMostBlockTokens = 1 << 20;
constexpr double kMostBlocks = 1 << 27;
constexpr double kMostDrafts = 1024;
constexpr double kMostHostSeconds = 1000;
constexpr double kMostHostBytes = 1e15;
constexpr double kMostBacklog = 1 << 20;

void add_step_fields(FieldTable<Options>& table) {
  table.theme("A step");
  table.add("budget", &Options::budget, Limits::between(1, kMostBudget),
            {.help = "Tokens that a step computes at most (max_num_batched_tokens), on each "
                     "data-parallel rank.",
             .advice = "A larger one prefills sooner and makes the tokens of others wait longer."});
  table.add("sequences", &Options::sequences,
            Limits::between(1, static_cast<double>(kMostRequests)),
            {.help = "Requests that run at one time, at most (max_num_seqs)."});
  table.add("chunked_prefill", &Options::chunked_prefill,
            {.help = "Cuts prompts that don't fit the budget of a step into chunks. Without it a "
                     "prompt waits for a step that holds all of it."});
  table.add("long_prefill_threshold", &Options::long_prefill_threshold,
            Limits::between(1, kMostRequestTokens),
            {.help = "Tokens that one request computes in a step, at most.", .unset = "no limit"});
  table.add(
      "max_length", &Options::max_length, Limits::between(2, kMostRequestTokens),
      {.help = "Tokens of a prompt and its answer that the model takes.", .unset = "no limit"});
  table.add("policy", &Options::policy,
            {.help = "Who goes first: in order of arrival, by the priority of requests, or who "
                     "finds most of its prompt in the prefix cache (sglang)."});
  table.add("async", &Options::async,
            {.help = "Forms a step while the one before runs: host_time hides behind it, and "
                     "requests that arrive meanwhile come a step later."});
  table.add("host_time", &Options::host_time, Limits::between(0, kMostHostSeconds),
            {.help = "Time of the host between steps: scheduling, sampling, answers."});
  table.add(
      "front_time", &Options::front_time, Limits::between(0, kMostHostSeconds),
      {.help = "Time from a request's arrival until the scheduler sees it: HTTP, and the text "
               "made into tokens.",
       .advice = "With --prefill and --decode that of the prefill replicas counts."});
}

void add_cache_fields(FieldTable<Options>& table) {
  table.theme("KV cache");
  table.add("block", &Options::block, Limits::between(1, kMostBlockTokens),
            {.help = "Tokens of a KV block."});
  table.add(
      "kv_blocks", &Options::kv_blocks, Limits::between(1, kMostBlocks),
      {.help = "Blocks of the KV cache of a replica.",
       .unset = "with --model as many as fit (kv_fraction), else room for the longest request "
                "as often as sequences may run"});
  table.add("kv_fraction", &Options::kv_fraction, Limits::fraction(),
            {.help = "Share of a chip's memory that the engine uses: what weights and the largest "
                     "pass leave of it becomes KV blocks (gpu_memory_utilization).",
             .advice = "Acts with --model, where kv_blocks is not given."});
  table.add("prefix_cache", &Options::prefix_cache,
            {.help = "Keeps blocks that are free until they are needed, and finds the beginnings "
                     "of later requests in them. The least recently freed goes first."});
  table.add("reserve_whole_sequence", &Options::reserve_whole_sequence,
            {.help = "The gate: a request is admitted only if blocks for all of its known tokens "
                     "are free, though only those of its first chunk are taken."});
  table.add(
      "watermark", &Options::watermark, Limits::between(0, 1),
      {.help = "Share of the blocks that waiting requests must leave free while others run."});
  table.add(
      "host_blocks", &Options::host_blocks, Limits::between(0, kMostBlocks),
      {.help = "Blocks that a replica keeps in the memory of its host: those that the KV cache "
               "loses go there, and come back for requests that begin with them.",
       .advice = "A request waits until its blocks are there; others go on meanwhile.",
       .rules = "Must stand with prefix_cache.",
       .unset = "none"});
  table.add("host_memory", &Options::host_memory, Limits::between(0, kMostHostBytes),
            {.help = "The same as a size, of all chips of a replica.",
             .rules = "Must stand with prefix_cache and --model, and without host_blocks.",
             .unset = "none"});
}

void add_speculation_fields(FieldTable<Options>& table) {
  table.theme("Speculation");
  table.add("drafts", &Options::drafts, Limits::between(0, kMostDrafts),
            {.help = "Drafts that are tried behind the newest token of a request."});
  table.add("accepted", &Options::accepted, Limits::between(0, kMostDrafts),
            {.help = "Drafts that are right every time.", .unset = "acceptance says it"});
  table.add("acceptance", &Options::acceptance, Limits::between(0, 1),
            {.help = "Probability that a draft is right if those before it are.",
             .unset = "accepted says it"});
  table.add("drafter", &Options::drafter,
            {.help = "Where drafts come from. A draft model and MTP hold KV blocks ahead."});
  table.add("draft_time", &Options::draft_time, Limits::between(0, kMostHostSeconds),
            {.help = "Time to make one draft for all requests of a step; a step with drafts takes "
                     "drafts x draft_time longer."});
}

void add_engine_fields(FieldTable<Options>& table) {
  table.theme("Single engines");
  table.add("chunk", &Options::chunk, Limits::between(1, kMostBudget),
            {.help = "sglang: tokens of a prefill step (chunked_prefill_size)."});
  table.add("max_prefill", &Options::max_prefill, Limits::between(1, kMostBudget),
            {.help = "sglang: tokens that one step admits, at most; the first request is always "
                     "taken."});
  table.add("mixed_chunk", &Options::mixed_chunk,
            {.help = "sglang: decodes go with the prefills."});
  table.add("conservativeness", &Options::conservativeness, Limits::between(0, 100),
            {.help = "sglang: how much room is kept for answers; 1 keeps 0.7 of them at first."});
  table.add("capacity", &Options::capacity,
            {.help = "trtllm: no-evict admits what surely ends; max-utilisation admits what fits "
                     "now, and pauses requests."});
  table.add(
      "transfer_backlog", &Options::transfer_backlog, Limits::between(0, kMostBacklog),
      {.help = "jetstream: caches that wait behind prefill for the thread that transfers them.",
       .advice = "JetStream has 1, and 4 where prefill and decode are apart."});
  table.add("generate_backlog", &Options::generate_backlog, Limits::between(0, kMostBacklog),
            {.help = "jetstream: caches that wait for a slot, beside those in transfer.",
             .advice = "JetStream has 1; apart, decode replicas have a third of their slots. A "
                       "prefill replica that hands them over has 0."});
  table.add(
      "pads_prompts", &Options::pads_prompts,
      {.help = "jetstream: computes a prompt as the next power of two, of at least 16 tokens."});
}

}  // namespace

const FieldTable<EngineOptions>& engine_fields() {
  static const FieldTable<EngineOptions> kTable = [] {
    FieldTable<EngineOptions> table("Engine");
    add_step_fields(table);
    add_cache_fields(table);
    add_speculation_fields(table);
    add_engine_fields(table);
    return table;
  }();
  return kTable;
}

std::vector<Problem> check_engine(const EngineOptions& options, std::string_view option) {
  std::vector<Problem> problems;
  const auto complain = [&](const char* key, std::string message) {
    problems.push_back({std::string(option) + " " + key, std::move(message)});
  };
  if (options.drafts > 0 && options.accepted.has_value() == options.acceptance.has_value()) {
    complain("drafts", "must stand with either accepted or acceptance");
  }
  if (options.drafts == 0 && (options.accepted || options.acceptance)) {
    complain(options.accepted ? "accepted" : "acceptance", "must stand with drafts above 0");
  }
  if (options.accepted && *options.accepted > options.drafts) {
    complain("accepted", "must be at most drafts, " + std::to_string(options.drafts) + ", is " +
                             std::to_string(*options.accepted));
  }
  if (options.draft_time > Duration() && options.drafter == Drafter::kNGram) {
    complain("draft-time", "must stand with drafter=draft-model or drafter=mtp");
  }
  const bool has_host_memory = options.host_memory > Bytes(0);
  if ((options.host_blocks > 0 || has_host_memory) && !options.prefix_cache) {
    complain(has_host_memory ? "host_memory" : "host_blocks", "must stand with prefix_cache=true");
  }
  if (options.host_blocks > 0 && options.host_memory > Bytes(0)) {
    complain("host_memory", "must not stand with host_blocks, which is the same");
  }
  return problems;
}

}  // namespace stepsim
