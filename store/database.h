// Database is an open SQLite file and its statements, with the errors of this program: what a
// person can mend is a ConfigError under the name of the file, what the disk refuses an
// OutputError.
//
//   Database database("s.sqlite", Database::Mode::kWrite);
//   Statement insert(database, "INSERT INTO results(key, seconds) VALUES (?, ?)");
//   insert.bind(1, key);
//   insert.bind(2, 0.5);
//   insert.run();
//
// Not thread-safe.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace stepsim {

class Database {
 public:
  enum class Mode : std::uint8_t {
    kRead,   // the file must be there; nothing is put in, but what a killed process left is undone
    kWrite,  // it is made if it is not there; nobody else can use it meanwhile
  };

  Database(std::string path, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs statements that return nothing.
  void execute(const std::string& sql);
  // Returns the number that a statement such as "PRAGMA user_version" returns.
  std::int64_t number(const std::string& sql);

  const std::string& path() const { return path_; }

 private:
  friend class Statement;
  [[noreturn]] void fail(int code) const;
  void check(int code) const;

  std::string path_;
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Parameters count from 1. The text must live until the next run().
  void bind(int parameter, std::string_view text);
  void bind(int parameter, std::int64_t number);
  void bind(int parameter, double number);
  void bind_nothing(int parameter);

  bool next();  // moves to the next row; false: there is none
  void run();   // for statements without rows; then it can be bound anew

  // Columns of the row count from 0. A column of another type is a ConfigError: the file is
  // damaged.
  std::string text(int column) const;
  std::int64_t whole(int column) const;
  double real(int column) const;
  bool is_nothing(int column) const;

 private:
  void require_type(int column, int type) const;

  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

// A transaction that was not committed when it ends did nothing.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace stepsim
