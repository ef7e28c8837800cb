#include "store/database.h"

#include <sqlite3.h>

#include <exception>
#include <new>
#include <utility>

#include "sim/base/error.h"
#include "traces/files/output_file.h"

namespace stepsim {
namespace {

constexpr int kMostBytesOfValue = 256 << 20;

}  // namespace

Database::Database(std::string path, Mode mode) : path_(std::move(path)) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX |
                    (mode == Mode::kWrite ? SQLITE_OPEN_CREATE : 0);
  // A name such as ":memory:" or "file:x?mode=ro" is one of a file, too.
  const std::string file = path_.starts_with('/') ? path_ : "./" + path_;
  const int code = sqlite3_open_v2(file.c_str(), &handle_, flags, nullptr);
  try {
    check(code);
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, kMostBytesOfValue);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
    if (mode == Mode::kRead) return;
    // The lock is held until the end, so two sweeps can't do the same work.
    execute(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; "
        "BEGIN EXCLUSIVE; COMMIT");
  } catch (...) {
    sqlite3_close_v2(handle_);
    throw;
  }
}

Database::~Database() {
  sqlite3_close_v2(handle_);
}

void Database::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) fail(code);
}

void Database::fail(int code) const {
  const std::string why = handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_);
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    case SQLITE_FULL:
    case SQLITE_IOERR:
      throw OutputError({path_, "can't be written: " + why});
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw ConfigError({{path_,
                          "is in use by another process, which must end first; several processes "
                          "write a store each (--shard), and `stepsim sweep merge` joins them"}});
    case SQLITE_NOTADB:
      throw ConfigError({{path_, "must be a store of stepsim sweep, is no SQLite file"}});
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      throw ConfigError({{path_, "can't be opened: " + why}});
    default:
      throw ConfigError({{path_, "is damaged: " + why}});
  }
}

void Database::execute(const std::string& sql) {
  check(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr));
}

std::int64_t Database::number(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.next() ? statement.whole(0) : 0;
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  database.check(
      sqlite3_prepare_v2(database.handle_, sql.c_str(), -1, &handle_, /*pzTail=*/nullptr));
}

Statement::~Statement() {
  sqlite3_finalize(handle_);
}

void Statement::bind(int parameter, std::string_view text) {
  database_.check(sqlite3_bind_text64(handle_, parameter, text.data(), text.size(), SQLITE_STATIC,
                                      SQLITE_UTF8));
}

void Statement::bind(int parameter, std::int64_t number) {
  database_.check(sqlite3_bind_int64(handle_, parameter, number));
}

void Statement::bind(int parameter, double number) {
  database_.check(sqlite3_bind_double(handle_, parameter, number));
}

void Statement::bind_nothing(int parameter) {
  database_.check(sqlite3_bind_null(handle_, parameter));
}

bool Statement::next() {
  const int code = sqlite3_step(handle_);
  database_.check(code);
  return code == SQLITE_ROW;
}

void Statement::run() {
  const int code = sqlite3_step(handle_);
  if (code != SQLITE_DONE && code != SQLITE_ROW) {
    try {
      database_.fail(code);
    } catch (...) {
      sqlite3_reset(handle_);
      throw;
    }
  }
  sqlite3_reset(handle_);
}

void Statement::require_type(int column, int type) const {
  if (sqlite3_column_type(handle_, column) == type) return;
  throw ConfigError({{database_.path(), "is damaged: a value has another type"}});
}

std::string Statement::text(int column) const {
  require_type(column, SQLITE_TEXT);
  const unsigned char* const text = sqlite3_column_text(handle_, column);
  if (text == nullptr) throw std::bad_alloc();
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return {reinterpret_cast<const char*>(text), size};
}

std::int64_t Statement::whole(int column) const {
  require_type(column, SQLITE_INTEGER);
  return sqlite3_column_int64(handle_, column);
}

double Statement::real(int column) const {
  require_type(column, SQLITE_FLOAT);
  return sqlite3_column_double(handle_, column);
}

bool Statement::is_nothing(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

Transaction::Transaction(Database& database) : database_(database) {
  database.execute("BEGIN IMMEDIATE");
}

// SQLite has undone it already after a full disk, and then this fails.
Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const std::exception&) {
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  is_open_ = false;
}

}  // namespace stepsim
