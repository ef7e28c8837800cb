// PassCost is what a pass over a stretch of layers costs one rank at least: the time of its kernels
// at their full speed and of the collectives that they wait for, each as if alone, and the bytes
// that the stretch's kernels hold.
//
//   chain  from the first op of the stretch to the end of its last kernel
//   tail   collectives behind that kernel, which what follows waits for
//
// Collectives that run beside the compute count nothing, nor does what other streams hold. So all
// of it is a lower bound of what simulate() finds.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "experiment/passes/lone_times.h"
#include "schedules/lowering/stages/lowered_model.h"
#include "schedules/lowering/stages/pass.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

// A run of kernels is dense if those that arithmetic limits compute for this share of its time.
inline constexpr double kDense = 0.8;

struct PassCost {
  std::int64_t compute = 0;  // picoseconds, here and below
  std::int64_t dense = 0;    // of that: runs of kernels that arithmetic limits (kDense)
  std::int64_t chain = 0;
  std::int64_t tail = 0;
  bool computes = false;
  std::int64_t kept = 0;  // bytes that the stretch leaves behind, negative if it frees some
  std::int64_t peak = 0;  // most bytes while a kernel runs, above those at its start
};

// Returns the cost of one stretch and then another.
PassCost then(const PassCost& first, const PassCost& second);

// The groups of the collectives of a rank, by lane. Unset: the lane's collectives count nothing.
using LaneGroups = std::array<std::optional<GroupNumber>, kLanes>;

// The parts of a pass in one layer. kAgain repeats the forward in a visit of its own.
enum class LayerPart : std::uint8_t { kForward, kBackward, kInput, kWeight, kAgain };
inline constexpr std::size_t kLayerParts = 5;
LayerPart part_of(PassPart part);

// LayerCosts remembers the costs of the layers of one lowered model. Several threads may ask.
class LayerCosts {
 public:
  LayerCosts(const ChipSpec& chip, LoneTimes& times) : chip_(chip), times_(times) {}

  using Parts = std::array<PassCost, kLayerParts>;
  Parts of(const LoweredLayer& layer, const LaneGroups& groups);

 private:
  PassCost cost(const std::vector<LayerStep>& steps, std::optional<bool> weight_gradients,
                const LaneGroups& groups);
  struct RunTime {
    Duration time{};
    bool is_dense = false;
  };
  RunTime time_of_step(const LayerStep& step);

  const ChipSpec& chip_;
  LoneTimes& times_;
  std::mutex mutex_;  // guards the rest
  std::map<std::pair<const LoweredLayer*, LaneGroups>, Parts> costs_;
  std::map<const LayerStep*, RunTime> compute_;
};

}  // namespace stepsim
