// ComputeRuns says how long runs of kernels take, also while communication takes a part of the
// chip.
//
// The kernels of a run follow one another; a run takes the sum of their times. A collective of a
// GPU holds a share of the arithmetic units and of the memory bandwidth from its start to its end:
// its channels over the units of the chip, and what it reads and writes over the bandwidth of the
// memory. Several add up, to at most kMostTaken. Units that kernels leave to communication anyway
// (CommunicationUnits::margin) are held first, and cost nothing more. At each change the fraction
// of the run that is left is rescaled to the new pace, and a new end is scheduled; an end event is
// stale when its time is not the rank's ends_at().

#pragma once

#include <cstdint>
#include <vector>

#include "sim/chips/chip_spec.h"
#include "sim/collectives/library_choice.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// In millionths, so that sums do not depend on their order.
struct ChipShare {
  std::int32_t compute = 0;
  std::int32_t memory = 0;
  friend bool operator==(const ChipShare&, const ChipShare&) = default;
};

// What a collective that costs `cost` takes of a chip.
ChipShare taken_of(const ChipSpec& chip, const LibraryCost& cost);

class ComputeRuns {
 public:
  static constexpr double kMostTaken = 0.9;  // shares of several communication ops add up to this

  ComputeRuns(const OpGraph& graph, const ChipSpec& chip);

  // Starts a run on `rank` and returns its end. `factor`: of the time that it takes by itself.
  Time start(std::uint32_t rank, std::uint32_t work, double factor, Time now);
  void end(std::uint32_t rank) { states_[rank].running = false; }

  bool running(std::uint32_t rank) const { return states_[rank].running; }
  Time ends_at(std::uint32_t rank) const { return states_[rank].ends_at; }

  // A collective begins (+1) or ends (-1) to hold its shares of the chip of `rank`. Returns
  // whether the rank's run now ends at another time, which has to be scheduled.
  bool change_communication(std::uint32_t rank, ChipShare share, int change, Time now);

  // How long a run takes alone, and how many FLOPs it is.
  Duration duration(std::uint32_t work) const { return durations_[work].front().duration; }
  Flops flops(std::uint32_t work) const { return flops_[work]; }

 private:
  struct State {
    Time ends_at;
    Time since;         // of the last change of pace
    double left = 1;    // fraction of the run that was left then
    double factor = 1;  // of its time: what the rank and its jitter make of it
    std::uint32_t work = 0;
    ChipShare taken{};
    bool running = false;
  };
  struct Pace {
    ChipShare taken;
    Duration duration;
  };

  Duration pace(const State& state, ChipShare taken);

  const OpGraph& graph_;
  double margin_ = 0;                             // of the chip's units, left to communication
  std::vector<std::vector<KernelTime>> kernels_;  // by work
  std::vector<std::vector<Pace>> durations_;      // by work, nothing taken first; as needed
  std::vector<Flops> flops_;                      // by work
  std::vector<State> states_;                     // by rank
};

}  // namespace stepsim
