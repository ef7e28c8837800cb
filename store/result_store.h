// ResultStore keeps the results of sweeps in an SQLite file (docs/sweep.md has its tables). What
// was put in is on the disk when put() returns, all of it or nothing, whenever the process is
// killed.
//
//   ResultStore store("s.sqlite", version());          // the one process that writes it
//   const std::int64_t sweep = store.sweep_of(description, 12);
//   store.put(sweep, {{.number = 0, .inputs = "{...}", .key = key}}, {{key, json, 0.3}});
//
// Not thread-safe. Errors are those of Database; a file that is no store, or holds results of
// another version, is a ConfigError.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/database.h"

namespace stepsim {

struct StoredResult {
  std::string key;      // of the experiment: key_of_experiment()
  std::string json;     // as `stepsim run --json` writes it
  double seconds = 0;   // that the run took
  std::string version;  // of the stepsim that ran it
};

// StoredPoint is one point of a sweep.
struct StoredPoint {
  std::int64_t number = 0;           // from 0, in the order of the sweep
  std::string inputs;                // JSON object: path to value
  std::optional<std::string> key{};  // of its result; unset: it can't run
  std::string problem{};             // why it can't run
};

struct StoredSweep {
  std::string description;  // JSON: what was asked for
  std::int64_t points = 0;  // of the whole sweep, also those of other shards
};

// Returns 32 hexadecimal digits that stand for the text of an experiment.
std::string key_of_experiment(std::string_view text);

class ResultStore {
 public:
  // Opens or makes the file for this process alone, or reads one that must be there.
  ResultStore(const std::string& path, std::string_view version,
              Database::Mode mode = Database::Mode::kWrite);

  // Returns the number of the sweep with that description, which is added if it is new.
  std::int64_t sweep_of(const std::string& description, std::int64_t points);

  // Puts in points, which replace those of the same number, and results. A result that is there
  // stays as it is.
  void put(std::int64_t sweep, std::span<const StoredPoint> points,
           std::span<const StoredResult> results);

  std::unordered_set<std::string> keys();  // of all results
  std::optional<StoredResult> result(const std::string& key);
  std::vector<StoredSweep> sweeps();                       // in the order in which they were added
  std::vector<StoredPoint> points(const StoredSweep& of);  // ascending

  const std::string& path() const { return database_.path(); }

 private:
  void create(std::string_view version);
  void check(std::string_view version);
  void check_tables();

  Database database_;
};

}  // namespace stepsim
