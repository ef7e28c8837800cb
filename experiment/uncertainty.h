// How sure a prediction is: what makes it uncertain, and the interval that follows.
//
// The intervals are data (catalog/uncertainty, made by scripts/fit_intervals.py): where measured
// figures of runs in the same situation lie beside their predictions. They hold the middle 80 %,
// and the median: predictions of some situations lie on one side of what was measured.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "sim/base/units.h"

namespace stepsim {

// Situation is what decides how far predictions of a run were off.
struct Situation {
  bool own_kernels = true;    // kernels of this chip were measured, not those of a sister
  bool experts = false;       // a mixture of experts
  bool across_nodes = false;  // ranks in more than one node
  bool narrow = false;        // matmuls in less than 16 bits

  friend bool operator==(const Situation&, const Situation&) = default;
};
Situation situation_of(const Experiment& experiment, std::uint32_t chips_per_node);
// The same of a plan in the place of the experiment's own.
Situation situation_of(const Experiment& experiment, std::int64_t ranks, DataType matmul,
                       std::uint32_t chips_per_node);
std::string text_of(const Situation& situation);  // "own kernels, dense, across nodes, 16 bits"

enum class PredictedMetric : std::uint8_t { kStepTime, kMemory };

// IntervalEntry is a row of the data. It holds for situations that agree with all that it says.
struct IntervalEntry {
  PredictedMetric metric = PredictedMetric::kStepTime;
  std::optional<bool> own_kernels{};
  std::optional<bool> experts{};
  std::optional<bool> across_nodes{};
  std::optional<bool> narrow{};
  double low = 1;   // of measured / predicted: a tenth of the runs lie below
  double high = 1;  // and a tenth above
  std::optional<double> median{};
};

struct Interval {
  double low = 0;
  double high = 0;
  std::optional<double> median{};
};

// Returns measured / predicted at the median, if that is worth saying: the prediction lies outside
// the middle half of its interval.
std::optional<double> telling_median(const Interval& interval, double predicted);

// Returns where 8 of 10 measured figures would lie if `predicted` is what the simulation says: by
// the first entry that holds. Returns nullopt if none does.
std::optional<Interval> interval_of(const std::vector<IntervalEntry>& entries,
                                    PredictedMetric metric, const Situation& situation,
                                    double predicted);

// Whether a plan fits in the memory of its chips, and how sure that is. kNo: the prediction is
// above the capacity. kLikely: it is not, but the upper end of its interval is. kSure: neither is,
// or nothing is known of how far predictions are off.
enum class FitCertainty : std::uint8_t { kNo, kLikely, kSure };
std::string_view name_of(FitCertainty certainty);  // "no", "likely", "sure"
FitCertainty certainty_of(Bytes peak, const std::optional<Interval>& interval, Bytes capacity);

// Headroom is what must stay free of the memory of a chip: a share of it (0 to 1), or as much as
// the upper end of the interval says (unset).
struct Headroom {
  std::optional<double> share{};
};
// Returns whether a peak leaves it.
bool leaves(const Headroom& headroom, Bytes peak, const std::optional<Interval>& interval,
            Bytes capacity);
// Returns the largest peak that leaves it, or a byte more. `of_one`: the interval of a prediction
// of 1.
Bytes largest_peak(const Headroom& headroom, const std::optional<Interval>& of_one, Bytes capacity);

}  // namespace stepsim
