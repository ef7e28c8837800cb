// search_orders() looks for an order of F, B and W on every rank in which each rank ends in time.
// It is the engine of optimal_schedule(). It grows all orders together, one op at a time. Among
// orders that have run the same ops it drops those that another one matches or beats in every time
// that still matters. With room for all remaining orders it finds the best one or proves that there
// is none. With less room (a beam) it continues with the most promising ones.
//
// The next op is chosen for the rank that is free first. Its input need not be there yet: the rank
// then waits, and the time follows when the input is known. So the search reaches every set of
// lists that can run, except for three kinds. Each of them has an equivalent that is no worse:
//
//   micro-batches of a chunk out of order     they are alike: sorting them delays nothing
//   a gap in which another op fits whole      taking that op from later on delays nothing, and
//                                             what it holds it would hold then as well
//   W before an F or B that could have run    the other way round that op is earlier and W ends
//   when W began, with the memory there       when the pair ended
//
// An order is dropped when a rank can no longer end in time, given its remaining work or the way of
// the last micro-batch from any rank to the last stage and back.
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
  std::int64_t width = 1;  // most states kept after each op; the best go on
  std::int64_t words = 0;  // words of states to make before it gives up
};

struct OrderSearchRequest {
  ScheduleShape shape{};  // placement kLoop or kV
  StageCosts costs = PipelineCosts{};
  std::int64_t memory_limit = 0;          // most micro-batches x chunks in flight on a rank
  std::vector<std::int64_t> deadlines{};  // by rank: latest end of its last op
  OrderSearchLimits limits{};
  // Called after each op. Returning false stops the search.
  bool (*progress)(void* context) = nullptr;
  void* progress_context = nullptr;
};

struct OrderSearchResult {
  // The order found with the least span bubble, then the least makespan; F, B and W only. Unset:
  // none was found.
  std::optional<PipelineSchedule> best{};
  bool is_complete = false;  // nothing was left out for lack of room: `best` is the optimum, or
                             // there is no order that meets the deadlines
  bool was_stopped = false;  // by progress()
  std::int64_t states = 0;   // number of states made
  std::int64_t words = 0;
};

// REQUIRES: costs are positive, the send time is not negative and the same everywhere; W takes
// equally long on all chunks of a rank (a state does not record the chunk of the next W);
// memory_limit >= chunks; there is one deadline per rank.
OrderSearchResult search_orders(const OrderSearchRequest& request);

}  // namespace stepsim
