// The engines: a row each, with all that others ask about an engine. Nobody asks for its name but
// to print it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "serving/engines/engine.h"
#include "serving/engines/engine_options.h"
#include "sim/fields/field.h"

namespace stepsim {

// WaitingCaches are those of an engine whose requests generate in slots, each a cache of max_length
// tokens: the caches that are computed and wait for a slot.
struct WaitingCaches {
  std::int64_t most = 0;      // of a replica
  std::int64_t received = 0;  // of those, the ones that a decode replica takes from others
};

struct EngineRow {
  std::string_view name;
  std::string_view summary;
  EngineOptions defaults{};
  // The keys that it has beside kKeysOfAllEngines and its own: names of engine_fields.h.
  std::span<const std::string_view> keys{};
  // Adds the fields of OwnOptions that are this engine's.
  void (*add_own_fields)(FieldTable<EngineOptions>& table) = nullptr;

  std::unique_ptr<Engine> (*make)(const EngineOptions& options);
  // Whether blocks for the whole answer are taken at admission.
  bool (*reserves_answer)(const EngineOptions& options);
  // nullptr: requests hold what they have, there are no slots.
  WaitingCaches (*waiting_caches)(const EngineOptions& options) = nullptr;
  // Whether requests come into a batch that runs already, as decode replicas need it.
  bool joins_running = true;
};

// Answers of `reserves_answer`.
inline bool reserves_never(const EngineOptions&) {
  return false;
}
inline bool reserves_always(const EngineOptions&) {
  return true;
}

template <class Made>
std::unique_ptr<Engine> make_engine(const EngineOptions&) {
  return std::make_unique<Made>();
}

// Returns the defaults of engines that take room for whole answers: no prefix cache.
EngineOptions reserving_defaults(std::int64_t sequences);

std::span<const EngineRow> engine_table();
const EngineRow* find_engine(std::string_view name);  // nullptr: there is none
inline const EngineRow& default_engine() {
  return engine_table().front();
}

}  // namespace stepsim
