// What `stepsim search` says: a table, JSON, CSV and a picture.
//
// The JSON is one object:
//   asked             what was asked for: the options as given
//   objective         "step", "memory" or "cost"
//   considered        combinations of values in the space
//   excluded          {reason: count}; with `simulated` it adds up to `considered`
//   simulated         plans that were simulated
//   outcome           "found", "likely", "nothing fits", "not fast enough", "not known"
//   bound_gap         0: the best plan is proven; 0.02: another may be up to 2 % better; 1: nothing
//                     is known of the best
//   searched_keys     the keys of the space, over which bound_gap holds
//   answer            the best plan of all, as those of `best`, with refined: whether it is one of
//                     refined.plans, and training; null: none fits
//   training          with --tokens: {tokens, days, days_interval, cost, energy_kwh} of a whole
//                     training with the plan, without failures
//   best_of_cluster   with several clusters: the best plan of each, as those of `best`, with
//                     bound_gap and training; {cluster, plan: null, bound_gap} where none fits
//   front_is_whole    whether every plan that could be on the front was simulated
//   front_gap         0 then; 0.02: one that wasn't may have 2 % less time and memory than each of
//                     the front
//   front_whole_until_s   the front is whole up to this step time; null: all of it
//   best              [{cluster, plan {key: value}, step_time_s, step_time_interval_s, peak_bytes,
//                     peak_interval_bytes, fits, fits_certainty ("sure", "likely", "no"),
//                     model_flops_utilization, chips, cost, energy_joules, run}...], best
//                     first. run: the command that runs it. Those that leave the headroom; where
//                     none does, those that are likely to fit, or those with the least memory
//   front             the same of the plans that no other beats in time, memory and chips
//   refined           {plans [like best, with `of`, the number of the plan of `best` that it comes
//                     from (null: the best of its cluster, which is not listed), and changes [{key,
//                     from, to}...]], considered, excluded, simulated, is_whole}; absent with
//                     --refine none
//   why               the plan of --why: {plan, problems, found, step_bound_s, memory_bound_bytes}

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "books/laboratory/plot.h"
#include "cli/search/search_options.h"
#include "proto/plan_text.h"
#include "search/refine.h"
#include "search/search.h"

namespace stepsim {

// Returns the keys that differ from the defaults, as --plan, --software and --pass read them.
KeyTexts key_texts(const ParallelPlan& plan);
// Returns them as words of a command: "--plan tp=8,.. --software ..". `quoted`: for a shell.
std::string words_of_plan(const ParallelPlan& plan,
                          std::string (*quoted)(const std::string&) = nullptr);

// Returns the best plan of all, refined or not; nullptr if none may be listed.
const FoundPlan* winner_of(const SearchRequest& request, const SearchResult& result,
                           const Refinement& refinement);
// Returns what the search ended with, refined plans included.
SearchOutcome outcome_of(const SearchRequest& request, const SearchResult& result,
                         const Refinement& refinement);

std::string search_report(const SearchRequest& request, const SearchResult& result,
                          const Refinement& refinement, const std::optional<PlanVerdict>& why,
                          bool color);
std::string search_json(const SearchRequest& request, const SearchResult& result,
                        const Refinement& refinement, const std::optional<PlanVerdict>& why);
std::string search_csv(const SearchRequest& request, const SearchResult& result);
Plot search_plot(const SearchRequest& request, const SearchResult& result);

}  // namespace stepsim
