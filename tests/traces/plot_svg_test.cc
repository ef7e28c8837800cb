#include "traces/pictures/plot_svg.h"

#include <gtest/gtest.h>

#include <string>

namespace stepsim {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

Plot two_curves() {
  return {.title = "time < bytes & \"more\"",
          .x = {.label = "bytes", .unit = "B", .log = true},
          .y = {.label = "time", .unit = "s", .log = true},
          .curves = {{.label = "ring: formula", .points = {{1e3, 1e-6}, {1e6, 2e-5}}},
                     {.label = "ring: simulated",
                      .mark = PlotMark::kPoints,
                      .points = {{1e3, 2e-6}, {1e6, 2e-5}}}}};
}

TEST(PlotSvgTest, ALineIsAPathAndPointsAreCircles) {
  const std::string svg = plot_svg(two_curves());
  EXPECT_EQ(count(svg, "<path"), 1u);
  EXPECT_EQ(count(svg, "<circle"), 3u);  // two points and the legend
  EXPECT_NE(svg.find("ring: simulated"), std::string::npos);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

TEST(PlotSvgTest, TicksOfQuantitiesHaveTheirUnits) {
  const std::string svg = plot_svg(two_curves());
  EXPECT_NE(svg.find(">10 kB<"), std::string::npos);
  EXPECT_NE(svg.find(">10 us<"), std::string::npos);
}

TEST(PlotSvgTest, GivenTicksAreTheOnlyOnes) {
  Plot plot = two_curves();
  plot.x = {.label = "chips", .log = true, .ticks = {1e3, 4e3, 1e7}};
  const std::string svg = plot_svg(plot);
  EXPECT_NE(svg.find(">4,000<"), std::string::npos);
  EXPECT_EQ(svg.find(">10,000<"), std::string::npos);
  EXPECT_EQ(svg.find(">10,000,000<"), std::string::npos) << "outside of the axis";
}

TEST(PlotSvgTest, ColoursHaveShapesOfTheirOwn) {
  Plot plot = two_curves();
  plot.curves.push_back(
      {.label = "tree", .mark = PlotMark::kPoints, .points = {{1e3, 2e-6}, {1e6, 2e-5}}});
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(count(svg, "<circle"), 3u);
  EXPECT_EQ(count(svg, "<polygon"), 3u);
}

TEST(PlotSvgTest, TextIsEscaped) {
  EXPECT_NE(plot_svg(two_curves()).find("time &lt; bytes &amp; &quot;more&quot;"),
            std::string::npos);
}

// A logarithmic axis maps equal ratios to equal distances: of three points at 1, 10 and 100 the
// middle one is in the middle.
TEST(PlotSvgTest, ALogarithmicAxisMapsRatiosToDistances) {
  Plot plot{
      .title = "t",
      .x = {.label = "x", .log = true},
      .y = {.label = "y"},
      .curves = {{.label = "c", .mark = PlotMark::kPoints, .points = {{1, 0}, {10, 0}, {100, 1}}}}};
  const std::string svg = plot_svg(plot);
  double x[3] = {};
  std::size_t at = 0;
  for (double& value : x) {
    at = svg.find("<circle cx=\"", at) + 12;
    value = std::stod(svg.substr(at));
  }
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.11);
}

TEST(PlotSvgTest, WhatCannotBeDrawnBreaksTheLine) {
  Plot plot = two_curves();
  plot.curves[0].points = {{1, 1}, {2, 1}, {0, 1}, {4, 1}, {8, 1}};  // 0 has no logarithm
  const std::string svg = plot_svg(plot);
  const std::string path = svg.substr(svg.find("<path"), svg.find("/>", svg.find("<path")));
  EXPECT_EQ(count(path.substr(0, path.find("fill")), "M"), 2u);
}

TEST(PlotSvgTest, BarsOfOnePlaceStandSideBySide) {
  Plot plot{.title = "t",
            .x = {.label = "stage"},
            .y = {.label = "memory", .unit = "B"},
            .curves = {{.label = "a", .mark = PlotMark::kBars, .points = {{0, 1e9}, {1, 2e9}}},
                       {.label = "b", .mark = PlotMark::kBars, .points = {{0, 3e9}, {1, 1e9}}}}};
  EXPECT_EQ(count(plot_svg(plot), "<rect"), 1u + 4u + 2u);  // background, bars, legend
}

TEST(PlotSvgTest, NotesAreLinesButAtTheLeftEdge) {
  Plot plot = two_curves();
  plot.notes = {{1, "ring LL"}, {1e4, "ring Simple"}, {1.2e4, "tree LL"}};
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(count(svg, "stroke-dasharray"), 2u);
  EXPECT_EQ(count(svg, ">ring LL<"), 1u);
  EXPECT_EQ(count(svg, "y=\"77.0\""), 2u);
  EXPECT_EQ(count(svg, "y=\"90.0\""), 1u) << "the third label would run into the second";
}

TEST(PlotSvgTest, ShortLegendsStandInTwoColumns) {
  Plot plot = two_curves();
  const auto height = [](const std::string& svg) { return svg.substr(svg.find(" height="), 13); };
  const std::string two_rows = height(plot_svg(plot));
  plot.curves.push_back({.label = "a", .points = {{1e3, 1e-6}}});
  plot.curves.push_back({.label = "b", .points = {{1e3, 1e-6}}});
  EXPECT_EQ(height(plot_svg(plot)), two_rows) << "four in two columns";
  plot.curves.back().label = std::string(80, 'x');
  EXPECT_NE(height(plot_svg(plot)), two_rows) << "too long for half the width";
}

TEST(PlotSvgTest, SmallBarsHaveTheirValues) {
  const Plot plot{
      .x = {.label = "case"},
      .y = {.label = "time", .unit = "s"},
      .curves = {{.label = "bar", .mark = PlotMark::kBars, .points = {{0, 100}, {1, 1.5}}}}};
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(count(svg, ">1.5 s<"), 1u);
  EXPECT_EQ(count(svg, "font-size=\"10\""), 1u);
}

TEST(PlotSvgTest, AnEmptyPlotHasAxes) {
  const std::string svg = plot_svg({.title = "nothing", .x = {.label = "x"}, .y = {.label = "y"}});
  EXPECT_NE(svg.find("<line"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace stepsim
