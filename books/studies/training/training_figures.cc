// Figures of training steps: ratios and times of strategies on v5p, bubbles, memory, tensor
// parallelism inside and across nodes.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "books/laboratory/book_layer.h"
#include "books/laboratory/figures.h"
#include "books/laboratory/h100_nodes.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study.h"
#include "experiment/build_cluster.h"
#include "experiment/step/schedule_run.h"
#include "proto/load_experiment.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

constexpr std::int64_t kStackLayers = 8;

// Ways of FSDP and of tensor parallelism, over whole axes.
struct Strategy {
  const char* label;
  std::int64_t fsdp;
  std::int64_t tensor;
  double fsdp_axes;
  double tensor_axes;
  const char* map;
};

StackStep step_of(const Strategy& strategy, double batch, std::vector<int> slice,
                  std::int64_t layers) {
  StackStep step{
      .layers = layers,
      .tokens = std::max<std::int64_t>(1, std::llround(batch / static_cast<double>(strategy.fsdp))),
      .map = strategy.map,
      .slice = std::move(slice)};
  step.plan.mesh.dp = strategy.fsdp;
  step.plan.mesh.tp = strategy.tensor;
  step.plan.state.zero = strategy.fsdp > 1 ? 3 : 0;
  step.plan.update.gradient_bytes = 2;
  // The formulas count one all-reduce per layer and pass, and inputs that are kept whole.
  step.plan.tensor.sequence_parallel = false;
  return step;
}

// Terms of a layer's forward. A backward has twice the arithmetic, twice the weights and the same
// activations.
struct LayerTerms {
  double math = 0;
  double weights = 0;
  double activations = 0;
};

LayerTerms terms_of(const Strategy& strategy, double batch) {
  const double chips = static_cast<double>(strategy.fsdp * strategy.tensor);
  LayerTerms terms{
      .math =
          predict("E7.math", {{"B", batch}, {"D", kD}, {"F", kF}, {"N", chips}, {"C", kV5pFlops}})};
  if (strategy.fsdp > 1) {
    terms.weights = predict("E7.fsdp", {{"D", kD},
                                        {"F", kF},
                                        {"Y", static_cast<double>(strategy.tensor)},
                                        {"W", kV5pAxis},
                                        {"MX", strategy.fsdp_axes}});
  }
  if (strategy.tensor > 1) {
    terms.activations = predict("E7.tp", {{"B", batch},
                                          {"D", kD},
                                          {"X", static_cast<double>(strategy.fsdp)},
                                          {"W", kV5pAxis},
                                          {"MY", strategy.tensor_axes}});
  }
  return terms;
}

// Draws the formula as a line and the simulation as points in the same colour.
template <typename Predict, typename Simulate>
void add_curves(Plot& plot, const Strategy& strategy, const std::vector<double>& batches,
                Predict predicted, Simulate simulated) {
  PlotCurve line{.label = std::string(strategy.label) + ": formula", .points = {}};
  PlotCurve points{.label = std::string(strategy.label) + ": simulated",
                   .mark = PlotMark::kPoints,
                   .points = {}};
  // The line has corners between the batches that are simulated.
  constexpr int kBetween = 16;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    points.points.push_back({batches[i], simulated(batches[i])});
    const double next = i + 1 < batches.size() ? batches[i + 1] : batches[i];
    for (int k = 0; k < (i + 1 < batches.size() ? kBetween : 1); ++k) {
      const double batch = batches[i] * std::pow(next / batches[i], k / double(kBetween));
      line.points.push_back({batch, predicted(terms_of(strategy, batch))});
    }
  }
  plot.curves.push_back(std::move(line));
  plot.curves.push_back(std::move(points));
}

// ---- FLOPs over communication ----

constexpr Strategy kCube[] = {{"FSDP over 64", 64, 1, 3, 0, "dp:x+y+z"},
                              {"tensor parallelism over 64", 1, 64, 0, 3, "tp:x+y+z"},
                              {"FSDP 16 x tensor 4", 16, 4, 2, 1, "dp:x+y/tp:z"}};

