// ProblemList collects the problems of an experiment while it is loaded, so that all can be
// reported at once. A field is reported once: the first problem found is nearest to the cause (a
// size that could not be read is not also "must be positive, is 0").

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

class ProblemList {
 public:
  void add(std::string field, std::string message);

  // Adds the problems whose field has not been reported yet.
  void add(std::vector<Problem> problems);

  // Drops later problems of `field`, because it has been reported under another name, such as its
  // line in the file.
  void mark_reported(std::string_view field) { reported_.emplace(field); }

  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  const std::vector<Problem>& all() const { return problems_; }

 private:
  std::vector<Problem> problems_;
  std::set<std::string, std::less<>> reported_;
};

}  // namespace stepsim
