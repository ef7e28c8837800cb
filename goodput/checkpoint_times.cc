#include "goodput/checkpoint_times.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// Copies to peers leave half of the cards to training.
constexpr double kPeerShare = 0.5;

struct Ways {
  Bandwidth host{};  // of a chip
  double copy = 0;   // seconds
  double peer = 0;   // alone on the cards
  double storage = 0;
};

Ways ways_of(const CheckpointPolicy& policy, const CheckpointWay& way) {
  const auto bytes = static_cast<double>(way.bytes.value());
  const double of_chip = bytes / static_cast<double>(way.chips);
  const double of_node = of_chip * static_cast<double>(way.chips_per_node);
  const Bandwidth host = policy.host_bandwidth.value_or(way.host);
  Ways ways{.host = host, .copy = of_chip / host.value(), .peer = of_chip / way.card.value()};
  ways.storage = of_node / policy.node_storage_bandwidth.value_or(kNodeStorage).value();
  if (policy.storage_bandwidth) {
    ways.storage = std::max(ways.storage, bytes / policy.storage_bandwidth->value());
  }
  return ways;
}

Ticks ticks(double seconds) {
  return static_cast<Ticks>(std::ceil(seconds * kTicksPerSecond));
}

// What traffic in the background adds to the steps beside it.
double exposed(double background, double share_left, const CheckpointWay& way) {
  return background * (1 - 1 / way.slowdown(share_left));
}

void set_background(const CheckpointPolicy& policy, const CheckpointWay& way, const Ways& ways,
                    CheckpointTimes& times) {
  const bool has_copies = policy.has(CheckpointPlace::kHost) || policy.has(CheckpointPlace::kPeer);
  const double stall = way.copy_stall ? to_seconds(way.copy_stall(ways.host))
                                      : std::max(0.0, ways.copy - to_seconds(way.step));
  double copy_stall = has_copies ? stall : 0;
  double storage_stall = has_copies ? 0 : stall;
  times.copy_flush = ticks(ways.copy);
  if (policy.has(CheckpointPlace::kPeer)) {
    const double background = ways.peer / kPeerShare;
    copy_stall += exposed(background, 1 - kPeerShare, way);
    times.copy_flush = ticks(ways.copy + background);
  }
  if (policy.shares_network && ways.storage > 0) {
    storage_stall += exposed(ways.storage, 1 - std::min(0.99, ways.peer / ways.storage), way);
  }
  times.copy_stall = ticks(copy_stall);
  times.storage_stall = ticks(storage_stall);
  times.storage_flush = ticks(ways.copy + ways.storage);
}

}  // namespace

CheckpointTimes checkpoint_times(const CheckpointPolicy& policy, const RestartPolicy& restart,
                                 const CheckpointWay& way) {
  const Ways ways = ways_of(policy, way);
  const bool has_host = policy.has(CheckpointPlace::kHost);
  const bool has_peer = policy.has(CheckpointPlace::kPeer);
  CheckpointTimes times;
  times.load = {ticks(ways.copy), ticks(ways.copy + ways.peer), ticks(ways.copy + ways.storage)};
  if (restart.loading) times.load.fill(ticks_of(*restart.loading));
  if (policy.stall) {
    const Ticks stall = ticks_of(*policy.stall);
    (has_host || has_peer ? times.copy_stall : times.storage_stall) = stall;
    times.storage_flush = ticks_of(policy.flush.value_or(Duration()));
    return times;
  }
  if (policy.async) {
    set_background(policy, way, ways, times);
  } else if (has_host || has_peer) {
    times.copy_stall = ticks(ways.copy + (has_peer ? ways.peer : 0));
    times.storage_stall = ticks(ways.storage);
  } else {
    times.storage_stall = ticks(ways.copy + ways.storage);
  }
  if (policy.flush) times.storage_flush = ticks_of(*policy.flush);
  return times;
}

}  // namespace stepsim
