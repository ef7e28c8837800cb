#include "sim/base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/shown_text.h"

namespace stepsim {

std::string json_escaped(std::string_view text) {
  const auto is_plain = [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  };
  if (std::ranges::all_of(text, is_plain)) return std::string(text);
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
  return json_shown(std::move(escaped));
}

std::string json_quoted(std::string_view text) {
  return '"' + json_escaped(text) + '"';
}

std::string json_list(std::span<const std::string> values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string json_lines(std::span<const std::string> values, int blanks) {
  if (values.empty()) return "[]";
  const std::string between = fmt::format(",\n{:{}}", "", blanks);
  return fmt::format("[{}{}\n{:{}}]", std::string_view(between).substr(1),
                     fmt::join(values, between), "", blanks - 2);
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace stepsim
