// ChipSpec is the data of one accelerator, and time_of() what it says about a kernel: the roofline
//
//   max(flops / achievable throughput, bytes / achievable bandwidth) + launch overhead
//
// (Williams, Waterman, Patterson 2009), where what is achievable comes from the chip's efficiency
// model: data in the chip file, never a factor set for one experiment.
//
//   matmul     what the best of the library's tiles takes (sim/chips/matmul_model.h), by data type
//              where types differ
//   attention  a fraction of peak for the forward and one for the backward kernel, of long
//              sequences of heads of 128, times ramps: s / (s + length_ramp) of the keys,
//              t / (t + tile_ramp x units) of the blocks of 128 queries,
//              d / (d + head_ramp), 1 at d = 128, of the head dimension, and the share of a matrix
//              unit's width that heads of d fill
//   decode     attention of serving over its cache: sim/chips/decode_attention.h, by library and
//              type of the cache. A chip without such kernels has the constants of one without
//              losses
//   experts    layers of experts as serving libraries fuse them: sim/chips/expert_layer.h
//   memory     a fraction of peak, times bytes / (bytes + ramp) for small kernels. Elementwise
//              kernels of some kinds reach less: not the memory holds them up but what their units
//              keep in flight. So the time of those is compute time here, which grows as units
//              are taken away, and not as others use the memory
//
// A long step runs at the clock that the board's power allows (PowerLimit): arithmetic slows,
// memory doesn't.
//
// Not modelled: caches, different kernels running side by side.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/chips/decode_attention.h"
#include "sim/chips/expert_layer.h"
#include "sim/chips/kernel.h"
#include "sim/chips/matmul_model.h"

namespace stepsim {

// Every field is explained where it is declared for files, in sim/chips/chip_fields.cc
// (`stepsim help chip`).

struct Peak {
  std::optional<DataType> type{};  // always set in a checked chip
  Throughput throughput{};         // dense
};

// The share of the memory's bandwidth that elementwise kernels of one kind reach while all units
// run them.
struct ElementwiseEfficiency {
  std::optional<ElementwiseKind> kind{};  // always set in a checked chip
  double memory_fraction = 0;
};

// The fused attention kernels of training, as attention_..._fraction and attention_length_ramp.
struct AttentionEfficiency {
  std::optional<AttentionLibrary> library{};  // unset: where the plan names none
  double forward_fraction = 0;
  double backward_fraction = 0;
  std::optional<double> length_ramp{};  // unset: attention_length_ramp
};

// Attention kernels of training whose queries read the keys of a list each (sparse attention):
// fraction of the peak x keys / (keys + keys_ramp), keys a query.
struct GatheredAttention {
  double forward_fraction = 0;
  double backward_fraction = 0;
  double keys_ramp = 0;
};

struct Efficiency {
  MatmulEfficiency matmul{};
  std::vector<MatmulEfficiency> matmul_of{};  // types with values of their own, by weights, too
  double attention_forward_fraction = 1;
  double attention_backward_fraction = 1;
  double attention_length_ramp = 0;
  double attention_tile_ramp = 0;
  double attention_head_ramp = 0;
  std::optional<std::int64_t> attention_matrix_width{};  // unset: heads of any size fill it
  std::vector<AttentionEfficiency> attention_of{};       // of training
  GatheredAttention gathered_attention{};                // forward_fraction 0: as other attention
  double elementwise_fraction = 1;
  double memory_fraction = 1;
  std::vector<ElementwiseEfficiency> elementwise_of{};  // kinds with values of their own
  Bytes memory_ramp{};

  // `weights`: the type of second operands that are narrower than `type`.
  const MatmulEfficiency& matmul_for(DataType type,
                                     std::optional<DataType> weights = std::nullopt) const;
  // Returns nullopt if memory_fraction holds for the kind.
  std::optional<double> memory_fraction_of(ElementwiseKind kind) const;
  // Returns the efficiencies of a training step whose attention is that of `library`: of its entry
  // in attention_of (flash1 and triton of flash2's, if they have none), else of the one without a
  // library, else as they are.
  Efficiency in_training(std::optional<AttentionLibrary> library) const;
};

// The share of the chip that a running communication kernel takes (0 where links are driven by
// DMA).
struct CommunicationCost {
  double compute_share = 0;  // of the arithmetic throughput, 0 <= share < 1
  double memory_share = 0;   // of the memory bandwidth, 0 <= share < 1
};

// How fast one unit adds up values of one type.
struct Reduction {
  std::optional<DataType> type{};  // always set in a checked chip
  Bandwidth throughput{};          // sums: two operands are read and one result is written for each
};

// The chip's resources for communication kernels. The communication library decides how much of
// them is used (sim/collectives/library.h): each of its channels holds one unit.
struct CommunicationUnits {
  std::int64_t units = 0;  // 0: links are driven by DMA, nothing is taken
  // Units that kernels leave free for communication all the time (with_sm_margin). Collectives take
  // these first. The plan sets it, not the chip's file.
  std::int64_t margin = 0;
  std::vector<Reduction> reduction{};
  std::optional<CommunicationCost> fixed{};  // cost of every collective, whatever library runs it
  bool nvls = false;

