#include "cli/headroom_option.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "sim/base/field_text.h"

namespace stepsim {

void add_headroom_option(boost::program_options::options_description& options) {
  options.add_options()(
      "headroom", boost::program_options::value<std::string>()->value_name("SHARE|interval"),
      "what must stay free of a chip's memory: a share such as 0.1 or 10%, or as much as the upper "
      "end of the interval of the predicted peak asks for (default: interval)");
}

std::optional<Headroom> read_headroom(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.options.count("headroom") == 0) return std::nullopt;
  const std::string text = line.value("headroom");
  if (text == "interval") return Headroom{};
  const bool is_percent = text.ends_with('%');
  std::string_view digits = text;
  if (is_percent) digits.remove_suffix(1);
  const std::optional<double> number = number_in<double>(digits);
  const double share = number.value_or(-1) / (is_percent ? 100 : 1);
  if (share >= 0 && share < 1) return Headroom{.share = share};
  problems.push_back(
      {"--headroom",
       "must be a share of the memory, 0 to below 1 such as 0.1 or 10%, or interval; "
       "is \"" +
           shortened(text) + "\""});
  return Headroom{};
}

std::string text_of(const Headroom& headroom) {
  if (!headroom.share) return "the upper end of the interval";
  return fmt::format("{:.4g} % of the memory", 100 * *headroom.share);
}

}  // namespace stepsim
