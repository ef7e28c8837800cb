#include "traces/json_text.h"

#include <fmt/format.h>

namespace stepsim {

std::string json_escaped(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      escaped += '\\';
      escaped += character;
    } else if (static_cast<unsigned char>(character) < 0x20) {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      escaped += character;
    }
  }
  return escaped;
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace stepsim
