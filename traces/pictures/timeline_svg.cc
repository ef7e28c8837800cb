#include "traces/pictures/timeline_svg.h"

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

// The order of the legend.
constexpr std::array<ColourRole, 9> kDrawnRoles = {
    ColourRole::kForward,      ColourRole::kBackward,      ColourRole::kWeightGradient,
    ColourRole::kRecompute,    ColourRole::kOptimizer,     ColourRole::kForwardAndBackward,
    ColourRole::kOtherCompute, ColourRole::kSeveralPasses, ColourRole::kWaiting};

std::string fill_of(const PlottedSlice& slice) {
  constexpr double kPale = 0.55;
  const std::string_view full = colour_of(slice.role).light;
  return mixed(full, neutral("paper"), slice.is_pale ? kPale : 0);
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
               "<rect width=\"100%\" height=\"100%\" fill=\"{2}\"/>\n",
               wide, tall, neutral("paper")) +
           body_ + "</svg>\n";
  }

 private:
  double x_of(Time time) const {
    return kMargin + kNames +
           width_ * static_cast<double>(time.since_start.count()) / static_cast<double>(whole_);
  }

  // Only the kinds that are drawn, in as many lines as they need.
  double legend(double y) {
    constexpr double kLine = 20;
    double x = kMargin;
    const auto add = [&](std::string_view text, double sign, const auto& draw) {
      const double width = sign + 7 * static_cast<double>(text.size());
      if (x > kMargin && x + width > kMargin + kNames + width_) {
        x = kMargin;
        y += kLine;
      }
      body_ += draw();
      body_ +=
          fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + sign, y + 11, xml_escaped(text));
      x += width + 18;
    };
    for (const ColourRole role : kDrawnRoles) {
      const bool is_drawn = std::ranges::any_of(plot_.ranks, [&](const PlottedRank& rank) {
        return std::ranges::count(rank.slices, role, &PlottedSlice::role) > 0;
      });
      if (!is_drawn) continue;
      add(name_of(role), 17, [&] {
        return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>", x, y,
                           colour_of(role).light);
      });
    }
    const bool has_pale = std::ranges::any_of(plot_.ranks, [](const PlottedRank& rank) {
      return std::ranges::any_of(rank.slices, &PlottedSlice::is_pale);
    });
    if (has_pale) add("pale: the second chunk, the fourth, ...", 0, [] { return std::string(); });
    if (has_curves_) {
      add(plot_.holds, 19, [&] {
        return fmt::format("<path d=\"M{} {}h14\" stroke=\"{}\" fill=\"none\"/>", x, y + 6,
                           neutral("ink"));
      });
    }
    return y + 26;
  }

  // Pale slices have an edge in their colour: it stands out from the paper.
  static std::string box(const PlottedSlice& slice, double begin, double y, double length,
                         const std::string& fill) {
    constexpr double kLeastWithEdge = 3;
    const bool waits = slice.role == ColourRole::kWaiting;
    std::string edge;
    if (slice.is_pale) edge = fmt::format(" stroke=\"{}\"", colour_of(slice.role).light);
    if (waits || length <= kLeastWithEdge) edge = " stroke=\"none\"";
    return fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"{}/>\n", begin,
        y + (waits ? 8 : 0), std::max(length, 0.1), waits ? kSliceHeight - 16 : kSliceHeight, fill,
        edge);
  }

  double row(const PlottedRank& rank, double y) {
    body_ +=
        fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kMargin, y + 15, xml_escaped(rank.name));
    std::string boxes;
    std::string labels;
    for (const PlottedSlice& slice : rank.slices) {
      const double begin = x_of(slice.from);
      const double length = x_of(slice.to) - begin;
      const std::string fill = fill_of(slice);
      boxes += box(slice, begin, y, length, fill);
      if (slice.label.empty() || kLetter * static_cast<double>(slice.label.size()) > length) {
        continue;
      }
      labels += fmt::format("<text x=\"{:.2f}\" y=\"{}\" fill=\"{}\">{}</text>\n",
                            begin + length / 2, y + 15, text_on(fill), xml_escaped(slice.label));
    }
    body_ += fmt::format(
        "<g stroke=\"{}\" stroke-width=\"0.6\">\n{}</g>\n<g font-size=\"11\" "
        "text-anchor=\"middle\">\n{}</g>\n",
        neutral("paper"), boxes, labels);
    y += kSliceHeight;
    if (has_curves_) y = curve(rank, y + 2);
    return y + kRowGap;
  }

  double curve(const PlottedRank& rank, double y) {
    const double bottom = y + kMemoryHeight;
    body_ += fmt::format("<path d=\"M{:.2f} {}H{:.2f}\" stroke=\"{}\" fill=\"none\"/>\n",
                         x_of(Time{}), bottom, x_of(plot_.end), neutral("line"));
    std::string path;
    for (const auto& [at, held] : rank.holds) {
      const double height = most_ > 0 ? kMemoryHeight * held / most_ : 0;
      path += path.empty() ? fmt::format("M{:.2f} {:.2f}", x_of(at), bottom - height)
                           : fmt::format("H{:.2f}V{:.2f}", x_of(at), bottom - height);
    }
    if (!path.empty()) {
      body_ += fmt::format("<path d=\"{}H{:.2f}\" stroke=\"{}\" fill=\"none\"/>\n", path,
                           x_of(plot_.end), neutral("ink"));
    }
    return bottom;
  }

  void axis(double top, double y) {
    body_ += fmt::format("<path d=\"M{:.2f} {}H{:.2f}\" stroke=\"{}\" fill=\"none\"/>\n",
                         x_of(Time{}), y, x_of(plot_.end), neutral("faint"));
    const std::int64_t step = axis_step(whole_, static_cast<std::int64_t>(width_ / 95));
    for (std::int64_t at = 0; at <= whole_; at += step) {
      const double x = x_of(Time{Duration(at)});
      body_ += fmt::format(
          "<path d=\"M{0:.2f} {1}V{2}\" stroke=\"{5}\" stroke-opacity=\"0.18\" fill=\"none\"/>"
          "<text x=\"{0:.2f}\" y=\"{3}\" text-anchor=\"middle\" fill=\"{5}\">{4}</text>\n",
          x, top, y + 4, y + 18, at == 0 ? "0" : to_text(Duration(at)), neutral("faint"));
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
