#include "cli/help/moved_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "sim/base/shown_text.h"

namespace stepsim {

void say_moved_keys(const std::string& file, const std::vector<std::string>& moved) {
  if (moved.empty()) return;
  fmt::print(stderr, "stepsim: {} is of 0.1, and is read until 2.0: {}\n", shown_text(file),
             fmt::join(moved, ", "));
}

}  // namespace stepsim
