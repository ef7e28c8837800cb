#include "traces/report_text.h"

#include <array>
#include <cmath>

namespace stepsim {

std::string painted(std::string_view text, Paint paint, bool color) {
  static constexpr std::array<std::string_view, 5> kCodes{"1", "2", "1;32", "1;31", "36"};
  if (!color) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(paint)], text);
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = text.size(); i > first + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string grouped(double number) {
  return grouped(static_cast<std::int64_t>(std::llround(number)));
}

void ReportText::section(std::string_view name, std::string_view remark) {
  blank();
  const std::string gap(name.size() < kReportLabel + 2 ? kReportLabel + 2 - name.size() : 2, ' ');
  line("{}{}{}", paint(name, Paint::kBold), remark.empty() ? "" : gap, remark);
}

void ReportText::add_line(std::string text) {
  while (text.ends_with(' ')) text.pop_back();
  text_ += text + '\n';
}

}  // namespace stepsim
