// The fields of a chip's serving kernels, as files give them: group `serving` of a chip.

#pragma once

#include "sim/base/field.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

const FieldTable<ServingKernels>& serving_fields();

}  // namespace stepsim
