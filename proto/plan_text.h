// A plan as one line of the command line: "tp=8,pp=4,dp=16,microbatch=1,global-batch=1024". Keys
// are the fields of proto/plan.proto, with dashes.
//
// `order` and `map` are texts with a syntax of their own, the same here and in files:
//
//   order=tp-cp-dp-pp     innermost axis first
//   map=tp:x/dp:y+z       tensor parallelism over level x, data parallelism over y and then z

#pragma once

#include <string_view>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/problem_list.h"
#include "schedules/plan/parallel_plan.h"

namespace stepsim {

// Sets the keys of `text` over those of `plan`.
void read_plan_text(std::string_view text, file::Plan& plan, ProblemList& problems);

// Both report under "plan.order" and "plan.map".
void read_order(std::string_view text, ParallelPlan& plan, ProblemList& problems);
void read_map(std::string_view text, ParallelPlan& plan, ProblemList& problems);

}  // namespace stepsim