// On chips that compute in no time, a step is communication alone. On links without limits, it is
// arithmetic alone.
double simulated_ratio(const Laboratory& laboratory, const Strategy& strategy, double batch) {
  const StackStep step = step_of(strategy, batch, {4, 4, 4}, kStackLayers);
  Cluster instant = ideal_v5p({4, 4, 4});
  instant.chip.peak = peaks_of_all_types(Throughput(1e30));
  const SimulationResult communication = run(laboratory, step, instant);
  const double math = 3 * kStackLayers * terms_of(strategy, batch).math;
  return math / to_seconds(communication.step_time);
}

Plot flops_to_comms(const Laboratory& laboratory) {
  Plot plot{.title = "Arithmetic over communication on v5p 4x4x4",
            .subtitle = "two-matmul layers, D 8192, F 32768; above 1 a step can be compute-bound",
            .x = PlotAxis{.label = "tokens of the global batch", .log = true},
            .y = PlotAxis{.label = "T_math / T_comms", .log = true},
            .curves = {}};
  const std::vector<double> batches = {8192, 16384, 32768, 65536, 131072, 262144, 524288};
  for (const Strategy& strategy : kCube) {
    add_curves(
        plot, strategy, batches,
        [](const LayerTerms& terms) {
          // Counts both passes. Weights and activations have their own axes.
          return 3 * terms.math / std::max(3 * terms.weights, 2 * terms.activations);
        },
        [&](double batch) { return simulated_ratio(laboratory, strategy, batch); });
  }
  return plot;
}

// ---- time by strategy ----

constexpr Strategy kPodStrategies[] = {{"FSDP over 4096", 4096, 1, 3, 0, "dp:x+y+z"},
                                       {"FSDP 256 x tensor 16", 256, 16, 2, 1, "dp:x+y/tp:z"},
                                       {"FSDP 16 x tensor 256", 16, 256, 1, 2, "dp:x/tp:y+z"}};

constexpr std::int64_t kPodLayers = 4;

Plot time_by_strategy(const Laboratory& laboratory) {
  Plot plot{
      .title = "Step time by strategy on v5p 16x16x16",
      .subtitle = "4 two-matmul layers, D 8192, F 32768; tensor parallelism is not overlapped",
      .x = PlotAxis{.label = "tokens of the global batch", .log = true},
      .y = PlotAxis{.label = "step", .unit = "s", .log = true},
      .curves = {}};
  const std::vector<double> batches = {131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608};
  for (const Strategy& strategy : kPodStrategies) {
    add_curves(
        plot, strategy, batches,
        [](const LayerTerms& terms) {
          const double forward = std::max({terms.math, terms.weights, terms.activations});
          const double backward = std::max({2 * terms.math, 2 * terms.weights, terms.activations});
          return kPodLayers * (forward + backward);
        },
        [&](double batch) {
          return seconds(laboratory, step_of(strategy, batch, {16, 16, 16}, kPodLayers));
        });
  }
  return plot;
}

// ---- bubble ----

constexpr double kBubbleStages = 8;

double bubble_1f1b(double microbatches) {
  return predict("G1.fraction", {{"P", kBubbleStages}, {"m", microbatches}});
}
double bubble_interleaved_by_2(double microbatches) {
  return predict("G2", {{"P", kBubbleStages}, {"m", microbatches}, {"v", 2}});
}
double bubble_interleaved_by_4(double microbatches) {
  return predict("G2", {{"P", kBubbleStages}, {"m", microbatches}, {"v", 4}});
}
double bubble_zb1p(double microbatches) {
  const double bubble = predict("G6.zb1p", {{"P", kBubbleStages}, {"tf", 1}, {"tb", 2}, {"tw", 1}});
  return bubble / (3 * microbatches + bubble);
}

