// S15 and S16: tensor parallelism of the two-matmul model, alone and with FSDP, on v5p.
//
// Symbols for one layer in the derivations: m = the arithmetic of its forward (the backward takes 2
// m); k = the gather and the reduce-scatter of its activations in one pass, as in the formulas. A
// ring of Y moves (Y-1)/Y of k. The input that the backward gathers again hides behind its
// arithmetic.

#include <algorithm>
#include <array>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/book_layer.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

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
  step.plan.mesh.tp = ways;
  step.plan.pieces.tensor_chunks = chunks;
  return step;
}

// 64 tokens on a ring of 8 with hops of 1 us. A gather, 4 hops each way of a shard of 131 kB, takes
// 4 us plus the time of its bytes. In c chunks it takes 4 us c times.
void add_small_batch(std::vector<StudyRow>& rows) {
  constexpr double kTokens = 64;
  constexpr double kHop = 1e-6;
  const double m = tensor_math(8) * kTokens / kTensorTokens;
  const double bytes = tensor_comms() * of_a_ring(8) * kTokens / kTensorTokens / 2;  // of a gather
  const double formula = 8 * (3 * m + 4 * bytes);
  for (const std::int64_t chunks : {1, 8, 32}) {
    const auto c = static_cast<double>(chunks);
    const double gather = 4 * kHop * c + bytes;
    // Without chunks all times add. With chunks, the forward's two pairs and the backward's gather
    // are bound by hops, and each matmul beside them leaves one chunk. The backward's
    // reduce-scatter is one collective and hides behind the weight gradients, m. Half of m runs
    // alone before it.
    const double by_hand =
        chunks == 1 ? 8 * (3 * m + 4 * gather) : 8 * (3 * gather + 1.5 * m / c + 1.5 * m);
    rows.push_back(
        {.id = "small-chunks-" + std::to_string(chunks),
         .formula = "E6",
         .regime = "8 ways, 64 tokens, hops of 1 us, collective matmuls in " +
                   std::to_string(chunks) + " chunks",
         .predicted = formula,
         .expected = around(by_hand / formula - 1, 0.04 * by_hand / formula),
         .why = chunks == 1
                    ? "4 hops of latency in each of 4 collectives a layer"
                    : "chunks of a few kB: each pays all hops again, so more chunks are slower",
         .simulate = [chunks](const Laboratory& laboratory) {
           StackStep step = tensor_step(8, chunks);
           step.tokens = static_cast<std::int64_t>(kTokens);
           Cluster cluster = ring_of(8, Bandwidth(kV5pLink), duration_from_seconds(kHop));
           cluster.chip = ideal_v5p({8}).chip;
           return to_seconds(run(laboratory, step, cluster).step_time);
         }});
  }
}

std::vector<StudyRow> tensor_rows() {
  std::vector<StudyRow> rows;
  const double k = tensor_comms();
  for (const std::int64_t ways : {4, 8, 16}) {
    const double m = tensor_math(static_cast<double>(ways));
    // Nothing overlaps: the communication of forward and backward adds to the arithmetic.
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
  // Collective matmuls of 8 ways. Forward: each of the two pairs leaves one chunk of the shorter
  // side, k / chunks in all. Backward: the gather shares its ring with the input that is gathered
  // again in the background, so both end after k. The matmul beside them, m / 2, is shorter: it
  // waits and has one chunk left, which adds k - m/2 + m/2 / chunks. The reduce-scatter hides
  // behind the weight gradient.
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
    // Without link sharing, the backward's gather is alone: 1.5 k / chunks in all.
    const double alone = 8 * (3 * m + 1.5 * moved / static_cast<double>(chunks));
    rows.back().expected_unshared = around(alone / hidden - 1, 5e-4);
    const auto [least, most] =
        collective_matmuls_on_packets(8, m, moved, static_cast<double>(chunks), 0);
    rows.back().expected_packets = {least / hidden - 1 - 5e-4, most / hidden - 1 + 5e-4};
  }
  add_small_batch(rows);
  return rows;
}

