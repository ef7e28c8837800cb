// S30 to S36: pipeline schedules by themselves. Ops take given times, messages a given time and no
// bandwidth; GPipe, 1F1B and the others are orders, which nothing but dependencies holds up.
//
// In the derivations: P stages, m micro-batches, F, B, W forward, input gradient and weight
// gradient of a micro-batch on a stage, t a message. Where only tb is given, B = W = tb / 2.

#include <algorithm>
#include <utility>

#include "analysis/experiments/experiment_groups.h"
#include "analysis/schedule_run.h"
#include "schedules/lowering/order_graph.h"
#include "schedules/pipeline/make_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kUnit = 1'000'000'000;  // a millisecond in picoseconds: tf

// A schedule with times in thousandths of tf.
struct Pipeline {
  ScheduleName name = ScheduleName::kOneForwardOneBackward;
  std::int64_t stages = 8;
  std::int64_t microbatches = 32;
  std::int64_t chunks = 1;
  std::int64_t forward = 1000;  // on a stage: a chunk takes its share
  std::int64_t input = 1000;
  std::int64_t weight = 1000;
  std::int64_t message = 0;
};

PipelineReplay run(const Laboratory& laboratory, const Pipeline& pipeline) {
  const auto time = [&](std::int64_t thousandths) {
    return thousandths * (kUnit / 1000) / pipeline.chunks;
  };
  ScheduleRequest request{
      .name = pipeline.name, .stages = pipeline.stages, .microbatches = pipeline.microbatches};
  if (pipeline.chunks > 1) request.chunks = pipeline.chunks;
  request.costs = {time(pipeline.forward), time(pipeline.input), time(pipeline.weight),
                   pipeline.message * (kUnit / 1000)};
  const PipelineSchedule schedule = make_schedule(request);
  const OpGraph graph = order_graph(schedule, request.costs);
  SimulationOptions options;
  options.recorded_ranks = all_ranks(graph);
  return replayed_of(
      graph, laboratory.simulate(
                 graph, order_cluster(schedule.size(), Duration(request.costs.send)), options));
}

double bubble_fraction(const PipelineReplay& replayed) {
  return static_cast<double>(replayed.bubble()) / static_cast<double>(replayed.makespan);
}
double in_units(std::int64_t picoseconds) {
  return static_cast<double>(picoseconds) / static_cast<double>(kUnit);
}

// Difference to a value by hand, to rounding.
DifferenceRange by_hand(double value, double predicted) {
  const double difference = value / predicted - 1;
  return {difference - 1e-6, difference + 1e-6};
}

std::string short_name(const Pipeline& pipeline) {
  if (pipeline.name == ScheduleName::kInterleaved) {
    return "v" + std::to_string(pipeline.chunks);
  }
  std::string name(name_of(pipeline.name));
  std::ranges::replace(name, '_', '-');
  return name;
}

// ---- S30 ----

std::vector<ExperimentRow> bubble_rows() {
  std::vector<ExperimentRow> rows;
  for (const ScheduleName name : {ScheduleName::kGPipe, ScheduleName::kOneForwardOneBackward}) {
    for (const auto& [stages, microbatches] :
         {std::pair{4, 1}, {4, 8}, {8, 32}, {16, 16}, {16, 128}}) {
      const Pipeline pipeline{.name = name, .stages = stages, .microbatches = microbatches};
      const double predicted =
          predict("G1.fraction", {{"P", double(stages)}, {"m", double(microbatches)}});
      // The first stage waits (P - 1)(tf + tb) between its last forward of the first P
      // micro-batches and the first gradient, and no stage waits otherwise: exactly the formula.
      rows.push_back({.id = short_name(pipeline) + "-" + std::to_string(stages) + "-" +
                            std::to_string(microbatches),
                      .formula = "G1.fraction",
                      .regime = std::to_string(stages) + " stages, " +
                                std::to_string(microbatches) + " micro-batches, messages free",
                      .predicted = predicted,
                      .unit = "",
                      .expected = by_hand(predicted, predicted),
                      .tolerance = 0.001,
                      .why = "filling and emptying are all that a rank waits for",
                      .simulate = [pipeline](const Laboratory& laboratory) {
                        return bubble_fraction(run(laboratory, pipeline));
                      }});
    }
  }
  return rows;
}

