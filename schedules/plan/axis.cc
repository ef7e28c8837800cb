#include "schedules/plan/axis.h"

#include <array>

namespace stepsim {
namespace {

constexpr std::array<std::string_view, kAxes> kAxisNames = {"tp", "cp",   "ep",   "dp",
                                                            "pp", "host", "other"};

}  // namespace

std::string_view name_of(Axis axis) {
  return kAxisNames[static_cast<std::size_t>(axis)];
}

std::vector<std::string> axis_names() {
  return {kAxisNames.begin(), kAxisNames.end()};
}

}  // namespace stepsim
