// A slice of a TPU pod by its shape: the torus (torus.h) or twisted torus (twisted_torus.h) that
// the hardware makes of it, with the hardware's wraparound.
//
//   generation  shapes                              wraparound                   GB/s of a link
//   v3          2D, parts of 32x32                  on an axis of 32             100
//   v4          3D, whole cubes, 4096 chips;        on all axes of whole cubes,  45
//               or a part of one cube               else none
//   v5e, v6e    2D, parts of 16x16                  on an axis of 16             45, 90
//   v5p         3D, whole cubes that fit 16x20x28;  on all axes of whole cubes,  90
//               or a part of one cube               else none
//
//     +------+      +------+          A cube is 4x4x4 chips, cabled in one rack; 16 cables leave
//     | cube |--OCS-| cube |--OCS--+  each of its faces and end at optical circuit switches, one
//     | 4^3  |      | 4^3  |       |  for each pair of opposite positions on opposite faces (48 in
//     +------+      +------+       |  all). A switch joins the cubes of a slice to a line and its
//        |                         |  ends to a ring, whichever cubes they are and wherever they
//        +-----------OCS-----------+  stand: so whole cubes wrap, and shapes are free.
//
// An optical switch sets up light paths before a job starts and has no buffers, so to a message it
// is a piece of fibre. Slices are modelled as tori with a cable for each light path. Bandwidth,
// hops and routes are the same. Two differences are options here: cables between cubes may have
// another latency, and the ends of axes may be joined with a twist. Two differences are not
// modelled: a switch that fails takes away one cable position of every cube (name them in
// faults.h), and setting up a slice takes seconds. v3, v5e and v6e have no such switches.
//
// Sources: "How to Scale Your Model" (wraparound, bandwidths, hosts); Google Cloud TPU
// documentation, "System architecture" of each generation (shapes; v4 also names 12x12x24, 54
// cubes, so v4 is limited in chips, not along an axis); Jouppi et al., ISCA 2023 (optical switches,
// twist). That an axis of 32 wraps in a part of a v3 pod is inferred from v5e, not from a source.
// Axes may stand in any order. A single chip counts as a slice.
//
// Hosts, if requested, are nodes "host0.0.0" after the chips. Each is cabled to the chips of its
// box: 4x2 chips (v3, v5e, v6e) or 2x2x1 (v4, v5p), turned so that the slice needs the fewest
// hosts, fewer chips in a smaller slice. Chips don't route through hosts. Hosts are the gateways to
// host memory and other slices (a v5p host has 25 GB/s one way into the data-centre network, and so
// has a v5e host).

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

template <class Struct>
class FieldTable;

enum class TpuGeneration : std::uint8_t { kV3, kV4, kV5e, kV5p, kV6e };
inline constexpr std::array kTpuGenerations = {TpuGeneration::kV3, TpuGeneration::kV4,
                                               TpuGeneration::kV5e, TpuGeneration::kV5p,
                                               TpuGeneration::kV6e};
std::string_view name_of(TpuGeneration generation);  // "v5p"
std::optional<TpuGeneration> tpu_generation_named(std::string_view name);
Bandwidth link_bandwidth_of(TpuGeneration generation);  // one way
Bandwidth host_bandwidth_of(TpuGeneration generation);  // PCIe link of one chip, one way

struct TpuHosts {
  std::optional<Bandwidth> bandwidth{};  // each chip to its host; unset: the generation's
  Duration latency{};                    // 0 unless given
};

struct TpuSliceSpec {
  TpuGeneration generation = TpuGeneration::kV5p;
  std::vector<int> shape{};                   // x, y(, z)
  bool twisted = false;                       // v4, v5p: K x K x 2K or K x 2K x 2K of whole cubes
  std::optional<std::vector<bool>> wraps{};   // expected wraparound; refused if it differs
  std::optional<Bandwidth> link_bandwidth{};  // unset: the generation's
  Duration link_latency{};                    // one hop; 0 unless given
  std::optional<Duration> optical_latency{};  // a hop between cubes; unset: link_latency
  std::optional<TpuHosts> hosts{};
};

// Returns whether each axis wraps, for a slice that is not twisted. REQUIRES: check() finds no
// problem with the shape.
std::vector<bool> wraps_of(TpuGeneration generation, const std::vector<int>& shape);

// The fields in files: topology/kinds/torus/tpu_slice_fields.cc.
const FieldTable<TpuSliceSpec>& tpu_slice_fields();

std::vector<Problem> check(const TpuSliceSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const TpuSliceSpec& spec);

}  // namespace stepsim
