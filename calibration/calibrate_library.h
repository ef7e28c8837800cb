// Fits the timings of a communication library (sim/collectives/library.h) to measured collectives:
// each path and protocol by itself, to the rows that run with it: those for which it is the fastest
// (library_choice.h). With new constants others may be the fastest, so the rows are dealt out
// again, and each is fitted to the rows of earlier rounds too, until none changes its way, at most
// eight times. The round with the least error counts.
//
// Hops are fitted for the wires that they go over in the rows: inside a node, over the network. LL
// and LL128 send flags with the data, so LL128 gets no more than 120 of 128 bytes of a link.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/calibration.h"
#include "calibration/collective_terms.h"

namespace stepsim {

struct CollectiveTiming {
  std::string name;  // "all_reduce of 8": rows of one name are summed up together
  CollectiveOnCluster collective;
  std::string shape;  // operation, ranks, nodes, bytes and type
  double seconds = 0;
};

struct LibraryCalibration {
  CommunicationLibrary library;      // with the new timings
  std::vector<std::size_t> changed;  // indices of timings with a fitted constant
  std::vector<Calibration> fits;     // one for each timing that rows have run with
  // By the simulator, over all rows: by operation and ranks, then all.
  std::vector<CalibrationErrors> errors;
  std::size_t without_timing = 0;  // rows that no timing of the library is for
};

// Takes the library as it is on the cluster (with `inside`). Rows of several clusters may be
// given.
LibraryCalibration calibrate_library(const std::vector<CollectiveTiming>& timings,
                                     const CommunicationLibrary& library);

}  // namespace stepsim
