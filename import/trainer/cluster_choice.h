// Chooses clusters of the catalog for so many chips.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepsim {

// Returns the smallest cluster of a family of DGX with so many chips; nullopt if none is large
// enough.
std::optional<std::string> gpu_cluster(std::int64_t chips, const std::string& family = "dgx-h100");

// Returns a slice of a TPU generation ("v5p", "v6e") with exactly so many chips, as near to a cube
// or a square as its sizes allow, or several slices of it on a network; nullopt if there is none.
std::optional<std::string> tpu_cluster(const std::string& generation, std::int64_t chips,
                                       std::int64_t slices = 1);

// Reads a name of Google Cloud: "v5p-256" is 128 chips, as v4 and v5p count cores.
struct TpuName {
  std::string generation{};
  std::int64_t chips = 0;
};
std::optional<TpuName> tpu_name(const std::string& name);

}  // namespace stepsim
