// Descent finds a plan of a space that probably fits and is fast, without looking at all of them:
//
//   Descent descent(bench, options, margin);
//   const std::optional<RatedPlan> found = descent.from(3, lets_go_on);
//   descent.seen()   // every plan that it looked at and that breaks no rule
//
// It draws some numbers of the space, begins with the best plan among them, and changes one key at
// a time, or two where one does not help, until no change makes the plan better. A plan is judged
// by its bounds (plan_bounds.h): the memory times `margin`, as bounds leave out buffers, must leave
// the headroom; then the objective counts. Equal seeds lead the same way.
//
// Not thread-safe; several may use one bench at a time.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "search/plan_bench.h"
#include "search/search.h"

namespace stepsim {

struct RatedPlan {
  std::uint64_t number = 0;
  std::int64_t chips = 0;
  std::int64_t microbatches = 0;
  Bytes memory{};  // bounds
  Duration step{};
  Bytes usable{};  // what its memory may be to leave the headroom

  bool is_roomy(double margin) const {
    return static_cast<double>(memory.value()) * margin <= static_cast<double>(usable.value());
  }
};

class Descent {
 public:
  // REQUIRES: both outlive it.
  Descent(PlanBench& bench, const SearchOptions& options, double margin)
      : bench_(bench), options_(options), margin_(margin) {}

  // Returns the plan that it ends with, also where `goes_on` says that time is up. Returns nullopt
  // if no number that it drew is a plan.
  std::optional<RatedPlan> from(std::uint64_t seed, const std::function<bool()>& goes_on);

  const std::map<std::uint64_t, RatedPlan>& seen() const { return seen_; }
  bool has_roomy() const { return has_roomy_; }  // among these

 private:
  using Score = std::pair<double, double>;  // memory that is too much, then the objective
  Score score(const RatedPlan& plan) const;
  std::optional<RatedPlan> rated(std::uint64_t number);
  std::optional<RatedPlan> drawn(std::uint64_t seed, const std::function<bool()>& goes_on);

  PlanBench& bench_;
  const SearchOptions& options_;
  double margin_;
  bool has_roomy_ = false;
  std::map<std::uint64_t, RatedPlan> seen_;
  std::map<std::uint64_t, bool> refused_;
};

}  // namespace stepsim
