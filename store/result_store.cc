#include "store/result_store.h"

#include <fmt/format.h>

#include <array>

#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr std::int64_t kApplication = 0x53545053;  // "STPS"
constexpr std::int64_t kStoreVersion = 1;

struct StoreTable {
  const char* name;
  const char* columns;
};
constexpr std::array<StoreTable, 4> kTables = {{
    {"stepsim", "version TEXT NOT NULL"},
    {"sweeps", "id INTEGER PRIMARY KEY, description TEXT NOT NULL UNIQUE, points INTEGER NOT NULL"},
    {"points",
     "sweep INTEGER NOT NULL, number INTEGER NOT NULL, inputs TEXT NOT NULL, key TEXT, "
     "problem TEXT NOT NULL, PRIMARY KEY (sweep, number)"},
    {"results",
     "key TEXT PRIMARY KEY, json TEXT NOT NULL, seconds REAL NOT NULL, version TEXT NOT NULL"},
}};

std::string create_table(const StoreTable& table) {
  return fmt::format("CREATE TABLE {} ({})", table.name, table.columns);
}

// FNV-1a of 64 bits, from a start of one's own.
std::uint64_t fnv(std::string_view text, std::uint64_t hash) {
  for (const char byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string key_of_experiment(std::string_view text) {
  const std::uint64_t first = fnv(text, 0xcbf29ce484222325);
  // The second half begins where the first ended, so that the two are not one function.
  return fmt::format("{:016x}{:016x}", first, fnv(text, first ^ 0x9e3779b97f4a7c15));
}

ResultStore::ResultStore(const std::string& path, std::string_view version, Database::Mode mode)
    : database_(path, mode) {
  const bool is_new = database_.number("SELECT count(*) FROM sqlite_master") == 0 &&
                      database_.number("PRAGMA application_id") == 0;
  if (is_new && mode == Database::Mode::kWrite) create(version);
  check(version);
}

void ResultStore::create(std::string_view version) {
  Transaction transaction(database_);
  database_.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                kApplication, kStoreVersion));
  for (const StoreTable& table : kTables) database_.execute(create_table(table));
  Statement insert(database_, "INSERT INTO stepsim VALUES (?)");
  insert.bind(1, version);
  insert.run();
  transaction.commit();
}

void ResultStore::check(std::string_view version) {
  const auto refuse = [this](std::string message) {
    throw ConfigError({{path(), std::move(message)}});
  };
  if (const auto application = database_.number("PRAGMA application_id");
      application != kApplication) {
    refuse(
        fmt::format("must be a store of stepsim sweep (application_id {}), is a file of "
                    "another program (application_id {})",
                    kApplication, application));
  }
  if (const auto format = database_.number("PRAGMA user_version"); format != kStoreVersion) {
    refuse(fmt::format("must be a store of version {}, is of version {}", kStoreVersion, format));
  }
  check_tables();
  Statement select(database_, "SELECT version FROM stepsim");
  const std::string written = select.next() ? select.text(0) : "";
  if (written != version) {
    refuse(
        fmt::format("has results of stepsim {}, and this is stepsim {}: results of two versions "
                    "do not compare; give another file",
                    written, version));
  }
}

// A view or a trigger in place of a table could do anything.
void ResultStore::check_tables() {
  for (const StoreTable& table : kTables) {
    Statement select(database_, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?");
    select.bind(1, std::string_view(table.name));
    if (!select.next() || select.is_nothing(0) || select.text(0) != create_table(table)) {
      throw ConfigError({{path(), fmt::format("is damaged: it has no table {}", table.name)}});
    }
  }
  const std::int64_t others =
      database_.number("SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')");
  if (others > 0) throw ConfigError({{path(), "is damaged: it has views or triggers"}});
}

std::int64_t ResultStore::sweep_of(const std::string& description, std::int64_t points) {
  Statement insert(database_,
                   "INSERT INTO sweeps(description, points) VALUES (?, ?) "
                   "ON CONFLICT (description) DO UPDATE SET points = excluded.points");
  insert.bind(1, description);
  insert.bind(2, points);
  insert.run();
  Statement select(database_, "SELECT id FROM sweeps WHERE description = ?");
  select.bind(1, description);
  select.next();
  return select.whole(0);
}

void ResultStore::put(std::int64_t sweep, std::span<const StoredPoint> points,
                      std::span<const StoredResult> results) {
  Transaction transaction(database_);
  Statement add_result(database_, "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)");
  for (const StoredResult& result : results) {
    add_result.bind(1, result.key);
    add_result.bind(2, result.json);
    add_result.bind(3, result.seconds);
    add_result.bind(4, result.version);
    add_result.run();
  }
  Statement add_point(database_, "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?)");
  for (const StoredPoint& point : points) {
    add_point.bind(1, sweep);
    add_point.bind(2, point.number);
    add_point.bind(3, point.inputs);
    if (point.key) {
      add_point.bind(4, *point.key);
    } else {
      add_point.bind_nothing(4);
    }
    add_point.bind(5, point.problem);
    add_point.run();
  }
  transaction.commit();
}

std::unordered_set<std::string> ResultStore::keys() {
  std::unordered_set<std::string> keys;
  Statement select(database_, "SELECT key FROM results");
  while (select.next()) keys.insert(select.text(0));
  return keys;
}

std::optional<StoredResult> ResultStore::result(const std::string& key) {
  Statement select(database_, "SELECT json, seconds, version FROM results WHERE key = ?");
  select.bind(1, key);
  if (!select.next()) return std::nullopt;
  return StoredResult{key, select.text(0), select.real(1), select.text(2)};
}

std::vector<StoredSweep> ResultStore::sweeps() {
  std::vector<StoredSweep> sweeps;
  Statement select(database_, "SELECT description, points FROM sweeps ORDER BY id");
  while (select.next()) sweeps.push_back({select.text(0), select.whole(1)});
  return sweeps;
}

std::vector<StoredPoint> ResultStore::points(const StoredSweep& of) {
  std::vector<StoredPoint> points;
  Statement select(database_,
                   "SELECT number, inputs, points.key, problem FROM points JOIN sweeps ON "
                   "sweep = sweeps.id WHERE description = ? ORDER BY number");
  select.bind(1, of.description);
  while (select.next()) {
    StoredPoint point{.number = select.whole(0), .inputs = select.text(1)};
    if (!select.is_nothing(2)) point.key = select.text(2);
    point.problem = select.text(3);
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace stepsim
