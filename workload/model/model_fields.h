// The fields of a model in files. To add one: a member of ModelSpec, a row of model_fields.cc, a
// line of proto/model.proto, and the code that uses it.

#pragma once

#include "sim/fields/field.h"
#include "workload/model/model_spec.h"

namespace stepsim {

const FieldTable<ModelSpec>& model_fields();

}  // namespace stepsim
