// S30 to S32: pipeline schedules alone. Ops and messages take given times, and messages use no
// bandwidth. GPipe, 1F1B and the others are orders of ops that only dependencies delay.
//
// Symbols in the derivations: P stages, m micro-batches; tf and tb are the forward and backward of
// a micro-batch on a stage; t is a message.

#include <cmath>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/training/pipeline_order.h"

namespace stepsim {
namespace {

// ---- S30 ----

std::vector<StudyRow> bubble_rows() {
  std::vector<StudyRow> rows;
  for (const ScheduleName name : {ScheduleName::kGPipe, ScheduleName::kOneForwardOneBackward}) {
    for (const auto& [stages, microbatches] :
         {std::pair{4, 1}, {4, 8}, {8, 32}, {16, 16}, {16, 128}}) {
      const Pipeline pipeline{.name = name, .stages = stages, .microbatches = microbatches};
      const double predicted =
          predict("G1.fraction", {{"P", double(stages)}, {"m", double(microbatches)}});
      // The first stage waits (P - 1)(tf + tb) between its last forward of the first P
      // micro-batches and the first gradient. No stage waits otherwise, so the formula is exact.
      rows.push_back({.id = short_name(pipeline) + "-" + std::to_string(stages) + "-" +
                            std::to_string(microbatches),
                      .formula = "G1.fraction",
                      .regime = std::to_string(stages) + " stages, " +
                                std::to_string(microbatches) + " micro-batches, messages free",
                      .predicted = predicted,
                      .unit = "",
                      .expected = by_hand(predicted, predicted),
                      .tolerance = 0.001,
                      .why = "a rank waits only while the pipeline fills and empties",
                      .simulate = [pipeline](const Laboratory& laboratory) {
                        return bubble_fraction(run(laboratory, pipeline));
                      }});
    }
  }
  return rows;
}

std::vector<Sweep> bubble_sweeps() {
  Sweep sweep{
      .name = "S30-bubble",
      .title = "Bubble of 1F1B",
      .subtitle = "backward twice the forward, messages free",
      .x = PlotAxis{.label = "micro-batches", .log = true, .ticks = {1, 2, 4, 8, 16, 32, 64, 128}},
      .y = PlotAxis{.label = "bubble of the whole"},
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

std::vector<StudyRow> message_rows() {
  std::vector<StudyRow> rows;
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
           return 1e-3 * in_forwards(run(laboratory, pipeline).makespan);
         }});
  };
  for (const std::int64_t message : {10, 100, 500}) {
    const double t = static_cast<double>(message) * 1e-6;
    add(ScheduleName::kGPipe, message, gpipe_with_messages(t * 1e3),
        "only the messages of the first micro-batch down and of the last one up are exposed");
    // Strict 1F1B has P - r micro-batches in flight on rank r: the round trip of 2 (P - 1) messages
    // gates P of them. m = k P: bubble (P-1)(tf + tb + 2 t) + 2 (P-2) t + (k-1) 2 (P-1) t.
    add(ScheduleName::kOneForwardOneBackward, message,
        32 * 3e-3 + 7 * (3e-3 + 2 * t) + 12 * t + 3 * 14 * t,
        "only P - r micro-batches are in flight, so each round trip of 2 (P - 1) messages holds up "
        "P "
        "of them");
    // With twice the warm-up, a round trip and its messages fit into the micro-batches in flight.
    add(ScheduleName::kEagerOneForwardOneBackward, message, gpipe_with_messages(t * 1e3),
        "with 2 (P - 1 - r) forwards ahead messages hide behind other micro-batches");
  }
  return rows;
}

std::vector<Sweep> message_sweeps() {
  Sweep sweep{.name = "S31-messages",
              .title = "Messages between stages, 8 stages, 32 micro-batches",
              .subtitle = "the formula is GPipe's: strict 1F1B pays in its steady state too",
              .x = PlotAxis{.label = "message over forward"},
              .y = PlotAxis{.label = "step", .unit = "s"},
              .at = {0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5},
              .curves = {}};
  for (const auto& [name, label] : {std::pair{ScheduleName::kGPipe, "GPipe"},
                                    {ScheduleName::kOneForwardOneBackward, "1F1B"},
                                    {ScheduleName::kEagerOneForwardOneBackward, "eager 1F1B"}}) {
    const ScheduleName schedule = name;
    SweepCurve curve{.label = label, .predict = {}, .simulate = {}};
    if (schedule == ScheduleName::kGPipe) curve.predict = gpipe_with_messages;
    curve.simulate = [schedule](const Laboratory& laboratory, double message) {
      const auto thousandths = std::llround(message * 1000);
      return 1e-3 *
             in_forwards(run(laboratory, {.name = schedule, .message = thousandths}).makespan);
    };
    sweep.curves.push_back(std::move(curve));
  }
  return {sweep};
}

