#include "traces/pictures/goodput_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/palette.h"
#include "traces/pictures/plot_svg.h"

namespace stepsim {
namespace {

constexpr double kPictureWidth = 860;
constexpr double kEdge = 60;
constexpr double kBand = 800;  // pixels of a row of the run
constexpr double kRowHeight = 13;
constexpr double kRowStep = 17;
constexpr double kCurveHeight = 500;

// By RunPhase: training, detecting, restarting, waiting, saving, maintaining.
constexpr std::array<ColourRole, kRunPhases> kPhaseRoles = {
    ColourRole::kProductive, ColourRole::kDetection,  ColourRole::kRestart,
    ColourRole::kRepair,     ColourRole::kCheckpoint, ColourRole::kIdle};
// By RunPart: productive, checkpoint, lost, restart, repair, degraded.
constexpr std::array<ColourRole, kRunParts> kPartRoles = {
    ColourRole::kProductive, ColourRole::kCheckpoint, ColourRole::kLost,
    ColourRole::kRestart,    ColourRole::kRepair,     ColourRole::kDegraded};

std::string words_at(double x, double y, std::string_view text, std::string_view more = "") {
  std::string safe;
  for (const char c : text) safe += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, safe);
}

std::string box(double x, double y, double width, double height, std::string_view color) {
  return fmt::format(
      "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y,
      width, height, color);
}

// Whole days a row, so that a run has at most some twenty rows.
std::int64_t days_of_row(const TrainingResult& run) {
  constexpr double kMostRows = 14;
  const double rough = days_of(run.length) / kMostRows;
  for (const std::int64_t days : {1, 2, 5, 7, 14, 28, 56, 112, 365}) {
    if (static_cast<double>(days) >= rough) return days;
  }
  return 365 * (1 + static_cast<std::int64_t>(rough / 365));
}

// A span may be cut into several rows. Training is the background of a row.
std::string span_boxes(const RunSpan& span, Ticks row, double top) {
  std::string text;
  const auto width = static_cast<double>(row);
  for (Ticks begin = span.begin; begin < span.end;) {
    const Ticks number = begin / row;
    const Ticks end = std::min(span.end, (number + 1) * row);
    const double x = kEdge + kBand * static_cast<double>(begin % row) / width;
    const double wide = kBand * static_cast<double>(end - begin) / width;
    const bool trains = span.phase == RunPhase::kTraining;
    text += box(x, top + kRowStep * static_cast<double>(number), std::max(wide, trains ? 0 : 0.7),
                kRowHeight, colour_of(kPhaseRoles[static_cast<std::size_t>(span.phase)]).light);
    begin = end;
  }
  return text;
}

template <class Name, std::size_t N>
std::string color_legend(double y, const std::array<ColourRole, N>& roles) {
  std::string text;
  for (std::size_t i = 0; i < N; ++i) {
    const double x = kEdge + 130 * static_cast<double>(i);
    text += box(x, y - 9, 12, 10, colour_of(roles[i]).light);
    text += words_at(x + 17, y, name_of(static_cast<Name>(i)));
  }
  return text;
}

std::string run_rows(const GoodputOutcome& outcome, double& y) {
  const TrainingResult& run = outcome.sample;
  const std::int64_t days = days_of_row(run);
  const Ticks row = days * kTicksPerDay;
  std::string text =
      words_at(kEdge, y, fmt::format("One run, {} day{} a row", days, days == 1 ? "" : "s"),
               " font-weight=\"bold\"");
  y += 12;
  const Ticks rows = (run.length + row - 1) / row;
  // What trains first, so that short stops stay visible.
  for (const bool trains : {true, false}) {
    for (const RunSpan& span : run.spans) {
      if ((span.phase == RunPhase::kTraining) == trains) text += span_boxes(span, row, y);
    }
  }
  for (Ticks i = 0; i < rows; ++i) {
    text +=
        words_at(kEdge - 8, y + kRowStep * static_cast<double>(i) + 11, fmt::format("{}", i * days),
                 fmt::format(" text-anchor=\"end\" fill=\"{}\"", neutral("faint")));
  }
  y += kRowStep * static_cast<double>(rows) + 14;
  text += color_legend<RunPhase>(y, kPhaseRoles);
  y += 44;
  return text;
}

std::string parts_bar(const GoodputOutcome& outcome, double& y) {
  const GoodputResult& result = outcome.result;
  std::string text = words_at(kEdge, y,
                              fmt::format("Where the time of {} runs goes: {:.2f} days, goodput "
                                          "{:.2f} %",
                                          result.runs, result.mean_days, 100 * result.goodput),
                              " font-weight=\"bold\"");
  y += 12;
  double x = kEdge;
  for (std::size_t i = 0; i < kRunParts; ++i) {
    const double width = kBand * std::max(0.0, result.parts_days[i]) / result.mean_days;
    text += box(x, y, width, 22, colour_of(kPartRoles[i]).light);
    x += width;
  }
  y += 44;
  for (std::size_t i = 0; i < kRunParts; ++i) {
    const double left = kEdge + 130 * static_cast<double>(i);
    text += box(left, y - 9, 12, 10, colour_of(kPartRoles[i]).light);
    text +=
        words_at(left + 17, y,
                 fmt::format("{} {:.2f}", name_of(static_cast<RunPart>(i)), result.parts_days[i]));
  }
  y += 30;
  return text;
}

Plot curve_plot(const std::vector<CurvePoint>& curve, const std::string& title, PlotAxis x) {
  Plot plot{
      .title = title, .subtitle = "", .x = std::move(x), .y = {.label = "goodput", .unit = "%"}};
  PlotCurve line{.label = "simulated", .mark = PlotMark::kLineAndPoints, .points = {}};
  for (const CurvePoint& point : curve)
    line.points.push_back({point.x, 100 * point.result.goodput});
  plot.curves.push_back(std::move(line));
  return plot;
}

std::string placed(const std::string& picture, double y) {
  return fmt::format("<g transform=\"translate(0 {:.0f})\">\n{}</g>\n", y, picture);
}

}  // namespace

std::string goodput_svg(const GoodputOutcome& outcome) {
  double y = 70;
  std::string body = parts_bar(outcome, y);
  body += run_rows(outcome, y);
  if (!outcome.by_interval.empty()) {
    PlotAxis interval{.label = "time between checkpoints", .unit = "s", .log = true};
    body += placed(plot_svg(curve_plot(outcome.by_interval, "Goodput by checkpoint interval",
                                       std::move(interval))),
                   y);
    y += kCurveHeight;
    PlotAxis spares{.label = "spare nodes"};
    body += placed(
        plot_svg(curve_plot(outcome.by_spares, "Goodput by spare nodes", std::move(spares))), y);
    y += kCurveHeight;
  }
  std::string head = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 "
      "{0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"{3}\"/>\n",
      kPictureWidth + 40, y, neutral("ink"), neutral("paper"));
  const std::string name =
      outcome.experiment.empty() ? "Training with a given step" : outcome.experiment;
  head += words_at(kEdge, 26, name, " font-size=\"16\" font-weight=\"bold\"");
  head += words_at(kEdge, 44,
                   fmt::format("{} chips, {} spare nodes, failures: {}", outcome.trained.job.chips,
                               outcome.setup.spares, outcome.table.name),
                   fmt::format(" fill=\"{}\"", neutral("faint")));
  return head + body + "</svg>\n";
}

}  // namespace stepsim
