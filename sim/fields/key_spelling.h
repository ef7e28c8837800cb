// Keys have underscores in files and dashes on the command line; both are read everywhere.
//
//   with_underscores("global-batch")  // "global_batch"
//   with_dashes("global_batch")       // "global-batch"

#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace stepsim {

inline std::string with_underscores(std::string_view key) {
  std::string text(key);
  std::ranges::replace(text, '-', '_');
  return text;
}

inline std::string with_dashes(std::string_view key) {
  std::string text(key);
  std::ranges::replace(text, '_', '-');
  return text;
}

}  // namespace stepsim
