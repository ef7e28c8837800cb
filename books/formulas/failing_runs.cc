// Group K: runs with failures.

#include "books/formulas/formula_groups.h"
#include "books/formulas/formula_inputs.h"

namespace stepsim {

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Formula> failing_run_formulas() {
  const FormulaInput mean = positive("M", "s", "mean time between failures of the job");
  const FormulaInput cost = positive("C", "s", "time that a checkpoint takes");
  const FormulaInput restart = not_negative("R", "s", "time of a restart");
  const FormulaInput interval = positive("tau", "s", "work between checkpoints");
  const FormulaInput work = positive("W", "s", "work: the time of a run without failures");
  const Condition constant = {
      "failures come at a constant rate, during checkpoints and restarts too"};
  return {
      {.id = "K1",
       .title = "Best work between checkpoints",
       .expression = "M * (1 + lambert_w(-exp(-(1 + C / M))))",
       .result = {"tau", "s"},
       .inputs = {mean, cost},
       .source = kDaly,
       .conditions = {constant},
       .example = "M=11136s C=60s"},
      {.id = "K1.daly",
       .title = "The same, Daly's series",
       .expression = "sqrt(2 * C * M) * (1 + sqrt(C / (2 * M)) / 3 + C / (18 * M)) - C",
       .result = {"tau", "s"},
       .inputs = {mean, cost},
       .source = kDaly,
       .conditions = {constant, {"checkpoints are short", "C < 2 * M"}},
       .example = "M=11136s C=60s"},
      {.id = "K2",
       .title = "The same, Young's first order",
       .expression = "sqrt(2 * C * M)",
       .result = {"tau", "s"},
       .inputs = {mean, cost},
       .source = kYoung,
       .conditions = {constant,
                      {"checkpoints are much shorter than the time between failures",
                       "C < M / 50"}},
       .example = "M=11136s C=60s"},
      {.id = "K3",
       .title = "Expected time of a run with failures",
       .expression = "W / tau * M * exp(R / M) * (exp((tau + C) / M) - 1)",
       .result = {"T", "s"},
       .inputs = {work, interval, mean, restart, cost},
       .source = kDaly,
       .conditions = {constant, {"W is a whole number of intervals"}},
       .example = "W=40000s tau=1000s M=11136s R=300s C=60s"},
      {.id = "K3.goodput",
       .title = "Share of that time that is work",
       .expression = "tau / (M * exp(R / M) * (exp((tau + C) / M) - 1))",
       .result = {"goodput", ""},
       .inputs = {interval, mean, restart, cost},
       .source = kDaly,
       .conditions = {constant},
       .example = "tau=1116.344s M=11136s R=300s C=60s"},
      {.id = "K4",
       .title = "Share of the time that enough nodes work, with cold spares",
       .expression = "1 - erlang_b(n * rate / 1000 * repair, s + 1)",
       .result = {"availability", ""},
       .inputs = {count("n", "nodes that the job needs"),
                  positive("rate", "", "failures in 1,000 days of a node"),
                  positive("repair", "days", "time until a node is back"),
                  {"s", "", "spare nodes", InputRange::kNotNegative}},
       .source = kErlang,
       .conditions = {{"spares and a job that waits don't fail; a restart takes no time"},
                      {"s is a whole number", "s - floor(s) <= 0"}},
       .example = "n=128 rate=6.5 repair=1 s=2"},
      {.id = "K5",
       .title = "Mean time between failures of a job",
       .expression = "1000 * 86400 / (n * rate)",
       .result = {"M", "s"},
       .inputs = {count("n", "nodes of the job"),
                  positive("rate", "", "failures in 1,000 days of a node")},
       .source = kDaly,
       .conditions = {{"nodes fail independently"}},
       .example = "n=2048 rate=3.7887"},
  };
}

}  // namespace stepsim
