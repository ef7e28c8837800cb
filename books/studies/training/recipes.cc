// S38, S39 and S46: recompute, the 3D recipe on 512 A100, stragglers.
//
// Symbols for one layer in the derivations, by the formulas: m = the arithmetic of its forward (the
// backward takes 2 m); k = the gather and the reduce-scatter of tensor parallelism in one pass. The
// ring of 8 moves 7/8 of k.

#include <algorithm>
#include <cmath>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/book_layer.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "schedules/plan/axis.h"
#include "sim/program/graph_by_hand.h"
#include "topology/small_clusters.h"
#include "workload/layers.h"

namespace stepsim {
namespace {

double of(const SimulationResult& result, MemoryCategory category) {
  const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
  return static_cast<double>(peak.by_category[static_cast<std::size_t>(category)].value());
}

// ---- S38 ----

constexpr double kSequenceTokens = 4096;

StackStep recomputed(std::int64_t tp, bool sequence_parallel, Recompute recompute) {
  StackStep step{.layers = 8, .tokens = static_cast<std::int64_t>(kSequenceTokens), .slice = {8}};
  step.plan.mesh.tp = tp;
  step.plan.mesh.dp = 8 / tp;
  step.plan.tensor.sequence_parallel = sequence_parallel;
  step.plan.recomputing.kind = recompute;
  return step;
}

double sent_over_tensor_group(const SimulationResult& result) {
  return static_cast<double>(result.bytes_by_axis[static_cast<std::size_t>(Axis::kTensor)].value());
}

void add_recompute_time(std::vector<StudyRow>& rows) {
  const double forward = predict(
      "E7.math", {{"B", kSequenceTokens}, {"D", kD}, {"F", kF}, {"N", 1}, {"C", kV5pFlops}});
  const double overhead = predict("H5", {{"f", 2}});
  rows.push_back({.id = "full-compute",
                  .formula = "H5",
                  .regime = "arithmetic of a step with full recompute",
                  .predicted = 8 * 3 * forward * (1 + overhead),
                  .expected = around(0),
                  .why = "two more FLOPs a parameter and token, on six",
                  .simulate = [](const Laboratory& laboratory) {
                    const StackStep step = recomputed(1, false, Recompute::kFull);
                    return to_seconds(run(laboratory, step).breakdown.compute);
                  }});
}

// E18 counts a transformer layer, which is two of the stack's layers: attention and MLP.
void add_recompute_bytes(std::vector<StudyRow>& rows) {
  const double once =
      8 * 2 * predict("E18", {{"b", 1}, {"s", kSequenceTokens}, {"h", kD}, {"n", 8}}) / 2 * 8;
  const auto add = [&](std::string id, std::string regime, double difference, std::string why,
                       bool sequence_parallel, Recompute recompute) {
    rows.push_back({.id = std::move(id),
                    .formula = "E18",
                    .regime = std::move(regime),
                    .predicted = once,
                    .unit = "B",
                    .expected = around(difference, kToTheLastDigit),
                    .why = std::move(why),
                    .simulate = [=](const Laboratory& laboratory) {
                      return sent_over_tensor_group(
                          run(laboratory, recomputed(8, sequence_parallel, recompute)));
                    }});
  };
  // A layer of the stack all-reduces forward and backward: 4 passes. Recompute repeats the
  // forward's: 6. With sequence parallelism the input is gathered again: 5, and 7.
  add("bytes", "all-reduces of 8 ways, nothing recomputed", 0, "two all-reduces a layer", false,
      Recompute::kNone);
  add("bytes-recomputed", "the same with full recompute", 0.5,
      "recompute repeats the forward's all-reduce: half as much again", false, Recompute::kFull);
  add("bytes-sequence", "sequence parallelism, nothing recomputed", 0.25,
      "the input is gathered again for its weight gradient, because only its own part is kept",
      true, Recompute::kNone);
  add("bytes-both", "sequence parallelism with full recompute", 0.75, "both", true,
      Recompute::kFull);
}

// A pipeline of 4 with messages that take no time.
void add_recompute_bubble(std::vector<StudyRow>& rows) {
  constexpr double kStages = 4;
  constexpr double kMicrobatches = 8;
  const auto bubble = [](Recompute recompute, bool of_the_whole) {
    return [=](const Laboratory& laboratory) {
      StackStep step{.layers = 8, .tokens = static_cast<std::int64_t>(kSequenceTokens)};
      step.plan.mesh.pp = static_cast<std::int64_t>(kStages);
      step.plan.recomputing.kind = recompute;
      step.microbatches = static_cast<std::int64_t>(kMicrobatches);
      Cluster cluster = ring_of(4, Bandwidth(1e18));
      cluster.chip = ideal_v5p({4}).chip;
      const SimulationResult result = run(laboratory, step, cluster);
      const double seconds = to_seconds(result.breakdown.bubble);
      return of_the_whole ? seconds / to_seconds(result.step_time) : seconds;
    };
  };
  const double fraction = predict("G1.fraction", {{"P", kStages}, {"m", kMicrobatches}});
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const bool full = recompute == Recompute::kFull;
    rows.push_back({.id = full ? "bubble-share-recomputed" : "bubble-share",
                    .formula = "G1.fraction",
                    .regime = std::string("bubble of 4 stages and 8 micro-batches, ") +
                              (full ? "full recompute" : "nothing recomputed"),
                    .predicted = fraction,
                    .unit = "",
                    .expected = around(0),
                    .why = "the bubble is the same share of any work",
                    .simulate = bubble(recompute, true)});
  }
  const double forward =
      2 * predict("E7.math",
                  {{"B", kSequenceTokens}, {"D", kD}, {"F", kF}, {"N", 1}, {"C", kV5pFlops}});
  rows.push_back(
      {.id = "bubble-recomputed",
       .formula = "G6",
       .regime = "seconds of that bubble, against G6 without recompute",
       .predicted = predict("G6", {{"P", kStages}, {"tf", forward}, {"tb", 2 * forward}}),
       .expected = around(1.0 / 3),
       .why = "a backward with its recompute is 3 of 4 parts, not 2 of 3",
       .simulate = bubble(Recompute::kFull, false)});
}

// One GPT layer: s 4096, h 8192, 64 heads, 8 ways with sequence parallelism.
void add_activations(std::vector<StudyRow>& rows) {
  const auto kept = [](const Laboratory&) {
    const ModelSpec gpt{.name = "gpt",
                        .layers = 1,
                        .hidden = 8192,
                        .attention = {.heads = 64, .kv_heads = 64, .head_dim = 128, .bias = true},
                        .mlp = {.width = 32768, .gated = false, .bias = true},
                        .norms = {.kind = NormKind::kLayer},
                        .embedding = {.vocabulary = 51200, .learned_positions = 4096}};
    const ModelLayers layers = build_layers(
        gpt, {.sequences = 1, .sequence_length = 4096, .tensor = 8, .sequence_parallel = true});
    return static_cast<double>(layers.block(0).saved().value());
  };
  // Bytes per value of s b h / t: the formula has 34, of which 2 are dropout masks, which are not
  // modelled. A fused kernel keeps 4 bytes per head and token, 4 x 64 / 8192, and no scores, which
  // would be 5 N s / h = 160.
  const double ours = 32 + 4 * 64.0 / 8192;
  const FormulaValues shape = {{"s", 4096}, {"h", 8192}, {"t", 8}};
  rows.push_back({.id = "kept-selective",
                  .formula = "H2.selective",
                  .regime = "kept of one layer, formula without scores",
                  .predicted = predict("H2.selective", shape),
                  .unit = "B",
                  .expected = around(ours / 34 - 1, 1e-9),
                  .tolerance = 0.06,
                  .why = "no masks of dropout; a log-sum-exp of each head and token",
                  .simulate = kept});
  FormulaValues with_heads = shape;
  with_heads["N"] = 64;
  rows.push_back({.id = "kept-scores",
                  .formula = "H2.sequence",
                  .regime = "kept of one layer, formula with scores",
                  .predicted = predict("H2.sequence", with_heads),
                  .unit = "B",
                  .expected = around(ours / (34 + 160) - 1, 1e-9),
                  .why = "fused attention keeps no scores: they are 160 of the formula's 194",
                  .simulate = kept});
}

std::vector<StudyRow> recompute_rows() {
  std::vector<StudyRow> rows;
  add_activations(rows);
  add_recompute_time(rows);
  add_recompute_bytes(rows);
  add_recompute_bubble(rows);
  return rows;
}

// ---- S39 ----

constexpr double kA100 = 312e12;
constexpr double kA100Nvlink = 300e9;
constexpr double kPort = 25e9;  // network bandwidth of one GPU
constexpr double kBookWidth = 53248;
constexpr std::int64_t kBookDepth = 80;
constexpr double kDeepParameters = 2.0 * kBookDepth * kD * kBookWidth;  // 69.8e9
constexpr double kRecipeStages = 8;
constexpr double kRecipeMicrobatches = 32;
constexpr double kLayersOfAStage = 10;

Cluster a100_nodes(int nodes) {
  DgxSuperPodSpec spec;
  spec.nodes = nodes;
  spec.gpus_per_node = 8;
  spec.nvlink_bandwidth = Bandwidth(kA100Nvlink);
  spec.nic_bandwidth = Bandwidth(kPort);
  ChipSpec chip = ideal_chip();
  chip.peak = peaks_of_all_types(Throughput(kA100));
  chip.memory_bandwidth = Bandwidth(1e18);
  return cluster_of(spec, chip);
}

StackStep recipe(std::int64_t tp) {
  StackStep step{.mlp_width = static_cast<std::int64_t>(kBookWidth),
                 .layers = kBookDepth,
                 .tokens = static_cast<std::int64_t>(kSequenceTokens),
                 .microbatches = static_cast<std::int64_t>(kRecipeMicrobatches)};
  step.plan.mesh.tp = tp;
  step.plan.mesh.pp = static_cast<std::int64_t>(kRecipeStages);
  step.plan.mesh.dp = 64 / tp;
  step.plan.state.zero = 1;
  step.plan.update.gradient_bytes = 2;
  step.optimizer = true;
  return step;
}

// The formulas' step: G1 with E4's arithmetic, and activations that add to it (E6).
double recipe_formula(double tp) {
  const double m = predict(
      "E4.math", {{"B", kSequenceTokens}, {"D", kD}, {"F", kBookWidth}, {"Y", tp}, {"C", kA100}});
  const double k = predict("E4.comms", {{"B", kSequenceTokens}, {"D", kD}, {"W", kA100Nvlink}});
  return predict("G1", {{"P", kRecipeStages},
                        {"m", kRecipeMicrobatches},
                        {"tf", kLayersOfAStage * (m + k)},
                        {"tb", kLayersOfAStage * (2 * m + k)}});
}

// The same with 7/8 of the activations, and the ends of a step. At least: the gather of the weights
// after it and one layer's gradients. At most: all weights and all gradients, and each micro-batch
// waits for two messages.
DifferenceRange recipe_range() {
  const double m = predict(
      "E4.math", {{"B", kSequenceTokens}, {"D", kD}, {"F", kBookWidth}, {"Y", 8}, {"C", kA100}});
  const double k = predict("E4.comms", {{"B", kSequenceTokens}, {"D", kD}, {"W", kA100Nvlink}});
  const double slots = kRecipeMicrobatches + kRecipeStages - 1;
  const double work = slots * kLayersOfAStage * (3 * m + 2 * 7.0 / 8 * k);
  const double pass = 7.0 / 8 * 2 * kDeepParameters / (8 * kRecipeStages) / kPort;
  const double message = kSequenceTokens * kD * 2 / 8 / kPort;
  const double predicted = recipe_formula(8);
  return {(work + pass + pass / kLayersOfAStage) / predicted - 1,
          (work + 2 * pass + 2 * slots * message) / predicted - 1};
}

// 16 ways over two nodes alone, 8 layers: E6 with NVLink's bandwidth, as if there were only one
// node. `passes`: the time of a pass of activations, in units of the formula's k.
StudyRow across_nodes(AlgorithmChoice algorithm, double passes) {
  const double m = predict(
      "E4.math", {{"B", kSequenceTokens}, {"D", kD}, {"F", kBookWidth}, {"Y", 16}, {"C", kA100}});
  const double k = predict("E4.comms", {{"B", kSequenceTokens}, {"D", kD}, {"W", kA100Nvlink}});
  const double predicted = 8 * (3 * m + 2 * k);
  // The gather in the background hides behind three of the four backward matmuls.
  const double regather = std::max(0.0, passes * k / 2 - 1.5 * m);
  return {.formula = "E6",
          .predicted = predicted,
          .expected = around(8 * (3 * m + 2 * passes * k + regather) / predicted - 1),
          .simulate = [algorithm](const Laboratory& laboratory) {
            StackStep step{.mlp_width = static_cast<std::int64_t>(kBookWidth),
                           .layers = 8,
                           .tokens = static_cast<std::int64_t>(kSequenceTokens)};
            step.plan.mesh.tp = 16;
            step.tensor_algorithm = algorithm;
            return to_seconds(run(laboratory, step, a100_nodes(2)).step_time);
          }};
}

std::vector<StudyRow> recipe_rows() {
  std::vector<StudyRow> rows;
  const auto memory = [&rows](std::string id, std::string formula, const FormulaValues& values,
                              std::string regime, MemoryCategory category) {
    rows.push_back({.id = std::move(id),
                    .formula = formula,
                    .regime = std::move(regime),
                    .predicted = predict(formula, values),
                    .unit = "B",
                    .expected = around(0, kToTheLastDigit),
                    .why = "ten equal layers a stage, without embedding and head",
                    .simulate = [category](const Laboratory& laboratory) {
                      return of(run(laboratory, recipe(8), a100_nodes(64)), category);
                    }});
  };
  FormulaValues mesh = {{"P", kDeepParameters}, {"TP", 8}, {"PP", 8}};
  memory("weights", "F7", mesh, "weights of a rank, TP 8 PP 8", MemoryCategory::kParameters);
  memory("gradients", "F7", mesh, "gradients of a rank", MemoryCategory::kGradients);
  mesh["DP"] = 8;
  memory("optimizer", "F7.optimizer", mesh, "optimizer of a rank, ZeRO-1 over DP 8",
         MemoryCategory::kOptimizer);
  rows.push_back({.id = "step",
                  .formula = "G1",
                  .regime = "TP 8 in the node, PP 8, DP 8, 32 micro-batches",
                  .predicted = recipe_formula(8),
                  .expected = recipe_range(),
                  .tolerance = 0.03,
                  .why = "7/8 of the activations; gradients and weights at the end of the step are "
                         "not hidden",
                  .simulate = [](const Laboratory& laboratory) {
                    StackStep step = recipe(8);
                    step.optimizer = false;
                    return to_seconds(run(laboratory, step, a100_nodes(64)).step_time);
                  }});
  // Level by level: NVLink moves 7/8 of the array at 300 GB/s. A node sends over 8 ports at once,
  // each carries an eighth of the array, and half of that moves: 1/16 at 25 GB/s, 3/4 of k. NVLink
  // remains the slower level.
  rows.push_back(across_nodes(AlgorithmChoice::kHierarchical, 7.0 / 8));
  rows.back().id = "tensor-16-by-levels";
  rows.back().regime = "TP 16 over two nodes, level by level";
  rows.back().why = "all ports of a node carry an eighth each, so crossing nodes costs nothing";
  // Message by message, levels follow one another: 7/8 + 3/4 of k. Packets add up to 1 %.
  const double added = across_nodes(AlgorithmChoice::kHierarchical, 7.0 / 8 + 3.0 / 4).expected.low;
  rows.back().expected_packets = {added, added + 0.01};
  // One ring through both nodes crosses the network over one port each way: 15/16 of the array at
  // 25 GB/s.
  rows.push_back(across_nodes(AlgorithmChoice::kRing, 12 * 15.0 / 16));
  rows.back().id = "tensor-16-one-ring";
  rows.back().regime = "TP 16 over two nodes, one ring";
  rows.back().why =
      "one port of 25 GB/s carries the ring: activations take 11 times as long, a step of this "
      "width 2.8 times; 3 to 4 times needs a narrower MLP";
  rows.back().expected_packets = {rows.back().expected.low, rows.back().expected.high + 0.03};
  return rows;
}

// ---- S46 ----

constexpr double kSigma = 0.01;
constexpr std::uint32_t kRounds = 32;

// On every rank: rounds of a kernel of a millisecond with jitter, and a barrier.
double round_of_stragglers(const Laboratory& laboratory, std::uint32_t ranks) {
  GraphByHand graph(ranks);
  const CommunicatorId all = graph.communicator();
  std::vector<StreamId> streams;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    streams.push_back(graph.stream(rank, "barrier"));
  }
  std::vector<std::vector<Dependency>> before(ranks);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const OpRef kernel = graph.compute(rank, Flops(1e12), before[rank]);
      before[rank] = {after(
          graph.collective(rank, streams[rank],
                           {.communicator = all, .op = CollectiveOp::kBarrier, .bytes = Bytes(0)},
                           {after(kernel)}))};
    }
  }
  graph.graph().jitter = {.deviation = kSigma, .seed = 46};
  const Cluster cluster = one_node(static_cast<int>(ranks), Bandwidth(1e18));
  return laboratory.seconds(graph.build(), cluster) / kRounds;
}

