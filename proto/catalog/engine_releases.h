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
  std::string memory{};           // keys that hold where no release is named, too
  std::string shared_by_ranks{};  // with experts over data-parallel ranks
  std::string keys_of_ranks{};
};

// Returns the catalog's releases. Throws ConfigError with every problem of its files.
std::vector<EngineRelease> load_engine_releases();

// What the defaults of a release depend on.
struct EngineSetting {
  std::string chip;  // name in the catalog
  Bytes memory{};    // of a chip
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;

  bool divides_attention_by_request() const { return dp > 1 && ep > 1; }
};

// Returns the setting of a plan's keys: "tp=2,dp=4". A wrong number counts as 1.
EngineSetting setting_of(std::string_view plan, std::string chip, Bytes memory);

// Returns `text` with the keys of a release in place of it: "vllm@0.11,block=32" becomes
// "vllm,budget=8192,sequences=1024,...,block=32". "@0.11/offline" is another usage than server.
// Keys in the text replace those of the release. Adds a problem, named by `option`, and returns the
// text without the release, if there is no such one. A text without @ gets the keys of memory and
// of ranks that the last release of its engine has.
std::string with_release(std::string_view text, const std::string& option,
                         const EngineSetting& setting, std::vector<Problem>& problems);

}  // namespace stepsim
