#include "traces/pictures/plot_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "sim/base/palette.h"
#include "sim/base/xml_text.h"

namespace stepsim {
namespace {

constexpr double kWidth = 760;
constexpr double kLeft = 92;
constexpr double kRight = 24;
constexpr double kTop = 64;
constexpr double kInnerHeight = 330;
constexpr double kLegendLine = 19;
constexpr double kSmallBar = 12;  // higher ones can be read off the axis
constexpr double kInnerWidth = kWidth - kLeft - kRight;
constexpr double kMinorGrid = 0.7;  // of the way from a line to the paper

bool has_prefixes(std::string_view unit) {
  return unit == "B" || unit == "s" || unit == "B/s" || unit == "FLOP" || unit == "FLOP/s";
}

// Writes 1500 B as "1.5 kB", 2e-05 s as "20 us", and 100000 without a unit as "100,000".
std::string tick_text(double value, std::string_view unit) {
  if (value == 0) return "0";
  if (has_prefixes(unit)) {
    constexpr std::array<std::string_view, 11> kPrefixes = {"p", "n", "u", "m", "", "k",
                                                            "M", "G", "T", "P", "E"};
    const double thousands = std::floor(std::log10(std::abs(value)) / 3 + 1e-9);
    const int index = std::clamp(static_cast<int>(thousands) + 4, 0, 10);
    return fmt::format("{:.4g} {}{}", value / std::pow(1000.0, index - 4),
                       kPrefixes[static_cast<std::size_t>(index)], unit);
  }
  if (std::abs(value) >= 1e7 || std::abs(value) < 1e-3) return fmt::format("{:.3g}", value);
  std::string digits = fmt::format("{:.10g}", std::abs(value));
  const std::size_t point = std::min(digits.find('.'), digits.size());
  for (std::size_t i = point; i > 3; i -= 3) digits.insert(i - 3, ",");
  return (value < 0 ? "-" : "") + digits;
}

// Scale maps values of an axis to pixels.
struct Scale {
  bool log = false;
  double low = 0;
  double high = 1;
  double from = 0;  // pixel of `low`
  double to = 1;
  std::vector<double> ticks{};
  std::vector<double> minor_ticks{};

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double at(double value) const {
    const double share =
        log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
};

void set_linear_ticks(Scale& scale) {
  const double rough = (scale.high - scale.low) / 6;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  scale.low = step * std::floor(scale.low / step + 1e-9);
  scale.high = step * std::ceil(scale.high / step - 1e-9);
  const double steps = std::round((scale.high - scale.low) / step);
  for (double i = 0; i <= steps; ++i) scale.ticks.push_back(scale.low + i * step);
}

void set_log_ticks(Scale& scale) {
  const double decades = std::log10(scale.high / scale.low);
  const int first = static_cast<int>(std::floor(std::log10(scale.low) - 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(scale.high) + 1e-9));
  const int every = decades > 8 ? 2 : 1;
  for (int power = first; power <= last; ++power) {
    for (int digit = 1; digit < 10; ++digit) {
      const double value = digit * std::pow(10.0, power);
      if (value < scale.low * (1 - 1e-9) || value > scale.high * (1 + 1e-9)) continue;
      const bool is_round = digit == 1 && power % every == 0;
      const bool is_needed = decades < 2.2 && (digit == 2 || digit == 5);
      const bool is_only_choice = decades < 0.7;
      (is_round || is_needed || is_only_choice ? scale.ticks : scale.minor_ticks).push_back(value);
    }
  }
}

Scale make_scale(const Plot& plot, bool horizontal) {
  const PlotAxis& axis = horizontal ? plot.x : plot.y;
  Scale scale{.log = axis.log,
              .low = std::numeric_limits<double>::infinity(),
              .high = -std::numeric_limits<double>::infinity()};
  bool has_bars = false;
  for (const PlotCurve& curve : plot.curves) {
    has_bars = has_bars || curve.mark == PlotMark::kBars;
    for (const PlotPoint& point : curve.points) {
      const double value = horizontal ? point.x : point.y;
      if (!scale.shows(value)) continue;
      scale.low = std::min(scale.low, value);
      scale.high = std::max(scale.high, value);
    }
  }
  if (scale.low > scale.high) scale.low = scale.log ? 0.1 : 0, scale.high = 1;
  if (scale.log) {
    const double margin = std::max(1.08, std::pow(scale.high / scale.low, 0.03));
    scale.low /= margin;
    scale.high *= margin;
    if (axis.ticks.empty()) set_log_ticks(scale);
  } else {
    // A linear axis of quantities starts at 0 if that wastes little space.
    if (!horizontal && scale.low > 0 && (has_bars || scale.low < 0.6 * scale.high)) scale.low = 0;
    if (scale.low == scale.high) scale.high = scale.low + 1;
    if (horizontal && has_bars) scale.low -= 0.6, scale.high += 0.6;
    if (axis.ticks.empty()) set_linear_ticks(scale);
  }
  for (const double tick : axis.ticks) {
    if (tick >= scale.low && tick <= scale.high) scale.ticks.push_back(tick);
  }
  scale.from = horizontal ? kLeft : kTop + kInnerHeight;
  scale.to = horizontal ? kLeft + kInnerWidth : kTop;
  return scale;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                     anchor, more, xml_escaped(text));
}

std::string line_between(double x1, double y1, double x2, double y2, std::string_view color) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, color);
}

