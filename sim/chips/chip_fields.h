// The fields of a chip, as files give them. A new datum is a member of ChipSpec, a row of
// chip_fields.cc, a line of proto/chip.proto and what uses it.

#pragma once

#include "sim/base/field.h"
#include "sim/chips/chip_spec.h"

namespace stepsim {

const FieldTable<ChipSpec>& chip_fields();

}  // namespace stepsim