  // Returns 0 if reduction is faster than anything the unit can read.
  Bandwidth reduction_of(DataType type) const;
};

// What a board may draw. Arithmetic units draw power in proportion to how busy they are, to the
// energy of an operation, which falls with the bits of its operands, and to the third power of the
// clock (the voltage follows the clock):
//
//   idle + energy x peak x busy x clock^3 <= limit,   clock <= 1,
//   energy = joules_per_teraflop x bits / 16
//
// A multiplier takes energy as the square of its bits, moving operands in proportion to them
// (Horowitz, "Computing's Energy Problem", ISSCC 2014), and sums stay fp32 whatever the operands.
// Runs that were made in 16 and in 8 bits ask for a proportion (docs/accuracy.md). The clock is in
// parts of the one that the peaks are stated at. It holds for a class of kernels (matmuls of a
// type, attention) and `busy` is the share of the peak that large ones reach: a step's kernels are
// shorter than the time in which the clock settles, but each class draws what it draws.
//
// Chips of one kind differ in the energy of an operation, and so in the clock at which they reach
// the limit. A step that waits for all of its chips runs at the clock of the one that takes most:
// energy x (1 + energy_spread x z) with the z of slowest_of().
//
// Not modelled: which chip it is (all take its clock), and the temperature of each.
struct PowerLimit {
  double limit_watts = 0;
  double idle_watts = 0;           // all but arithmetic: leakage, memory, links
  double joules_per_teraflop = 0;  // of 16-bit operands at the clock of the peaks, mean of chips
  double energy_spread = 0;        // standard deviation over the mean, between chips
};

// Kernels of serving libraries: the first entry that fits a case holds for it.
struct ServingKernels {
  std::optional<ChipCache> cache{};
  std::vector<DecodeEfficiency> decode{};
  std::vector<DecodeEfficiency> latent_decode{};
  std::vector<ExpertEfficiency> experts{};

  // Returns whether nothing is given.
  bool empty() const {
    return !cache && decode.empty() && latent_decode.empty() && experts.empty();
  }
};

struct ChipSpec {
  std::string name;
  std::string kernel_constants_of{};  // a sister in the catalog; empty: the chip's own
  std::vector<Peak> peak{};           // data types that the chip computes in
  Bandwidth memory_bandwidth{};
  Bytes memory_capacity{};
  Duration launch_overhead{};
  Bytes fixed_memory{};
  Efficiency efficiency{};
  ServingKernels serving{};
  std::optional<PowerLimit> power{};  // none: the clock is that of the peaks
  CommunicationUnits communication{};

  Throughput peak_of(DataType type) const;  // 0: not supported
  void set_peak(DataType type, Throughput throughput);
};

// Returns the same peak for every data type.
std::vector<Peak> peaks_of_all_types(Throughput throughput);

// Returns the clock in a long step of kernels that keep `busy` of the units computing, in parts of
// the clock of the peaks: 0 < clock <= 1, and 1 without a power limit. fp32 outside the matrix
// units is never slowed.
double sustained_clock(const ChipSpec& chip, DataType type, double busy);

// Returns the chip as it is in a long step: the fractions of the peak that matmuls and attention
// reach at their sustained clocks. `slows_loads`: what matmuls load from caches, too, which run at
// the clock of the units; the memory has its own. Passes of inference that wait for thin tiles'
// loads draw less than the limit, so theirs are as at the full clock.
ChipSpec sustained(const ChipSpec& chip, bool slows_loads = true);

// Returns the chip whose operations take most energy of `chips` ones that a step waits for.
// REQUIRES: chips >= 1.
ChipSpec slowest_of(std::int64_t chips, const ChipSpec& chip);

// Returns by how many standard deviations the largest of n normal variates is expected to exceed
// their mean: the quantile of (n - 3/8) / (n + 1/4) (Blom, "Statistical Estimates and Transformed
// Beta-Variables", 1958; within 5 % of the exact expectation, 1 % from n = 8 on). 0 for n = 1.
// REQUIRES: n >= 1.
double expected_largest_normal(std::int64_t n);

// Returns the chip with `units` of its units reserved for communication, even while there is none.
// Arithmetic shrinks in proportion, and waves of tiles use the units that remain. Memory is
// unchanged. REQUIRES: 0 <= units; units is 0 or less than communication.units.
ChipSpec with_sm_margin(const ChipSpec& chip, std::int64_t units);

// Returns no problem if every field is within its limits, elementwise kernels have an fp32 peak to
// compute with, and no type or kind is given twice.
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

// Returns the time of a layer of experts as a serving library runs it. A chip without such a kernel
// has the constants of one without losses. REQUIRES: as time_of_experts(); the chip computes in
// layer.type.
ExpertTime time_of(const ExpertLayer& layer, const ChipSpec& chip);

// Returns the time in which an inference library makes `values` of 16 bits narrower before a matmul
// of that type (quantize_start and quantize_bytes of its MatmulEfficiency).
Duration time_to_quantize(std::int64_t values, DataType type, const ChipSpec& chip);

// Returns the kernel's time while communication holds `taken` of the chip: max(compute_s / (1 -
// compute_share), memory_s / (1 - memory_share)) + overhead.
Duration slowed(const KernelTime& time, CommunicationCost taken);

}  // namespace stepsim