std::string axis_title(const PlotAxis& axis) {
  if (axis.unit.empty() || has_prefixes(axis.unit)) return axis.label;
  return axis.label + " [" + axis.unit + "]";
}

std::string axes(const Plot& plot, const Scale& x, const Scale& y) {
  std::string text;
  const std::string_view grid = neutral("line");
  const std::string_view edge = neutral("faint");
  const std::string minor = mixed(grid, neutral("paper"), kMinorGrid);
  for (const double tick : x.minor_ticks) {
    text += line_between(x.at(tick), y.from, x.at(tick), y.to, minor);
  }
  for (const double tick : y.minor_ticks) {
    text += line_between(x.from, y.at(tick), x.to, y.at(tick), minor);
  }
  for (const double tick : x.ticks) {
    text += line_between(x.at(tick), y.from + 4, x.at(tick), y.to, grid);
    text += text_at(x.at(tick), y.from + 19, "middle", tick_text(tick, plot.x.unit));
  }
  for (const double tick : y.ticks) {
    text += line_between(x.from - 4, y.at(tick), x.to, y.at(tick), grid);
    text += text_at(x.from - 8, y.at(tick) + 4, "end", tick_text(tick, plot.y.unit));
  }
  text += line_between(x.from, y.from, x.to, y.from, edge);
  text += line_between(x.from, y.from, x.from, y.to, edge);
  text += text_at((x.from + x.to) / 2, y.from + 40, "middle", axis_title(plot.x));
  // The axis label stands beside the longest label of a tick, at 6.6 pixels per letter.
  std::size_t letters = 0;
  for (const double tick : y.ticks) {
    letters = std::max(letters, tick_text(tick, plot.y.unit).size());
  }
  const double left = std::max(16.0, x.from - 20 - 6.6 * static_cast<double>(letters));
  const double middle = (y.from + y.to) / 2;
  text += text_at(left, middle, "middle", axis_title(plot.y),
                  fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", left, middle));
  return text;
}

// How a curve is drawn: the number of its colour, and how many others before it have that colour.
struct CurveStyle {
  std::size_t color = 0;
  std::size_t round = 0;

  std::string_view stroke() const { return series_colour(color).light; }
  std::string_view dashes() const {
    constexpr std::array<std::string_view, 4> kDashes = {"", " stroke-dasharray=\"8 3\"",
                                                         " stroke-dasharray=\"2 3\"",
                                                         " stroke-dasharray=\"9 3 2 3\""};
    return kDashes[round % kDashes.size()];
  }
};

// Each colour has a shape, another one the second time, so that points in one place can be
// distinguished, in grey too.
std::string marker(double x, double y, const CurveStyle& curve) {
  const std::string style =
      fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", curve.stroke());
  const auto polygon = [&](std::initializer_list<std::pair<double, double>> corners) {
    std::string points;
    for (const auto& [right, down] : corners) {
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x + right, y + down);
    }
    return fmt::format("<polygon points=\"{}\" {}", points, style);
  };
  switch ((curve.color + curve.round) % 4) {
    case 1:
      return polygon({{-4, -4}, {4, -4}, {4, 4}, {-4, 4}});
    case 2:
      return polygon({{0, -6}, {6, 0}, {0, 6}, {-6, 0}});
    case 3:
      return polygon({{0, -5}, {5, 4}, {-5, 4}});
    default:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" {}", x, y, style);
  }
}