std::vector<StudyRow> straggler_rows() {
  std::vector<StudyRow> rows;
  const double kernel = predict("A1", {{"work", 1e12}, {"C", 1e15}});
  // The largest of n normal numbers is 2.04 sigma above the mean for n = 32 and 3.25 for n = 1024
  // (tables of order statistics). The rule of thumb sqrt(2 ln n), 2.63 and 3.72, is the limit from
  // above. Over 32 rounds the mean has a standard error of 0.08 and 0.06 sigma; four of those are
  // allowed.
  for (const auto& [ranks, largest, error] :
       {std::tuple{32U, 2.04, 0.08}, std::tuple{1024U, 3.25, 0.06}}) {
    rows.push_back({.id = "n" + std::to_string(ranks),
                    .formula = "A1",
                    .regime = std::to_string(ranks) +
                              " ranks, kernels of 1 ms with a jitter of 1 %, a barrier after each",
                    .predicted = kernel,
                    .expected = {kSigma * (largest - 4 * error), kSigma * (largest + 4 * error)},
                    .why =
                        "all wait for the slowest of n; formulas know no jitter. sqrt(2 ln n) is "
                        "an upper limit: +3.7 % for 1,024 ranks",
                    .simulate = [ranks = ranks](const Laboratory& laboratory) {
                      return round_of_stragglers(laboratory, ranks);
                    }});
  }
  return rows;
}

}  // namespace

std::vector<Study> recipe_studies() {
  return {{.id = "S38",
           .source = kKorthikanti,
           .title = "Kept activations and recompute",
           .claim = "full recompute costs a third more arithmetic, and sends nothing more",
           .rows = recompute_rows},
          {.id = "S39",
           .source = kLecture8,
           .title = "The 3D recipe: 70e9 parameters on 512 A100",
           .claim = "TP 8 in the node, PP 8, DP 8: 6.0 GB of state, and a step of arithmetic, "
                    "activations and the bubble",
           .rows = recipe_rows},
          {.id = "S46",
           .source = "all of them: none has jitter",
           .title = "Stragglers",
           .claim = "a step takes as long as its kernels",
           .rows = straggler_rows}};
}

}  // namespace stepsim
