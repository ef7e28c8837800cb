// S34 and S36: pipelines that split their backward, and the micro-batches in flight in a pipeline.
//
// Symbols in the derivations: P stages, m micro-batches; F, B, W are forward, input gradient and
// weight gradient of a micro-batch on a stage. If only tb is given, B = W = tb / 2.

#include <string>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/training/pipeline_order.h"

namespace stepsim {
namespace {

// ---- S34 ----

// An order as a list scheduler makes it, one slot after another, all of equal length. Every rank
// takes an input gradient if there is one. Otherwise it takes a forward if it has fewer
// micro-batches in flight than 1F1B, and otherwise a weight gradient.
PipelineSchedule greedy_order(std::int32_t stages, std::int32_t microbatches) {
  struct Rank {
    std::int32_t forwards = 0;
    std::int32_t inputs = 0;
    std::int32_t weights = 0;
  };
  std::vector<Rank> ranks(static_cast<std::size_t>(stages));
  PipelineSchedule schedule{.microbatches = microbatches};
  schedule.ranks.resize(ranks.size());
  while (ranks.front().weights < microbatches || ranks.back().weights < microbatches) {
    const std::vector<Rank> before = ranks;  // results of a slot are available in the next one
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const std::int32_t forwards_here = r == 0 ? microbatches : before[r - 1].forwards;
      const std::int32_t gradients_here =
          r + 1 == ranks.size() ? before[r].forwards : before[r + 1].inputs;
      const auto room = static_cast<std::int32_t>(ranks.size() - r);
      Rank& rank = ranks[r];
      std::vector<PipelineOp>& list = schedule.ranks[r];
      if (rank.inputs < gradients_here) {
        list.push_back({.kind = PipelineOpKind::kBackwardInput, .microbatch = rank.inputs++});
      } else if (rank.forwards < forwards_here && rank.forwards - rank.inputs < room) {
        list.push_back({.kind = PipelineOpKind::kForward, .microbatch = rank.forwards++});
      } else if (rank.weights < rank.inputs) {
        list.push_back({.kind = PipelineOpKind::kBackwardWeight, .microbatch = rank.weights++});
      }
    }
  }
  return schedule;
}

// Bytes of weights of a rank in a plan of 8 stages.
double weights_of_a_rank(const Laboratory& laboratory, ScheduleName schedule) {
  StackStep step{.width = 1024, .mlp_width = 4096, .layers = 16, .tokens = 128};
  step.microbatches = 20;
  step.slice = {8};
  step.plan.mesh.pp = 8;
  step.plan.pipeline.schedule = schedule;
  const SimulationResult result = run(laboratory, step);
  const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
  return static_cast<double>(
      peak.by_category[static_cast<std::size_t>(MemoryCategory::kParameters)].value());
}

// NOLINTNEXTLINE(readability-function-size): a table
// NOLINTNEXTLINE(readability-function-size): a table
std::vector<StudyRow> zero_bubble_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&rows](const Pipeline& pipeline, std::string formula,
                           const FormulaValues& values, double hand, std::string regime,
                           std::string why) {
    const double predicted = predict(formula, values);
    rows.push_back({.id = short_name(pipeline) + "-" + std::to_string(pipeline.microbatches) +
                          (pipeline.input == pipeline.weight ? "" : "-10-12-8"),
                    .formula = std::move(formula),
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .expected = by_hand(hand, predicted),
                    .tolerance = 0.01,
                    .why = std::move(why),
                    .simulate = [pipeline](const Laboratory& laboratory) {
                      return 1e-3 * in_forwards(run(laboratory, pipeline).bubble());
                    }});
  };
  const FormulaValues equal = {{"P", 8}, {"tf", 1e-3}, {"tb", 2e-3}};
  FormulaValues with_weights = equal;
  with_weights["tw"] = 1e-3;
  FormulaValues fused = {{"P", 8}, {"tfb", 3e-3}, {"tb", 2e-3}, {"tw", 1e-3}};
  for (const std::int64_t microbatches : {20, 32}) {
    const auto pipeline = [&](ScheduleName name) {
      return Pipeline{.name = name, .microbatches = microbatches};
    };
    const std::string regime = std::to_string(microbatches) + " micro-batches, F = B = W";
    add(pipeline(ScheduleName::kOneForwardOneBackward), "G6", equal, 21e-3, regime,
        "filling and emptying, P - 1 slots of F + B + W each");
    add(pipeline(ScheduleName::kZeroBubbleH1), "G6.zb1p", with_weights, 7e-3, regime,
        "weight gradients fill 1F1B's waiting time: P - 1 times W while the pipeline fills and "
        "while it empties");
    add(pipeline(ScheduleName::kZeroBubbleAuto1P), "G6.zb1p", with_weights, 7e-3, regime,
        "the planner's order is as good as the one by hand");
    // (P/2 - 1)(F&B + B - 3 W) = 3 (3 + 2 - 3).
    add(pipeline(ScheduleName::kDualPipe), "G6.dualpipe", fused, 6e-3, regime,
        "with F = B and W no longer the formula is exact");
  }
  // F, B, W = 1, 1.2, 0.8. ZB-H1 is exact, (P - 1)(F + B - W) = 7 x 1.4. DualPipe's formula is (P/2
  // - 1)(F + 2 B - W) = 3 x 2.6, but a longer input gradient delays only F's successors: the replay
  // of the authors' order gives 3 x 2.4.
  const auto uneven = [](ScheduleName name) {
    return Pipeline{.name = name, .microbatches = 20, .input = 1200, .weight = 800};
  };
  add(uneven(ScheduleName::kZeroBubbleH1), "G6.zb1p",
      {{"P", 8}, {"tf", 1e-3}, {"tb", 2e-3}, {"tw", 0.8e-3}}, 9.8e-3,
      "20 micro-batches, F, B, W = 10, 12, 8", "exact while W is no longer than F and B");
  add(uneven(ScheduleName::kDualPipe), "G6.dualpipe",
      {{"P", 8}, {"tfb", 3e-3}, {"tb", 2e-3}, {"tw", 0.8e-3}}, 7.2e-3,
      "20 micro-batches, F, B, W = 10, 12, 8",
      "exact only for F = B: a fused op waits for both inputs, whichever is later");
  // Greedy: weight gradients run only when nothing else can, so they fill idle slots. But a rank
  // that takes one is a slot late for a gradient that arrives meanwhile, and so are the ranks
  // behind it. That happens at most at each of the two ends of a rank's steady phase. No order is
  // below 7 slots, and this one is one or two above.
  const double zb1p = predict("G6.zb1p", with_weights);
  for (const std::int32_t microbatches : {20, 32}) {
    rows.push_back({.id = "greedy-" + std::to_string(microbatches),
                    .formula = "G6.zb1p",
                    .regime = std::to_string(microbatches) +
                              " micro-batches, F = B = W, a greedy list scheduler's order",
                    .predicted = zb1p,
                    .expected = {-1e-6, 2.0 / 7 + 1e-6},
                    .why = "the formula is the best order's, made by hand or by a planner",
                    .simulate = [microbatches](const Laboratory& laboratory) {
                      return 1e-3 *
                             in_forwards(run(laboratory, Pipeline{.microbatches = microbatches},
                                             greedy_order(8, microbatches))
                                             .bubble());
                    }});
  }
  // Both directions of DualPipe need every layer's weights: a rank holds stages p and P - 1 - p.
  constexpr double kParameters = 2.0 * 16 * 1024 * 4096;
  for (const ScheduleName schedule : {ScheduleName::kOneForwardOneBackward,
                                      ScheduleName::kZeroBubbleH1, ScheduleName::kDualPipe}) {
    const bool twice = schedule == ScheduleName::kDualPipe;
    rows.push_back(
        {.id = "weights-" + short_name({.name = schedule}),
         .formula = "F7",
         .regime = "weights of a rank, " + std::string(name_of(schedule)),
         .predicted = predict("F7", {{"P", kParameters}, {"TP", 1}, {"PP", 8}}),
         .unit = "B",
         .expected = by_hand(twice ? 2 : 1, 1),
         .why = twice ? "two copies of the model, one for each direction" : "a stage of eight",
         .simulate = [schedule](const Laboratory& laboratory) {
           return weights_of_a_rank(laboratory, schedule);
         }});
  }
  return rows;
}

