// LoneTimes says how long a collective takes with nothing else on the network. In a run it takes at
// least as long: its latency is the same, and a transfer that shares its links is never faster than
// one that has them alone. So the times are lower bounds.
//
// It also says how long its bytes occupy links. Collectives that share a link take at least the sum
// of that, in whatever order or at the same time.
//
// Several threads may ask at once. Each collective is simulated once and remembered.

#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "schedules/lowering/steps/layer_step.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

using GroupNumber = std::uint32_t;  // of a group of chips that LoneTimes knows

// Picoseconds for which bytes occupy a link at its full bandwidth.
struct LinkLoad {
  std::uint32_t link = 0;
  std::int64_t busy = 0;
};
using LinkLoads = std::vector<LinkLoad>;  // by link

// Adds `times` as much of each load.
void add_loads(const LinkLoads& more, std::int64_t times, LinkLoads& sum);

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
  struct Lone {
    Duration time{};
    LinkLoads loads{};  // of a few links: the first of those that it occupies most
    double units = 0;   // share of the chip's arithmetic units that it holds while it runs
  };
  // The result lives as long as this.
  const Lone& of(const Work& work, GroupNumber group);

 private:
  using Key = std::tuple<CollectiveOp, Bytes, DataType, AlgorithmChoice, GroupNumber>;

  Lone simulated(const Work& work, const std::vector<std::uint32_t>& chips) const;

  const Cluster& cluster_;
  std::mutex mutex_;  // guards the rest
  std::map<std::vector<std::uint32_t>, GroupNumber> numbers_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<Key, Lone> times_;  // none is ever changed
};

}  // namespace stepsim