std::vector<Sweep> bubble_sweeps() {
  Sweep sweep{.name = "S30-bubble",
              .title = "Bubble of 1F1B",
              .subtitle = "backward twice the forward, messages free",
              .x = {.label = "micro-batches", .log = true},
              .y = {.label = "bubble of the whole"},
              .at = {1, 2, 4, 8, 16, 32, 64, 128},
              .only_there = true,
              .curves = {}};
  for (const std::int64_t stages : {4, 8, 16}) {
    sweep.curves.push_back(
        {.label = std::to_string(stages) + " stages",
         .predict =
             [stages](double microbatches) {
               return predict("G1.fraction", {{"P", double(stages)}, {"m", microbatches}});
             },
         .simulate =
             [stages](const Laboratory& laboratory, double microbatches) {
               return bubble_fraction(run(
                   laboratory,
                   {.stages = stages, .microbatches = static_cast<std::int64_t>(microbatches)}));
             }});
  }
  return {sweep};
}

// ---- S31 ----

double gpipe_with_messages(double message) {
  return predict("G8", {{"P", 8}, {"m", 32}, {"tf", 1e-3}, {"tb", 2e-3}, {"t", message * 1e-3}});
}

std::vector<ExperimentRow> message_rows() {
  std::vector<ExperimentRow> rows;
  const auto add = [&rows](ScheduleName name, std::int64_t message, double hand, std::string why) {
    const Pipeline pipeline{.name = name, .message = message};
    const double thousandths = static_cast<double>(message);
    const double predicted = gpipe_with_messages(thousandths / 1000);
    rows.push_back(
        {.id = short_name(pipeline) + "-message-" + std::to_string(message),
         .formula = "G8",
         .regime = "messages of " + std::to_string(message) + " thousandths of a forward",
         .predicted = predicted,
         .expected = by_hand(hand, predicted),
         .tolerance = 0.01,
         .why = std::move(why),
         .simulate = [pipeline](const Laboratory& laboratory) {
           return 1e-3 * in_units(run(laboratory, pipeline).makespan);
         }});
  };
  for (const std::int64_t message : {10, 100, 500}) {
    const double t = static_cast<double>(message) * 1e-6;
    add(ScheduleName::kGPipe, message, gpipe_with_messages(t * 1e3),
        "only the first micro-batch's way down and the last one's way up are exposed");
    // Strict 1F1B has P - r micro-batches in flight on rank r: the round trip of 2 (P - 1) messages
    // gates P of them. m = k P: bubble (P-1)(tf + tb + 2 t) + 2 (P-2) t + (k-1) 2 (P-1) t.
    add(ScheduleName::kOneForwardOneBackward, message,
        32 * 3e-3 + 7 * (3e-3 + 2 * t) + 12 * t + 3 * 14 * t,
        "only P - r micro-batches are in flight, so each round trip of 2 (P - 1) messages holds up "
        "P "
        "of them");
    // Twice the warm-up: a round trip and its messages fit into what is in flight.
    add(ScheduleName::kEagerOneForwardOneBackward, message, gpipe_with_messages(t * 1e3),
        "with 2 (P - 1 - r) forwards ahead messages hide behind other micro-batches");
  }
  return rows;
}

std::vector<Sweep> message_sweeps() {
  Sweep sweep{.name = "S31-messages",
              .title = "Messages between stages, 8 stages, 32 micro-batches",
              .subtitle = "the formula is GPipe's: strict 1F1B pays in its steady state too",
              .x = {.label = "message over forward"},
              .y = {.label = "step", .unit = "s"},
              .at = {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5},
              .curves = {}};
  for (const auto& [name, label] : {std::pair{ScheduleName::kGPipe, "GPipe"},
                                    {ScheduleName::kOneForwardOneBackward, "1F1B"},
                                    {ScheduleName::kEagerOneForwardOneBackward, "eager 1F1B"}}) {
    const ScheduleName schedule = name;
    SweepCurve curve{.label = label, .predict = {}, .simulate = {}};
    if (schedule == ScheduleName::kGPipe) curve.predict = gpipe_with_messages;
    curve.simulate = [schedule](const Laboratory& laboratory, double message) {
      const auto thousandths = static_cast<std::int64_t>(message * 1000 + 0.5);
      return 1e-3 * in_units(run(laboratory, {.name = schedule, .message = thousandths}).makespan);
    };
    sweep.curves.push_back(std::move(curve));
  }
  return {sweep};
}

// ---- S32 ----

