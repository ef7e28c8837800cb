// A PlanHelper simulates plans of a search elsewhere, such as in another process. What it gives is
// what the search's own bench gives, and goes there and back as a line of text.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"

namespace stepsim {

// What became of a simulation: a plan's result, ranks that wait for each other forever or can't run
// a collective, a step that is longer than asked, or none of them as time was up.
struct SimulatedPlan {
  std::optional<FoundPlan> plan{};
  bool cannot_run = false;
  bool is_slower = false;  // than asked
  std::uint64_t ops = 0;   // of the whole simulation, also where it ended early
};

// Where a plan is, how long its simulation may take, and its step.
struct PlanQuestion {
  std::size_t place = 0;     // index of its SearchPlace
  std::uint64_t number = 0;  // in its space
  std::optional<double> seconds{};
  std::optional<Duration> most_step{};
};

class PlanHelper {
 public:
  PlanHelper() = default;
  virtual ~PlanHelper() = default;
  PlanHelper(const PlanHelper&) = delete;
  PlanHelper& operator=(const PlanHelper&) = delete;

  // Called by one thread at a time.
  virtual SimulatedPlan simulated(const PlanQuestion& question) = 0;
};

std::string text_of(const PlanQuestion& question);
std::string text_of(const SimulatedPlan& simulated);
// Both throw std::invalid_argument if the text is none of text_of().
PlanQuestion question_of(const std::string& text);
// Without the plan itself, its place and its number, which whoever asked knows.
SimulatedPlan simulated_of(const std::string& text);

class PlanBench;
// Simulates plans of places for others. Several threads may use it.
class PlanAnswers {
 public:
  // REQUIRES: both outlive it.
  PlanAnswers(const std::vector<SearchPlace>& places, const SearchOptions& options);
  ~PlanAnswers();
  SimulatedPlan simulated(const PlanQuestion& question);

 private:
  const SearchOptions& options_;
  std::vector<std::unique_ptr<PlanBench>> benches_;
};

}  // namespace stepsim
