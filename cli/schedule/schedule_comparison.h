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

// PlayedSchedule is a schedule with its costs and its replay.
struct PlayedSchedule {
  std::string name;
  PipelineSchedule schedule;
  StageCosts costs;
  PipelineReplay replayed;
  std::optional<PostingRule> posting{};    // messages in batches
  std::optional<OptimalSchedule> found{};  // set for kOptimal, without the schedule
};

struct Comparison {
  std::vector<PlayedSchedule> rows;  // the schedule itself first; in 1/units of a picosecond
  std::int64_t units = 1;
  std::vector<Problem> skipped;  // schedules of "all" that do not support these numbers
};

// ComparedRequests are the schedules that --compare asks for, with the stages and micro-batches of
// `given`. A schedule that does not support these is a problem, or is left out if all are asked
// for.
struct ComparedRequests {
  std::vector<ScheduleRequest> requests;  // with the times of NAME's chunks
  std::vector<OptimalRequest> optimal;    // one and two chunks, unless --chunks gives the number
  std::vector<Problem> skipped;
};
ComparedRequests compared_requests(const ScheduleOptions& options, const ScheduleRequest& given,
                                   std::vector<Problem>& problems);

// Shows its progress.
OptimalSchedule search_with_progress(OptimalRequest request);

// Returns how a schedule's messages are posted: in batches with --batch-p2p, as planned for a file
// and for an optimal order.
std::optional<PostingRule> posting_of(const ScheduleOptions& options, const std::string& name);

// Throws ConfigError if times are too long for exact sums.
Comparison compare(const ScheduleOptions& options, const PlayedSchedule& own,
                   ComparedRequests compared);

// Returns the share of the model that a micro-batch passes on a rank, in units of 1/P. It is the
// unit of the rank's peak in flight.
std::int64_t parts_of(const PipelineSchedule& schedule);

std::int64_t peak_of(const PlayedSchedule& row);    // on the busiest rank
std::int64_t sends_of(const PlayedSchedule& row);   // messages between ranks in a step
std::int64_t copies_of(const PlayedSchedule& row);  // copies of the parameters
bool is_on_front(const PlayedSchedule& row, const Comparison& comparison);

}  // namespace stepsim
