// S17: FSDP with tensor parallelism on a pod of v5p.
//
// Symbols for one layer in the derivations: m = the arithmetic of its forward (the backward takes 2
// m); f = one pass of its weights or gradients over the FSDP group; k = the gather and the
// reduce-scatter of its activations in one pass. A ring of n moves (n-1)/n of what the formulas
// count.
//
// Small tori represent the pods, with the same ways of tensor parallelism and the same tokens per
// chip. m, k and f are those of the pod, except for the factor (X-1)/X of f: 16 ways of FSDP move
// 15/16, hundreds of ways move nearly all. The derivations include this.

#include <algorithm>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/pod_terms.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"

namespace stepsim {
namespace {

// ---- S17 ----

constexpr double kMixedF = 32768;
constexpr double kMixedLayers = 16;
constexpr double kFsdp = 16;  // 4x4 instead of 16x16 and more
constexpr double kPod = 4096;

// With the best ways of each, which need not be whole, both communications take equally long.
double best_formula(double tokens) {
  const double m = pod_math(tokens, kMixedF);
  const double fsdp =
      predict("E7", {{"B", tokens * kPod}, {"N", kPod}, {"F", kMixedF}, {"MX", 2}, {"MY", 1}});
  const double f = pod_weights(1, kMixedF, 2) * fsdp / kPod;  // Y = kPod / fsdp
  return kMixedLayers * (std::max(m, f) + std::max(2 * m, 2 * f));
}

StackStep pod_step(double tokens, std::int64_t ways, double chunks) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kMixedF),
                 .layers = static_cast<std::int64_t>(kMixedLayers),
                 .tokens = static_cast<std::int64_t>(tokens) * ways,
                 .map = "dp:x+y/tp:z",
                 .slice = {4, 4, static_cast<int>(ways)}};
  if (ways == 12) step.mlp_width = 32772;  // a multiple of 12, one part in 8,192 larger
  step.plan.mesh.dp = static_cast<std::int64_t>(kFsdp);
  step.plan.mesh.tp = ways;
  step.plan.state.zero = 3;
  step.plan.update.gradient_bytes = 2;
  step.plan.pieces.tensor_chunks = static_cast<std::int64_t>(chunks);
  return step;
}

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<StudyRow> threshold_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&rows](double tokens, std::int64_t ways, double chunks, std::string why,
                           DifferenceRange of_seconds) {
    const double predicted = best_formula(tokens);
    const std::string name =
        "tokens-" + std::to_string(static_cast<int>(tokens)) + "-y" + std::to_string(ways);
    rows.push_back(
        {.id = name + (chunks > 1 ? "" : "-unoverlapped"),
         .formula = "E8",
         .regime = std::to_string(static_cast<int>(tokens)) + " tokens a chip, " +
                   std::to_string(ways) + " ways of tensor parallelism" +
                   (chunks > 1 ? "" : ", nothing of it overlapped"),
         .predicted = predicted,
         .expected = {of_seconds.low / predicted - 1 - 1e-3,
                      of_seconds.high / predicted - 1 + 1e-3},
         .tolerance = 0.03,
         .why = std::move(why),
         .simulate = [step = pod_step(tokens, ways, chunks)](const Laboratory& laboratory) {
           return seconds(laboratory, step);
         }});
  };
  const auto terms = [](double tokens, double ways) {
    struct Terms {
      double m, f, k;
    };
    return Terms{.m = pod_math(tokens, kMixedF),
                 .f = pod_weights(ways, kMixedF, 2) * of_a_ring(kFsdp),
                 .k = pod_activations(tokens, ways) * of_a_ring(ways)};
  };
  // 1e5 and 4.1e5 tokens on 4096 chips, 8 ways: weights take longer than the arithmetic. Their
  // links carry 3 L f and idle for at most one backward, 2 m + k.
  for (const double tokens : {24.0, 100.0}) {
    const auto [m, f, k] = terms(tokens, 8);
    add(tokens, 8, kChunks, "8 ways are fewer than the best, 12.85: weights take longer",
        {3 * kMixedLayers * f, 3 * kMixedLayers * f + 2 * m + k});
    // Without link sharing, gathers and reduce-scatters of the backward run side by side. The
    // backward is bound by f, or by its 2 m and what remains of k.
    const double backward = std::max(f, 2.5 * m);
    rows.back().expected_unshared = {
        kMixedLayers * (f + std::max(f, 2 * m)) / rows.back().predicted - 1,
        (kMixedLayers * (f + backward) + 2 * f + 2 * m + k) / rows.back().predicted - 1};
  }
  // 16 ways, the whole axis of 16x16x16: k = 1.17 m. Both pairs of the forward are bound by their
  // activations: k + m / chunks. Backward: two gathers on one ring, k, run beside one of four
  // matmuls, one chunk of which remains. At best the reduce-scatter, k / 2, hides behind two
  // matmuls, m. At worst its excess over its own matmul, k / 2 - m / 2, and one chunk remain.
  for (const double tokens : {100.0, 400.0}) {
    const auto [m, f, k] = terms(tokens, 16);
    const double by_hand = kMixedLayers * (k + m / kChunks + k + 1.5 * m + m / 2 / kChunks) + 2 * f;
    add(tokens, 16, kChunks,
        "16 ways are more than F W / C = 12.85: activations take longer than the arithmetic",
        {by_hand, by_hand + kMixedLayers * (k / 2 - m / 2 + m / 2 / kChunks)});
    // With each flow alone on its links, the backward's gather takes k / 2, about as long as its
    // matmul.
    const double alone = by_hand - kMixedLayers * k / 2;
    const double exposed = kMixedLayers * (k / 2 - m / 2 + m / 2 / kChunks);
    rows.back().expected_unshared = {alone / rows.back().predicted - 1 - 1e-3,
                                     (alone + exposed) / rows.back().predicted - 1 + 1e-3};
  }
  // 8 and 12 ways, compute-bound: each pair leaves a chunk, and the backward's two gathers leave
  // what its matmul does not hide, k - m / 2 (as in S15). 12 ways, on an axis of 12, are the best
  // whole number below 12.85. At 100 tokens weights take as long as the arithmetic, f = m, and
  // hide.
  struct Hidden {
    double tokens;
    std::int64_t ways;
  };
  for (const auto& [tokens, ways] : {Hidden{100, 12}, {400, 12}, {400, 8}, {2400, 8}, {2400, 4}}) {
    const auto [m, f, k] = terms(tokens, static_cast<double>(ways));
    const double pair = k > m / 2 ? (k + m / 2) / kChunks + k - m / 2 : 2 * k / kChunks;
    const double by_hand = kMixedLayers * (3 * m + pair) + 2 * f;
    add(tokens, ways, kChunks,
        "exposed: chunks, the first gather and the last reduce-scatter of weights, and the "
        "backward's gathers that share a ring",
        {by_hand, by_hand});
    const double predicted = rows.back().predicted;
    const double alone = kMixedLayers * (3 * m + 1.5 * k / kChunks) + 2 * f;
    rows.back().expected_unshared = around(alone / predicted - 1, 2e-3);
    const auto [least, most] = collective_matmuls_on_packets(kMixedLayers, m, k, kChunks, 2 * f);
    rows.back().expected_packets = {least / predicted - 1 - 1e-3, most / predicted - 1 + 1e-3};
  }
  // From 4e6 tokens on, the formula asks for fewer than 4 ways. These have no axis of their own:
  // two neighbours on an axis of 4 have one cable, while two chips of a whole axis of 2 would have
  // two.
  rows.push_back(
      {.id = "two-neighbours",
       .formula = "B1.exact",
       .regime = "two ways of tensor parallelism on an axis of 4: a gather of 64 MiB",
       .predicted = predict("B1.exact", {{"V", 1 << 26}, {"W", kV5pAxis}, {"n", 2}}),
       .expected = around(1, 1e-4),
       .why = "part of an axis does not wrap, so TP below 4 ways takes twice the time of E7",
       .simulate = [](const Laboratory& laboratory) {
         return laboratory.seconds(
             collective_graph(some_chips(0, 2), work_of(CollectiveOp::kAllGather, Bytes(1 << 26))),
             ideal_v5p({4}));
       }});
  // Without collective matmuls, activations add to the arithmetic, as in S16. No number of tokens
  // makes that compute-bound, because k grows with them.
  for (const double tokens : {400.0, 2400.0}) {
    const auto [m, f, k] = terms(tokens, 8);
    // Between two steps there are 2 f. The reduce-scatter of the last input gradient, k / 2, runs
    // beside them.
    const double by_hand = kMixedLayers * (3 * m + 2 * k) + std::max(0.0, 2 * f - k / 2);
    add(tokens, 8, 1, "activations add to the arithmetic, and grow with the tokens",
        {by_hand, by_hand});
  }
  return rows;
}

