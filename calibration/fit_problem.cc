#include "calibration/fit_problem.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace stepsim {
namespace {

constexpr std::size_t kShare = 5;

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash ^ (hash >> 29);
}

}  // namespace

void hold_out_a_fifth(std::vector<FitPoint>& points) {
  std::set<std::pair<std::uint64_t, std::string>> shapes;
  for (const FitPoint& point : points) shapes.emplace(hash_of(point.shape), point.shape);
  std::set<std::string> held_out;
  std::size_t place = 0;
  for (const auto& [hash, shape] : shapes) {
    if (++place % kShare == 0) held_out.insert(shape);
  }
  for (FitPoint& point : points) point.held_out = held_out.contains(point.shape);
}

std::size_t shapes_to_fit(const std::vector<FitPoint>& points) {
  std::set<std::string_view> shapes;
  for (const FitPoint& point : points) {
    if (!point.held_out) shapes.insert(point.shape);
  }
  return shapes.size();
}

}  // namespace stepsim