// ---- S32 ----

std::vector<StudyRow> interleaved_rows() {
  std::vector<StudyRow> rows;
  for (const std::int64_t chunks : {2, 4}) {
    for (const std::int64_t message : {0, 100}) {
      const Pipeline pipeline{
          .name = ScheduleName::kInterleaved, .chunks = chunks, .message = message};
      const auto v = static_cast<double>(chunks);
      const double predicted = predict("G2", {{"P", 8}, {"m", 32}, {"v", v}});
      // The bubble is (P-1)(tf + tb) / v. The first micro-batch of a group also crosses P v - 1
      // boundaries down and as many up before rank 0 goes on: 2 (P v - 1) t, once per step.
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
           .why = message == 0 ? "slots are 1/v as long, and equally many are empty"
                               : "v times the messages are on the way of the first and last "
                                 "micro-batches: v = 4 keeps little of its gain over v = 2",
           .simulate = [pipeline](const Laboratory& laboratory) {
             return bubble_fraction(run(laboratory, pipeline));
           }});
    }
  }
  // 36 micro-batches go in groups of 9, no less than P. Nobody waits within a group, and the
  // formula stays exact.
  const Pipeline groups{.name = ScheduleName::kInterleaved, .microbatches = 36, .chunks = 2};
  const double in_groups = predict("G2", {{"P", 8}, {"m", 36}, {"v", 2}});
  rows.push_back(
      {.id = "v2-m36",
       .formula = "G2",
       .regime = "2 chunks, 36 micro-batches in groups of 9",
       .predicted = in_groups,
       .unit = "",
       .expected = by_hand(in_groups, in_groups),
       .tolerance = 0.001,
       .why = "m need not be a multiple of P, if it falls into equal groups of P or more",
       .simulate = [groups](const Laboratory& laboratory) {
         return bubble_fraction(run(laboratory, groups));
       }});
  // 33 do not: 33 / 4 groups is not a whole number. In groups of P there is one more group, 7 of
  // whose micro-batches are empty: 40 x 3 + 10.5 instead of 33 x 3 + 10.5.
  const double step = 33 * 3e-3 / (1 - predict("G2", {{"P", 8}, {"m", 33}, {"v", 2}}));
  rows.push_back({.id = "v2-m33",
                  .formula = "G2",
                  .regime = "2 chunks, 33 micro-batches: step",
                  .predicted = step,
                  .expected = by_hand(130.5e-3, step),
                  .why = "no order is allowed for 33; a fifth group of 8 runs almost empty",
                  .simulate = [](const Laboratory& laboratory) {
                    Pipeline pipeline{
                        .name = ScheduleName::kInterleaved, .microbatches = 33, .chunks = 2};
                    if (!check(schedule_request(pipeline)).empty()) pipeline.microbatches = 40;
                    return 1e-3 * in_forwards(run(laboratory, pipeline).makespan);
                  }});
  return rows;
}

}  // namespace

std::vector<Study> pipeline_studies() {
  return {{.id = "S30",
           .source = kLecture8,
           .title = "Bubble of GPipe and 1F1B",
           .claim = "GPipe and 1F1B are idle (P - 1)/(m + P - 1) of the step",
           .rows = bubble_rows,
           .sweeps = bubble_sweeps},
          {.id = "S31",
           .source = kBookGpus,
           .title = "1F1B with messages that take time",
           .claim = "Messages cost 2 (P - 1) t of a step: pipelining is basically free",
           .rows = message_rows,
           .sweeps = message_sweeps},
          {.id = "S32",
           .source = kLecture8,
           .title = "Interleaved 1F1B",
           .claim = "v chunks a rank cut the bubble to (P - 1)/(v m + P - 1)",
           .rows = interleaved_rows}};
}

}  // namespace stepsim