std::vector<Sweep> tensor_sweeps() {
  const auto hidden = [](double ways) {
    const double m = tensor_math(ways);
    return 8 * (std::max(m, tensor_comms()) + std::max(2 * m, tensor_comms()));
  };
  const auto added = [](double ways) { return 8 * (3 * tensor_math(ways) + 2 * tensor_comms()); };
  const auto simulated = [](std::int64_t chunks) {
    return [chunks](const Laboratory& laboratory, double ways) {
      return seconds(laboratory, tensor_step(static_cast<std::int64_t>(ways), chunks));
    };
  };
  return {
      {.name = "S15-tensor-parallel",
       .title = "Tensor parallelism on one axis of v5p: step time",
       .subtitle = "8 two-matmul layers, D 8192, F 28672, 4,096 tokens",
       .x = PlotAxis{.label = "ways", .log = true, .ticks = {4, 8, 16, 32}},
       .y = PlotAxis{.label = "step", .unit = "s", .log = true},
       .at = {4, 8, 16, 32},
       .only_there = true,
       .curves = {
           {.label = "hidden (E4), collective matmuls in 32 chunks",
            .predict = hidden,
            .simulate = simulated(32)},
           {.label = "added (E6), not overlapped", .predict = added, .simulate = simulated(1)}}}};
}

// ---- S16 ----

constexpr double kSliceTokens = 48000;  // global batch
constexpr double kSliceF = 32768;
constexpr std::int64_t kSliceLayers = 32;

struct Mixed {
  std::int64_t fsdp;
  std::int64_t tensor;
  double fsdp_axes;
  double tensor_axes;
  const char* map;
  std::array<int, 3> slice;  // 0: the slice has no such axis
  double busiest;            // load of FSDP's busiest axis, relative to their mean
};

// Each uses whole axes of a slice of 64. On axes of 8 and 4 chips, half of the data goes along the
// first and then along the other, and half the other way round. A chip receives 31 shards: x
// carries (7 + 7 x 4) / 2 = 17.5 and y 13.5, instead of 15.5 each.
constexpr Mixed kMixed[] = {{4, 16, 1, 2, "dp:x/tp:y+z", {4, 4, 4}, 1},
                            {8, 8, 1, 1, "dp:x/tp:y", {8, 8, 0}, 1},
                            {16, 4, 2, 1, "dp:x+y/tp:z", {4, 4, 4}, 1},
                            {32, 2, 2, 1, "dp:x+y/tp:z", {8, 4, 2}, 17.5 / 15.5},
                            {64, 1, 3, 0, "dp:x+y+z", {4, 4, 4}, 1}};
constexpr const Mixed& kBest = kMixed[2];

// Returns the share of the formulas' activations that moves. Two chips have one cable, half of what
// a ring has.
double moved_activations(double ways) {
  return ways == 1 ? 0 : ways == 2 ? 1 : of_a_ring(ways);
}

double mixed_math() {
  return predict("E7.math",
                 {{"B", kSliceTokens}, {"D", kD}, {"F", kSliceF}, {"N", 64}, {"C", kV5pFlops}});
}
double mixed_gather(const Mixed& mixed) {
  return predict("E7.fsdp", {{"D", kD},
                             {"F", kSliceF},
                             {"Y", static_cast<double>(mixed.tensor)},
                             {"W", kV5pAxis},
                             {"MX", mixed.fsdp_axes}});
}
double mixed_activations(const Mixed& mixed) {
  if (mixed.tensor == 1) return 0;
  return predict("E7.tp", {{"B", kSliceTokens},
                           {"D", kD},
                           {"X", static_cast<double>(mixed.fsdp)},
                           {"W", kV5pAxis},
                           {"MY", mixed.tensor_axes}});
}

// The greatest of the three terms in each pass.
double mixed_formula(const Mixed& mixed) {
  const double m = mixed_math();
  const double f = mixed_gather(mixed);
  const double k = mixed_activations(mixed);
  return kSliceLayers * (std::max({m, f, k}) + std::max({2 * m, 2 * f, k}));
}

