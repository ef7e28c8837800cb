// The palette: which colour each role has in every picture, on paper that is light and on paper
// that is dark. SVG files are light; pages follow the reader's screen. A figure says the role of a
// part, and nobody else knows a colour:
//
//   colour_of(ColourRole::kBackward).light      "#0000b1"
//   role_named("backward")                      what JSON calls it
//   series_colour(2)                            the third curve of a plot
//
// Two colours that may lie beside each other differ for those who see fewer colours too, and each
// stands out from its paper (WCAG 2.2, 1.4.11: 3 to 1). tests/sim/palette_test.cc computes both, in
// OKLab with the simulation of Machado, Oliveira and Fernandes 2009. Exposed communication has the
// colour of its axis, and stripes. Loads have the scale of Cividis (Nuñez, Anderton and Renslow
// 2018), which is the same to all.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepsim {

enum class ColourRole : std::uint8_t {
  // Passes of a pipeline.
  kForward,
  kBackward,
  kWeightGradient,
  kRecompute,
  kForwardAndBackward,
  kOptimizer,
  kOtherCompute,
  kSeveralPasses,
  // Parts of a step: compute, communication by axis, and waiting.
  kCompute,
  kTensor,
  kContext,
  kExpert,
  kData,
  kPipeline,
  kHost,
  kOtherAxis,
  kBubble,
  kIdle,
  kLaunch,
  kWaiting,
  // Memory.
  kParameters,
  kGradients,
  kOptimizerState,
  kActivations,
  kCache,
  kGatheredParameters,
  kBuffers,
  kFixedOverhead,
  // The time of a request.
  kQueue,
  kPrefill,
  kPreempted,
  kTransfer,
  kDecode,
  // The time of a whole run.
  kProductive,
  kCheckpoint,
  kLost,
  kRestart,
  kRepair,
  kDegraded,
  kDetection,
  // Signs: what is wrong, and less and more of something.
  kFault,
  kLess,
  kMore,
};
inline constexpr std::size_t kColourRoles = 43;

struct Colour {
  std::string_view light;  // on light paper: "#007e66"
  std::string_view dark;
};

Colour colour_of(ColourRole role);
std::string_view name_of(ColourRole role);  // "forward and backward"
std::optional<ColourRole> role_named(std::string_view name);

// Colours of curves and of parts that have no role, in this order, again and again.
inline constexpr std::size_t kSeriesColours = 8;
Colour series_colour(std::size_t number);

// What is around the data: "paper", "ink", "faint" (notes and axes), "line" (grids), "panel",
// "link", "focus", "gap" (a wait behind the data).
struct Neutral {
  std::string_view name;
  Colour colour;
};
std::span<const Neutral> neutrals();
std::string_view neutral(std::string_view name);  // on light paper. REQUIRES: one of these

// From no load to the most, on light paper; on dark paper the other way round.
std::span<const std::string_view> load_scale();

// Returns a colour on the way from `from` to `to`: "#rrggbb". `share`: 0 to 1.
std::string mixed(std::string_view from, std::string_view to, double share);
// Returns the one of black and white that can be read on the colour.
std::string_view text_on(std::string_view colour);

}  // namespace stepsim
