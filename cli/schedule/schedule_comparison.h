// `--compare`: schedules that do the same work, side by side.
//
// A rank's forwards, backwards and so on take as long in each, however many chunks they are cut
// into; where stages differ the model is cut anew, each stage's work spread evenly over it. A send
// takes the same. What counts: the makespan, the activations held on the busiest rank,
// messages, and copies of the parameters. A schedule on the Pareto front is one that no other is
// as good as in all four, or better.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/schedule/schedule_options.h"
#include "schedules/pipeline/replay/posting.h"
#include "schedules/pipeline/replay/replay.h"

namespace stepsim {

// A schedule, where it comes from, and what it takes.
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
  std::vector<Problem> skipped;  // of "all": those that don't take these numbers
};

// What --compare asks for, for so many stages and micro-batches as `given` has. Schedules that
// don't take them are problems, or left out where all are asked for.
struct ComparedRequests {
  std::vector<ScheduleRequest> requests;  // with the times of NAME's chunks
  std::vector<OptimalRequest> optimal;    // one and two chunks, unless --chunks says how many
  std::vector<Problem> skipped;
};
ComparedRequests compared_requests(const ScheduleOptions& options, const ScheduleRequest& given,
                                   std::vector<Problem>& problems);

// Shows how far it is; throws SimulationInterrupted where it is interrupted.
OptimalSchedule search_with_progress(OptimalRequest request);

// How the messages of a schedule go: in batches with --batch-p2p, a file's and an optimal order's
// as planned.
std::optional<PostingRule> posting_of(const ScheduleOptions& options, const std::string& name);

// Throws ConfigError if times are too long for exact sums.
Comparison compare(const ScheduleOptions& options, const PlayedSchedule& own,
                   ComparedRequests compared);

// Parts of 1/P of the model that a micro-batch meets on a rank: the unit of its peak in flight.
std::int64_t parts_of(const PipelineSchedule& schedule);

std::int64_t peak_of(const PlayedSchedule& row);    // on the busiest rank
std::int64_t sends_of(const PlayedSchedule& row);   // messages between ranks in a step
std::int64_t copies_of(const PlayedSchedule& row);  // of the parameters
bool is_on_front(const PlayedSchedule& row, const Comparison& comparison);

}  // namespace stepsim