StackStep mixed_step(const Mixed& mixed) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kSliceF),
                 .layers = kSliceLayers,
                 .tokens = static_cast<std::int64_t>(kSliceTokens) / mixed.fsdp,
                 .map = mixed.map,
                 .slice = {}};
  for (const int size : mixed.slice) {
    if (size > 0) step.slice.push_back(size);
  }
  step.plan.mesh.dp = mixed.fsdp;
  step.plan.mesh.tp = mixed.tensor;
  step.plan.state.zero = 3;
  step.plan.update.gradient_bytes = 2;
  return step;
}

// Returns a collective over an axis of 16 that takes `seconds` alone.
CollectiveWork gather_of(double seconds) {
  return work_of(CollectiveOp::kAllGather, whole_bytes(seconds * kV5pAxis * 16 / 15),
                 AlgorithmChoice::kBidirectionalRing);
}

// Sends the bytes of a pass of FSDP and tensor parallelism of 16 x 4, but along one axis. The links
// are busy for the sum of both, 3840 + 2250 = 6090 of the page's units (4 D / W), not for the
// greater one.
void add_shared_axis(std::vector<StudyRow>& rows) {
  const double f = mixed_gather(kBest) * of_a_ring(16);
  const double k = mixed_activations(kBest) * of_a_ring(4);
  const auto both = [f, k](const Laboratory& laboratory) {
    std::vector<RankId> all;
    for (std::uint32_t rank = 0; rank < 16; ++rank) all.emplace_back(rank);
    const Cluster cluster = ideal_v5p({16});
    return laboratory.seconds(
        collectives_graph(all_chips(cluster), {{.work = gather_of(f), .groups = {all}},
                                               {.work = gather_of(k), .groups = {all}}}),
        cluster);
  };
  rows.push_back({.id = "shared-axis",
                  .formula = "E7.fsdp",
                  .regime = "weights of 16 ways and activations of 4, both along one axis",
                  .predicted = f,
                  .expected = around(k / f, 1e-4),
                  .why = "on one axis communications add: 6090 units, not 3840; E7 needs an axis "
                         "for each",
                  .simulate = both,
                  .expected_unshared = around(0, 1e-4),
                  .expected_packets = around(k / f, 5e-3)});
}

std::vector<StudyRow> mixed_rows() {
  std::vector<StudyRow> rows;
  const double m = mixed_math();
  for (const Mixed& mixed : kMixed) {
    const auto ways = static_cast<double>(mixed.tensor);
    const double predicted = mixed_formula(mixed);
    const double f =
        mixed_gather(mixed) * of_a_ring(static_cast<double>(mixed.fsdp)) * mixed.busiest;
    const double k = mixed_activations(mixed) * moved_activations(ways);
    // Tensor parallelism adds its activations to the arithmetic, twice per layer. Weights hide
    // behind both, except for the last reduce-scatter and the first gather, which stand between two
    // steps: 2 f. The reduce-scatter of the last input gradient (k / 2), which nobody waits for,
    // runs beside these. Without tensor parallelism, weights take longer than the arithmetic: links
    // carry 3 L f and idle at most for the last backward, 2 m.
    const bool bound_by_weights = mixed.tensor == 1;
    const double low =
        bound_by_weights ? 3 * kSliceLayers * f : kSliceLayers * (3 * m + 2 * k) + 2 * f - k / 2;
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
    // On packets, unequal axes fall out of step where gather and reduce-scatter meet. At worst one
    // axis works at a time, 31 / 17.5 of a pass each, and the backward ends with them.
    if (mixed.busiest > 1) {
      const double worst = 2 * f * 31 / 17.5 - 2 * m - k;
      rows.back().expected_packets = {low / predicted - 1 - kRounding,
                                      (low + kSliceLayers * worst) / predicted - 1};
    }
    // Without link sharing, gathers and reduce-scatters of a backward pass, f each, run side by
    // side and hide behind its 2 m. The forward stays bound by its gathers.
    if (bound_by_weights) {
      const double alone = kSliceLayers * (f + 2 * m);
      rows.back().expected_unshared = {alone / predicted - 1,
                                       (alone + 2 * f + 2 * m) / predicted - 1};
    }
  }
  // 16 x 4 with collective matmuls: k is less than m / 2, so a pass leaves k / chunks (in the
  // backward one chunk at half of the ring). Between two steps there are 2 f, because the last
  // input gradient is now reduced beside its weight gradient.
  const Mixed& best = kBest;
  StackStep overlapped = mixed_step(best);
  overlapped.plan.pieces.tensor_chunks = 32;
  const double k = mixed_activations(best) * of_a_ring(4);
  const double f = mixed_gather(best) * of_a_ring(16);
  const double by_hand = kSliceLayers * (3 * m + 2 * k / 32) + 2 * f;
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
  const double alone = kSliceLayers * (3 * m + 1.5 * k / 32) + 2 * f;
  rows.back().expected_unshared = around(alone / mixed_formula(best) - 1, 2e-4);
  const auto [least, most] = collective_matmuls_on_packets(kSliceLayers, m, k, 32, 2 * f);
  rows.back().expected_packets = {least / mixed_formula(best) - 1 - 2e-4,
                                  most / mixed_formula(best) - 1 + 2e-4};
  add_shared_axis(rows);
  return rows;
}

