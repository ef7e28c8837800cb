#include "traces/results/report_text.h"

#include <algorithm>
#include <cmath>

#include "sim/base/shown_text.h"

namespace stepsim {

std::string painted(std::string_view text, Paint paint, bool color) {
  return color ? stepsim::paint(text, static_cast<std::size_t>(paint)) : std::string(text);
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

void ReportText::wrapped(std::size_t indent, std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (word.empty()) continue;
    if (!text.empty() && indent + text.size() + 1 + word.size() > kReportWidth) {
      line("{:{}}{}", "", indent, text);
      text.clear();
    }
    if (!text.empty()) text += ' ';
    text += word;
  }
  if (!text.empty()) line("{:{}}{}", "", indent, text);
}

}  // namespace stepsim
