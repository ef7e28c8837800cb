// S17 to S19: FSDP with tensor parallelism on a pod of v5p, data parallelism between slices.
//
// In the derivations, a layer: m = its forward's arithmetic (backward 2 m), f = one pass of its
// weights or gradients over the FSDP group, k = the gather and the reduce-scatter of its
// activations in one pass; a ring of n moves (n-1)/n of what the formulas count.
//
// Pods stand here as small tori with the same ways of tensor parallelism and the same tokens a
// chip, on which m, k and f are those of the pod, but for f's (X-1)/X: 16 ways of FSDP in place of
// hundreds move 15/16. All of that is in the derivations.

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/experiments/experiment_groups.h"
#include "analysis/experiments/small_clusters.h"
#include "analysis/experiments/stack_step.h"

namespace stepsim {
namespace {

constexpr double kD = 8192;

double of_a_ring(double ways) {
  return (ways - 1) / ways;
}

// ---- S17 ----

constexpr double kMixedF = 32768;
constexpr double kMixedLayers = 16;
constexpr double kFsdp = 16;  // 4x4 in place of 16x16 and more
constexpr double kPod = 4096;
constexpr double kChunks = 32;

double pod_math(double tokens, double mlp_width) {
  return predict("E7.math",
                 {{"B", tokens}, {"D", kD}, {"F", mlp_width}, {"N", 1}, {"C", kV5pFlops}});
}
double pod_weights(double ways, double mlp_width, double axes) {
  return predict("E7.fsdp",
                 {{"D", kD}, {"F", mlp_width}, {"Y", ways}, {"W", kV5pAxis}, {"MX", axes}});
}
double pod_activations(double tokens, double ways) {
  return predict("E7.tp", {{"B", tokens * ways}, {"D", kD}, {"X", 1}, {"W", kV5pAxis}, {"MY", 1}});
}

// At the best ways of each, which need not be whole: both communications take equally long.
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
  step.plan.dp = static_cast<std::int64_t>(kFsdp);
  step.plan.tp = ways;
  step.plan.zero = 3;
  step.plan.gradient_bytes = 2;
  step.plan.tensor_chunks = static_cast<std::int64_t>(chunks);
  return step;
}

std::vector<ExperimentRow> threshold_rows() {
  std::vector<ExperimentRow> rows;
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
  // links carry 3 L f, and stand still for no longer than one backward, 2 m + k.
  for (const double tokens : {24.0, 100.0}) {
    const auto [m, f, k] = terms(tokens, 8);
    add(tokens, 8, kChunks, "8 ways are fewer than the best, 12.85: weights take longer",
        {3 * kMixedLayers * f, 3 * kMixedLayers * f + 2 * m + k});
    // Where links are not shared gathers and reduce-scatters of the backward go side by side; the
    // backward is bound by f or by its 2 m and what is left of k.
    const double backward = std::max(f, 2.5 * m);
    rows.back().expected_unshared = {
        kMixedLayers * (f + std::max(f, 2 * m)) / rows.back().predicted - 1,
        (kMixedLayers * (f + backward) + 2 * f + 2 * m + k) / rows.back().predicted - 1};
  }
  // 16 ways, the whole axis of 16x16x16: k = 1.17 m. Both pairs of the forward end after their
  // activations, k + m / chunks. Backward: two gathers on one ring, k, beside one of four matmuls,
  // one chunk of which is left. The reduce-scatter, k / 2, at best hides behind two matmuls, m; at
  // worst what it takes longer than its own, k / 2 - m / 2, and a chunk are left.
  for (const double tokens : {100.0, 400.0}) {
    const auto [m, f, k] = terms(tokens, 16);
    const double by_hand = kMixedLayers * (k + m / kChunks + k + 1.5 * m + m / 2 / kChunks) + 2 * f;
    add(tokens, 16, kChunks,
        "16 ways are more than F W / C = 12.85: activations take longer than the arithmetic",
        {by_hand, by_hand + kMixedLayers * (k / 2 - m / 2 + m / 2 / kChunks)});
    // Each link's flow alone: the backward's gather takes k / 2, as its matmul nearly does.
    const double alone = by_hand - kMixedLayers * k / 2;
    const double exposed = kMixedLayers * (k / 2 - m / 2 + m / 2 / kChunks);
    rows.back().expected_unshared = {alone / rows.back().predicted - 1 - 1e-3,
                                     (alone + exposed) / rows.back().predicted - 1 + 1e-3};
  }
  // 8 ways, compute-bound: a chunk of each pair, and of the backward's two gathers what its matmul
  // does not hide, k - m / 2 (as in S15).
  for (const double tokens : {400.0, 2400.0}) {
    const auto [m, f, k] = terms(tokens, 8);
    const double by_hand =
        kMixedLayers * (3 * m + (k + m / 2) / kChunks + std::max(0.0, k - m / 2)) + 2 * f;
    add(tokens, 8, kChunks,
        "all hides but chunks, the first gather and the last reduce-scatter of weights",
        {by_hand, by_hand});
    const double alone = kMixedLayers * (3 * m + 1.5 * k / kChunks) + 2 * f;
    rows.back().expected_unshared = around(alone / rows.back().predicted - 1, 2e-3);
  }
  // Without collective matmuls activations add to the arithmetic, as in S16: no number of tokens
  // makes that compute-bound, because k grows with them.
  for (const double tokens : {400.0, 2400.0}) {
    const auto [m, f, k] = terms(tokens, 8);
    // Between two steps 2 f, beside which goes the reduce-scatter of the last input gradient, k
    // / 2.
    const double by_hand = kMixedLayers * (3 * m + 2 * k) + std::max(0.0, 2 * f - k / 2);
    add(tokens, 8, 1, "activations add to the arithmetic: more tokens bring more of them",
        {by_hand, by_hand});
  }
  return rows;
}

// ---- S18 ----

constexpr double kSliceChips = 64;
constexpr double kHost = 25e9;         // B/s into the network, of four chips
constexpr double kEgress = kHost / 4;  // of a chip
constexpr double kSliceF = 32768;
constexpr double kSliceLayers = 8;

// `ici`: how many times as fast as v5p the links of a slice are.
Cluster slices_of_64(int slices, double ici, double oversubscription = 1) {
  TorusSpec torus;
  for (int axis = 0; axis < 3; ++axis) torus.axes.push_back({.size = 4, .wraps = true});
  torus.link_bandwidth = Bandwidth(kV5pLink * ici);
  LeafSpineSpec network;
  network.host_bandwidth = Bandwidth(kHost);
  // One switch for all hosts, or one a slice with one cable up, which no path can miss.
  const bool whole = oversubscription == 1;
  network.hosts_per_leaf = whole ? 16 * slices : 16;
  network.spines = whole ? 0 : 1;
  network.oversubscription = oversubscription;
  ComposedSpec spec{.domain = torus, .tiers = {}};
  spec.tiers.push_back({.name = "slice",
                        .count = slices,
                        .fabric = network,
                        .chips_per_host = 4,
                        .host_bandwidth = Bandwidth(1e15)});
  return cluster_of(spec, ideal_v5p({4}).chip);
}

StackStep sliced_step(int slices, double tokens) {
  StackStep step{.layers = static_cast<std::int64_t>(kSliceLayers),
                 .tokens = static_cast<std::int64_t>(tokens)};
  step.plan.dp = slices * static_cast<std::int64_t>(kSliceChips);
  step.plan.zero = 3;
  step.plan.shard = static_cast<std::int64_t>(kSliceChips);
  step.plan.gradient_bytes = 2;
  return step;
}

// A layer's part of the gradients of a chip, all-reduced over the slices.
double between_slices(double slices) {
  const double bytes = 4 * kD * kSliceF / kSliceChips;
  return predict("C1", {{"n", slices}, {"V", bytes}, {"W", kEgress}});
}

double sliced_formula(double slices, double tokens) {
  const double m = pod_math(tokens, kSliceF);
  return kSliceLayers * (m + std::max(2 * m, between_slices(slices)));
}

std::vector<ExperimentRow> slice_rows() {
  std::vector<ExperimentRow> rows;
  const auto add = [&rows](std::string id, std::string regime, std::string why, int slices,
                           double tokens, double low, double high, Cluster (*cluster)(int)) {
    const double predicted = sliced_formula(slices, tokens);
    rows.push_back({.id = std::move(id),
                    .formula = "E9.slices",
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .expected = {low / predicted - 1 - 2e-4, high / predicted - 1 + 2e-4},
                    .tolerance = 0.02,
                    .why = std::move(why),
                    .simulate = [=](const Laboratory& laboratory) {
                      const StackStep step = sliced_step(slices, tokens);
                      return to_seconds(run(laboratory, step, cluster(slices)).step_time);
                    }});
  };
  const auto fast = [](int slices) { return slices_of_64(slices, 10); };
  const auto real = [](int slices) { return slices_of_64(slices, 1); };
  const auto thin = [](int slices) { return slices_of_64(slices, 10, 2); };
  const double f = of_a_ring(kSliceChips) * pod_weights(1, kSliceF, 3);
  // Links inside are ten times as fast as they are, so that only the network between slices binds.
  // The first gather, f, and the last reduction, f inside and d between, stand alone. Compute-bound
  // that is 3 L m + 2 f + d. Else reductions between slices follow each other from the first
  // backward on; the reduce-scatter before them shares its links with the gather of the layer after
  // next, which starts at the same time, and takes 2 f: L m + 2 m + 3 f + L d.
  for (const int slices : {2, 8}) {
    const double limit =
        predict("E9.slices", {{"C", kV5pFlops}, {"W", kEgress}, {"s", slices}}) / kSliceChips;
    for (const auto& [name, times] : {std::pair{"half", 0.5}, {"at", 1.0}, {"twice", 2.0}}) {
      const double tokens = std::round(limit * times);
      const double m = pod_math(tokens, kSliceF);
      const double d = between_slices(slices);
      const double by_hand = std::max(3 * kSliceLayers * m + d + 2 * f / 10,
                                      (kSliceLayers + 2) * m + kSliceLayers * d + 3 * f / 10);
      add("slices-" + std::to_string(slices) + "-" + name,
          std::to_string(slices) + " slices, " + std::to_string(static_cast<int>(tokens * 64)) +
              " tokens a slice; links inside never bind",
          "the last reduction has nothing to hide behind", slices, tokens, by_hand, by_hand, fast);
      // Where links are not shared, nor is that, and each chip of a host has its whole 25 GB/s: d
      // / 4.
      const double alone =
          std::max(3 * kSliceLayers * m + d / 4, (kSliceLayers + 2) * m + kSliceLayers * d / 4) +
          2 * f / 10;
      rows.back().expected_unshared = around(alone / rows.back().predicted - 1, 2e-4);
    }
  }
  // 2 slices, 36,700 tokens each, are 574 a chip: FSDP inside a slice needs 850. Its links carry
  // 3 L f and stand still for the backward of a layer at most; then comes the last d.
  const double few = 574;
  const double m = pod_math(few, kSliceF);
  const double d = between_slices(2);
  add("slices-2-fsdp", "2 slices, 36,736 tokens a slice, links inside as they are",
      "574 tokens a chip are compute-bound between slices, but not inside them: 850 are needed", 2,
      few, 3 * kSliceLayers * f + d, 3 * kSliceLayers * f + 2 * m + d, real);
  // Unshared, gathers and reduce-scatters of a backward go side by side: f forward, 2 m backward;
  // each chip of a host has its whole bandwidth: d / 4.
  const double predicted = rows.back().predicted;
  rows.back().expected_unshared = {
      (kSliceLayers * (f + 2 * m) + d / 4) / predicted - 1,
      (kSliceLayers * (f + 2 * m) + 2 * f + 2 * m + d / 4) / predicted - 1};
  // Uplinks of half the bandwidth: d doubles.
  add("oversubscribed", "2 slices, 36,736 tokens a slice, network oversubscribed 2 to 1",
      "half of the bandwidth: twice the tokens are needed", 2, few,
      (kSliceLayers + 2) * m + kSliceLayers * 2 * d + 3 * f / 10,
      (kSliceLayers + 2) * m + kSliceLayers * 2 * d + 3 * f / 10, thin);
  // Where links are not shared, nothing is oversubscribed, and d is d / 4, which all hides.
  rows.back().expected_unshared =
      around((3 * kSliceLayers * m + d / 4 + 2 * f / 10) / rows.back().predicted - 1, 2e-4);
  // Not reduced inside a slice first: one ring through all 128 chips leaves a slice over one host,
  // which carries 2 x 127/128 of all gradients of a layer.
  const double ring = 2 * of_a_ring(128) * 4 * kD * kSliceF / kHost;
  const double by_hand = (kSliceLayers + 2) * m + kSliceLayers * ring;
  const double formula = sliced_formula(2, few);
  rows.push_back({.id = "one-ring",
                  .formula = "E9.slices",
                  .regime = "2 slices, 36,736 tokens a slice, one ring through all 128 chips",
                  .predicted = formula,
                  .expected = around(by_hand / formula - 1, 0.2),
                  .why = "one host of 16 carries everything, and all of it instead of a half",
                  .simulate = [few](const Laboratory& laboratory) {
                    StackStep step = sliced_step(2, few);
                    step.plan.zero = 0;
                    step.plan.shard = 0;
                    step.data_algorithm = AlgorithmChoice::kRing;
                    return to_seconds(run(laboratory, step, slices_of_64(2, 10)).step_time);
                  }});
  return rows;
}

// ---- S19 ----

constexpr double kLlamaF = 28672;
constexpr double kLlamaLayers = 80;
constexpr double kLlamaTokens = 512;  // a chip: 4.19e6 over 8192

struct LlamaMesh {
  std::int64_t fsdp;
  std::int64_t tensor;
  double axes;
  const char* map;
};
// 4 ways on z, and FSDP over x and y, 16 in place of 2048; or FSDP over all.
constexpr LlamaMesh kLlamaMixed = {16, 4, 2, "dp:x+y/tp:z"};
constexpr LlamaMesh kLlamaSharded = {64, 1, 3, "dp:x+y+z"};

StackStep llama_step(const LlamaMesh& mesh, double chunks) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kLlamaF),
                 .layers = static_cast<std::int64_t>(kLlamaLayers),
                 .tokens = static_cast<std::int64_t>(kLlamaTokens) * mesh.tensor,
                 .map = mesh.map};
  step.plan.dp = mesh.fsdp;
  step.plan.tp = mesh.tensor;
  step.plan.zero = 3;
  step.plan.gradient_bytes = 2;
  step.plan.tensor_chunks = static_cast<std::int64_t>(chunks);
  return step;
}

