// Runs with failures: the closed forms beside the simulation of stepsim goodput.

#include <cmath>
#include <string>

#include "books/formulas/sources.h"
#include "books/laboratory/study_groups.h"
#include "goodput/best_interval.h"
#include "goodput/goodput.h"

namespace stepsim {
namespace {

constexpr std::int64_t kFailingRuns = 100'000;
constexpr double kIntervals = 40;

Ticks whole_ticks(double seconds) {
  return static_cast<Ticks>(std::llround(seconds * kTicksPerSecond));
}

// One node that fails at a constant rate and starts again at once.
RunSetup failing_job(double interval, double mean, double restart, double checkpoint) {
  RunSetup setup{.work = whole_ticks(kIntervals * interval), .restart = whole_ticks(restart)};
  setup.classes.push_back({.loses = FailureScope::kNothing, .failures_per_day = 86400 / mean});
  setup.checkpoint = {.interval = whole_ticks(interval), .storage_stall = whole_ticks(checkpoint)};
  return setup;
}

double mean_seconds(const RunSetup& setup) {
  return 86400 * run_many(setup, {.runs = kFailingRuns}).mean_days;
}

struct Machine {
  std::string id;
  double checkpoint;
  double restart;
  double mean;
  double error;  // a standard error of the mean of 10^5 runs, as a share
};

// The standard error of a run's length: of 10^5 runs of 40 intervals, the closed forms' own Monte
// Carlo has 32.8 / 50,984, 120.7 / 128,385, 15.1 / 20,998 and 387.1 / 186,532 for a hundredth of
// the runs: a tenth of that.
std::vector<Machine> machines() {
  return {{"C60-M11136", 60, 300, 11136, 1e-4},
          {"C300-M11136", 300, 600, 11136, 1e-4},
          {"C30-M3600", 30, 120, 3600, 1e-4},
          {"C600-M1800", 600, 900, 1800, 2.1e-4}};
}

std::vector<StudyRow> time_rows() {
  std::vector<StudyRow> rows;
  for (const Machine& machine : machines()) {
    const double best = predict("K1", {{"M", machine.mean}, {"C", machine.checkpoint}});
    const double interval = std::round(best * 1000) / 1000;
    rows.push_back({.id = machine.id,
                    .formula = "K3",
                    .regime = "40 intervals of the best length, 100,000 runs",
                    .predicted = predict("K3", {{"W", kIntervals * interval},
                                                {"tau", interval},
                                                {"M", machine.mean},
                                                {"R", machine.restart},
                                                {"C", machine.checkpoint}}),
                    .expected = {-3 * machine.error, 3 * machine.error},
                    .tolerance = 0.002,
                    .why = "the same process; three standard errors of the mean",
                    .simulate = [machine, interval](const Laboratory&) {
                      return mean_seconds(
                          failing_job(interval, machine.mean, machine.restart, machine.checkpoint));
                    }});
  }
  return rows;
}

// K1 and the program's own root of the same condition, which is found with integers and bisection.
std::vector<StudyRow> interval_rows() {
  std::vector<StudyRow> rows;
  for (const Machine& machine : machines()) {
    const auto computed = [machine](const Laboratory&) {
      return static_cast<double>(
                 best_interval(whole_ticks(machine.checkpoint), whole_ticks(machine.mean))) /
             kTicksPerSecond;
    };
    const double exact = predict("K1", {{"M", machine.mean}, {"C", machine.checkpoint}});
    const double young = predict("K2", {{"M", machine.mean}, {"C", machine.checkpoint}});
    rows.push_back({.id = "exact-" + machine.id,
                    .formula = "K1",
                    .regime = "the interval that stepsim goodput chooses",
                    .predicted = exact,
                    .expected = {-1e-8, 1e-8},
                    .why = "the same condition",
                    .simulate = computed});
    // K1 is Young's less a third of C and more: exact / young - 1 follows from the two forms.
    rows.push_back({.id = "young-" + machine.id,
                    .formula = "K2",
                    .regime = "the same against the first order",
                    .predicted = young,
                    .expected = around(exact / young - 1, 1e-8),
                    .why = "the first order leaves out the checkpoint itself: a third off where it "
                           "takes a third of the time between failures",
                    .simulate = computed});
  }
  return rows;
}

double availability(std::int64_t spares) {
  // Work that takes 400 days: 333 failures a run, 50 runs.
  RunSetup setup{.work = 400 * kTicksPerDay, .nodes = 128, .spares = spares};
  setup.classes.push_back(
      {.units = 128, .failures_per_day = 6.5e-3, .repair = kTicksPerDay, .nodes_lost = 1});
  setup.checkpoint = {.interval = kTicksPerSecond};
  const GoodputResult result = run_many(setup, {.runs = 400});
  const double waits = result.parts_days[static_cast<std::size_t>(RunPart::kRepair)];
  return 1 - waits / result.mean_days;
}

// Repairs take a day each here and are exponential in the birth and death of nodes; Erlang's loss
// is the same for repairs of any distribution (insensitivity). 160,000 days have 133,000 failures:
// waits are known to their share / sqrt(waits), 0.3 % of 1 - A with 0 spares, 5 % with 4.
std::vector<StudyRow> spare_rows() {
  constexpr double kErrors[] = {0.004, 0.003, 0.0015, 0.0003};
  constexpr std::int64_t kSpares[] = {0, 1, 2, 4};
  std::vector<StudyRow> rows;
  for (std::size_t i = 0; i < std::size(kSpares); ++i) {
    const std::int64_t spares = kSpares[i];
    rows.push_back(
        {.id = "spares-" + std::to_string(spares),
         .formula = "K4",
         .regime = "128 nodes, 6.5 failures in 1,000 node-days, a day of repair",
         .predicted = predict(
             "K4", {{"n", 128}, {"rate", 6.5}, {"repair", 1}, {"s", static_cast<double>(spares)}}),
         .unit = "",
         .expected = {-kErrors[i], kErrors[i]},
         .why = "Erlang's loss does not depend on how repair times are distributed",
         .simulate = [spares](const Laboratory&) { return availability(spares); }});
  }
  return rows;
}

}  // namespace

std::vector<Study> failing_run_studies() {
  return {
      {.id = "S48",
       .source = kDaly,
       .title = "Time of a run with failures",
       .claim = "with failures at a constant rate a run takes "
                "(W / tau) M e^(R/M) (e^((tau + C)/M) - 1)",
       .rows = time_rows},
      {.id = "S49",
       .source = kYoung,
       .title = "Best checkpoint interval",
       .claim = "checkpoints are best made every sqrt(2 C M)",
       .rows = interval_rows,
       .finding = "Young's interval is 3.6 % too long at C = 60 s and M = 3.1 h, and 34 % at C = "
                  "600 s and M = 30 min, where a checkpoint is a third of the time between "
                  "failures. The exact form has no such limit."},
      {.id = "S50",
       .source = kErlang,
       .title = "Spare nodes",
       .claim = "with s cold spares 128 nodes are there 1 - B(s + 1, n lambda r) of the time",
       .rows = spare_rows}};
}

}  // namespace stepsim
