// search_orders() looks for an order of F, B and W on every rank in which each rank ends in time.
// It is the engine of optimal_schedule(). It grows all orders together, an op at a time. Among
// orders that have run the same ops it drops those that another one beats or equals in every time
// that still matters. With room for all that are left it finds the best order or proves that there
// is none. With less room (a beam) it goes on with the most promising ones.
//
// The next op is chosen for the rank that is free first. Its input need not be there yet: the rank
// then waits, and the time follows when the input is known. So the search reaches every set of
// lists that can run at all, except these three, each of which has another list that is no worse:
//
//   micro-batches of a chunk out of order     they are alike: sorting them delays nothing
//   a gap in which another op fits whole      taking that op from later on delays nothing, and
//                                             what it holds it would hold then as well
//   W before an F or B that could have run    the other way round that op is earlier and W ends
//   when W began, with the memory there       when the pair ended
//
// An order is given up when a rank can't end in time: with the work that is left to it, or with
// the way of the last micro-batch to the last stage and back, from every rank on.
//
// Time: states x (stages x (chunks + 2) + messages on their way). Deterministic.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct OrderSearchLimits {
  std::int64_t width = 1;  // states after each op, at most: the best ones go on
  std::int64_t words = 0;  // of states that may be made before it gives up
};

struct OrderSearchRequest {
  ScheduleShape shape{};  // placement kLoop or kV
  StageCosts costs = PipelineCosts{};
  std::int64_t memory_limit = 0;          // micro-batches x chunks in flight on a rank
  std::vector<std::int64_t> deadlines{};  // by rank: when its last op must have ended
  OrderSearchLimits limits{};
  // Called after each op; false stops the search.
  bool (*progress)(void* context) = nullptr;
  void* progress_context = nullptr;
};

struct OrderSearchResult {
  // Least span bubble, then makespan, of those found; F, B and W only. None: none found.
  std::optional<PipelineSchedule> best{};
  bool is_complete = false;  // nothing was left out for lack of room: `best` is the optimum, or
                             // there is no order that meets the deadlines
  bool was_stopped = false;  // by progress()
  std::int64_t states = 0;   // made
  std::int64_t words = 0;
};

// REQUIRES: costs positive, the send time not negative and the same everywhere; W takes as long on
// all chunks of a rank (a state doesn't know of which one the next is); memory_limit >= chunks; a
// deadline a rank.
OrderSearchResult search_orders(const OrderSearchRequest& request);

}  // namespace stepsim
