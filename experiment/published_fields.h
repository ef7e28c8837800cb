// The fields of what was published about an experiment, as experiment files give them.

#pragma once

#include "experiment/published.h"
#include "sim/base/field.h"

namespace stepsim {

const FieldTable<Publication>& publication_fields();

}  // namespace stepsim