std::vector<Sweep> threshold_sweeps() {
  const auto simulated = [](std::int64_t ways, double chunks) {
    return [ways, chunks](const Laboratory& laboratory, double tokens) {
      return seconds(laboratory, pod_step(tokens, ways, chunks));
    };
  };
  return {{.name = "S17-mixed-threshold",
           .title = "FSDP with tensor parallelism on a pod of v5p: step time",
           .subtitle = "16 two-matmul layers, D 8192, F 32768; formula: the best ways of each",
           .x = PlotAxis{.label = "tokens a chip", .log = true},
           .y = PlotAxis{.label = "step", .unit = "s", .log = true},
           .at = {24, 50, 100, 200, 400, 800, 2400},
           .only_there = false,
           .curves = {
               {.label = "best ways", .predict = best_formula, .simulate = {}},
               {.label = "12 ways, overlapped", .predict = {}, .simulate = simulated(12, kChunks)},
               {.label = "8 ways, overlapped", .predict = {}, .simulate = simulated(8, kChunks)},
               {.label = "8 ways, not overlapped", .predict = {}, .simulate = simulated(8, 1)}}}};
}

}  // namespace

std::vector<Study> mixed_parallel_studies() {
  return {{.id = "S17",
           .source = kBookTraining,
           .title = "FSDP with tensor parallelism on a pod: where it is compute-bound",
           .claim = "4096 v5p are compute-bound from 4.06e5 tokens, 99 a chip, if the two "
                    "communications overlap; from 1.6e6, 397 a chip, if they add",
           .rows = threshold_rows,
           .sweeps = threshold_sweeps}};
}

}  // namespace stepsim
