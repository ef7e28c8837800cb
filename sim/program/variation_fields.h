// The fields of a variation in files.

#pragma once

#include "sim/fields/field.h"
#include "sim/program/variation.h"

namespace stepsim {

const FieldTable<Variation>& variation_fields();

}  // namespace stepsim
