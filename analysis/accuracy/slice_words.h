// slice_cluster() finds the cluster of a run on TPUs, in the words of a table's author:
//
//   ICI torus (v4-128 slice)                      64 chips: v4 names count TensorCores, two a chip
//   ICI torus (v5e-256 slice) | DCN between 16 slices (data parallel)
//   ICI 2D torus (v6e-256 slice) | 2 slices over data-center network
//   ICI topology 8x12x16                          the axes, in chips
//
// A slice whose axes are not given has the most compact shape (proto/catalog/cluster_family.h).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/catalog/measured_tables.h"

namespace stepsim {

struct SliceWords {
  std::int64_t slices = 1;
  std::string axes{};                 // "8x12x16"; empty: not given
  std::optional<std::int64_t> cores;  // the number in a slice's name
};

// `inside`: the words for the network in a slice; `between`: for that between slices.
SliceWords slice_words(std::string_view inside, std::string_view between);

// Returns the catalog's name of the cluster: "multislice-v6e-2x256". `chips` are those of the run.
// Returns a reason in `problem` if there is no such cluster, or if the words contradict `chips`.
struct SliceCluster {
  std::string name;
  std::string problem;
};
SliceCluster slice_cluster(const Hardware& hardware, const SliceWords& words, std::int64_t chips);

}  // namespace stepsim
