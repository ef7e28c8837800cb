// Shared by the fuzz targets.

#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Throws std::logic_error, which no reader may throw.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// Returns the parts between the separators, at most so many.
inline std::vector<std::string> parts_of(std::string_view text, char separator, std::size_t most) {
  std::vector<std::string> parts;
  while (!text.empty() && parts.size() < most) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace stepsim
