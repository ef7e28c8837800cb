#include "traces/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "sim/base/xml_text.h"

namespace stepsim {
namespace {

constexpr double kMargin = 16;
constexpr double kNames = 120;  // room for the names of ranks
constexpr double kSliceHeight = 22;
constexpr double kMemoryHeight = 26;
constexpr double kRowGap = 8;
constexpr double kLetter = 6.6;      // width of a letter of a label
constexpr double kLeastWidth = 760;  // of the drawing between its margins
constexpr double kMostWidth = 3'000;
constexpr double kWidthOfShortest = 14;  // wanted for the shortest slice

struct KindColour {
  std::string_view kind;
  std::string_view full;
  std::string_view pale;
};
// Okabe and Ito, as in reports (pages/page.js).
constexpr std::array<KindColour, 7> kKindColours = {{{"forward", "#009E73", "#8fd3bf"},
                                                     {"backward", "#0072B2", "#8cbfe0"},
                                                     {"weight gradient", "#D55E00", "#eeb48c"},
                                                     {"recompute", "#E69F00", "#f5d596"},
                                                     {"forward and backward", "#56B4E9", "#b9dff5"},
                                                     {"other compute", "#E3D33A", "#f2eba8"},
                                                     {"waiting", "#c3c9cf", "#e3e6e9"}}};

std::string_view colour_of(const PlottedSlice& slice) {
  for (const KindColour& one : kKindColours) {
    if (one.kind == slice.kind) return slice.is_pale ? one.pale : one.full;
  }
  return "#8a8f98";
}

// The step of an axis: 1, 2 or 5 times a power of ten, so that there are at most so many.
std::int64_t axis_step(std::int64_t whole, std::int64_t most) {
  for (std::int64_t power = 1;; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit * power * most >= whole) return digit * power;
    }
  }
}

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const TimelinePlot& plot) : plot_(plot) {
    std::int64_t shortest = std::max<std::int64_t>(plot.end.since_start.count(), 1);
    for (const PlottedRank& rank : plot.ranks) {
      has_curves_ = has_curves_ || !rank.holds.empty();
      for (const auto& [at, held] : rank.holds) most_ = std::max(most_, held);
      for (const PlottedSlice& slice : rank.slices) {
        const std::int64_t length = (slice.to - slice.from).count();
        if (length > 0 && !slice.label.empty()) shortest = std::min(shortest, length);
      }
    }
    whole_ = std::max<std::int64_t>(plot.end.since_start.count(), 1);
    width_ =
        std::clamp(kWidthOfShortest * static_cast<double>(whole_) / static_cast<double>(shortest),
                   kLeastWidth, kMostWidth);
  }

  std::string text() {
    double y = kMargin + 18;
    body_ +=
        fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"16\" font-weight=\"bold\">{}</text>\n",
                    kMargin, y, xml_escaped(plot_.title));
    y = legend(y + 14);
    const double top = y;
    for (const PlottedRank& rank : plot_.ranks) y = row(rank, y);
    axis(top, y);
    const double wide = kNames + width_ + 2 * kMargin;
    const double tall = y + 30;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
               "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               wide, tall) +
           body_ + "</svg>\n";
  }

 private:
  double x_of(Time time) const {
    return kMargin + kNames +
           width_ * static_cast<double>(time.since_start.count()) / static_cast<double>(whole_);
  }

  // Only the kinds that are drawn.
  double legend(double y) {
    double x = kMargin;
    for (const KindColour& one : kKindColours) {
      const bool is_drawn = std::ranges::any_of(plot_.ranks, [&](const PlottedRank& rank) {
        return std::ranges::count(rank.slices, one.kind, &PlottedSlice::kind) > 0;
      });
      if (!is_drawn) continue;
      body_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" "
          "y=\"{}\">{}</text>\n",
          x, y, one.full, x + 17, y + 11, one.kind);
      x += 17 + 7 * static_cast<double>(one.kind.size()) + 18;
    }
    const bool has_pale = std::ranges::any_of(plot_.ranks, [](const PlottedRank& rank) {
      return std::ranges::any_of(rank.slices, &PlottedSlice::is_pale);
    });
    if (has_pale) {
      constexpr std::string_view kPale = "pale: the second chunk, the fourth, ...";
      body_ += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x, y + 11, kPale);
      x += 6.2 * static_cast<double>(kPale.size()) + 18;
    }
    if (has_curves_) {
      body_ += fmt::format(
          "<path d=\"M{0} {1}h14\" stroke=\"#000000\" fill=\"none\"/><text x=\"{2}\" "
          "y=\"{3}\">{4}</text>\n",
          x, y + 6, x + 19, y + 11, xml_escaped(plot_.holds));
    }
    return y + 26;
  }

  double row(const PlottedRank& rank, double y) {
    body_ +=
        fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kMargin, y + 15, xml_escaped(rank.name));
    for (const PlottedSlice& slice : rank.slices) {
      const double begin = x_of(slice.from);
      const double length = x_of(slice.to) - begin;
      const bool waits = slice.kind == "waiting";
      body_ += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"{}/>\n", begin,
          y + (waits ? 8 : 0), std::max(length, 0.1), waits ? kSliceHeight - 16 : kSliceHeight,
          colour_of(slice), length > 3 && !waits ? " stroke=\"#ffffff\" stroke-width=\"0.6\"" : "");
      if (slice.label.empty() || kLetter * static_cast<double>(slice.label.size()) > length) {
        continue;
      }
      const bool is_dark = !slice.is_pale && (slice.kind == "backward" || slice.kind == "forward" ||
                                              slice.kind == "weight gradient");
      body_ += fmt::format(
          "<text x=\"{:.2f}\" y=\"{}\" font-size=\"11\" text-anchor=\"middle\" "
          "fill=\"{}\">{}</text>\n",
          begin + length / 2, y + 15, is_dark ? "#ffffff" : "#000000", xml_escaped(slice.label));
    }
    y += kSliceHeight;
    if (has_curves_) y = curve(rank, y + 2);
    return y + kRowGap;
  }

  double curve(const PlottedRank& rank, double y) {
    const double bottom = y + kMemoryHeight;
    body_ += fmt::format("<path d=\"M{:.2f} {}H{:.2f}\" stroke=\"#d0d7de\" fill=\"none\"/>\n",
                         x_of(Time{}), bottom, x_of(plot_.end));
    std::string path;
    for (const auto& [at, held] : rank.holds) {
      const double height = most_ > 0 ? kMemoryHeight * held / most_ : 0;
      path += path.empty() ? fmt::format("M{:.2f} {:.2f}", x_of(at), bottom - height)
                           : fmt::format("H{:.2f}V{:.2f}", x_of(at), bottom - height);
    }
    if (!path.empty()) {
      body_ += fmt::format("<path d=\"{}H{:.2f}\" stroke=\"#000000\" fill=\"none\"/>\n", path,
                           x_of(plot_.end));
    }
    return bottom;
  }

  void axis(double top, double y) {
    body_ += fmt::format("<path d=\"M{:.2f} {}H{:.2f}\" stroke=\"#57606a\" fill=\"none\"/>\n",
                         x_of(Time{}), y, x_of(plot_.end));
    const std::int64_t step = axis_step(whole_, static_cast<std::int64_t>(width_ / 95));
    for (std::int64_t at = 0; at <= whole_; at += step) {
      const double x = x_of(Time{Duration(at)});
      body_ += fmt::format(
          "<path d=\"M{0:.2f} {1}V{2}\" stroke=\"#57606a\" stroke-opacity=\"0.18\" fill=\"none\"/>"
          "<text x=\"{0:.2f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"#57606a\">{4}</text>\n",
          x, top, y + 4, y + 18, at == 0 ? "0" : to_text(Duration(at)));
    }
  }

  const TimelinePlot& plot_;
  std::string body_;
  bool has_curves_ = false;
  double most_ = 0;
  std::int64_t whole_ = 1;
  double width_ = kLeastWidth;
};

}  // namespace

std::string timeline_svg(const TimelinePlot& plot) {
  return TimelineDrawing(plot).text();
}

}  // namespace stepsim
