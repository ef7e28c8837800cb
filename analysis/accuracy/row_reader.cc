#include "analysis/accuracy/row_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/row_fields.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostTokens = 1 << 27;
constexpr std::int64_t kMostRanks = 1 << 20;

// Numbers of ranks, also those of one kind of workers: "prefill_tp", "attention_dp".
std::int64_t most_of(std::string_view column) {
  constexpr std::array<std::string_view, 9> kRanks = {
      "tp", "cp", "pp", "dp", "ep", "virtual_stages", "chip_count", "chips", "chips_per_node"};
  const bool counts_ranks = std::ranges::any_of(kRanks, [column](std::string_view name) {
    const std::size_t before = column.size() - std::min(column.size(), name.size());
    return column.ends_with(name) && (before == 0 || column[before - 1] == '_');
  });
  return counts_ranks ? kMostRanks : kMostTokens;
}

// Reads "4" and "4.0", which programs make of whole numbers.
std::optional<std::int64_t> whole_count(std::string_view text) {
  const std::size_t point = std::min(text.find('.'), text.size());
  if (text.find_first_not_of(".0", point) != std::string_view::npos) return std::nullopt;
  return number_in<std::int64_t>(text.substr(0, point));
}

}  // namespace

std::optional<std::int64_t> RowReader::integer(std::string_view column) {
  if (is_blank(text(column))) return std::nullopt;
  const auto value = whole_count(text(column));
  if (!value) fail(no_value(table_, record_, column, "a whole number"));
  const std::int64_t most = most_of(column);
  if (!value || (*value >= 1 && *value <= most)) return value;
  fail(std::string(column) + " must be 1 to " + std::to_string(most) + ", is " +
       std::to_string(*value));
  return std::nullopt;
}

std::int64_t RowReader::need(std::string_view column) {
  const auto value = integer(column);
  if (!value) fail(std::string(column) + " is not given");
  return value.value_or(1);
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  constexpr std::int64_t kMostAfterKey = std::int64_t{1} << 40;
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + key.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) value = kMostAfterKey;
  const bool is_number = error == std::errc() || error == std::errc::result_out_of_range;
  return is_number ? std::optional(std::min(value, kMostAfterKey)) : std::nullopt;
}

}  // namespace stepsim
