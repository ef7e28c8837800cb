#include "sim/base/palette.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace stepsim {
namespace {

constexpr Colour kBlue = {"#0000b1", "#0099f3"};
constexpr Colour kOrange = {"#f26b19", "#b7390b"};
constexpr Colour kGreen = {"#007e66", "#73f59d"};
constexpr Colour kMauve = {"#a561b0", "#d460ad"};
constexpr Colour kSky = {"#009af1", "#4e5ac7"};
constexpr Colour kBrown = {"#995900", "#fdaa00"};
constexpr Colour kPlum = {"#5e0062", "#ffe1ff"};
constexpr Colour kOlive = {"#303b00", "#9e9100"};
constexpr Colour kLightGrey = {"#919497", "#636568"};
constexpr Colour kDarkGrey = {"#4f5154", "#b3b5b8"};
constexpr std::array<Colour, kSeriesColours> kSeries = {kBlue, kOrange, kGreen, kMauve,
                                                        kSky,  kBrown,  kPlum,  kOlive};

struct RoleColour {
  ColourRole role;
  std::string_view name;
  Colour colour;
};

constexpr std::array<RoleColour, kColourRoles> kRoles = {{
    {ColourRole::kForward, "forward", kGreen},
    {ColourRole::kBackward, "backward", kBlue},
    {ColourRole::kWeightGradient, "weight gradient", kOrange},
    {ColourRole::kRecompute, "recompute", kBrown},
    {ColourRole::kForwardAndBackward, "forward and backward", kSky},
    {ColourRole::kOptimizer, "optimizer", kMauve},
    {ColourRole::kOtherCompute, "other compute", kOlive},
    {ColourRole::kSeveralPasses, "several passes", kPlum},
    {ColourRole::kCompute, "compute", {"#548c60", "#13936b"}},
    {ColourRole::kTensor, "tp", {"#197200", "#b3ff88"}},
    {ColourRole::kContext, "cp", {"#6f0000", "#ba5a00"}},
    {ColourRole::kExpert, "ep", {"#d48000", "#ff8e2e"}},
    {ColourRole::kData, "dp", {"#b33299", "#be77a2"}},
    {ColourRole::kPipeline, "pp", {"#c868ff", "#8f44ac"}},
    {ColourRole::kHost, "host", {"#2b009c", "#688afa"}},
    {ColourRole::kOtherAxis, "other", kPlum},
    {ColourRole::kBubble, "bubble", kLightGrey},
    {ColourRole::kIdle, "idle", kDarkGrey},
    {ColourRole::kLaunch, "launch", {"#7235e3", "#e9abff"}},
    {ColourRole::kWaiting, "waiting", kLightGrey},
    {ColourRole::kParameters, "parameters", kBlue},
    {ColourRole::kGradients, "gradients", kOrange},
    {ColourRole::kOptimizerState, "optimizer state", kMauve},
    {ColourRole::kActivations, "activations", kGreen},
    {ColourRole::kCache, "cache", kSky},
    {ColourRole::kGatheredParameters, "gathered parameters", kBrown},
    {ColourRole::kBuffers, "buffers", kPlum},
    {ColourRole::kFixedOverhead, "fixed overhead", kDarkGrey},
    {ColourRole::kQueue, "queue", kLightGrey},
    {ColourRole::kPrefill, "prefill", kGreen},
    {ColourRole::kPreempted, "preempted", kOrange},
    {ColourRole::kTransfer, "transfer", kMauve},
    {ColourRole::kDecode, "decode", kBlue},
    {ColourRole::kProductive, "productive", kGreen},
    {ColourRole::kCheckpoint, "checkpoint", kSky},
    {ColourRole::kLost, "lost", kOrange},
    {ColourRole::kRestart, "restart", kBrown},
    {ColourRole::kRepair, "repair", kMauve},
    {ColourRole::kDegraded, "degraded", kBlue},
    {ColourRole::kDetection, "detection", kPlum},
    {ColourRole::kFault, "fault", {"#c4001a", "#ff6b6b"}},
    {ColourRole::kLess, "less", kOrange},
    {ColourRole::kMore, "more", kBlue},
}};

constexpr std::array<Neutral, 8> kNeutrals = {{{"paper", {"#ffffff", "#14181d"}},
                                               {"ink", {"#1b1f24", "#e6e9ec"}},
                                               {"faint", {"#57606a", "#a3acb5"}},
                                               {"line", {"#d0d7de", "#3a424b"}},
                                               {"panel", {"#f6f8fa", "#1d232a"}},
                                               {"link", {"#0b5cad", "#7cb8f5"}},
                                               {"focus", {"#d55e00", "#f0a868"}},
                                               {"gap", {"#c3c9cf", "#59626c"}}}};

constexpr std::array<std::string_view, 9> kCividis = {"#fde737", "#d9c55c", "#b4a76f",
                                                      "#948e77", "#7b7b7b", "#666870",
                                                      "#4d566d", "#2a406c", "#00204d"};

std::array<int, 3> channels(std::string_view colour) {
  std::array<int, 3> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const char* const begin = colour.data() + 1 + 2 * i;
    std::from_chars(begin, begin + 2, values[i], 16);
  }
  return values;
}

}  // namespace

Colour colour_of(ColourRole role) {
  return kRoles[static_cast<std::size_t>(role)].colour;
}

std::string_view name_of(ColourRole role) {
  return kRoles[static_cast<std::size_t>(role)].name;
}

std::optional<ColourRole> role_named(std::string_view name) {
  const auto* const found = std::ranges::find(kRoles, name, &RoleColour::name);
  if (found == kRoles.end()) return std::nullopt;
  return found->role;
}

Colour series_colour(std::size_t number) {
  return kSeries[number % kSeries.size()];
}

std::span<const Neutral> neutrals() {
  return kNeutrals;
}

std::string_view neutral(std::string_view name) {
  return std::ranges::find(kNeutrals, name, &Neutral::name)->colour.light;
}

std::span<const std::string_view> load_scale() {
  return kCividis;
}

std::string mixed(std::string_view from, std::string_view to, double share) {
  const std::array<int, 3> a = channels(from);
  const std::array<int, 3> b = channels(to);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "#";
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto value = static_cast<std::size_t>(std::lround(a[i] + share * (b[i] - a[i])));
    text += kDigits[value / 16];
    text += kDigits[value % 16];
  }
  return text;
}

// By the luminance of WCAG 2.2 with the exponent in place of its exact curve.
std::string_view text_on(std::string_view colour) {
  constexpr std::array<double, 3> kWeights = {0.2126, 0.7152, 0.0722};
  constexpr double kGamma = 2.2;
  constexpr double kEqualContrast = 0.179;  // sqrt(1.05 * 0.05) - 0.05
  const std::array<int, 3> values = channels(colour);
  double luminance = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    luminance += kWeights[i] * std::pow(values[i] / 255.0, kGamma);
  }
  return luminance > kEqualContrast ? "#000000" : "#ffffff";
}

}  // namespace stepsim
