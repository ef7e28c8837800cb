// The arguments of `stepsim schedule` as a request. They are checked as far as that is possible
// without making the schedule.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/run/trace_options.h"
#include "cli/subcommand.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/search/optimal_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

// The name that asks for a search: schedules/pipeline/search/optimal_schedule.h.
inline constexpr std::string_view kOptimal = "optimal";

struct ScheduleOptions {
  std::string name;                // name of a schedule, kOptimal, or a file
  ScheduleRequest request;         // 0 stages or micro-batches: not given or not readable
  std::vector<std::string> named;  // --compare; may be "all"
  bool batch_p2p = false;
  TraceRequest trace;
  std::string json;
  std::string plot;  // file; empty: none
};

// Adds all problems to `problems`.
ScheduleOptions read_schedule_options(const std::vector<std::string>& arguments,
                                      std::vector<Problem>& problems);

// Returns the problems that check() finds, in terms of options, except those found when reading.
std::vector<Problem> check_options(const ScheduleRequest& request);

// Returns the search that the options ask for, and its problems.
OptimalRequest optimal_request(const ScheduleRequest& given);
std::vector<Problem> check_options(const OptimalRequest& request);

// Returns the request for `name`, without the options that only other schedules have.
ScheduleRequest request_for(ScheduleName name, const ScheduleRequest& given);

// Returns a problem for each given option that none of the schedules has.
std::vector<Problem> unused_options(const ScheduleRequest& given,
                                    const std::vector<ScheduleRequest>& takers);

// Reads the schedule of the file `options.name`. Adds the problems of the file, and the options
// that contradict it, to `problems`.
PipelineSchedule read_schedule_file(const ScheduleOptions& options, std::vector<Problem>& problems);

std::vector<std::string> all_schedule_names();  // without kOptimal

// Returns the options, with the help on each.
OptionList schedule_option_list();

// Returns every schedule with a line about it.
std::string describe_schedules();

}  // namespace stepsim
