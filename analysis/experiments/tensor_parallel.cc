// S15 and S16: tensor parallelism of the two-matmul model, alone and beside FSDP, on v5p.
//
// In the derivations, a layer: m = its forward's arithmetic (backward 2 m), k = the gather and the
// reduce-scatter of its activations in one pass, as the formulas have it; a ring of Y moves (Y-1)/Y
// of that. The input that the backward gathers again hides behind its arithmetic.

#include <algorithm>
#include <utility>

#include "analysis/experiments/experiment_groups.h"
#include "analysis/experiments/stack_step.h"

namespace stepsim {
namespace {

constexpr double kD = 8192;

double of_a_ring(double ways) {
  return (ways - 1) / ways;
}

// ---- S15 ----

constexpr double kTensorF = 28672;
constexpr double kTensorTokens = 4096;

double tensor_math(double ways) {
  return predict("E4.math",
                 {{"B", kTensorTokens}, {"D", kD}, {"F", kTensorF}, {"Y", ways}, {"C", kV5pFlops}});
}

double tensor_comms() {
  return predict("E4.comms", {{"B", kTensorTokens}, {"D", kD}, {"W", kV5pAxis}});
}

StackStep tensor_step(std::int64_t ways, std::int64_t chunks = 1) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kTensorF),
                 .layers = 8,
                 .tokens = static_cast<std::int64_t>(kTensorTokens),
                 .slice = {static_cast<int>(ways)}};
  step.plan.tp = ways;
  step.plan.tensor_chunks = chunks;
  return step;
}

std::vector<ExperimentRow> tensor_rows() {
  std::vector<ExperimentRow> rows;
  const double k = tensor_comms();
  for (const std::int64_t ways : {4, 8, 16}) {
    const double m = tensor_math(static_cast<double>(ways));
    // Nothing overlaps: forward and backward each add what they send.
    const double by_hand = 8 * (3 * m + 2 * k * of_a_ring(static_cast<double>(ways)));
    const auto simulate = [ways](const Laboratory& laboratory) {
      return seconds(laboratory, tensor_step(ways));
    };
    const std::string name = std::to_string(ways);
    const double hidden = 8 * (std::max(m, k) + std::max(2 * m, k));
    rows.push_back({.id = "hidden-y" + name,
                    .formula = "E4",
                    .regime = name + " ways, all of it on the critical path; max(math, comms)",
                    .predicted = hidden,
                    .expected = around(by_hand / hidden - 1),
                    .why = "a matmul waits for its gather, the reduce-scatter for its matmul: E4 "
                           "needs collective matmuls",
                    .simulate = simulate});
    const double added = 8 * (3 * m + 2 * k);
    rows.push_back({.id = "added-y" + name,
                    .formula = "E6",
                    .regime = name + " ways, math + comms",
                    .predicted = added,
                    .expected = around(by_hand / added - 1),
                    .why = "the sum, of (n-1)/n of the activations",
                    .simulate = simulate});
  }
  // Collective matmuls of 8 ways. Forward: of each of the two pairs one chunk of the shorter side
  // is left, k / chunks in all. Backward: the gather shares its ring with the input that is
  // gathered again in the background, so both end after k. That is more than the matmul beside
  // them, m / 2, which waits and has one chunk left: k - m/2 + m/2 / chunks more. The
  // reduce-scatter hides behind the weight gradient.
  const double m = tensor_math(8);
  const double moved = k * of_a_ring(8);
  for (const std::int64_t chunks : {8, 32}) {
    const double chunk = (moved + m / 2) / static_cast<double>(chunks);
    const double by_hand = 8 * (3 * m + chunk + moved - m / 2);
    const double hidden = 8 * 3 * m;
    rows.push_back({.id = "chunks-" + std::to_string(chunks),
                    .formula = "E4",
                    .regime = "8 ways, collective matmuls in " + std::to_string(chunks) +
                              " chunks; max(math, comms)",
                    .predicted = hidden,
                    .expected = around(by_hand / hidden - 1, 5e-4),
                    .tolerance = 0.02,
                    .why = "one chunk of each pair is left, and the backward gathers two arrays on "
                           "one ring at a time",
                    .simulate = [chunks](const Laboratory& laboratory) {
                      return seconds(laboratory, tensor_step(8, chunks));
                    }});
    // Where links are not shared, the backward's gather is alone: 1.5 k / chunks in all.
    const double alone = 8 * (3 * m + 1.5 * moved / static_cast<double>(chunks));
    rows.back().expected_unshared = around(alone / hidden - 1, 5e-4);
    // The packets of gather and scatter take turns on the ring, and how they queue is not derived.
    rows.back().not_on_packets = "chunks of two collectives queue on one ring: nothing is derived";
  }
  return rows;
}

// ---- S16 ----

constexpr double kMixedTokens = 48000;  // of the global batch
constexpr double kMixedF = 32768;
constexpr std::int64_t kMixedLayers = 32;

struct Mixed {
  std::int64_t fsdp;
  std::int64_t tensor;
  double fsdp_axes;
  double tensor_axes;
  const char* map;
};

// Whole axes of the slice for each.
constexpr Mixed kMixed[] = {
    {4, 16, 1, 2, "dp:x/tp:y+z"}, {16, 4, 2, 1, "dp:x+y/tp:z"}, {64, 1, 3, 0, "dp:x+y+z"}};

