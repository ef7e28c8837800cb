#include "sim/base/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

namespace stepsim {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

Triple times(const Matrix& matrix, const Triple& vector) {
  Triple result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) result[i] += matrix[i][j] * vector[j];
  }
  return result;
}

// Linear red, green and blue of "#rrggbb": IEC 61966-2-1.
Triple linear(std::string_view colour) {
  Triple result{};
  for (std::size_t i = 0; i < 3; ++i) {
    int value = 0;
    std::from_chars(colour.data() + 1 + 2 * i, colour.data() + 3 + 2 * i, value, 16);
    const double share = value / 255.0;
    result[i] = share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  }
  return result;
}

// WCAG 2.2, "contrast ratio".
double contrast(std::string_view a, std::string_view b) {
  const auto luminance = [](std::string_view colour) {
    const Triple rgb = linear(colour);
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] + 0.05;
  };
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return high / low;
}

// Ottosson 2020: https://bottosson.github.io/posts/oklab/.
Triple oklab(const Triple& rgb) {
  constexpr Matrix kCones = {{{0.4122214708, 0.5363325363, 0.0514459929},
                              {0.2119034982, 0.6806995451, 0.1073969566},
                              {0.0883024619, 0.2817188376, 0.6299787005}}};
  constexpr Matrix kLab = {{{0.2104542553, 0.7936177850, -0.0040720468},
                            {1.9779984951, -2.4285922050, 0.4505937099},
                            {0.0259040371, 0.7827717662, -0.8086757660}}};
  Triple cones = times(kCones, rgb);
  for (double& cone : cones) cone = std::cbrt(cone);
  return times(kLab, cones);
}

// How many see: all cones, or none of one kind. Machado, Oliveira and Fernandes 2009, "A
// Physiologically-based Model for Simulation of Color Vision Deficiency", severity 1.0, on linear
// colours. `least`: by how much neighbours differ in OKLab, of which 1 is from black to white.
struct Sight {
  const char* name;
  Matrix matrix;
  double least;
};
const std::array<Sight, 4> kSights = {{{"all cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, 0.10},
                                       {"no L cones",
                                        {{{0.152286, 1.052583, -0.204868},
                                          {0.114503, 0.786281, 0.099216},
                                          {-0.003882, -0.048116, 1.051998}}},
                                        0.07},
                                       {"no M cones",
                                        {{{0.367322, 0.860646, -0.227968},
                                          {0.280085, 0.672501, 0.047413},
                                          {-0.011820, 0.042940, 0.968881}}},
                                        0.07},
                                       {"no S cones",
                                        {{{1.255528, -0.076749, -0.178779},
                                          {-0.078411, 0.930809, 0.147602},
                                          {0.004733, 0.691367, 0.303900}}},
                                        0.055}}};

double difference(std::string_view a, std::string_view b, const Sight& sight) {
  const auto seen = [&](std::string_view colour) {
    Triple rgb = times(sight.matrix, linear(colour));
    for (double& channel : rgb) channel = std::clamp(channel, 0.0, 1.0);
    return oklab(rgb);
  };
  const Triple first = seen(a);
  const Triple second = seen(b);
  return std::hypot(first[0] - second[0], first[1] - second[1], first[2] - second[2]);
}

std::vector<ColourRole> roles(ColourRole first, ColourRole last) {
  std::vector<ColourRole> all;
  for (auto i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    all.push_back(static_cast<ColourRole>(i));
  }
  return all;
}

// Roles of which any two may lie beside each other in a picture.
std::vector<std::vector<ColourRole>> pictures() {
  std::vector<ColourRole> timeline = roles(ColourRole::kForward, ColourRole::kSeveralPasses);
  for (const ColourRole wait : {ColourRole::kBubble, ColourRole::kIdle, ColourRole::kLaunch}) {
    timeline.push_back(wait);
  }
  std::vector<ColourRole> run = roles(ColourRole::kProductive, ColourRole::kDetection);
  run.push_back(ColourRole::kIdle);
  return {timeline,
          roles(ColourRole::kCompute, ColourRole::kLaunch),
          roles(ColourRole::kParameters, ColourRole::kFixedOverhead),
          roles(ColourRole::kQueue, ColourRole::kDecode),
          run,
          roles(ColourRole::kLess, ColourRole::kMore)};
}

TEST(PaletteTest, EveryColourStandsOutFromItsPaper) {
  const Colour paper = neutrals()[0].colour;
  ASSERT_EQ(neutrals()[0].name, "paper");
  for (std::size_t i = 0; i < kColourRoles; ++i) {
    const auto role = static_cast<ColourRole>(i);
    EXPECT_GE(contrast(colour_of(role).light, paper.light), 3) << name_of(role);
    EXPECT_GE(contrast(colour_of(role).dark, paper.dark), 3) << name_of(role);
  }
  for (std::size_t i = 0; i < kSeriesColours; ++i) {
    EXPECT_GE(contrast(series_colour(i).light, paper.light), 3) << i;
    EXPECT_GE(contrast(series_colour(i).dark, paper.dark), 3) << i;
  }
}

TEST(PaletteTest, TextStandsOutFromPaperAndPanels) {
  for (const Neutral& text : neutrals()) {
    if (text.name != "ink" && text.name != "faint" && text.name != "link") continue;
    for (const Neutral& under : neutrals()) {
      if (under.name != "paper" && under.name != "panel") continue;
      EXPECT_GE(contrast(text.colour.light, under.colour.light), 4.5) << text.name;
      EXPECT_GE(contrast(text.colour.dark, under.colour.dark), 4.5) << text.name;
    }
  }
}

TEST(PaletteTest, NeighboursDifferForAllWhoSee) {
  for (const std::vector<ColourRole>& picture : pictures()) {
    for (std::size_t i = 0; i < picture.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        for (const Sight& sight : kSights) {
          const Colour a = colour_of(picture[i]);
          const Colour b = colour_of(picture[j]);
          EXPECT_GE(difference(a.light, b.light, sight), sight.least)
              << name_of(picture[i]) << " and " << name_of(picture[j]) << ", " << sight.name;
          EXPECT_GE(difference(a.dark, b.dark, sight), sight.least)
              << name_of(picture[i]) << " and " << name_of(picture[j]) << ", dark, " << sight.name;
        }
      }
    }
  }
}

