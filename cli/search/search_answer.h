// What the answer of a search is: the best plan of all and of each cluster, refined ones included,
// what a whole training takes with it, and the command that runs it.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/search/search_options.h"
#include "proto/plan_text.h"
#include "search/refine.h"
#include "search/search.h"

namespace stepsim {

// Returns the value of a key as in files; "" if it is not set.
std::string value_of_key(const ParallelPlan& plan, std::string_view key);

// Returns the keys of the space and dp, in the order of the table of keys.
std::vector<std::string> searched_keys(const SearchRequest& request);

// Returns the keys that differ from the defaults, as --plan, --software and --pass read them.
KeyTexts key_texts(const ParallelPlan& plan);
// Returns them as words of a command: "--plan tp=8,.. --software ..". `quoted`: for a shell.
std::string words_of_plan(const ParallelPlan& plan,
                          std::string (*quoted)(const std::string&) = nullptr);

// Returns the command that runs a plan.
std::string run_command_of(const SearchRequest& request, const FoundPlan& found);

// Returns the plans of the space that are listed: the best, or the nearest where none fits.
const std::vector<FoundPlan>& listed(const SearchResult& result);

// Returns the number in the list of the plan from which another was refined; nullopt where that was
// the best one of its cluster and is not listed.
std::optional<std::size_t> number_of_start(const SearchResult& result, const RefinedPlan& refined);

// Returns the best plan of all, refined or not; nullptr if none may be listed.
const FoundPlan* winner_of(const SearchRequest& request, const SearchResult& result,
                           const Refinement& refinement);
// Returns what the search ended with, refined plans included.
SearchOutcome outcome_of(const SearchRequest& request, const SearchResult& result,
                         const Refinement& refinement);

// What a whole training takes with a plan, without failures.
struct Training {
  double days = 0;
  std::optional<Interval> days_interval{};
  double cost = 0;  // chip-hours where there is no price
  std::optional<double> kilowatt_hours{};
};
// REQUIRES: request.tokens.
Training training_of(const SearchRequest& request, const FoundPlan& plan);

// The best plan of a place, refined or not, and how good that is known to be.
struct BestOfCluster {
  const FoundPlan* plan = nullptr;  // none that may be listed
  double bound_gap = 0;             // of the plans of the space
};
BestOfCluster best_of_cluster(std::size_t place, const SearchRequest& request,
                              const SearchResult& result, const Refinement& refinement);

}  // namespace stepsim
