// Engines of `stepsim serve` by release (catalog/engines): their defaults differ by version, by the
// memory of the chip, and by how they are used.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace stepsim {

struct EngineDefaults {
  std::string usage{};  // empty: any
  std::optional<Bytes> memory_from{};
  std::optional<Bytes> memory_below{};
  std::vector<std::string> chips{};  // parts of its name; empty: any
  std::vector<std::string> not_chips{};
  std::int64_t tp_from = 1;
  std::string keys{};
  // What kv_fraction leaves of the memory; unset: the keys say it.
  std::optional<Bytes> reserved{};
  Bytes reserved_per_chip{};
  Bytes reserved_at_least{};
};

struct EngineRelease {
  std::string name;    // "0.11"
  std::string engine;  // "vllm"
  std::string keys{};
  std::vector<EngineDefaults> defaults{};
};

// Returns the catalog's releases. Throws ConfigError with every problem of its files.
std::vector<EngineRelease> load_engine_releases();

// What the defaults of a release depend on.
struct EngineSetting {
  std::string chip;  // name in the catalog
  Bytes memory{};    // of a chip
  std::int64_t tp = 1;
  std::int64_t pp = 1;
};

// Returns `text` with the keys of a release in place of it: "vllm@0.11,block=32" becomes
// "vllm,budget=8192,sequences=1024,...,block=32". "@0.11/offline" is another usage than server.
// Keys in the text replace those of the release. Adds a problem, named by `option`, and returns the
// text without the release, if there is no such one. A text without @ is returned as it is.
std::string with_release(std::string_view text, const std::string& option,
                         const EngineSetting& setting, std::vector<Problem>& problems);

}  // namespace stepsim
