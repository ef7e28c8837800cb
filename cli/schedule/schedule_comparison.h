// `--compare`: schedules that do the same work, side by side.
//
// A rank's forwards take the same time in each schedule, however many chunks they are cut into, and
// so do its backwards. If stages differ, the model is cut anew with each stage's work spread evenly
// over the stage. A send takes the same time. Four things are compared: the makespan, the
// activations held on the busiest rank, the messages, and the copies of the parameters. A schedule
// is on the Pareto front if no other is at least as good in all four and better in one.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/schedule/schedule_options.h"
#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/replay/replay.h"

namespace stepsim {

// A schedule, its costs, and its replay.
struct PlayedSchedule {
  std::string name;
  PipelineSchedule schedule;
  StageCosts costs;
  PipelineReplay replayed;
  std::optional<PostingRule> posting{};    // messages in batches
  std::optional<OptimalSchedule> found{};  // of kOptimal, without the schedule
};

struct Comparison {
  std::vector<PlayedSchedule> rows;  // the schedule itself first; in 1/units of a picosecond
  std::int64_t units = 1;
  std::vector<Problem> skipped;  // schedules of "all" that don't take these numbers
};

// The schedules that --compare asks for, with the stages and micro-batches of `given`. Schedules
// that don't take them are problems, or left out where all are asked for.
struct ComparedRequests {
  std::vector<ScheduleRequest> requests;  // with the times of NAME's chunks
  std::vector<OptimalRequest> optimal;    // one and two chunks, unless --chunks says how many
  std::vector<Problem> skipped;
};
ComparedRequests compared_requests(const ScheduleOptions& options, const ScheduleRequest& given,
                                   std::vector<Problem>& problems);

// Shows its progress. Throws SimulationInterrupted if an interrupt came.
OptimalSchedule search_with_progress(OptimalRequest request);

// The way a schedule's messages are posted: in batches with --batch-p2p, a file's and an optimal
// order's as planned.
std::optional<PostingRule> posting_of(const ScheduleOptions& options, const std::string& name);

// Throws ConfigError if times are too long for exact sums.
Comparison compare(const ScheduleOptions& options, const PlayedSchedule& own,
                   ComparedRequests compared);

// The share of the model that a micro-batch meets on a rank, in units of 1/P: the unit of its peak
// in flight.
std::int64_t parts_of(const PipelineSchedule& schedule);

std::int64_t peak_of(const PlayedSchedule& row);    // on the busiest rank
std::int64_t sends_of(const PlayedSchedule& row);   // messages between ranks in a step
std::int64_t copies_of(const PlayedSchedule& row);  // of the parameters
bool is_on_front(const PlayedSchedule& row, const Comparison& comparison);

}  // namespace stepsim