std::string bars_of(const PlotCurve& curve, const Scale& x, const Scale& y, std::string_view color,
                    std::string_view unit, std::size_t number, std::size_t of) {
  // The bars of one x share eight tenths of the distance to the next x.
  const double slot = 0.8 * (x.at(1) - x.at(0)) / static_cast<double>(of);
  std::string text;
  for (const PlotPoint& point : curve.points) {
    if (!x.shows(point.x) || !y.shows(point.y)) continue;
    const double center =
        x.at(point.x) + slot * (static_cast<double>(number) - (static_cast<double>(of) - 1) / 2);
    const double top = y.at(point.y);
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
        center - 0.46 * slot, top, 0.92 * slot, y.from - top, color);
    if (y.from - top < kSmallBar) {
      text += text_at(center, top - 4, "middle", tick_text(point.y, unit), " font-size=\"10\"");
    }
  }
  return text;
}

std::string curve_text(const PlotCurve& curve, const Scale& x, const Scale& y,
                       const CurveStyle& style) {
  std::string path;
  std::string markers;
  bool draws = false;
  for (const PlotPoint& point : curve.points) {
    if (!x.shows(point.x) || !y.shows(point.y)) {
      draws = false;
      continue;
    }
    path += fmt::format("{}{:.1f},{:.1f} ", draws ? "L" : "M", x.at(point.x), y.at(point.y));
    draws = true;
    markers += marker(x.at(point.x), y.at(point.y), style);
  }
  std::string text;
  if (curve.mark != PlotMark::kPoints) {
    text += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", path,
                        style.stroke(), style.dashes());
  }
  return curve.mark == PlotMark::kLine ? text : text + markers;
}

// Curves whose labels are equal up to a colon share a colour. Joined points of one colour differ by
// their dashes and shapes.
std::vector<CurveStyle> styles_of(const Plot& plot) {
  std::vector<CurveStyle> styles;
  std::map<std::size_t, std::size_t> joined;  // by colour
  std::vector<std::string> names;
  for (const PlotCurve& curve : plot.curves) {
    const std::size_t colon = curve.label.find(':');
    const std::string name =
        colon == std::string::npos ? curve.label + ":" : curve.label.substr(0, colon);
    const auto found = std::ranges::find(names, name);
    const auto index = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    const std::size_t color = index % kSeriesColours;
    const bool is_joined = curve.mark == PlotMark::kLineAndPoints;
    styles.push_back({color, is_joined ? joined[color]++ : 0});
  }
  return styles;
}

// Two columns of labels that fit in half the width, at 6.6 pixels per letter.
std::size_t legend_columns(const Plot& plot) {
  const auto fits = [](const PlotCurve& curve) {
    return 34 + 6.6 * static_cast<double>(curve.label.size()) <= kInnerWidth / 2 - 8;
  };
  return plot.curves.size() > 2 && std::ranges::all_of(plot.curves, fits) ? 2 : 1;
}

std::size_t legend_rows(const Plot& plot) {
  const std::size_t columns = legend_columns(plot);
  return (plot.curves.size() + columns - 1) / columns;
}

std::string legend(const Plot& plot, const std::vector<CurveStyle>& styles) {
  std::string text;
  const std::size_t rows = legend_rows(plot);
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const PlotCurve& curve = plot.curves[i];
    const double x = kLeft + (i < rows ? 0 : kInnerWidth / 2);
    const double y = kTop + kInnerHeight + 66 + kLegendLine * static_cast<double>(i % rows);
    if (curve.mark == PlotMark::kBars) {
      text +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"26\" height=\"10\" fill=\"{}\"/>\n",
                      x, y - 9, styles[i].stroke());
    } else if (curve.mark != PlotMark::kPoints) {
      text += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
          "stroke-width=\"2\"{}/>\n",
          x, y - 4, x + 26, y - 4, styles[i].stroke(), styles[i].dashes());
    }
    if (curve.mark == PlotMark::kPoints || curve.mark == PlotMark::kLineAndPoints) {
      text += marker(x + 13, y - 4, styles[i]);
    }
    text += text_at(x + 34, y, "start", curve.label);
  }
  return text;
}

