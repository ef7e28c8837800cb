// The fields of a model, as files give them. A new field is a member of ModelSpec, a row of
// model_fields.cc, a line of proto/model.proto and what uses it.

#pragma once

#include "sim/base/field.h"
#include "workload/model_spec.h"

namespace stepsim {

const FieldTable<ModelSpec>& model_fields();

}  // namespace stepsim
