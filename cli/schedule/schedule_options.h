// The arguments of `stepsim schedule` as a request. They are checked as far as that is possible
// without making the schedule.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/subcommand.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/search/optimal_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

// The name of the schedule that is searched for: schedules/pipeline/search/optimal_schedule.h.
inline constexpr std::string_view kOptimal = "optimal";

struct ScheduleOptions {
  std::string name;                // of a schedule, kOptimal, or a file
  ScheduleRequest request;         // 0 stages or micro-batches: not given, or not readable
  std::vector<std::string> named;  // --compare; may be "all"
  bool batch_p2p = false;
  std::string trace;
  std::string json;
};

// Adds all problems to `problems`.
ScheduleOptions read_schedule_options(const std::vector<std::string>& arguments,
                                      std::vector<Problem>& problems);

// The problems that check() finds, in terms of options, except those found when reading.
std::vector<Problem> check_options(const ScheduleRequest& request);

// The search that the options ask for, and its problems.
OptimalRequest optimal_request(const ScheduleRequest& given);
std::vector<Problem> check_options(const OptimalRequest& request);

// The request for `name`, without the options that only other schedules have.
ScheduleRequest request_for(ScheduleName name, const ScheduleRequest& given);

// A problem for each option that was given and that none of the schedules has.
std::vector<Problem> unused_options(const ScheduleRequest& given,
                                    const std::vector<ScheduleRequest>& takers);

// The schedule of the file `options.name`. Adds the problems of the file, and the options that
// contradict it, to `problems`.
PipelineSchedule read_schedule_file(const ScheduleOptions& options, std::vector<Problem>& problems);

std::vector<std::string> all_schedule_names();  // without kOptimal

// The options, with the help on each.
OptionList schedule_option_list();

// Every schedule with a line about it.
std::string describe_schedules();

}  // namespace stepsim