// Simulated: the utilisation of a step. By the formula it is arithmetic over the greatest term.
std::vector<ExperimentRow> llama_rows() {
  std::vector<ExperimentRow> rows;
  const double m = pod_math(kLlamaTokens, kLlamaF);
  const auto add = [&rows, m](std::string id, std::string regime, std::string why,
                              const LlamaMesh& mesh, double chunks, double low, double high) {
    const auto ways = static_cast<double>(mesh.tensor);
    const double weights = pod_weights(ways, kLlamaF, mesh.axes);
    const double activations = mesh.tensor > 1 ? pod_activations(kLlamaTokens, ways) : 0;
    const double work = 3 * kLlamaLayers * m;
    const double step = kLlamaLayers * (std::max({m, weights, activations}) +
                                        std::max({2 * m, 2 * weights, activations}));
    const double predicted = work / step;
    rows.push_back(
        {.id = std::move(id),
         .formula = "E7.math",
         .regime = std::move(regime),
         .predicted = predicted,
         .unit = "",
         .expected = {work / high / predicted - 1 - 5e-4, work / low / predicted - 1 + 5e-4},
         .tolerance = 0.02,
         .why = std::move(why),
         .simulate = [=](const Laboratory& laboratory) {
           return work / seconds(laboratory, llama_step(mesh, chunks));
         }});
  };
  const double f = pod_weights(4, kLlamaF, 2) * of_a_ring(16);
  const double k = pod_activations(kLlamaTokens, 4) * of_a_ring(4);
  // k is 0.27 m, less than m / 2: of both passes a chunk is left, and 2 f between two steps (S16).
  const double overlapped = kLlamaLayers * (3 * m + 2 * k / kChunks) + 2 * f;
  add("mixed", "4 ways of tensor parallelism in collective matmuls: utilisation",
      "chunks, the first gather and the last reduce-scatter are left", kLlamaMixed, kChunks,
      overlapped, overlapped);
  // Unshared, the backward's chunk has the whole ring.
  rows.back().expected_unshared =
      around(3 * kLlamaLayers * m / (kLlamaLayers * (3 * m + 1.5 * k / kChunks) + 2 * f) - 1, 5e-4);
  const double added = kLlamaLayers * (3 * m + 2 * k) + 2 * f - k / 2;
  add("mixed-unoverlapped", "4 ways of tensor parallelism, nothing overlapped: utilisation",
      "activations add to the arithmetic: 85 %, the lower end of what a run could reach",
      kLlamaMixed, 1, added, added);
  // 512 tokens a chip are fewer than 850: links carry 3 L f, and stand still for 2 m at most.
  const double whole = pod_weights(1, kLlamaF, 3) * of_a_ring(64);
  add("fsdp-only", "FSDP over all chips and three axes: utilisation",
      "512 tokens a chip are too few for FSDP alone: 63/64 of the weights move", kLlamaSharded, 1,
      3 * kLlamaLayers * whole, 3 * kLlamaLayers * whole + 2 * m);
  // Unshared, gathers and reduce-scatters of a backward go side by side behind its 2 m.
  const double alone = kLlamaLayers * (whole + 2 * m);
  const double work = 3 * kLlamaLayers * m;
  const double predicted = rows.back().predicted;
  rows.back().expected_unshared = {work / (alone + 2 * whole + 2 * m) / predicted - 1,
                                   work / alone / predicted - 1};
  return rows;
}

}  // namespace

std::vector<FormulaExperiment> mixed_parallel_experiments() {
  return {
      {.id = "S17",
       .title = "FSDP with tensor parallelism on a pod: where it is compute-bound",
       .claim = "4096 v5p are compute-bound from 4.06e5 tokens, 99 a chip, if the two "
                "communications overlap; from 1.6e6, 397 a chip, if they add",
       .rows = threshold_rows},
      {.id = "S18",
       .title = "Data parallelism between slices",
       .claim = "v5p slices are compute-bound from 73,440 tokens a slice; two from half of it",
       .rows = slice_rows},
      {.id = "S19",
       .title = "LLaMA-3 70B on a pod: 2048 ways of FSDP, 4 of tensor parallelism",
       .claim = "4.19e6 tokens on 8192 v5p are compute-bound with 4 ways of tensor parallelism, "
                "and not with FSDP alone",
       .rows = llama_rows}};
}

}  // namespace stepsim
