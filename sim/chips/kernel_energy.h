// What a kernel's arithmetic takes of the board's power, by the model of PowerLimit
// (sim/chips/chip_spec.h): power grows with the third power of the clock, so an operation takes
// joules in proportion to the square of it.

#pragma once

#include "sim/chips/chip_spec.h"
#include "sim/chips/kernel.h"

namespace stepsim {

// Returns the joules of an operation on operands of this type at the clock of the peaks.
double joules_of_flop(const PowerLimit& power, DataType type);

// Returns the joules that the arithmetic of a kernel takes in a long step, beside what the chip
// draws idle: FLOPs x joules_of_flop() x clock^2, at the sustained clock of the kernel's class.
// Elementwise kernels compute in fp32; those of serving that have a time of their own count as
// matmuls. 0 without a power limit. `chip`: at the clock of the peaks, not sustained().
double joules_of(const Kernel& kernel, const ChipSpec& chip);

}  // namespace stepsim
