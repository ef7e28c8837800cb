// What `stepsim schedule` is asked for: the arguments as a request, checked as far as that goes
// without making the schedule.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline/make_schedule.h"
#include "schedules/pipeline/search/optimal_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

// What is searched for instead of made: schedules/pipeline/search/optimal_schedule.h.
inline constexpr std::string_view kOptimal = "optimal";

struct ScheduleOptions {
  std::string name;                // of a schedule, kOptimal, or a file
  ScheduleRequest request;         // 0 stages or micro-batches: not given, or not readable
  std::vector<std::string> named;  // --compare; may be "all"
  bool batch_p2p = false;
  std::string trace;
  std::string json;
};

// Adds everything that is wrong to `problems`.
ScheduleOptions read_schedule_options(const std::vector<std::string>& arguments,
                                      std::vector<Problem>& problems);

// What check() says, in terms of options, without what was said when they were read.
std::vector<Problem> check_options(const ScheduleRequest& request);

// The search for the best schedule that the options ask for, and what is wrong with it.
OptimalRequest optimal_request(const ScheduleRequest& given);
std::vector<Problem> check_options(const OptimalRequest& request);

// The request for `name` with the options that it has: none that only others have.
ScheduleRequest request_for(ScheduleName name, const ScheduleRequest& given);

// Options that were given and that none of the schedules has.
std::vector<Problem> unused_options(const ScheduleRequest& given,
                                    const std::vector<ScheduleRequest>& takers);

// The schedule of the file `options.name`; adds what is wrong with it, and what of the options says
// otherwise, to `problems`.
PipelineSchedule read_schedule_file(const ScheduleOptions& options, std::vector<Problem>& problems);

std::vector<std::string> all_schedule_names();  // but for kOptimal

// The options as a person reads them, for `stepsim help schedule`.
std::string describe_schedule_options();

}  // namespace stepsim
