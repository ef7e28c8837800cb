// ReportText lays out the tables that stepsim prints: bold sections with a remark, lines without
// trailing blanks, and readable numbers. Every report is at most kReportWidth wide.
//
//   ReportText text(shows_color(STDOUT_FILENO));
//   text.section("Memory", "fits");
//   text.line("  {:<{}}{:>12}", "peak", kReportLabel, grouped(81559));
//   print(text.text());

#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stepsim {

inline constexpr std::size_t kReportWidth = 100;
inline constexpr std::size_t kReportLabel = 22;

enum class Paint : std::uint8_t { kBold, kDim, kGood, kBad, kBar };

// Returns the text with marks of its colour (sim/base/shown_text.h) if `color`, otherwise
// unchanged.
std::string painted(std::string_view text, Paint paint, bool color);

// Writes 1234567 as "1,234,567".
std::string grouped(std::int64_t number);
std::string grouped(double number);  // rounded to a whole number

class ReportText {
 public:
  explicit ReportText(bool color) : color_(color) {}

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    add_line(fmt::format(format, std::forward<Arguments>(arguments)...));
  }
  // Adds `words` in as many lines as they need, each indented by `indent` blanks.
  void wrapped(std::size_t indent, std::string_view words);
  void blank() { text_ += '\n'; }

  // Adds a blank line and the name, then `remark` in the column of the values.
  void section(std::string_view name, std::string_view remark = "");

  std::string paint(std::string_view text, Paint how) const { return painted(text, how, color_); }

  const std::string& text() const { return text_; }

 private:
  void add_line(std::string text);

  bool color_;
  std::string text_;
};

}  // namespace stepsim