TEST(PaletteTest, CurvesOfAPlotDifferForAllWhoSee) {
  for (std::size_t i = 0; i < kSeriesColours; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (const Sight& sight : kSights) {
        EXPECT_GE(difference(series_colour(i).light, series_colour(j).light, sight), sight.least)
            << i << " and " << j << ", " << sight.name;
        EXPECT_GE(difference(series_colour(i).dark, series_colour(j).dark, sight), sight.least)
            << i << " and " << j << ", dark, " << sight.name;
      }
    }
  }
}

// In a Gantt chart passes stand above the communication of the axes.
TEST(PaletteTest, PassesAndAxesShareNoColour) {
  for (const ColourRole pass : roles(ColourRole::kForward, ColourRole::kSeveralPasses)) {
    for (const ColourRole axis : roles(ColourRole::kTensor, ColourRole::kHost)) {
      EXPECT_GE(difference(colour_of(pass).light, colour_of(axis).light, kSights[0]), 0.04)
          << name_of(pass) << " and " << name_of(axis);
      EXPECT_GE(difference(colour_of(pass).dark, colour_of(axis).dark, kSights[0]), 0.04)
          << name_of(pass) << " and " << name_of(axis) << ", dark";
    }
  }
}

TEST(PaletteTest, TheLoadScaleRisesInContrast) {
  for (std::size_t i = 1; i < load_scale().size(); ++i) {
    EXPECT_GT(contrast(load_scale()[i], "#ffffff"), contrast(load_scale()[i - 1], "#ffffff")) << i;
  }
}

TEST(PaletteTest, ATextCanBeReadOnEveryColourAndOnItsPaleForm) {
  for (std::size_t i = 0; i < kColourRoles; ++i) {
    const std::string full(colour_of(static_cast<ColourRole>(i)).light);
    for (const std::string& fill : {full, mixed(full, "#ffffff", 0.55)}) {
      EXPECT_GE(contrast(text_on(fill), fill), 4.4) << fill;
    }
  }
}

TEST(PaletteTest, RolesHaveTheirNamesAndMixturesTheirEnds) {
  for (std::size_t i = 0; i < kColourRoles; ++i) {
    const auto role = static_cast<ColourRole>(i);
    EXPECT_EQ(role_named(name_of(role)), role) << name_of(role);
  }
  EXPECT_EQ(role_named("no role"), std::nullopt);
  EXPECT_EQ(mixed("#102030", "#f0e0d0", 0), "#102030");
  EXPECT_EQ(mixed("#102030", "#f0e0d0", 1), "#f0e0d0");
  EXPECT_EQ(mixed("#000000", "#ffffff", 0.5), "#808080");
}

}  // namespace
}  // namespace stepsim
