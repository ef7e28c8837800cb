// The fields of a chip's serving kernels, as files give them: group `serving` of a chip.

#pragma once

#include "sim/chips/chip_spec.h"
#include "sim/fields/field.h"

namespace stepsim {

const FieldTable<ServingKernels>& serving_fields();

}  // namespace stepsim
