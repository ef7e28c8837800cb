// Reads the fields of one link or flow of a network case, one by one, and reports problems.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/messages/json_value.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace stepsim {

// CaseProblems keeps the first thousand problems of a file, and their number.
class CaseProblems {
 public:
  void add(std::string field, std::string message);
  void add(std::vector<Problem> problems);

  // Throws ConfigError.
  void throw_if_any() &&;

 private:
  std::vector<Problem> problems_;
  std::size_t count_ = 0;
};

// Every method that returns nullopt has reported why, or the field is optional and absent.
class CaseFields {
 public:
  // Reads element `index` of `list` ("links" or "flows"). The arguments must outlive this.
  CaseFields(const std::string& list, std::size_t index, const Json& object,
             CaseProblems& problems);

  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }

  void complain(const std::string& key, const std::string& message);

  std::optional<std::string> id(const char* key);
  std::optional<std::string> id_of(const std::string& key, const Json& value);
  std::optional<double> number(const char* key);  // finite
  std::optional<double> positive(const char* key);
  std::optional<std::int64_t> whole(const char* key);  // not negative; 1e9 is whole too
  // Reads `picoseconds` if given, otherwise `seconds`. The result is exact.
  std::optional<Duration> duration(const char* seconds, const char* picoseconds);
  const Json* list(const char* key);  // nullptr if it is no list

 private:
  const Json* find(const char* key);

  const std::string& list_;
  std::size_t index_;
  const Json& object_;
  CaseProblems& problems_;
};

}  // namespace stepsim