struct BubbleCurve {
  const char* label;
  const char* schedule;
  std::optional<std::int64_t> chunks;
  double (*formula)(double microbatches);
};
constexpr BubbleCurve kBubbles[] = {
    {"1F1B", "1f1b", std::nullopt, bubble_1f1b},
    {"interleaved by 2", "interleaved_1f1b", 2, bubble_interleaved_by_2},
    {"interleaved by 4", "interleaved_1f1b", 4, bubble_interleaved_by_4},
    {"ZB-H1", "zb_h1", std::nullopt, bubble_zb1p}};

Plot bubbles(const Laboratory&) {
  Plot plot{.title = "Bubble of a pipeline of 8 stages",
            .subtitle = "forward 1, backward 2 (input 1, weights 1); messages are free",
            .x = PlotAxis{.label = "micro-batches", .log = true, .ticks = {8, 16, 32, 64, 128}},
            .y = PlotAxis{.label = "bubble, of the whole"},
            .curves = {}};
  constexpr PipelineCosts kCosts{
      .forward = 1'000'000, .backward_input = 1'000'000, .backward_weight = 1'000'000};
  for (const BubbleCurve& shown : kBubbles) {
    PlotCurve line{.label = std::string(shown.label) + ": formula", .points = {}};
    PlotCurve points{
        .label = std::string(shown.label) + ": simulated", .mark = PlotMark::kPoints, .points = {}};
    for (const std::int64_t microbatches : {8, 16, 32, 64, 128}) {
      const auto x = static_cast<double>(microbatches);
      const ScheduleRequest request{.name = *schedule_named(shown.schedule),
                                    .stages = static_cast<std::int64_t>(kBubbleStages),
                                    .microbatches = microbatches,
                                    .chunks = shown.chunks};
      if (!check(request).empty()) continue;  // ZB-H1 needs more micro-batches than 8
      line.points.push_back({x, shown.formula(x)});
      const PipelineReplay replayed = simulate_schedule(make_schedule(request), kCosts).replayed;
      points.points.push_back(
          {x, static_cast<double>(replayed.bubble()) / static_cast<double>(replayed.makespan)});
    }
    plot.curves.push_back(std::move(line));
    plot.curves.push_back(std::move(points));
  }
  return plot;
}

// ---- memory ----

Plot zero_memory(const Laboratory& laboratory) {
  Plot plot{.title = "State of a rank by ZeRO stage: 69.8e9 parameters on 64 ranks",
            .subtitle = "2 bytes of a weight, 2 of a gradient, 12 of the optimizer",
            .x = PlotAxis{.label = "ZeRO stage", .ticks = {0, 1, 2, 3}},
            .y = PlotAxis{.label = "weights, gradients and optimizer of a rank", .unit = "B"},
            .curves = {}};
  PlotCurve formula{.label = "formula", .mark = PlotMark::kBars, .points = {}};
  PlotCurve simulated{.label = "simulated", .mark = PlotMark::kBars, .points = {}};
  constexpr std::int64_t kWide = 53248;
  constexpr std::int64_t kDeep = 80;
  const double parameters = 2.0 * kDeep * kD * kWide;
  for (const auto& [stage, id] :
       {std::pair{0, "F1"}, {1, "F1.zero1"}, {2, "F1.zero2"}, {3, "F1.zero3"}}) {
    FormulaValues values = {{"P", parameters}};
    if (stage > 0) values["n"] = 64;
    formula.points.push_back({static_cast<double>(stage), predict(id, values)});
    StackStep step{.mlp_width = kWide, .layers = kDeep, .tokens = 128};
    step.plan.mesh.dp = 64;
    step.plan.state.zero = stage;
    step.plan.update.gradient_bytes = 2;
    step.optimizer = true;
    step.record = true;
    simulated.points.push_back({static_cast<double>(stage), least_state(run(laboratory, step))});
  }
  plot.curves = {std::move(formula), std::move(simulated)};
  return plot;
}