// Labels that would run into one another stand in up to three rows.
std::string notes_of(const Plot& plot, const Scale& x, const Scale& y) {
  constexpr std::size_t kRows = 3;
  std::array<double, kRows> ends{};
  std::string text;
  for (const PlotNote& note : plot.notes) {
    if (!x.shows(note.x)) continue;
    const double at = std::clamp(x.at(note.x), x.from, x.to);
    if (at > x.from + 1) {
      text += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
          "stroke-dasharray=\"4 3\"/>\n",
          at, y.from, y.to, neutral("faint"));
    }
    std::size_t row = 0;
    while (row + 1 < kRows && ends[row] > at) ++row;
    const double width = 8 + 6.6 * static_cast<double>(note.label.size());
    ends[row] = at + width;
    const bool has_room = at + width <= x.to;
    text += text_at(has_room ? at + 4 : at - 4, y.to + 13 + 13 * static_cast<double>(row),
                    has_room ? "start" : "end", note.label,
                    fmt::format(" fill=\"{}\" font-size=\"11\"", neutral("faint")));
  }
  return text;
}

std::string opening(double height, const std::string& title, const std::string& subtitle) {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"{3}\"/>\n",
      kWidth, height, neutral("ink"), neutral("paper"));
  text += text_at(kLeft, 26, "start", title, " font-size=\"16\" font-weight=\"bold\"");
  text += text_at(kLeft, 46, "start", subtitle, fmt::format(" fill=\"{}\"", neutral("faint")));
  return text;
}

std::string bar_between(double from, double to, double y, double height, std::string_view color) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
      std::min(from, to), y, std::abs(to - from), height, color);
}

}  // namespace

std::string plot_svg(const Plot& plot) {
  const Scale x = make_scale(plot, true);
  const Scale y = make_scale(plot, false);
  const std::vector<CurveStyle> styles = styles_of(plot);
  const double height =
      kTop + kInnerHeight + 66 + kLegendLine * static_cast<double>(legend_rows(plot));
  std::string text = opening(height, plot.title, plot.subtitle);
  text += axes(plot, x, y) + notes_of(plot, x, y);
  const auto is_bars = [](const PlotCurve& curve) { return curve.mark == PlotMark::kBars; };
  const auto bars =
      static_cast<std::size_t>(std::count_if(plot.curves.begin(), plot.curves.end(), is_bars));
  std::size_t bar = 0;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const PlotCurve& curve = plot.curves[i];
    text += is_bars(curve) ? bars_of(curve, x, y, styles[i].stroke(), plot.y.unit, bar++, bars)
                           : curve_text(curve, x, y, styles[i]);
  }
  return text + legend(plot, styles) + "</svg>\n";
}

std::string tornado_svg(const Tornado& tornado) {
  constexpr double kNames = 150;  // pixels
  constexpr double kRow = 30;
  constexpr double kBar = 16;
  Scale x{.low = 0, .high = 0, .from = kNames, .to = kWidth - kRight};
  for (const TornadoRow& row : tornado.rows) {
    x.low = std::min({x.low, row.less, row.more});
    x.high = std::max({x.high, row.less, row.more});
  }
  if (x.low == x.high) x.high = x.low + 1;
  set_linear_ticks(x);
  const double bottom = kTop + kRow * static_cast<double>(tornado.rows.size());
  std::string text = opening(bottom + 96, tornado.title, tornado.subtitle);
  for (const double tick : x.ticks) {
    text += line_between(x.at(tick), bottom + 4, x.at(tick), kTop, neutral("line"));
    text += text_at(x.at(tick), bottom + 19, "middle", tick_text(tick, tornado.x.unit));
  }
  const std::string_view less = colour_of(ColourRole::kLess).light;
  const std::string_view more = colour_of(ColourRole::kMore).light;
  double y = kTop + (kRow - kBar) / 2;
  for (const TornadoRow& row : tornado.rows) {
    text += text_at(kNames - 8, y + kBar - 4, "end", row.name);
    text += bar_between(x.at(0), x.at(row.less), y, kBar, less);
    text += bar_between(x.at(0), x.at(row.more), y, kBar, more);
    y += kRow;
  }
  text += line_between(x.at(0), bottom, x.at(0), kTop, neutral("faint"));
  text += text_at((x.from + x.to) / 2, bottom + 40, "middle", axis_title(tornado.x));
  text += bar_between(kNames, kNames + 26, bottom + 57, 10, less);
  text += text_at(kNames + 34, bottom + 66, "start", tornado.less);
  text += bar_between(kNames, kNames + 26, bottom + 76, 10, more);
  text += text_at(kNames + 34, bottom + 85, "start", tornado.more);
  return text + "</svg>\n";
}

}  // namespace stepsim
