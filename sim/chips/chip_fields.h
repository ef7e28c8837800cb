// The fields of a chip, as files give them. To add one: a member of ChipSpec, a row of
// chip_fields.cc, a line of proto/chip.proto, and the code that uses it.

#pragma once

#include "sim/chips/chip_spec.h"
#include "sim/fields/field.h"

namespace stepsim {

const FieldTable<ChipSpec>& chip_fields();

}  // namespace stepsim
