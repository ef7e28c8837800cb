// The layouts that `stepsim serve-search` compares.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serving/search/serve_search.h"
#include "sim/base/error.h"

namespace stepsim {

struct LayoutSource {
  std::string model;
  std::string cluster;
  std::string plan;     // keys of all layouts
  std::string layouts;  // "tp=8;tp=4,pp=2"; empty: those of layouts_for()
  std::string chip;
  std::string library;
  std::string software;  // whose kernels and library run; empty: those of the engine's name
  std::string engine;
  std::int64_t most_chips = 0;  // of a replica; 0: those of the cluster
};

// Returns the keys of all replicas of up to `chips` chips: tp and pp in powers of two; with experts
// also ranks of attention over dp, with experts over all ranks, and experts divided by number.
std::vector<std::string> layouts_for(bool has_experts, std::int64_t chips);

// Returns the layouts that can run, and adds to `refused` why others can't. Throws ConfigError if
// the model or the cluster is wrong, or no layout can run.
std::vector<ServedLayout> load_layouts(const LayoutSource& source,
                                       std::vector<std::string>& refused);

}  // namespace stepsim
