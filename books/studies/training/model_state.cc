// S35 and S37: the bytes that ZeRO stages hold and send, alone and within a pipeline.
//
// Bytes are counted, so the rows are exact. Per parameter: 2 for the weight, 2 for the gradient, 12
// for the optimizer.

#include <algorithm>
#include <optional>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/stack_step.h"
#include "books/laboratory/study_groups.h"
#include "schedules/plan/axis.h"

namespace stepsim {
namespace {

// 70e9 parameters in 80 layers: 80 x 2 x 8192 x 53,248 = 69.8e9.
constexpr std::int64_t kLayers = 80;
constexpr std::int64_t kWidth = 8192;
constexpr std::int64_t kMlpWidth = 53248;
constexpr double kStateParameters = 2.0 * kLayers * kWidth * kMlpWidth;

StackStep replicas(std::int64_t ranks, int zero) {
  StackStep step{.mlp_width = kMlpWidth, .layers = kLayers, .tokens = 128};
  step.slice = ranks == 64 ? std::vector<int>{4, 4, 4} : std::vector<int>{static_cast<int>(ranks)};
  step.plan.mesh.dp = ranks;
  step.plan.state.zero = zero;
  step.plan.update.gradient_bytes = 2;
  return step;
}

double of(const MemoryPeak& peak, MemoryCategory category) {
  return static_cast<double>(peak.by_category[static_cast<std::size_t>(category)].value());
}

// Returns the bytes that one rank sends along the axis if all ranks send equally much.
double sent_by_a_rank(const SimulationResult& result, Axis axis, std::int64_t ranks) {
  return static_cast<double>(result.bytes_by_axis[static_cast<std::size_t>(axis)].value()) /
         static_cast<double>(ranks);
}

// ---- S37 ----

struct ZeroStage {
  int stage;
  const char* state;  // id of the formula
  double passes;      // passes in F5
};
constexpr ZeroStage kZeroStages[] = {
    {0, "F1", 2}, {1, "F1.zero1", 2}, {2, "F1.zero2", 2}, {3, "F1.zero3", 3}};

void add_sent(std::vector<StudyRow>& rows, const ZeroStage& zero, std::int64_t ranks) {
  const double predicted = predict(
      "F5",
      {{"V", 2 * kStateParameters}, {"n", static_cast<double>(ranks)}, {"passes", zero.passes}});
  const std::string name = "zero" + std::to_string(zero.stage) + "-n" + std::to_string(ranks);
  const auto row = [&](std::string id, std::string regime, double difference, std::string why,
                       const StackStep& step) {
    rows.push_back({.id = std::move(id),
                    .formula = "F5",
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .unit = "B",
                    .expected = around(difference, kToTheLastDigit),
                    .why = std::move(why),
                    .simulate = [step, ranks](const Laboratory& laboratory) {
                      return sent_by_a_rank(run(laboratory, step), Axis::kData, ranks);
                    }});
  };
  const std::string text =
      "ZeRO-" + std::to_string(zero.stage) + " on " + std::to_string(ranks) + " ranks";
  row("sent-" + name, "bytes that a rank sends, " + text, 0,
      "each pass moves (n-1)/n of the parameters", replicas(ranks, zero.stage));
  if (ranks != 8) return;
  // Gradients of 4 bytes: 2 x 4 instead of 2 x 2 replicated; 4 + 2 with the optimizer divided; 4 +
  // 2 + 2 if weights are gathered twice.
  const double wide = zero.stage == 0 ? 8.0 / 4 : zero.stage < 3 ? 6.0 / 4 : 8.0 / 6;
  StackStep step = replicas(ranks, zero.stage);
  step.plan.update.gradient_bytes = 4;
  row("sent-fp32-" + name, "the same with gradients in fp32, " + text, wide - 1,
      "gradients are reduced in twice the bytes that the formula counts", step);
}

void add_state(std::vector<StudyRow>& rows, const ZeroStage& zero, std::int64_t ranks) {
  FormulaValues values = {{"P", kStateParameters}};
  if (zero.stage > 0) values["n"] = static_cast<double>(ranks);
  StackStep step = replicas(ranks, zero.stage);
  step.optimizer = true;
  step.record = true;
  rows.push_back({.id = "state-zero" + std::to_string(zero.stage) + "-n" + std::to_string(ranks),
                  .formula = zero.state,
                  .regime = "weights, gradients and optimizer of a rank, ZeRO-" +
                            std::to_string(zero.stage) + " on " + std::to_string(ranks) + " ranks",
                  .predicted = predict(zero.state, values),
                  .unit = "B",
                  .expected = around(0, kToTheLastDigit),
                  .why = "divided state shrinks by n, the rest does not",
                  .simulate = [step](const Laboratory& laboratory) {
                    return least_state(run(laboratory, step));
                  }});
}

std::vector<StudyRow> zero_rows() {
  std::vector<StudyRow> rows;
  for (const ZeroStage& zero : kZeroStages) {
    for (const std::int64_t ranks : {8, 64}) {
      add_sent(rows, zero, ranks);
      add_state(rows, zero, ranks);
    }
  }
  // If one layer is gathered ahead, two are whole at a time.
  for (const int prefetch : {1, 0}) {
    StackStep step = replicas(64, 3);
    step.plan.state.prefetch = prefetch;
    rows.push_back(
        {.id = "gathered-prefetch" + std::to_string(prefetch),
         .formula = "F8",
         .regime = "gathered weights at the peak, prefetch " + std::to_string(prefetch),
         .predicted =
             predict("F8", {{"P", kStateParameters}, {"L", kLayers}, {"blocks", 1.0 + prefetch}}),
         .unit = "B",
         .expected = around(0, kToTheLastDigit),
         .why = "the computing layer and those gathered ahead",
         .simulate = [step](const Laboratory& laboratory) {
           return of(run(laboratory, step).memory_peaks[0], MemoryCategory::kGatheredParameters);
         }});
  }
  // If weights are not divided again after the forward, they are gathered once per step: 2 passes
  // of the 3. All 80 layers are then whole at the end of the forward.
  StackStep kept = replicas(8, 3);
  kept.plan.state.reshard_after_forward = false;
  rows.push_back(
      {.id = "sent-zero3-kept-n8",
       .formula = "F5",
       .regime = "bytes that a rank sends, ZeRO-3 that keeps what it gathered",
       .predicted = predict("F5", {{"V", 2 * kStateParameters}, {"n", 8}, {"passes", 3}}),
       .unit = "B",
       .expected = around(2.0 / 3 - 1, kToTheLastDigit),
       .why = "the backward needs no second gather: 2 passes, as without ZeRO",
       .simulate = [kept](const Laboratory& laboratory) {
         return sent_by_a_rank(run(laboratory, kept), Axis::kData, 8);
       }});
  rows.push_back(
      {.id = "gathered-kept",
       .formula = "F8",
       .regime = "gathered weights at the peak of that",
       .predicted = predict("F8", {{"P", kStateParameters}, {"L", kLayers}, {"blocks", 2}}),
       .unit = "B",
       .expected = around(kLayers / 2.0 - 1, kToTheLastDigit * kLayers),
       .why = "the price: all 80 layers stay gathered until their backward, not two",
       .simulate = [kept](const Laboratory& laboratory) {
         return of(run(laboratory, kept).memory_peaks[0], MemoryCategory::kGatheredParameters);
       }});
  return rows;
}

// ---- S35 ----

constexpr std::int64_t kPipelineStages = 8;
constexpr std::int64_t kStateMicrobatches = 32;
constexpr std::int64_t kReplicas = 64;

// Each stage is on a plane of 8x8 chips, with the next stage beside it.
StackStep in_pipeline(int zero) {
  StackStep step{.width = 4096, .mlp_width = 16384, .layers = 16, .tokens = 512};
  step.microbatches = kStateMicrobatches;
  step.slice = {8, 8, 8};
  step.plan.mesh.pp = kPipelineStages;
  step.plan.mesh.dp = kReplicas;
  step.plan.state.zero = zero;
  step.plan.update.gradient_bytes = 2;
  return step;
}

// ZeRO-1 that reduces after its last backward, in seconds by hand. 1F1B with messages of t (S31)
// has m (tf + tb) of work and a bubble of (P - 1)(tf + tb + 2 t) + 2 (P - 2) t + (m / P - 1) 2 (P -
// 1) t. Then the first stage, which ends last, reduces its gradients and gathers its weights over
// two axes: 63/64 of V / 2 W each.
double zero1_step_by_hand(double slot, double stage_bytes) {
  const double t = 2.0 * 512 * 4096 / kV5pLink;
  const double bubble = 7 * (slot + 2 * t) + 12 * t + 3 * 14 * t;
  return kStateMicrobatches * slot + bubble + 2 * 63.0 / 64 * stage_bytes / (2 * kV5pAxis);
}

std::vector<StudyRow> pipeline_rows() {
  const double stage = 2.0 * 2 * 4096 * 16384 * 16 / kPipelineStages;
  const double once =
      predict("F5", {{"V", stage}, {"n", static_cast<double>(kReplicas)}, {"passes", 3}});
  const auto sent = [](int zero) {
    return [step = in_pipeline(zero)](const Laboratory& laboratory) {
      return sent_by_a_rank(run(laboratory, step), Axis::kData, step.plan.mesh.ranks());
    };
  };
  std::vector<StudyRow> rows;
  rows.push_back({.id = "fsdp-f5",
                  .formula = "F5",
                  .regime = "bytes of a rank, FSDP in 8 stages of 32 micro-batches; once a step",
                  .predicted = once,
                  .unit = "B",
                  // Weights are gathered and gradients reduced in every micro-batch: 32 times.
                  .expected = around(kStateMicrobatches - 1, kToTheLastDigit * kStateMicrobatches),
                  .why = "a stage drops a layer's weights between micro-batches",
                  .simulate = sent(3)});
  rows.push_back({.id = "fsdp-f9",
                  .formula = "F9",
                  .regime = "the same, against the formula for pipelines",
                  .predicted = predict("F9", {{"V", stage},
                                              {"m", static_cast<double>(kStateMicrobatches)},
                                              {"n", static_cast<double>(kReplicas)}}),
                  .unit = "B",
                  .expected = around(0, kToTheLastDigit),
                  .why = "F9 counts every micro-batch",
                  .simulate = sent(3)});
  rows.push_back({.id = "zero1-f5",
                  .formula = "F5",
                  .regime = "ZeRO-1 in the same pipeline",
                  .predicted = once,
                  .unit = "B",
                  // One reduction and one gather per step: 2 passes of the 3.
                  .expected = around(2.0 / 3 - 1, kToTheLastDigit),
                  .why = "gradients are summed over micro-batches before they are reduced",
                  .simulate = sent(1)});
  const double forward =
      2 * predict("E7.math",
                  {{"B", 512}, {"D", 4096}, {"F", 16384}, {"N", 1}, {"C", kV5pFlops}});  // 2 layers
  const double predicted = predict(
      "G1",
      {{"P", kPipelineStages}, {"m", kStateMicrobatches}, {"tf", forward}, {"tb", 2 * forward}});
  rows.push_back({.id = "zero1-step",
                  .formula = "G1",
                  .regime = "the step of that, reduced after the last backward",
                  .predicted = predicted,
                  .expected = around(zero1_step_by_hand(3 * forward, stage) / predicted - 1, 2e-3),
                  .why = "one reduce-scatter and one gather of a stage's weights at the end, and "
                         "1F1B's messages, have nothing to hide behind",
                  .simulate = [](const Laboratory& laboratory) {
                    StackStep step = in_pipeline(1);
                    step.plan.overlap.gradients = false;
                    return seconds(laboratory, step);
                  }});
  return rows;
}

}  // namespace

std::vector<Study> model_state_studies() {
  return {{.id = "S35",
           .source = kBookGpus,
           .title = "ZeRO-3 within a pipeline",
           .claim = "ZeRO-3 sends 3 times the parameters a step; within a pipeline, every "
                    "micro-batch",
           .rows = pipeline_rows},
          {.id = "S37",
           .source = kLectures78,
           .title = "ZeRO stages: state and bytes",
           .claim = "ZeRO-1 and -2 send what data parallelism sends, ZeRO-3 half as much again",
           .rows = zero_rows}};
}

}  // namespace stepsim
