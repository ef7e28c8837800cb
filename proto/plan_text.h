// Reads a plan from one line of the command line: "tp=8,pp=4,dp=16,microbatch=1,global-batch=1024".
// Keys are the fields of proto/plan.proto, with dashes.

#pragma once

#include <string_view>

#include "proto/plan.pb.h"
#include "proto/problem_list.h"

namespace stepsim {

// Sets the keys of `text` in `plan`, over its earlier values.
void read_plan_text(std::string_view text, file::Plan& plan, ProblemList& problems);

}  // namespace stepsim
