// random_cluster() makes a small cluster: any kind of topology, of one to about 64 chips, with
// chips of the catalog or of its own.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/messages/json_value.h"
#include "sim/chips/chip_spec.h"
#include "tests/fuzz/random/choices.h"

namespace stepsim {

struct RandomAxis {
  std::string name;  // of the level
  std::int64_t size = 1;
};

struct RandomCluster {
  Json json;  // as `cluster` of an experiment file
  std::int64_t chips = 1;
  std::int64_t node = 1;           // chips of the innermost level
  std::vector<RandomAxis> axes{};  // of tori: levels that a plan can map
  ChipSpec chip{};
  bool has_host = false;
};

RandomCluster random_cluster(Choices& choices);

}  // namespace stepsim
