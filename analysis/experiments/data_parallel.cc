// S13 and S14: data parallelism and FSDP of the two-matmul model on v5p 4x4x4.
//
// In the derivations, a layer: c = its forward's arithmetic (backward 2 c), a = one pass of its
// weights or gradients over the slice (gather or reduce-scatter; an all-reduce is 2 a), L layers.
// The formulas take V / W for a pass; a ring of 64 moves 63/64 of it, so a = 63/64 of theirs.

#include <algorithm>
#include <utility>

#include "analysis/experiments/experiment_groups.h"
#include "analysis/experiments/stack_step.h"

namespace stepsim {
namespace {

constexpr double kD = 8192;
constexpr double kF = 32768;
constexpr std::int64_t kChips = 64;
constexpr double kRing = 63.0 / 64;

// Of a layer, by the formulas.
double forward_math(double tokens) {
  return predict("E2.math", {{"B", tokens}, {"D", kD}, {"F", kF}, {"X", 1}, {"C", kV5pFlops}});
}
double backward_math(double tokens) {
  return predict("E1.math", {{"B", tokens}, {"D", kD}, {"F", kF}, {"X", 1}, {"C", kV5pFlops}});
}
double all_reduce(double axes) {
  return predict("E1.comms", {{"D", kD}, {"F", kF}, {"W", kV5pAxis}, {"M", axes}});
}
double gather(double axes) {
  return predict("E2.comms", {{"D", kD}, {"F", kF}, {"W", kV5pAxis}, {"M", axes}});
}

StackStep step_of(std::int64_t tokens, std::int64_t layers, int zero) {
  StackStep step{.layers = layers, .tokens = tokens, .map = "dp:x+y+z"};
  step.plan.dp = kChips;
  step.plan.zero = zero;
  step.plan.gradient_bytes = 2;
  return step;
}

std::string name_of_run(std::int64_t tokens, std::int64_t layers) {
  return "tokens-" + std::to_string(tokens) + "-layers-" + std::to_string(layers);
}

std::string text_of_run(std::int64_t tokens, std::int64_t layers) {
  return std::to_string(tokens) + " tokens a chip, " + std::to_string(layers) + " layers";
}

const std::vector<double> kSweptTokens = {100, 200, 400, 600, 850, 1200, 1700, 2550, 3600, 5000};

// ---- S13 ----

double data_parallel_formula(double tokens, double layers, double axes) {
  return layers * (forward_math(tokens) + std::max(backward_math(tokens), all_reduce(axes)));
}

// `by_hand`: what the simulated step must take, in seconds.
ExperimentRow data_parallel_row(const StackStep& step, double by_hand, double axes = 3) {
  const double predicted = data_parallel_formula(static_cast<double>(step.tokens),
                                                 static_cast<double>(step.layers), axes);
  return {.formula = "E1",
          .predicted = predicted,
          .expected = around(by_hand / predicted - 1),
          .tolerance = 0.021,
          .simulate = [step](const Laboratory& laboratory) { return seconds(laboratory, step); }};
}

std::vector<ExperimentRow> data_parallel_rows() {
  std::vector<ExperimentRow> rows;
  const auto add = [&rows](std::string id, std::string regime, std::string why, ExperimentRow row) {
    row.id = std::move(id);
    row.regime = std::move(regime);
    row.why = std::move(why);
    rows.push_back(std::move(row));
  };
  const double a = kRing * gather(3);
  const double knee = forward_math(850);
  // Compute-bound: every all-reduce (2 a) hides behind the backward of the layers below but that of
  // the first layer, which is reduced last: 3 L c + 2 a.
  for (const auto& [tokens, layers] : {std::pair{5000, 32}, {1700, 32}, {850, 32}, {850, 4}}) {
    add(name_of_run(tokens, layers), text_of_run(tokens, layers),
        "the all-reduce of the first layer has nothing left to hide behind",
        data_parallel_row(step_of(tokens, layers, 0), 3 * layers * forward_math(tokens) + 2 * a));
  }
  // Communication-bound: from the first backward layer on all-reduces follow each other without a
  // gap: L c + 2 c + 2 L a, where the formula has L c + 2 L a 64/63.
  add("tokens-100", "100 tokens a chip",
      "(n-1)/n of the gradients move, and a backward layer comes before any of them",
      data_parallel_row(step_of(100, 32, 0), 34 * forward_math(100) + 32 * 2 * a));
  // One all-reduce after the other when the backward has ended: the terms add, 3 L c + 2 L a.
  StackStep late = step_of(850, 32, 0);
  late.plan.overlap_gradients = false;
  add("unoverlapped", "850 tokens a chip, reduced after the backward",
      "nothing hides the all-reduces: the terms add",
      data_parallel_row(late, 32 * (3 * knee + 2 * a)));
  // Axis after axis, message by message, only one axis works at a time: three of them bring what
  // one does. A pass takes 3 a, and the threshold is that of one axis, 2550 tokens, as M = 1 says.
  StackStep naive = step_of(850, 32, 0);
  naive.data_algorithm = AlgorithmChoice::kAxisAfterAxis;
  naive.granularity = Granularity::kStepped;
  add("axis-after-axis", "850 tokens a chip, reduced along x, then y, then z",
      "two of three axes idle at any time: they bring the bandwidth of one",
      data_parallel_row(naive, 34 * knee + 32 * 2 * 3 * a));
  naive.tokens = 2550;
  add("axis-after-axis-one-axis", "2550 tokens a chip, along x, then y, then z; M = 1",
      "with M = 1 the formula counts what such an all-reduce brings",
      data_parallel_row(naive, 3 * 32 * forward_math(2550) + 2 * 3 * a, 1));
  // In chunks, axes work on different chunks at once. But x has 3/4 of all the bytes, y and z what
  // its groups of four leave, 3/16 and 3/64: x decides, 3/4 of what one axis takes for the whole.
  naive.tokens = 850;
  naive.granularity = Granularity::kPipelined;
  add("axis-after-axis-in-chunks", "850 tokens a chip, along x, then y, then z, in chunks",
      "the first axis carries 3/4 of the bytes, so y and z mostly wait",
      data_parallel_row(naive, 34 * knee + 32 * 2 * 0.75 * gather(1)));
  return rows;
}

std::vector<Sweep> data_parallel_sweeps() {
  Sweep sweep{.name = "S13-data-parallel",
              .title = "Data parallelism on v5p 4x4x4: step time",
              .subtitle = "two-matmul layers, D 8192, F 32768, 32 layers",
              .x = {.label = "tokens a chip", .log = true},
              .y = {.label = "step", .unit = "s", .log = true},
              .at = kSweptTokens,
              .curves = {}};
  for (const bool at_once : {true, false}) {
    sweep.curves.push_back({.label = at_once ? "three axes at once" : "axis after axis",
                            .predict =
                                [at_once](double tokens) {
                                  return data_parallel_formula(tokens, 32, at_once ? 3 : 1);
                                },
                            .simulate =
                                [at_once](const Laboratory& laboratory, double tokens) {
                                  StackStep step =
                                      step_of(static_cast<std::int64_t>(tokens), 32, 0);
                                  if (!at_once)
                                    step.data_algorithm = AlgorithmChoice::kAxisAfterAxis;
                                  return seconds(laboratory, step);
                                }});
  }
  return {sweep};
}

// ---- S14 ----

double sharded_formula(double tokens, double layers) {
  return layers * (std::max(forward_math(tokens), gather(3)) +
                   std::max(backward_math(tokens), 2 * gather(3)));
}

std::vector<ExperimentRow> sharded_rows() {
  std::vector<ExperimentRow> rows;
  const double a = kRing * gather(3);
  // Between `low` and `high` seconds by hand.
  const auto add = [&rows](std::string id, std::string regime, std::string why,
                           const StackStep& step, double low, double high) {
    const double predicted =
        sharded_formula(static_cast<double>(step.tokens), static_cast<double>(step.layers));
    rows.push_back(
        {.id = std::move(id),
         .formula = "E2",
         .regime = std::move(regime),
         .predicted = predicted,
         .expected = {low / predicted - 1 - kRounding, high / predicted - 1 + kRounding},
         .tolerance = 0.021,
         .why = std::move(why),
         .simulate = [step](const Laboratory& laboratory) { return seconds(laboratory, step); }});
  };
  // Compute-bound: all hides but the first gather and the last reduce-scatter: 3 L c + 2 a.
  for (const auto& [tokens, layers] : {std::pair{850, 80}, {850, 32}, {850, 4}, {1700, 32}}) {
    const double by_hand = 3 * layers * forward_math(tokens) + 2 * a;
    add(name_of_run(tokens, layers), text_of_run(tokens, layers),
        "the first gather and the last reduce-scatter have nothing to hide behind",
        step_of(tokens, layers, 3), by_hand, by_hand);
  }
  // Communication-bound: links carry 3 L a, and stand still for no longer than the backward of the
  // first layer, 2 c, between its gather and its reduce-scatter.
  add("tokens-100", "100 tokens a chip", "(n-1)/n of the weights and gradients move",
      step_of(100, 32, 3), 3 * 32 * a, 3 * 32 * a + 2 * forward_math(100));
  // Where links are not shared, reduce-scatters hide behind gathers, but for the last.
  const double formula = sharded_formula(100, 32);
  rows.back().expected_unshared = {
      2 * 32 * a / formula - 1, (2 * 32 * a + a + 2 * forward_math(100)) / formula - 1 + kRounding};
  // Without prefetch a gather starts when the layer before has ended. Forward: L (a + c). Backward:
  // it starts together with the reduce-scatter of that layer and shares the links with it, so both
  // take 2 a: L (2 a + 2 c), less a for the first gather, which is alone, and a for the last
  // reduce-scatter: 3 L (a + c).
  StackStep late = step_of(850, 32, 3);
  late.plan.prefetch = 0;
  const double by_hand = 3 * 32 * (a + forward_math(850));
  add("no-prefetch", "850 tokens a chip, gathered when needed",
      "a gather that starts when its layer should hides behind nothing", late, by_hand, by_hand);
  // Where links are not shared, only gathers stand in the way: 2 L a + 3 L c and the last
  // reduce-scatter.
  const double alone = (2 * 32 + 1) * a + 3 * 32 * forward_math(850);
  rows.back().expected_unshared = around(alone / sharded_formula(850, 32) - 1);
  return rows;
}

std::vector<Sweep> sharded_sweeps() {
  Sweep sweep{.name = "S14-fsdp",
              .title = "FSDP on v5p 4x4x4: step time",
              .subtitle = "two-matmul layers, D 8192, F 32768, 32 layers",
              .x = {.label = "tokens a chip", .log = true},
              .y = {.label = "step", .unit = "s", .log = true},
              .at = kSweptTokens,
              .curves = {}};
  sweep.curves.push_back({.label = "gathered a layer ahead",
                          .predict = [](double tokens) { return sharded_formula(tokens, 32); },
                          .simulate =
                              [](const Laboratory& laboratory, double tokens) {
                                return seconds(laboratory,
                                               step_of(static_cast<std::int64_t>(tokens), 32, 3));
                              }});
  sweep.curves.push_back({.label = "gathered when needed",
                          .simulate = [](const Laboratory& laboratory, double tokens) {
                            StackStep step = step_of(static_cast<std::int64_t>(tokens), 32, 3);
                            step.plan.prefetch = 0;
                            return seconds(laboratory, step);
                          }});
  return {sweep};
}

}  // namespace

std::vector<FormulaExperiment> data_parallel_experiments() {
  return {{.id = "S13",
           .title = "Data parallelism: where it is compute-bound",
           .claim = "on three axes of v5p data parallelism is compute-bound from 850 tokens a chip",
           .rows = data_parallel_rows,
           .sweeps = data_parallel_sweeps},
          {.id = "S14",
           .title = "FSDP with prefetch",
           .claim = "FSDP is compute-bound from the same 850 tokens a chip, if weights come ahead",
           .rows = sharded_rows,
           .sweeps = sharded_sweeps}};
}

}  // namespace stepsim
