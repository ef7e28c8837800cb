// The derivative of the critical path against centred differences of simulations: where a change of
// a thousandth changes the step as much upwards as downwards, the path is the same on both sides,
// and the two must agree.

#include "experiment/explained/path_bill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/levers.h"
#include "cli/run/what_if.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/run/simulate.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/random/choices.h"
#include "tests/fuzz/random/random_experiment.h"

namespace stepsim {
namespace {

constexpr double kStep = 1e-3;
// Of the step, for each unit of ln: of what a thousandth changes, a thousandth is curvature.
constexpr double kTolerance = 1e-3;

struct Compared {
  int slopes = 0;  // that the path of one transfer alone has
  int held = 0;    // of paths with transfers that share links
  int kinks = 0;   // where the path changes at once
  int far = 0;     // of `held`: further than the tolerance
  double worst = 0;
};

// Adds the slopes of an experiment.
void compare(const ExperimentSource& source, const ExperimentOptions& options,
             const std::vector<Lever>& levers, const std::string& name, Compared& compared) {
  const WhatIf what_if(source, options);
  const WhatIf::Slopes slopes = what_if.slopes(levers, 1);
  ASSERT_EQ(slopes.why_not, "") << name;
  const double now = to_seconds(slopes.now.step);
  if (now == 0) return;
  for (std::size_t i = 0; i < levers.size(); ++i) {
    const double more = std::log(to_seconds(what_if.with(levers[i], 1 + kStep).step) / now);
    const double less = std::log(to_seconds(what_if.with(levers[i], 1 / (1 + kStep)).step) / now);
    const double up = more / std::log1p(kStep);
    const double down = -less / std::log1p(kStep);
    const double slope = slopes.seconds[i] / now;
    if (std::abs(up - down) > kTolerance) {
      ++compared.kinks;
      continue;
    }
    // Ends of ops are rounded to whole picoseconds.
    constexpr double kRounding = 3e-11;  // seconds, of all ops of a path
    const double tolerance = kTolerance + kRounding / (kStep * now);
    const double off = std::abs(slope - (up + down) / 2);
    if (slopes.shared > 0) {
      ++compared.held;
      compared.far += off > tolerance ? 1 : 0;
      continue;
    }
    ++compared.slopes;
    compared.worst = std::max(compared.worst, off);
    EXPECT_LE(off, tolerance) << name << ": " << levers[i].name << ": slope " << slope
                              << ", simulated " << down << " and " << up << " of " << now << " s";
  }
}

// 150, or as many as STEPSIM_PATH_SEEDS says.
std::uint64_t seeds() {
  const char* const text = std::getenv("STEPSIM_PATH_SEEDS");
  return text == nullptr ? 150 : number_in<std::uint64_t>(text).value_or(150);
}

TEST(PathBillTest, IsTheDerivativeOfRandomExperiments) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    Choices choices(seed);
    const InputOnDisk file(random_experiment(choices), ".json");
    const ExperimentSource source{.experiment = file.path()};
    try {
      LoadedExperiment loaded = load_with_topology(source);
      ExperimentOptions options = loaded.simulation;
      options.granularity = Granularity::kPipelined;
      options.fidelities = {Fidelity::kFlow};
      compare(source, options, levers_of(loaded.record.fields), "seed " + std::to_string(seed),
              compared);
    } catch (const ConfigError&) {
    } catch (const DeadlockError&) {
    } catch (const std::range_error&) {
    }
  }
  RecordProperty("slopes", compared.slopes);
  RecordProperty("held", compared.held);
  RecordProperty("far", compared.far);
  RecordProperty("kinks", compared.kinks);
  RecordProperty("worst", std::to_string(compared.worst));
  EXPECT_GT(compared.slopes, static_cast<int>(seeds()));
  // Of transfers that share links, most do so with the same others all the time.
  EXPECT_LT(compared.far, compared.held / 4);
  EXPECT_GT(compared.slopes, 4 * compared.kinks);
}

}  // namespace
}  // namespace stepsim
