// optimal_schedule() looks for the best schedule of one model copy (every rank holds `chunks`
// stages) for given times and memory. It minimises the span bubble and then the makespan. If stages
// differ, it minimises the longest span of a rank; the excess over the busiest rank's work counts
// as the bubble.
//
//   const OptimalRequest request{.stages = 4, .microbatches = 8, .costs = {10, 12, 8, 0},
//                                .memory_limit = 4};
//   throw_if_any(check(request));
//   const OptimalSchedule optimal = optimal_schedule(request);
//   optimal.objective       // 42: span bubble, what the zero-bubble papers minimise
//   optimal.is_proven       // no order within the memory has less
//
// The span bubble is the most that a rank idles between its own first start and last end (Qi et
// al., arXiv 2401.10241, appendix: their integer programme minimises the same).
//
// The search starts from every published schedule with as many chunks per rank and one copy of the
// parameters that fits in the memory. The planners (ZB auto, ZB-V) run with their own limit and
// with all of the memory. So the result is never worse than these. Orders of list scheduling
// (greedy_schedule.h) join them; they are much better if memory is smaller than the published
// schedules were made for.
//
// Then it searches exactly (order_search.h) as long as the search stays small. Otherwise four
// random steps with a fixed seed follow, which decide the result for large pipelines: single ops of
// the best order and of the best published one are moved (order_polish.h); the planners run with
// slightly different times; the numbers that guide list scheduling are changed a little at a time;
// ops are moved again. A beam search gets the last of the effort.
//
// A result is proven if an exact search found nothing better or if the objective equals the bound
// of span_bound.h. Orders in which the W of a rank's chunks differ are not searched exactly: only
// list scheduling, planners and moves apply.
//
// With several chunks, both layouts of the stages (loop and V) are searched unless one is given.
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
  std::int64_t chunks = 1;  // per rank
  PipelineCosts costs{};
  std::vector<PipelineCosts> stage_costs{};    // like ScheduleRequest::stage_costs
  std::optional<std::int64_t> memory_limit{};  // most micro-batches x chunks in flight on a rank
  std::optional<Placement> placement{};        // kLoop or kV; unset: the better one
  std::int64_t effort = 200'000'000;           // words of search states
  // Receives the share of the effort that is spent. Returning false ends the search with the best
  // order so far.
  bool (*progress)(void* context, double done) = nullptr;
  void* progress_context = nullptr;
};

struct OptimalSchedule {
  PipelineSchedule schedule{};
  std::int64_t objective = 0;    // longest span of a rank - work of the busiest rank
  std::int64_t lower_bound = 0;  // least objective of any order
  bool is_proven = false;        // whether no order has a smaller span bubble
  // "search", "list scheduling", "planning with other times", or the name of the published schedule
  // that nothing beat.
  std::string origin{};
  std::int64_t states = 0;  // states of the search and whole orders that were tried
};

// Returns every rule that the request breaks.
std::vector<Problem> check(const OptimalRequest& request);

// REQUIRES: check(request) is empty.
OptimalSchedule optimal_schedule(const OptimalRequest& request);

}  // namespace stepsim
