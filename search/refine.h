// refine_plans() goes on from the best plans of a search with keys that its space leaves alone:
// order and placement of ranks, offloading, what overlaps with what. All of them in one space would
// make it thousands of times as large. So they change one after the other: each value of a key is
// tried with all others as they are, and the best one stays, until a round over all keys changes
// nothing. A few changes are tried in pairs that make sense only together.
//
// What is tried is counted by reason as in search_plans(), and simulated only if its bounds leave
// it a chance. A change counts if it makes the objective better by kLeastGain. The result is the
// best that single changes lead to, which is no proof that there is nothing better.
//
// It also starts from plans that do not fit, or do not leave the headroom, and then looks for less
// memory until one does.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "search/search.h"

namespace stepsim {

// kQuick ends after a fixed number of simulated ops, the same on any machine.
enum class RefineEffort : std::uint8_t { kNone, kQuick, kWhole };

struct PlanChange {
  std::string key;
  std::string from;  // values as in files
  std::string to;
};

struct RefinedPlan {
  FoundPlan plan{};
  std::size_t start = 0;  // index of the plan that it comes from
  std::vector<PlanChange> changes{};
};

struct Refinement {
  // Those that became better, best first. One of several starts that led to the same.
  std::vector<RefinedPlan> plans{};
  std::uint64_t considered = 0;
  std::map<std::string, std::uint64_t> excluded{};  // by reason; with `simulated`: all considered
  std::uint64_t simulated = 0;
  bool is_whole = true;  // false: time or ops were spent before a round changed nothing
};

// The values of a key that are tried, and which others change with it.
struct PlanMoves {
  std::string key;
  std::vector<std::vector<std::pair<std::string, std::string>>> moves;  // keys and values of each
  bool makes_room = false;  // moves what a chip holds elsewhere: goes first where room is short
};

// Keys that have their values already.
struct SettledKeys {
  std::set<std::string> searched;  // of the space: change only beside others
  std::set<std::string> given;     // somebody gave them a value: never change
};

// Returns the keys that refine_plans() changes in such a plan, and their values.
std::vector<PlanMoves> moves_of(const ParallelPlan& plan, const ModelSpec& model,
                                const Places& places, const SettledKeys& settled);

// `starts`: plans of the places, best first. `seconds`: what is left of the time.
Refinement refine_plans(const std::vector<SearchPlace>& places,
                        const std::vector<FoundPlan>& starts, const SettledKeys& settled,
                        RefineEffort effort, const SearchOptions& options,
                        std::optional<double> seconds = {});

}  // namespace stepsim
