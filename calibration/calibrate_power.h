// Fits the energy of an operation (PowerLimit::joules_per_teraflop) to step times of known plans:
// in a long step the clock falls with it, so it is what steps tell of a chip that kernels by
// themselves don't. Everything else of the chip stays.
//
// Each run is simulated with five energies, from half to twice the present one; between them its
// step time is taken along straight lines.

#pragma once

#include <vector>

#include "calibration/calibration.h"
#include "measured/accuracy.h"

namespace stepsim {

struct PowerCalibration {
  double joules_per_teraflop = 0;
  Calibration calibration;
  std::size_t sources = 0;  // of the rows
};

// `table`: training runs on this chip (its name in the catalog), which may differ from the
// catalog's in its matmuls. Rows without a prediction, that are implausible, or whose source says
// too little (grade C) are not used. Returns nullopt if no row is left. Throws
// SimulationInterrupted. REQUIRES: chip.power.
std::optional<PowerCalibration> calibrate_power(const std::vector<CsvTable>& tables,
                                                const ChipSpec& chip,
                                                const PredictOptions& options);

}  // namespace stepsim
