#include "serving/engines/engine_table.h"

#include <array>

#include "serving/engines/jetstream.h"
#include "serving/engines/orca.h"
#include "serving/engines/sarathi.h"
#include "serving/engines/sglang.h"
#include "serving/engines/static_batch.h"
#include "serving/engines/trtllm.h"
#include "serving/engines/vllm.h"

namespace stepsim {
namespace {

constexpr std::string_view kVllmOptions[] = {"budget",          "sequences",
                                             "chunked_prefill", "long_prefill_threshold",
                                             "max_length",      "policy",
                                             "async",           "host_time",
                                             "front_time",      "block",
                                             "kv_blocks",       "kv_fraction",
                                             "prefix_cache",    "reserve_whole_sequence",
                                             "watermark",       "drafts",
                                             "accepted",        "acceptance",
                                             "drafter",         "draft_time",
                                             "host_blocks",     "host_memory"};
constexpr std::string_view kSglangOptions[] = {
    "sequences",   "max_length",  "policy",           "host_time",    "front_time",
    "block",       "kv_blocks",   "kv_fraction",      "prefix_cache", "drafts",
    "accepted",    "acceptance",  "drafter",          "draft_time",   "chunk",
    "max_prefill", "mixed_chunk", "conservativeness", "host_blocks",  "host_memory"};
constexpr std::string_view kTrtllmOptions[] = {
    "budget",       "sequences",  "chunked_prefill", "max_length", "policy",
    "host_time",    "front_time", "block",           "kv_blocks",  "kv_fraction",
    "prefix_cache", "drafts",     "accepted",        "acceptance", "drafter",
    "draft_time",   "capacity",   "host_blocks",     "host_memory"};
constexpr std::string_view kSarathiOptions[] = {"budget",    "sequences",   "max_length",
                                                "host_time", "front_time",  "block",
                                                "kv_blocks", "kv_fraction", "watermark"};
constexpr std::string_view kSimpleOptions[] = {
    "sequences", "max_length", "host_time", "front_time", "block", "kv_blocks", "kv_fraction"};

constexpr std::string_view kJetstreamOptions[] = {
    "sequences", "max_length",  "host_time",        "front_time",       "block",
    "kv_blocks", "kv_fraction", "transfer_backlog", "generate_backlog", "pads_prompts"};

template <class Made>
std::unique_ptr<Engine> make(const EngineOptions&) {
  return std::make_unique<Made>();
}

bool never(const EngineOptions&) {
  return false;
}
bool always(const EngineOptions&) {
  return true;
}
bool without_eviction(const EngineOptions& options) {
  return options.capacity == CapacityPolicy::kNoEvict;
}

EngineOptions sglang_defaults() {
  EngineOptions options;
  options.sequences = 4096;
  options.block = 1;
  return options;
}

EngineOptions trtllm_defaults() {
  EngineOptions options;
  options.sequences = 2048;
  options.block = 32;
  options.chunked_prefill = false;
  return options;
}

EngineOptions sarathi_defaults() {
  EngineOptions options;
  options.budget = 512;
  options.sequences = 128;
  options.prefix_cache = false;
  options.watermark = 0.01;
  return options;
}

EngineOptions reserving_defaults(std::int64_t sequences) {
  EngineOptions options;
  options.sequences = sequences;
  options.block = 1;
  options.prefix_cache = false;
  return options;
}

EngineOptions jetstream_defaults() {
  EngineOptions options = reserving_defaults(96);
  options.transfer_backlog = 1;
  options.generate_backlog = 1;
  return options;
}

std::array<EngineRow, kEngineNames> make_rows() {
  return {
      EngineRow{.name = "vllm",
                .summary = "vLLM v1: running requests first, chunks of prompts beside decodes",
                .defaults = {},
                .options = kVllmOptions,
                .reserves_answer = never,
                .make = make<VllmEngine>},
      EngineRow{.name = "sglang",
                .summary = "SGLang: prefills first and alone, room kept for a share of answers",
                .defaults = sglang_defaults(),
                .options = kSglangOptions,
                .reserves_answer = never,
                .make = [](const EngineOptions& options) -> std::unique_ptr<Engine> {
                  return std::make_unique<SglangEngine>(options);
                }},
      EngineRow{.name = "trtllm",
                .summary = "TensorRT-LLM: decodes first, whole prompts behind them",
                .defaults = trtllm_defaults(),
                .options = kTrtllmOptions,
                .reserves_answer = without_eviction,
                .make = make<TrtllmEngine>},
      EngineRow{.name = "orca",
                .summary = "Orca: a batch changes at every step; room for whole answers",
                .defaults = reserving_defaults(256),
                .options = kSimpleOptions,
                .reserves_answer = always,
                .make = make<OrcaEngine>},
      EngineRow{.name = "sarathi",
                .summary = "Sarathi-Serve: decodes first, chunks up to a small budget",
                .defaults = sarathi_defaults(),
                .options = kSarathiOptions,
                .reserves_answer = never,
                .make = make<SarathiEngine>},
      EngineRow{.name = "static",
                .summary = "static batches, which run until their longest answer is complete",
                .defaults = reserving_defaults(32),
                .options = kSimpleOptions,
                .reserves_answer = always,
                .make = make<StaticEngine>},
      EngineRow{.name = "jetstream",
                .summary = "JetStream: whole prompts one by one, backlogs, slots that generate",
                .defaults = jetstream_defaults(),
                .options = kJetstreamOptions,
                .reserves_answer = always,
                .make = make<JetstreamEngine>,
                .caches_without_slot = JetstreamEngine::caches_without_slot},
  };
}

}  // namespace

std::span<const EngineRow> engine_table() {
  static const std::array<EngineRow, kEngineNames> kRows = make_rows();
  return kRows;
}

const EngineRow& row_of(EngineName name) {
  return engine_table()[static_cast<std::size_t>(name)];
}

std::string_view name_of(EngineName name) {
  return row_of(name).name;
}

}  // namespace stepsim
