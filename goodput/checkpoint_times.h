// What a checkpoint costs, from its size and the bandwidths on its way.
//
//   chip --host link--> host memory --network card--> memory of a peer
//                            \--storage, shared by all nodes--> storage
//
//   synchronous   training stands still until it is written everywhere
//   asynchronous  the copy to the host runs beside one step, before the optimizer changes the
//                 weights: the step is simulated with it (without a model, what the copy is longer
//                 than a step stalls). The rest is written in the background; where it takes the
//                 network cards, the step is simulated with what is left of them. What these steps
//                 are longer stalls.
//
// All chips hold equal parts of a checkpoint, each value once.

#pragma once

#include <functional>

#include "goodput/goodput.h"

namespace stepsim {

// Of a node, where CheckpointPolicy::node_storage_bandwidth is unset.
inline constexpr Bandwidth kNodeStorage{25e9};

struct CheckpointWay {
  Bytes bytes{};  // of the whole job
  std::int64_t chips = 1;
  std::int64_t chips_per_node = 1;
  Bandwidth host{};  // a chip to its host
  Bandwidth card{};  // a chip's network card
  Duration step{};
  // How much longer a step is with the copy to the hosts beside it. Empty: what the copy takes more
  // than a step.
  std::function<Duration(Bandwidth host)> copy_stall{};
  // How many times longer a step takes with this share of the cards left.
  std::function<double(double share)> slowdown = [](double) { return 1.0; };
};

CheckpointTimes checkpoint_times(const CheckpointPolicy& policy, const RestartPolicy& restart,
                                 const CheckpointWay& way);

}  // namespace stepsim
