// Writes a chip or a library that starts from an entry of the catalog and differs from it in some
// fields, as a file that `--chip`, `--library` and the `catalog` field of clusters read.
//
//   changed_chip("h100-sxm", chip, {.matmuls = true})
//
//   catalog: "h100-sxm"
//   efficiency {
//     matmul {
//       peak_fraction: 0.876
//       ...
//
// Durations are written in us, bandwidths in GB/s.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/chips/chip_spec.h"
#include "sim/collectives/library.h"

namespace stepsim {

struct ChipChanges {
  bool matmuls = false;  // efficiency.matmul and matmul_of: all of their fields, in all entries
  bool power = false;    // power.joules_per_teraflop
};
std::string changed_chip(const std::string& base, const ChipSpec& chip, const ChipChanges& changes);

// `timings`: indices of the timings that differ. The library is called `<base>-calibrated`.
std::string changed_library(const std::string& base, const CommunicationLibrary& library,
                            const std::vector<std::size_t>& timings);

}  // namespace stepsim
