#include "sim/fields/quantity_field.h"

#include <algorithm>

#include "sim/base/small_letters.h"

namespace stepsim {
namespace {

// Correct spellings of units, to be matched with their letters in any case. "gbps" is taken for
// bits, the usual meaning.
constexpr std::string_view kUnits[] = {
    "B",    "kB",   "MB",   "GB",    "TB",     "KiB",    "MiB",    "GiB",   "TiB", "s",
    "ms",   "us",   "ns",   "bps",   "kbps",   "Mbps",   "Gbps",   "Tbps",  "B/s", "kB/s",
    "MB/s", "GB/s", "TB/s", "FLOPS", "MFLOPS", "GFLOPS", "TFLOPS", "PFLOPS"};

bool same_but_for_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, small_letter, small_letter);
}

}  // namespace

std::string hint_for_quantity(std::string_view text, bool (*is_read)(std::string_view)) {
  std::size_t end = 0;
  while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) {
    ++end;
  }
  const std::string number(text.substr(0, end));
  std::string_view unit = text.substr(end);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const std::string_view known : kUnits) {
    const bool rate_is_missing = known.ends_with("/s") && known.substr(0, known.size() - 2) == unit;
    if (!same_but_for_case(known, unit) && !rate_is_missing) continue;
    const std::string meant = number + std::string(known);
    if (is_read(meant)) return "; did you mean " + meant + "?";
  }
  return "";
}

}  // namespace stepsim
