#include "traces/pictures/timeline_svg.h"

#include <gtest/gtest.h>

#include <string>

namespace stepsim {
namespace {

Time at(std::int64_t picoseconds) {
  return Time{Duration(picoseconds)};
}

// Two ranks of 100 us: a forward of 40 us, and a backward of 60 us that is pale.
TimelinePlot small_plot() {
  TimelinePlot plot;
  plot.title = "a < b";
  plot.holds = "held, up to 2";
  plot.end = at(100'000'000);
  PlottedRank first;
  first.name = "rank 0";
  first.slices.push_back({at(0), at(40'000'000), "7", ColourRole::kForward, false});
  first.holds = {{at(0), 0}, {at(0), 2}, {at(40'000'000), 1}};
  PlottedRank second;
  second.name = "rank 1";
  second.slices.push_back({at(40'000'000), at(100'000'000), "8", ColourRole::kBackward, true});
  second.slices.push_back(
      {at(99'999'000), at(100'000'000), "too long", ColourRole::kBackward, false});
  plot.ranks = {first, second};
  return plot;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The drawing is 760 wide or more: 14 for the shortest slice with a label would need 1.4 million,
// so it is 3,000 wide, from x = 136 on.
TEST(TimelineSvgTest, SlicesStandWhereTheirTimesAre) {
  const std::string svg = timeline_svg(small_plot());
  const std::string forward(colour_of(ColourRole::kForward).light);
  const std::string pale = mixed(colour_of(ColourRole::kBackward).light, "#ffffff", 0.55);
  EXPECT_TRUE(contains(
      svg, "<rect x=\"136.00\" y=\"74\" width=\"1200.00\" height=\"22\" fill=\"" + forward));
  EXPECT_TRUE(contains(
      svg, "<rect x=\"1336.00\" y=\"132\" width=\"1800.00\" height=\"22\" fill=\"" + pale));
}

TEST(TimelineSvgTest, LabelsAreDrawnWhereThereIsRoom) {
  const std::string svg = timeline_svg(small_plot());
  EXPECT_TRUE(contains(svg, ">7</text>"));
  EXPECT_FALSE(contains(svg, "too long"));
}

TEST(TimelineSvgTest, TheCurveReachesItsFullHeightAtTheMost) {
  // 26 high below the slices: from 124 up to 98 for 2, and 111 for 1.
  EXPECT_TRUE(contains(timeline_svg(small_plot()),
                       "d=\"M136.00 124.00H136.00V98.00H1336.00V111.00H3136.00\""));
}

TEST(TimelineSvgTest, TheLegendHasTheKindsThatAreDrawnAndTheAxisRoundTimes) {
  const std::string svg = timeline_svg(small_plot());
  EXPECT_TRUE(contains(svg, ">forward</text>"));
  EXPECT_FALSE(contains(svg, ">recompute</text>"));
  EXPECT_TRUE(contains(svg, ">held, up to 2</text>"));
  EXPECT_TRUE(contains(svg, ">20.0 us</text>"));
  EXPECT_TRUE(contains(svg, ">100 us</text>"));
  EXPECT_TRUE(contains(svg, ">a &lt; b</text>"));
}

}  // namespace
}  // namespace stepsim
