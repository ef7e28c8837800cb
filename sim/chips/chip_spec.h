// ChipSpec is the data of one accelerator, and time_of() what it says about a kernel: the roofline
//
//   max(flops / achievable throughput, bytes / achievable bandwidth) + launch overhead
//
// (Williams, Waterman, Patterson 2009), where what is achievable comes from the chip's efficiency
// model: data in the chip file, never a factor set for one experiment.
//
//   matmul     a fraction of peak, by data type where types differ, times what the shape loses:
//              tiles that stick out of the matrix (tile quantisation), a last wave of tiles that
//              leaves units idle (wave quantisation), and the ramp of a short inner dimension,
//              k / (k + ramp). Narrow matrices get narrower tiles, in steps of 16; where there are
//              fewer tiles than units, k is split over the idle ones. Where the result is added
//              to an accumulator, a fraction of that
//   attention  a fraction of peak for the forward and one for the backward kernel, of long
//              sequences of heads of 128, times ramps: s / (s + length_ramp) of the keys,
//              t / (t + tile_ramp x units) of the blocks of 128 queries, and
//              d / (d + head_ramp), 1 at d = 128, of the head dimension
//   memory     a fraction of peak, times bytes / (bytes + ramp) for small kernels. Elementwise
//              kernels of some kinds reach less: not the memory holds them up but what their units
//              keep in flight. So the time of those is compute time here, which grows as units
//              are taken away, and not as others use the memory
//
// Not modelled: caches, clocks that throttle, different kernels running side by side.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/chips/kernel.h"

namespace stepsim {

struct MatmulEfficiency {
  double peak_fraction = 1;  // of the data type's peak, for a large, well-shaped matmul
  std::int64_t tile_m = 1;   // output tile that one compute unit works on; 1 loses nothing
  std::int64_t tile_n = 1;
  std::int64_t compute_units = 1;  // tiles in one wave; 1 turns wave quantisation off
  double inner_ramp = 0;           // inner dimension at which half of the throughput is reached
  std::int64_t least_split = 0;    // of k, where it is split; 0: never
  // Of all that, what matmuls reach that add to an accumulator in memory: weight gradients.
  double accumulating = 1;
};

struct Efficiency {
  MatmulEfficiency matmul{};
  std::array<std::optional<MatmulEfficiency>, kDataTypes> matmul_of{};  // of types that differ
  double attention_forward_fraction = 1;
  double attention_backward_fraction = 1;
  double attention_length_ramp = 0;  // keys
  double attention_tile_ramp = 0;    // blocks of 128 queries for each of matmul.compute_units
  double attention_head_ramp = 0;    // head dimension
  double elementwise_fraction = 1;   // of fp32 peak: elementwise arithmetic is rarely the bound
  double memory_fraction = 1;
  // Of the memory's peak too, by ElementwiseKind, where all units run it; 0: as memory_fraction.
  std::array<double, kElementwiseKinds> elementwise_of{};
  Bytes memory_ramp{};  // kernel size at which half of the bandwidth is reached
};

// What a running communication kernel takes from the chip (0 where links are driven by DMA).
struct CommunicationCost {
  double compute_share = 0;  // of the arithmetic throughput, 0 <= share < 1
  double memory_share = 0;   // of the memory bandwidth, 0 <= share < 1
};

// What the chip has for communication kernels. How much of it they take, the communication library
// says (sim/collectives/library.h): each of its channels holds one unit.
struct CommunicationUnits {
  std::int64_t units =
      0;  // streaming multiprocessors; 0: links are driven by DMA, nothing is taken
  // Of those, what kernels leave to communication all the time (with_sm_margin); collectives hold
  // these first.
  std::int64_t margin = 0;
  // By DataType, what one unit adds up: bytes of sums a second, each of which is two operands read
  // and one result written. 0: faster than anything it can read.
  std::array<Bandwidth, kDataTypes> reduction{};
  std::optional<CommunicationCost>
      fixed{};  // every collective takes this, whatever the library says
  // The switch between the chips of a node adds up and copies (NVLink SHARP, since NVLink 4).
  bool nvls = false;
};

struct ChipSpec {
  std::string name;
  std::array<Throughput, kDataTypes> peak{};  // dense, by DataType; 0 where not supported
  Bandwidth memory_bandwidth{};
  Bytes memory_capacity{};  // what the driver reports, not the "GB" of the name
  Duration launch_overhead{};
  Bytes fixed_memory{};  // context and library workspaces
  Efficiency efficiency{};
  // Clock under load that lasts over that of the short runs to which `efficiency` is fitted: power
  // and heat limit it. Runs take sustained(chip); time_of() alone does not look at it.
  double sustained_clock = 1;
  CommunicationUnits communication{};

  Throughput peak_of(DataType type) const { return peak[static_cast<std::size_t>(type)]; }
};

// The chip in a long step: its peaks at the sustained clock.
ChipSpec sustained(const ChipSpec& chip);

// The chip whose kernels run on all but `units` of its units, which are communication's even while
// there is none: arithmetic in proportion, waves of tiles on those that are left. Memory is as
// before.
// REQUIRES: 0 <= units; 0 or less than communication.units.
ChipSpec with_sm_margin(const ChipSpec& chip, std::int64_t units);

// Empty when the spec makes sense: positive rates and sizes, fractions in (0, 1], shares in [0, 1).
std::vector<Problem> check(const ChipSpec& spec);

struct KernelTime {
  double compute_s = 0;  // flops / achievable throughput
  double memory_s = 0;   // bytes / achievable bandwidth
  Duration overhead{};
  Duration total{};  // max of the two, rounded up, plus overhead
  bool memory_bound() const { return memory_s > compute_s; }
};

// REQUIRES: check(chip) is empty; the chip supports kernel.type or the kernel has no flops.
KernelTime time_of(const Kernel& kernel, const ChipSpec& chip);

// The same while communication holds `taken` of the chip:
// max(compute_s / (1 - compute_share), memory_s / (1 - memory_share)) + overhead.
Duration slowed(const KernelTime& time, CommunicationCost taken);

}  // namespace stepsim
