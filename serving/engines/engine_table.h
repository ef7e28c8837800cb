// The engines: a row each, with what it is, its defaults and the options that it has.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "serving/engines/engine.h"
#include "serving/engines/engine_options.h"

namespace stepsim {

enum class EngineName { kVllm, kSglang, kTrtllm, kOrca, kSarathi, kStatic, kJetstream };
inline constexpr std::size_t kEngineNames = 7;

struct EngineRow {
  std::string_view name;
  std::string_view summary;
  EngineOptions defaults;
  std::span<const std::string_view> options;  // names of engine_fields.h
  // Whether blocks for the whole answer are taken at admission.
  bool (*reserves_answer)(const EngineOptions& options);
  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
  // Of engines whose requests generate in slots, each a cache of max_length tokens: how many such
  // caches there are beside the slots. nullptr: requests hold what they have.
  std::int64_t (*caches_without_slot)(const EngineOptions& options) = nullptr;
};

// In the order of the enumerators.
std::span<const EngineRow> engine_table();
const EngineRow& row_of(EngineName name);
std::string_view name_of(EngineName name);

}  // namespace stepsim