// ---- S36 ----

std::vector<StudyRow> peak_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&rows](const Pipeline& pipeline, std::size_t stage, std::string formula,
                           const FormulaValues& values, double hand, std::string why) {
    const double predicted = predict(formula, values);
    rows.push_back({.id = short_name(pipeline) + "-stage-" + std::to_string(stage),
                    .formula = std::move(formula),
                    .regime = "stage " + std::to_string(stage) + " of 8, 32 micro-batches",
                    .predicted = predicted,
                    .unit = "",
                    .expected = by_hand(hand, predicted),
                    .tolerance = 0.001,
                    .why = std::move(why),
                    .simulate = [pipeline, stage](const Laboratory& laboratory) {
                      return static_cast<double>(run(laboratory, pipeline).peak_in_flight[stage]) /
                             static_cast<double>(pipeline.chunks);
                    }});
  };
  for (const std::size_t stage : {0UL, 5UL, 7UL}) {
    const FormulaValues values = {{"P", 8}, {"m", 32}, {"p", double(stage)}};
    add({}, stage, "G3", values, 8 - double(stage),
        "P - p forwards are ahead when the first gradient comes, then one leaves for each that "
        "comes");
    // GPipe runs all forwards first.
    add({.name = ScheduleName::kGPipe}, stage, "G3", values, 32,
        "the formula is 1F1B's: GPipe holds all m micro-batches");
  }
  // ZB-H1's rank p runs weight gradients p backwards late and holds their inputs until then: p
  // micro-batches in addition to the P - p of 1F1B.
  for (const std::size_t stage : {0UL, 7UL}) {
    add({.name = ScheduleName::kZeroBubbleH1}, stage, "G3",
        {{"P", 8}, {"m", 32}, {"p", double(stage)}}, 8,
        "waiting weight gradients hold their inputs longer, so every stage holds P");
  }
  // 2 (P - 1) + (v - 1) P warm-up forwards and the next one are in flight: P v + P - 1 chunks of
  // 1/v.
  add({.name = ScheduleName::kInterleaved, .chunks = 2}, 0, "G3.interleaved", {{"P", 8}, {"v", 2}},
      (8 * 2 + 7) / 2.0, "P v + P - 1 chunks are in flight, each 1/v of a stage");
  return rows;
}

}  // namespace

std::vector<Study> zero_bubble_studies() {
  return {
      {.id = "S34",
       .source = "DeepSeek-AI, DualPipe: table of its README",
       .title = "Zero bubble and DualPipe",
       .claim = "ZB1P idles (P - 1)(F + B - 2 W), DualPipe (P/2 - 1)(F&B + B - 3 W)",
       .rows = zero_bubble_rows},
      {.id = "S36",
       .source = kLecture8,
       .title = "Activations in flight",
       .claim =
           "1F1B holds min(m, P - p) micro-batches on stage p, interleaved P (1 + (P - 1)/(P v))",
       .rows = peak_rows},
  };
}

}  // namespace stepsim