double mixed_math() {
  return predict("E7.math",
                 {{"B", kMixedTokens}, {"D", kD}, {"F", kMixedF}, {"N", 64}, {"C", kV5pFlops}});
}
double mixed_gather(const Mixed& mixed) {
  return predict("E7.fsdp", {{"D", kD},
                             {"F", kMixedF},
                             {"Y", static_cast<double>(mixed.tensor)},
                             {"W", kV5pAxis},
                             {"MX", mixed.fsdp_axes}});
}
double mixed_activations(const Mixed& mixed) {
  if (mixed.tensor == 1) return 0;
  return predict("E7.tp", {{"B", kMixedTokens},
                           {"D", kD},
                           {"X", static_cast<double>(mixed.fsdp)},
                           {"W", kV5pAxis},
                           {"MY", mixed.tensor_axes}});
}

// The greatest of the three, in each pass.
double mixed_formula(const Mixed& mixed) {
  const double m = mixed_math();
  const double f = mixed_gather(mixed);
  const double k = mixed_activations(mixed);
  return kMixedLayers * (std::max({m, f, k}) + std::max({2 * m, 2 * f, k}));
}

StackStep mixed_step(const Mixed& mixed) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kMixedF),
                 .layers = kMixedLayers,
                 .tokens = static_cast<std::int64_t>(kMixedTokens) / mixed.fsdp,
                 .map = mixed.map};
  step.plan.dp = mixed.fsdp;
  step.plan.tp = mixed.tensor;
  step.plan.zero = 3;
  step.plan.gradient_bytes = 2;
  return step;
}

std::vector<ExperimentRow> mixed_rows() {
  std::vector<ExperimentRow> rows;
  const double m = mixed_math();
  for (const Mixed& mixed : kMixed) {
    const auto ways = static_cast<double>(mixed.tensor);
    const double predicted = mixed_formula(mixed);
    const double f = mixed_gather(mixed) * of_a_ring(static_cast<double>(mixed.fsdp));
    const double k = mixed_activations(mixed) * (ways > 1 ? of_a_ring(ways) : 0);
    // Tensor parallelism adds its activations to the arithmetic, twice a layer; weights hide behind
    // both, but for the last reduce-scatter and the first gather, which stand between two steps: 2
    // f there, beside which goes the reduce-scatter of the last input gradient (k / 2; f is more
    // than half of it). Without tensor parallelism weights take longer than the arithmetic: links
    // carry 3 L f and stand still for no longer than the last backward, 2 m.
    const bool bound_by_weights = mixed.tensor == 1;
    const double low =
        bound_by_weights ? 3 * kMixedLayers * f : kMixedLayers * (3 * m + 2 * k) + 2 * f - k / 2;
    const double high = bound_by_weights ? low + 2 * m : low;
    rows.push_back(
        {.id = "x" + std::to_string(mixed.fsdp),
         .formula = "E7",
         .regime = std::to_string(mixed.fsdp) + " ways of FSDP, " + std::to_string(mixed.tensor) +
                   " of tensor parallelism, nothing of it overlapped",
         .predicted = predicted,
         .expected = {low / predicted - 1 - kRounding, high / predicted - 1 + kRounding},
         .why = bound_by_weights ? "63/64 of the weights move"
                                 : "activations are on the critical path: they add to the "
                                   "arithmetic, where the formula takes the greater",
         .simulate = [step = mixed_step(mixed)](const Laboratory& laboratory) {
           return seconds(laboratory, step);
         }});
    // Where links are not shared, gathers and reduce-scatters of a backward pass, f each, go side
    // by side and hide behind its 2 m; the forward stays bound by its gathers.
    if (bound_by_weights) {
      const double alone = kMixedLayers * (f + 2 * m);
      rows.back().expected_unshared = {alone / predicted - 1,
                                       (alone + 2 * f + 2 * m) / predicted - 1};
    }
  }
  // 16 x 4 with collective matmuls: k is less than m / 2, so that of a pass k / chunks is left (in
  // the backward one chunk at half of the ring); between two steps 2 f, because the last input
  // gradient is reduced beside its weight gradient now.
  const Mixed& best = kMixed[1];
  StackStep overlapped = mixed_step(best);
  overlapped.plan.tensor_chunks = 32;
  const double k = mixed_activations(best) * of_a_ring(4);
  const double f = mixed_gather(best) * of_a_ring(16);
  const double by_hand = kMixedLayers * (3 * m + 2 * k / 32) + 2 * f;
  rows.push_back({.id = "x16-overlapped",
                  .formula = "E7",
                  .regime = "16 ways of FSDP, 4 of tensor parallelism in collective matmuls of 32 "
                            "chunks",
                  .predicted = mixed_formula(best),
                  .expected = around(by_hand / mixed_formula(best) - 1, 2e-4),
                  .tolerance = 0.02,
                  .why = "one chunk of each pair, the first gather and the last reduce-scatter of "
                         "weights are left",
                  .simulate = [overlapped](const Laboratory& laboratory) {
                    return seconds(laboratory, overlapped);
                  }});
  const double alone = kMixedLayers * (3 * m + 1.5 * k / 32) + 2 * f;
  rows.back().expected_unshared = around(alone / mixed_formula(best) - 1, 2e-4);
  return rows;
}

}  // namespace

std::vector<FormulaExperiment> tensor_parallel_experiments() {
  return {{.id = "S15",
           .title = "Tensor parallelism on the critical path",
           .claim = "up to F W / C ways of tensor parallelism are free, if matmuls hide them",
           .rows = tensor_rows},
          {.id = "S16",
           .title = "FSDP beside tensor parallelism: the best ways of each",
           .claim = "on v5p 4x4x4 48,000 tokens want 13.7 ways of FSDP and 4.7 of tensor "
                    "parallelism; 16 and 4 are the best whole axes",
           .rows = mixed_rows}};
}

}  // namespace stepsim
