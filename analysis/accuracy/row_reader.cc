#include "analysis/accuracy/row_reader.h"

#include <charconv>
#include <system_error>

namespace stepsim {

std::int64_t RowReader::need(std::string_view column) {
  const auto value = integer(column);
  if (!value) fail(std::string(column) + " is not given");
  return value.value_or(1);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + key.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace stepsim