std::vector<ExperimentRow> interleaved_rows() {
  std::vector<ExperimentRow> rows;
  for (const std::int64_t chunks : {2, 4}) {
    for (const std::int64_t message : {0, 100}) {
      const Pipeline pipeline{
          .name = ScheduleName::kInterleaved, .chunks = chunks, .message = message};
      const auto v = static_cast<double>(chunks);
      const double predicted = predict("G2", {{"P", 8}, {"m", 32}, {"v", v}});
      // Bubble (P-1)(tf + tb) / v, and the first micro-batch of a group crosses P v - 1 boundaries
      // down and as many up before rank 0 goes on: 2 (P v - 1) t, in all of the step once.
      const double bubble = 7 * 3 / v + 2 * (8 * v - 1) * static_cast<double>(message) / 1000;
      rows.push_back(
          {.id = short_name(pipeline) + (message == 0 ? "" : "-message-" + std::to_string(message)),
           .formula = "G2",
           .regime = std::to_string(chunks) + " chunks, " +
                     (message == 0 ? "messages free" : "messages of a tenth of a forward"),
           .predicted = predicted,
           .unit = "",
           .expected = by_hand(bubble / (96 + bubble), predicted),
           .tolerance = 0.001,
           .why = message == 0 ? "slots are 1/v as long, and as many of them are empty"
                               : "v times the messages are on the way of the first and last "
                                 "micro-batches: v = 4 keeps little of its gain over v = 2",
           .simulate = [pipeline](const Laboratory& laboratory) {
             return bubble_fraction(run(laboratory, pipeline));
           }});
    }
  }
  return rows;
}

// ---- S34 ----

std::vector<ExperimentRow> zero_bubble_rows() {
  std::vector<ExperimentRow> rows;
  const auto add = [&rows](const Pipeline& pipeline, std::string formula, FormulaValues values,
                           double hand, std::string regime, std::string why) {
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
                      return 1e-3 * in_units(run(laboratory, pipeline).bubble());
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
        "weight gradients fill what 1F1B waits: P - 1 times W while it fills and while it empties");
    add(pipeline(ScheduleName::kZeroBubbleAuto1P), "G6.zb1p", with_weights, 7e-3, regime,
        "the planner finds as good an order as the one by hand");
    // (P/2 - 1)(F&B + B - 3 W) = 3 (3 + 2 - 3).
    add(pipeline(ScheduleName::kDualPipe), "G6.dualpipe", fused, 6e-3, regime,
        "with F = B and W no longer the formula is exact");
  }
  // F, B, W = 1, 1.2, 0.8: ZB-H1 is exact, (P - 1)(F + B - W) = 7 x 1.4. DualPipe's formula is
  // (P/2 - 1)(F + 2 B - W) = 3 x 2.6, but a longer input gradient holds up only F's successors: the
  // replay of the authors' order has 3 x 2.4.
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
  return rows;
}

// ---- S36 ----

std::vector<ExperimentRow> peak_rows() {
  std::vector<ExperimentRow> rows;
  const auto add = [&rows](const Pipeline& pipeline, std::size_t stage, std::string formula,
                           FormulaValues values, double hand, std::string why) {
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
  // 2 (P - 1) + (v - 1) P warm-up forwards and the next one: P v + P - 1 chunks of 1/v.
  add({.name = ScheduleName::kInterleaved, .chunks = 2}, 0, "G3.interleaved", {{"P", 8}, {"v", 2}},
      (8 * 2 + 7) / 2.0, "P v + P - 1 chunks are in flight, each 1/v of a stage");
  return rows;
}

}  // namespace

std::vector<FormulaExperiment> pipeline_experiments() {
  return {
      {.id = "S30",
       .title = "Bubble of GPipe and 1F1B",
       .claim = "GPipe and 1F1B are idle (P - 1)/(m + P - 1) of the step",
       .rows = bubble_rows,
       .sweeps = bubble_sweeps},
      {.id = "S31",
       .title = "1F1B with messages that take time",
       .claim = "Messages cost 2 (P - 1) t of a step: pipelining is basically free",
       .rows = message_rows,
       .sweeps = message_sweeps},
      {.id = "S32",
       .title = "Interleaved 1F1B",
       .claim = "v chunks a rank cut the bubble to (P - 1)/(v m + P - 1)",
       .rows = interleaved_rows},
      {.id = "S34",
       .title = "Zero bubble and DualPipe",
       .claim = "ZB1P idles (P - 1)(F + B - 2 W), DualPipe (P/2 - 1)(F&B + B - 3 W)",
       .rows = zero_bubble_rows},
      {.id = "S36",
       .title = "Activations in flight",
       .claim =
           "1F1B holds min(m, P - p) micro-batches on stage p, interleaved P (1 + (P - 1)/(P v))",
       .rows = peak_rows},
  };
}

}  // namespace stepsim
