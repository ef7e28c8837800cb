// JsonFields reads the members of an object of a result. What is missing or of another type is a
// problem under its path, and reads as nothing: so all problems of a file come at once.
//
//   std::vector<Problem> problems;
//   const JsonFields fields(result, "", problems);
//   fields.number("step_time_s");                    // 18.2
//   fields.object("memory").number("peak_bytes");    // "memory.peak_bytes" where that is no number
//   throw_if_any(std::move(problems));

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/messages/json_value.h"
#include "sim/base/error.h"

namespace stepsim {

class JsonFields {
 public:
  // Both must outlive the object. `path`: of the object itself; empty for a whole file.
  JsonFields(const Json& object, std::string path, std::vector<Problem>& problems);

  bool has(std::string_view key) const;  // and is not null
  double number(std::string_view key) const;
  std::optional<double> number_if_given(std::string_view key) const;
  std::string text(std::string_view key) const;
  bool truth(std::string_view key) const;
  JsonFields object(std::string_view key) const;
  std::vector<JsonFields> objects(std::string_view key) const;      // a list of them
  std::vector<double> numbers(std::string_view key) const;          // a list of at least one
  std::vector<std::pair<std::string, double>> all_numbers() const;  // its members that are numbers

  const Json& json() const { return *object_; }
  std::string path_of(std::string_view key) const;

 private:
  const Json* find(std::string_view key) const;
  void refuse(std::string_view key, std::string_view accepted) const;

  const Json* object_;
  std::string path_;
  std::vector<Problem>* problems_;
};

}  // namespace stepsim
