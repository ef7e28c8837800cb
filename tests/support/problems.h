// Comparing problems, which may come in any order.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

// "nodes: must be at least 1, is 0", sorted.
inline std::vector<std::string> lines_of(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  for (const Problem& problem : problems) lines.push_back(problem.field + ": " + problem.message);
  std::ranges::sort(lines);
  return lines;
}

inline void expect_problems(const std::vector<Problem>& found,
                            const std::vector<Problem>& expected) {
  EXPECT_EQ(lines_of(found), lines_of(expected));
}

}  // namespace stepsim
