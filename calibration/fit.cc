#include "calibration/fit.h"

#include <algorithm>
#include <cstddef>
#include <nlopt.hpp>
#include <optional>

#include "calibration/determined.h"
#include "calibration/errors.h"
#include "calibration/three_digits.h"

namespace stepsim {
namespace {

constexpr int kMostEvaluations = 3000;  // of one search
constexpr double kLeastProgress = 1e-5;
constexpr int kMostRestarts = 10;
constexpr int kMostDigitRounds = 100;  // of last digits
constexpr double kNotBetter = 1e-12;

using Values = std::vector<double>;

// A search over the free constants.
class FreeSearch {
 public:
  FreeSearch(const FitProblem& problem, const std::vector<std::string>& why_kept)
      : problem_(problem) {
    for (std::size_t i = 0; i < why_kept.size(); ++i) {
      values_.push_back(problem.constants[i].value);
      if (why_kept[i].empty()) free_.push_back(i);
    }
  }

  // Returns the best values of all constants. REQUIRES: one is free.
  Values best() {
    Values best = reached_from(values_);
    double least = mean_error(problem_, best);
    const auto take = [&](Values values) {
      const double error = mean_error(problem_, values);
      if (error >= least) return false;
      const bool is_progress = error < least * (1 - kLeastProgress);
      least = error;
      best = std::move(values);
      return is_progress;
    };
    for (const Values& start : problem_.starts) take(reached_from(start));
    for (int i = 0; i < kMostRestarts && take(reached_from(best)); ++i) {
    }
    return with_three_digits(best);
  }

 private:
  static double objective(const Values& point, Values&, void* self) {
    FreeSearch& search = *static_cast<FreeSearch*>(self);
    return mean_error(search.problem_, search.with(point));
  }

  Values with(const Values& point) const {
    Values values = values_;
    for (std::size_t i = 0; i < free_.size(); ++i) values[free_[i]] = point[i];
    return values;
  }

  Values reached_from(const Values& start) {
    Values point, low, high, step;
    for (const std::size_t i : free_) {
      const Constant& constant = problem_.constants[i];
      low.push_back(constant.least);
      high.push_back(constant.most);
      point.push_back(std::clamp(start[i], constant.least, constant.most));
      const double size = std::max(point.back(), constant.scale);
      // Towards the inside.
      const double wanted = 0.3 * std::min(size, constant.most - constant.least);
      step.push_back(point.back() + wanted > constant.most ? -wanted : wanted);
    }
    nlopt::opt search(nlopt::LN_SBPLX, static_cast<unsigned>(free_.size()));
    search.set_lower_bounds(low);
    search.set_upper_bounds(high);
    search.set_initial_step(step);
    search.set_min_objective(&FreeSearch::objective, this);
    search.set_maxeval(kMostEvaluations);
    search.set_ftol_rel(kLeastProgress);
    double value = 0;
    search.optimize(point, value);
    return with(point);
  }

  // Moves one value after another by its last digit while that is better.
  Values with_three_digits(Values values) const {
    for (const std::size_t i : free_) {
      values[i] = within(i, rounded_to_three_digits(values[i]));
    }
    double least = mean_error(problem_, values);
    bool is_better = true;
    for (int round = 0; is_better && round < kMostDigitRounds; ++round) {
      is_better = false;
      for (const std::size_t i : free_) {
        for (const bool up : {true, false}) {
          const std::optional<double> next = neighbour(i, values[i], up);
          if (!next) continue;
          Values moved = values;
          moved[i] = *next;
          const double error = mean_error(problem_, moved);
          if (error >= least * (1 - kNotBetter)) continue;
          least = error;
          values = std::move(moved);
          is_better = true;
        }
      }
    }
    return values;
  }

  double within(std::size_t constant, double value) const {
    const Constant& one = problem_.constants[constant];
    return std::clamp(value, one.least, one.most);
  }

  std::optional<double> neighbour(std::size_t constant, double value, bool up) const {
    const std::optional<ThreeDigits> digits = ThreeDigits::of(value);
    if (!digits) return std::nullopt;
    const double next = (up ? digits->next() : digits->before()).value();
    if (within(constant, next) != next) return std::nullopt;
    return next;
  }

  const FitProblem& problem_;
  Values values_;  // of the constants that stay
  std::vector<std::size_t> free_;
};

Values present_values(const FitProblem& problem) {
  Values values;
  for (const Constant& constant : problem.constants) values.push_back(constant.value);
  return values;
}

}  // namespace

double mean_error(const FitProblem& problem, const std::vector<double>& values) {
  double sum = 0;
  double weights = 0;
  for (std::size_t i = 0; i < problem.points.size(); ++i) {
    const FitPoint& point = problem.points[i];
    if (point.held_out) continue;
    const double error = log_error(problem.seconds(values, i), point.seconds);
    sum += point.weight * (error + 0.5 * error * error / (0.1 + error));
    weights += point.weight;
  }
  return sum / weights;
}

FitResult fit(const FitProblem& problem) {
  const Values present = present_values(problem);
  FitResult result{.values = present,
                   .why_kept = std::vector<std::string>(problem.constants.size())};
  if (shapes_to_fit(problem.points) == 0) {
    std::ranges::fill(result.why_kept, "there is no row");
    return result;
  }
  // A constant may only turn out to be undetermined where the fit ends. Each round keeps one more.
  for (std::size_t round = 0; round <= present.size(); ++round) {
    std::vector<std::string> kept = why_undetermined(problem, result.values, result.why_kept);
    if (round > 0 && kept == result.why_kept) return result;
    result.why_kept = std::move(kept);
    result.values = present;
    const bool is_any_free = std::ranges::any_of(result.why_kept, &std::string::empty);
    if (!is_any_free) return result;
    Values best = FreeSearch(problem, result.why_kept).best();
    if (mean_error(problem, best) < mean_error(problem, present)) result.values = std::move(best);
  }
  return result;
}

}  // namespace stepsim
