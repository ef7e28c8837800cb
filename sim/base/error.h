// ConfigError says that the user asked for something impossible. It is thrown only while an
// experiment is loaded and built, never while it runs. main() prints it and exits with status 2.

#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Problem is one wrong field: its path and what is wrong, in the user's own words. The message
// repeats the given value and says what would be accepted.
struct Problem {
  std::string field;    // "cluster.dgx_superpod.nodes"
  std::string message;  // "must be at least 1, is 0"

  friend bool operator==(const Problem&, const Problem&) = default;
};

class ConfigError : public std::runtime_error {
 public:
  // REQUIRES: problems is not empty.
  explicit ConfigError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// Returns the same problems with `prefix` and a dot before each field.
std::vector<Problem> under(std::string_view prefix, std::vector<Problem> problems);

// Throws ConfigError unless `problems` is empty.
void throw_if_any(std::vector<Problem> problems);

}  // namespace stepsim