// ---- tensor parallelism and nodes ----

constexpr double kH100 = 990e12;
constexpr double kInfiniBand = 50e9;  // per GPU

// Four nodes, with kernels at their peak.
Cluster four_nodes(const std::string& library) {
  ClusterSpec spec = load_cluster("dgx-h100-32", library);
  spec.chip = ideal_chip();
  spec.chip.peak = peaks_of_all_types(Throughput(kH100));
  spec.chip.memory_bandwidth = Bandwidth(1e18);
  Cluster cluster = cluster_of(spec.topology, spec.chip);
  cluster.library = spec.library;
  return cluster;
}

Plot tensor_across_nodes(const Laboratory& laboratory) {
  constexpr double kTokens = 8192;
  constexpr double kWide = 28672;
  Plot plot{.title = "Tensor parallelism inside a node and across nodes of 8 H100",
            .subtitle = "two-matmul layers, D 8192, F 28672, 8,192 tokens; nothing overlapped",
            .x = PlotAxis{.label = "ways of tensor parallelism",
                          .log = true,
                          .ticks = {1, 2, 4, 8, 16, 32}},
            .y = PlotAxis{.label = "share of the step that computes"},
            .curves = {}};
  PlotCurve inside{.label = "as in one node: formula", .points = {}};
  PlotCurve across{.label = "with nodes: formula", .points = {}};
  PlotCurve simulated{
      .label = "with nodes: simulated, links alone", .mark = PlotMark::kPoints, .points = {}};
  PlotCurve with_nccl{
      .label = "with NCCL: simulated", .mark = PlotMark::kLineAndPoints, .points = {}};
  const Cluster links_alone = four_nodes("ideal");
  const Cluster nccl = four_nodes("");
  for (const std::int64_t ways : {1, 2, 4, 8, 16, 32}) {
    const auto x = static_cast<double>(ways);
    const double math =
        3 * predict("E4.math", {{"B", kTokens}, {"D", kD}, {"F", kWide}, {"Y", x}, {"C", kH100}});
    // Counts both passes. Nodes together send over all of their network ports.
    const auto share = [&](double bandwidth) {
      if (ways == 1) return 1.0;
      const double comms = 2 * predict("E4.comms", {{"B", kTokens}, {"D", kD}, {"W", bandwidth}});
      return predict("E6", {{"Tm", math}, {"Tc", comms}});
    };
    inside.points.push_back({x, share(kNvlink)});
    across.points.push_back({x, share(ways <= 8 ? kNvlink : 8 * kInfiniBand)});
    StackStep step{.mlp_width = static_cast<std::int64_t>(kWide),
                   .layers = kStackLayers,
                   .tokens = static_cast<std::int64_t>(kTokens)};
    step.plan.mesh.tp = ways;
    step.plan.mesh.allow_idle_chips = true;
    const auto share_of = [&](const Cluster& cluster) {
      const SimulationResult result = run(laboratory, step, cluster);
      return to_seconds(result.breakdown.compute) / to_seconds(result.step_time);
    };
    simulated.points.push_back({x, share_of(links_alone)});
    with_nccl.points.push_back({x, share_of(nccl)});
  }
  plot.curves = {std::move(inside), std::move(across), std::move(simulated), std::move(with_nccl)};
  return plot;
}

}  // namespace

std::vector<Figure> training_figures() {
  return {{"flops-to-comms",
           "Arithmetic over communication against the batch: FSDP, tensor parallelism, both",
           flops_to_comms},
          {"time-by-strategy", "Step time by strategy against the batch on 4,096 chips",
           time_by_strategy},
          {"bubble", "Bubble against micro-batches, by schedule", bubbles},
          {"zero-memory", "Model state of a rank by ZeRO stage", zero_memory},
          {"tensor-across-nodes", "Tensor parallelism inside a node, and across nodes",
           tensor_across_nodes}};
}

}  // namespace stepsim
