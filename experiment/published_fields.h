// The fields of a Publication in experiment files.

#pragma once

#include "experiment/published.h"
#include "sim/fields/field.h"

namespace stepsim {

const FieldTable<Publication>& publication_fields();

}  // namespace stepsim
