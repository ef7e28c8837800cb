// optimal_schedule() looks for the best schedule of one model copy (every rank holds `chunks`
// stages) for given times and memory: least span bubble, and of those the least makespan. Where
// stages differ the longest span of a rank is made short, and what it is longer than the busiest
// rank's work counts as the bubble.
//
//   const OptimalRequest request{.stages = 4, .microbatches = 8, .costs = {10, 12, 8, 0},
//                                .memory_limit = 4};
//   throw_if_any(check(request));
//   const OptimalSchedule optimal = optimal_schedule(request);
//   optimal.objective       // 42: span bubble, what the zero-bubble papers minimise
//   optimal.is_proven       // no order within the memory has less
//
// The span bubble is the most that a rank idles between its own first start and last end (Qi et
// al., arXiv 2401.10241, appendix: their integer programme minimises the same). It starts from
// every published schedule with as many chunks a rank and one copy of the parameters that keeps
// within the memory, the planners (ZB auto, ZB-V) with their own limit and with all of it, so it is
// never worse than they are. Orders of list scheduling (greedy_schedule.h) join them, which are
// much better where memory is short of what the published ones were made for. Then it searches
// (order_search.h): exactly for as long as that stays small. If it does not, single ops of the best
// order and of the best published one are moved (order_polish.h), the planners are told somewhat
// other times, the numbers that guide list scheduling are changed a little at a time, and ops are
// moved again, all at random with a fixed seed: what decides large pipelines. The last of the
// effort goes into a beam. A proof is either an exact search that found nothing better, or an
// objective equal to the bound of span_bound.h. (Chunks of a rank whose W differ are not searched:
// list scheduling, planners and moves only.)
//
// Several chunks: both ways to lay out the stages, loop and V, are searched, unless one is given.
// Orders use split backwards, which are never worse than whole ones.
//
// Deterministic: effort is counted in words of states made, not in time. 10^8 words are 1 to 2 s.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

struct OptimalRequest {
  std::int64_t stages = 0;  // ranks of the pipeline
  std::int64_t microbatches = 0;
  std::int64_t chunks = 1;  // a rank
  PipelineCosts costs{};
  std::vector<PipelineCosts> stage_costs{};    // as those of ScheduleRequest
  std::optional<std::int64_t> memory_limit{};  // micro-batches x chunks in flight on a rank
  std::optional<Placement> placement{};        // kLoop or kV; none: the better one
  std::int64_t effort = 200'000'000;           // words of search states
  // Told the share of the effort that is spent; false ends the search with what there is.
  bool (*progress)(void* context, double done) = nullptr;
  void* progress_context = nullptr;
};

struct OptimalSchedule {
  PipelineSchedule schedule{};
  std::int64_t objective = 0;    // longest span of a rank - work of the busiest rank
  std::int64_t lower_bound = 0;  // of any order's
  bool is_proven = false;        // no order has a smaller span bubble
  // "search", "list scheduling", "planning with other times", or the published schedule that
  // nothing was found to beat.
  std::string origin{};
  std::int64_t states = 0;  // of the search, and whole orders that were tried
};

// Every rule that the request breaks.
std::vector<Problem> check(const OptimalRequest& request);

// REQUIRES: check(request) is empty.
OptimalSchedule optimal_schedule(const OptimalRequest& request);

}  // namespace stepsim
