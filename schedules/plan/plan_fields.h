// The keys of a plan: fields of the message Plan in files, with dashes or underscores in --plan and
// --set. To add one: a member of ParallelPlan, a row of plan_fields.cc, a line of proto/plan.proto,
// and the code that uses it.

#pragma once

#include "schedules/plan/parallel_plan.h"
#include "sim/base/field.h"

namespace stepsim {

const FieldTable<ParallelPlan>& plan_fields();

}  // namespace stepsim
