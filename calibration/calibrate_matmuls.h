// Fits the matmul constants of a chip and type (sim/chips/matmul_model.h) to timings of kernels.
//
// Tiles, units and splits stay as the chip's file has them: no table of times tells them. Of 16
// bits and more `start` is fitted; narrower types take it from the chip where the rows time the
// kernel that makes the operands narrow as well, and that kernel's two constants are fitted. Rows
// of 1,024 and more weigh 1.6: training has them.

#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "calibration/calibration.h"
#include "measured/predict_kernels.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

// The types of a matmul's operands. `weights`: of second operands that are narrower.
struct MatmulType {
  DataType type = DataType::kBf16;
  std::optional<DataType> weights{};

  friend auto operator<=>(const MatmulType&, const MatmulType&) = default;
};
std::string name_of(const MatmulType& type);  // "bf16", "bf16 with int8 weights"

struct MatmulTiming {
  MeasuredKernel kernel;  // a matmul
  double seconds = 0;
};

// Returns the values of matmuls of this type: those of matmul_of if it is there, those of `matmul`
// for 16 bits; otherwise adds an entry to matmul_of.
MatmulEfficiency& matmul_entry(ChipSpec& chip, const MatmulType& type);

struct MatmulCalibration {
  MatmulEfficiency efficiency;  // of the type; its entry in the calibrated chip
  Calibration calibration;
};

// REQUIRES: timings is not empty; all are matmuls of the type, which the chip computes in.
MatmulCalibration calibrate_matmuls(const std::vector<MatmulTiming>& timings, const ChipSpec& chip,
                                    const MatmulType& type);

}  // namespace stepsim
