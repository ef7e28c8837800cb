// ComputeRuns computes how long runs of kernels take, also while communication takes a part of the
// chip.
//
// The kernels of a run follow one another; a run takes the sum of their times. A collective of a
// GPU holds a share of the arithmetic units and of the memory bandwidth from its start to its end:
// its channels over the units of the chip, and the bytes it reads and writes over the bandwidth of
// the memory. Several shares add up, to at most ChipShare::kMost. Units that kernels leave to
// communication anyway (CommunicationUnits::margin) are held first and cost nothing more. At each
// change the remaining fraction of the run is rescaled to the new pace, and a new end is scheduled.
// An end event is stale if its time is not the rank's ends_at().

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/chips/chip_spec.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/chip_share.h"
#include "sim/run/ops/job.h"

namespace stepsim {

class ComputeRuns {
 public:
  ComputeRuns(const Job& job, const ChipSpec& chip);

  // Starts a run on `rank` and returns its end. It takes `factor` times as long as normally.
  Time start(RankId rank, ComputeWorkId work, double factor, Time now);
  void end(RankId rank) { states_[rank.index()].running = false; }

  bool running(RankId rank) const { return states_[rank.index()].running; }
  Time ends_at(RankId rank) const { return states_[rank.index()].ends_at; }

  // A collective starts (+1) or stops (-1) holding its shares of the chip of `rank`. Returns
  // whether the rank's run now ends at another time, which has to be scheduled.
  bool change_communication(RankId rank, ChipShare share, int change, Time now);

  Flops flops(ComputeWorkId work) const { return flops_[work.index()]; }

 private:
  struct State {
    Time ends_at;
    Time since;         // last change of pace
    double left = 1;    // fraction of the run left at `since`
    double factor = 1;  // the rank's slowdown times its jitter
    ComputeWorkId work;
    ChipShare taken{};
    bool running = false;
  };
  struct Pace {
    ChipShare taken;
    Duration duration;
  };

  Duration pace(const State& state, ChipShare taken);

  const Job& job_;
  double margin_ = 0;  // fraction of the units that is left to communication
  std::vector<std::vector<KernelTime>> kernels_;  // by work
  std::vector<std::vector<Pace>> durations_;      // by work; first without communication
  std::vector<Flops> flops_;                      // by work
  std::vector<State> states_;                     // by rank
};

}  // namespace stepsim
