#include "calibration/determined.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

namespace stepsim {
namespace {

constexpr double kErrorOfRows = 0.05;
constexpr double kKnownTo = 1.0 / 3;
constexpr double kShortest = kErrorOfRows / kKnownTo;
constexpr std::size_t kShapesOfConstant = 3;
constexpr double kChange = 0.05;  // of a constant, either way
constexpr double kAlmost = 0.25;  // of the longest: the order of the constants decides between them

using SensitivityColumn = std::vector<double>;

double product(const SensitivityColumn& a, const SensitivityColumn& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double length(const SensitivityColumn& column) {
  return std::sqrt(product(column, column));
}

std::vector<std::size_t> first_points_of_shapes(const std::vector<FitPoint>& points) {
  std::set<std::string_view> seen;
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].held_out && seen.insert(points[i].shape).second) first.push_back(i);
  }
  return first;
}

SensitivityColumn column_of(const FitProblem& problem, std::span<const double> values,
                            std::size_t constant, const std::vector<std::size_t>& points) {
  const Constant& one = problem.constants[constant];
  const double size = std::max(std::abs(values[constant]), one.scale);
  std::vector<double> low(values.begin(), values.end());
  std::vector<double> high = low;
  low[constant] = std::max(one.least, values[constant] - kChange * size);
  high[constant] = std::min(one.most, values[constant] + kChange * size);
  const double change = (high[constant] - low[constant]) / size;
  SensitivityColumn column;
  for (const std::size_t point : points) {
    const double difference = problem.seconds(high, point) - problem.seconds(low, point);
    column.push_back(change > 0 ? difference / problem.seconds(values, point) / change : 0);
  }
  return column;
}

// Chooses constants one after another.
class Choice {
 public:
  Choice(const FitProblem& problem, std::span<const double> values,
         const std::vector<std::string>& kept)
      : problem_(problem), shapes_(first_points_of_shapes(problem.points)) {
    for (std::size_t i = 0; i < problem.constants.size(); ++i) {
      columns_.push_back(kept[i].empty() ? column_of(problem, values, i, shapes_)
                                         : SensitivityColumn(shapes_.size()));
    }
    rests_ = columns_;
  }

  std::size_t most() const { return shapes_.size() / kShapesOfConstant; }

  void choose() {
    while (chosen_.size() < most()) {
      double longest = 0;
      for (const SensitivityColumn& rest : rests_) longest = std::max(longest, length(rest));
      if (longest < kShortest) return;
      const double enough = std::max(kShortest, kAlmost * longest);
      const auto next = std::ranges::find_if(
          rests_, [&](const SensitivityColumn& rest) { return length(rest) >= enough; });
      take(static_cast<std::size_t>(next - rests_.begin()));
    }
  }

  std::string reason(std::size_t constant) const {
    if (std::ranges::count(chosen_, constant) > 0) return {};
    const std::string needs = " (needs " + problem_.constants[constant].needs + ")";
    if (length(columns_[constant]) < kShortest) return "no row depends on it enough" + needs;
    if (length(rests_[constant]) >= kShortest) {
      return fmt::format("{} shapes determine {} constants at most{}", shapes_.size(), most(),
                         needs);
    }
    return "these rows can't tell it from " + problem_.constants[likest(constant)].name + needs;
  }

 private:
  void take(std::size_t constant) {
    chosen_.push_back(constant);
    SensitivityColumn unit = rests_[constant];
    const double size = length(unit);
    for (double& value : unit) value /= size;
    for (SensitivityColumn& rest : rests_) {
      const double part = product(rest, unit);
      for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= part * unit[i];
    }
    rests_[constant].assign(shapes_.size(), 0);
  }

  // Returns the chosen constant with the most similar effect.
  std::size_t likest(std::size_t constant) const {
    return *std::ranges::max_element(chosen_, {}, [&](std::size_t other) {
      return std::abs(product(columns_[constant], columns_[other])) / length(columns_[other]);
    });
  }

  const FitProblem& problem_;
  std::vector<std::size_t> shapes_;
  std::vector<SensitivityColumn> columns_;
  std::vector<SensitivityColumn> rests_;  // what the chosen ones leave of them
  std::vector<std::size_t> chosen_;
};

}  // namespace

std::vector<std::string> why_undetermined(const FitProblem& problem, std::span<const double> values,
                                          std::vector<std::string> kept) {
  Choice choice(problem, values, kept);
  choice.choose();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].empty()) kept[i] = choice.reason(i);
  }
  return kept;
}

}  // namespace stepsim
