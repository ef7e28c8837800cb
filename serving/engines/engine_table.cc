#include "serving/engines/engine_table.h"

#include <array>

#include "serving/engines/vllm.h"

namespace stepsim {
namespace {

constexpr std::string_view kVllmOptions[] = {"budget",
                                             "sequences",
                                             "block",
                                             "kv_blocks",
                                             "max_length",
                                             "prefix_cache",
                                             "policy",
                                             "chunked_prefill",
                                             "watermark",
                                             "long_prefill_threshold",
                                             "reserve_whole_sequence",
                                             "async",
                                             "host_time",
                                             "drafts",
                                             "accepted",
                                             "acceptance",
                                             "drafter",
                                             "draft_time"};

template <class Made>
std::unique_ptr<Engine> make(const EngineOptions&) {
  return std::make_unique<Made>();
}

const std::array<EngineRow, 1> kRows = {
    EngineRow{.name = "vllm",
              .summary = "running requests first, prefills in chunks beside decodes",
              .defaults = {},
              .options = kVllmOptions,
              .make = make<VllmEngine>},
};

}  // namespace

std::span<const EngineRow> engine_table() {
  return kRows;
}

const EngineRow& row_of(EngineName name) {
  return kRows[static_cast<std::size_t>(name)];
}

std::string_view name_of(EngineName name) {
  return row_of(name).name;
}

}  // namespace stepsim