std::vector<Sweep> mixed_sweeps() {
  const auto mesh = [](double fsdp) -> const Mixed& {
    return *std::ranges::find(kMixed, static_cast<std::int64_t>(fsdp), &Mixed::fsdp);
  };
  const auto simulated = [mesh](std::int64_t chunks) {
    return [mesh, chunks](const Laboratory& laboratory, double fsdp) {
      StackStep step = mixed_step(mesh(fsdp));
      if (mesh(fsdp).tensor > 1) step.plan.pieces.tensor_chunks = chunks;
      return seconds(laboratory, step);
    };
  };
  Sweep sweep{.name = "S16-mixed",
              .title = "FSDP beside tensor parallelism on 64 v5p: step time of 48,000 tokens",
              .subtitle = "32 two-matmul layers, D 8192, F 32768; whole axes for each",
              .x = PlotAxis{.label = "ways of FSDP (of 64)", .log = true, .ticks = {}},
              .y = PlotAxis{.label = "step", .unit = "s"},
              .at = {},
              .only_there = true,
              .curves = {{.label = "collective matmuls in 32 chunks",
                          .predict = [mesh](double fsdp) { return mixed_formula(mesh(fsdp)); },
                          .simulate = simulated(32)},
                         {.label = "not overlapped", .predict = {}, .simulate = simulated(1)}}};
  for (const Mixed& mixed : kMixed) sweep.at.push_back(static_cast<double>(mixed.fsdp));
  sweep.x.ticks = sweep.at;
  return {sweep};
}

}  // namespace

std::vector<Study> tensor_parallel_studies() {
  return {
      {.id = "S15",
       .source = kBookTraining,
       .title = "Tensor parallelism on the critical path",
       .claim = "up to F W / C ways of tensor parallelism are free, if matmuls hide them",
       .rows = tensor_rows,
       .sweeps = tensor_sweeps,
       .finding =
           "In a forward, collective matmuls leave a chunk of the shorter side, as the books "
           "say: 2 % from 32 chunks on. The backward gathers its input again beside them, on the "
           "same ring: that is what stays at 32 chunks, 5 % here, and more on links that serve "
           "messages in order."},
      {.id = "S16",
       .source = kBookTraining,
       .title = "FSDP beside tensor parallelism: the best ways of each",
       .claim = "on v5p 4x4x4 48,000 tokens want 13.7 ways of FSDP and 4.7 of tensor "
                "parallelism; 16 and 4 are the best whole axes",
       .rows = mixed_rows,
       .sweeps = mixed_sweeps}};
}

}  // namespace stepsim
