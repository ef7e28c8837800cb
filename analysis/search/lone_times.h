// LoneTimes says how long a collective takes with nothing else on the network. In a run it takes at
// least as long: its latency is the same, and a transfer that shares its links is never faster than
// one that has them alone. So the times are lower bounds.
//
// Several threads may ask at once. Each time is simulated once and remembered.

#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "schedules/lowering/layer_step.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

using GroupNumber = std::uint32_t;  // of a group of chips that LoneTimes knows

class LoneTimes {
 public:
  // REQUIRES: `cluster` outlives it.
  explicit LoneTimes(const Cluster& cluster) : cluster_(cluster) {}

  // Returns the number of a group; equal groups have equal numbers.
  GroupNumber number_of(const std::vector<std::uint32_t>& chips);

  struct Work {
    CollectiveOp op = CollectiveOp::kAllGather;
    Bytes bytes{};
    DataType type = DataType::kBf16;
    AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  };
  Duration of(const Work& work, GroupNumber group);

 private:
  using Key = std::tuple<CollectiveOp, Bytes, DataType, AlgorithmChoice, GroupNumber>;

  Duration simulated(const Work& work, const std::vector<std::uint32_t>& chips) const;

  const Cluster& cluster_;
  std::mutex mutex_;  // guards the rest
  std::map<std::vector<std::uint32_t>, GroupNumber> numbers_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<Key, Duration> times_;
};

}  // namespace stepsim
