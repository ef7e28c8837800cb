// Group G: pipelines and their bubbles. tf and tb are the forward and backward of one micro-batch
// on one stage.

#include "books/formulas/formula_groups.h"
#include "books/formulas/formula_inputs.h"

namespace stepsim {

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Formula> pipeline_formulas() {
  const FormulaInput forward = positive("tf", "s", "forward of a micro-batch on a stage");
  const FormulaInput backward =
      positive("tb", "s", "backward of a micro-batch on a stage, both halves");
  const FormulaInput weights = positive("tw", "s", "weight-gradient half of the backward");
  const FormulaInput chunks = count("v", "chunks of a stage");
  const std::string_view zero_bubble = "DeepSeek-AI, DualPipe: table of its README";
  const Condition even = {"stages are balanced; messages are hidden or free"};
  return {
      {.id = "G1",
       .title = "Length of GPipe or 1F1B",
       .expression = "(m + P - 1) * (tf + tb)",
       .result = {"T", "s"},
       .inputs = {kStages, km, forward, backward},
       .source = kLecture8,
       .conditions = {even},
       .example = "P=4 m=1 tf=1 tb=1"},
      {.id = "G1.fraction",
       .title = "Bubble of GPipe or 1F1B, of the whole",
       .expression = "(P - 1) / (m + P - 1)",
       .result = {"bubble", ""},
       .inputs = {kStages, km},
       .source = kLecture8,
       .conditions = {even},
       .correction = "For one micro-batch lecture 8 prints (P-1)/(2P-1), 3/7 and 7/15; its own "
                     "formula and timeline give "
                     "(P-1)/P, 3/4 and 7/8.",
       .example = "P=8 m=32"},
      {.id = "G1.ratio",
       .title = "Bubble of GPipe or 1F1B, over the ideal time",
       .expression = "(P - 1) / m",
       .result = {"ratio", ""},
       .inputs = {kStages, km},
       .source = kLectures78,
       .conditions = {even},
       .correction = "The parallelism lecture notes print n_micro / (n_stages - 1): inverted.",
       .example = "P=8 m=32"},
      {.id = "G2",
       .title = "Bubble of interleaved 1F1B, of the whole",
       .expression = "(P - 1) / (v * m + P - 1)",
       .result = {"bubble", ""},
       .inputs = {kStages, km, chunks},
       .source = kLecture8,
       .conditions = {even, {"v times the messages"}},
       .correction = "The bubble shrinks because its slots get shorter, not because the pipeline "
                     "is less deep. Layers {0,1},{16,17} fit 8 GPUs, not 4.",
       .example = "P=8 m=32 v=2"},
      {.id = "G3",
       .title = "Micro-batches in flight on a stage, 1F1B",
       .expression = "min(m, P - p)",
       .result = {"in_flight", ""},
       .inputs = {kStages, km, not_negative("p", "", "stage, from 0")},
       .source = kLecture8,
       .conditions = {{"p < P", "p < P"}},
       .correction = "\"O(m P) to O(P)\" is, on each device, m to P.",
       .example = "P=8 m=32 p=0"},
      {.id = "G3.interleaved",
       .title = "Micro-batches in flight on the first stage, interleaved",
       .expression = "P * (1 + (P - 1) / (P * v))",
       .result = {"in_flight", ""},
       .inputs = {kStages, chunks},
       .source = kLecture8,
       .conditions = {{"at least P micro-batches"}},
       .example = "P=8 v=2"},
      {.id = "G4",
       .title = "Boundary activations of m micro-batches (bf16)",
       .expression = "2 * m * b * s * h",
       .result = {"bytes", "B"},
       .inputs = {km, ksequences.or_else(1), ks, kh},
       .source = kLecture8,
       .conditions =
           {{"boundaries only: without full recompute a stage keeps all its layers' activations"}},
       .example = "m=32 s=4096 h=8192"},
      {.id = "G5",
       .title = "Busy share of a naive split by layers",
       .expression = "1 / P",
       .result = {"busy", ""},
       .inputs = {kStages},
       .source = kLecture8,
       .example = "P=4"},
      {.id = "G6",
       .title = "Bubble time of 1F1B",
       .expression = "(P - 1) * (tf + tb)",
       .result = {"bubble", "s"},
       .inputs = {kStages, forward, backward},
       .source = zero_bubble,
       .conditions = {even},
       .example = "P=16 tf=1 tb=2"},
      {.id = "G6.zb1p",
       .title = "Bubble time of ZB1P",
       .expression = "(P - 1) * (tf + tb - 2 * tw)",
       .result = {"bubble", "s"},
       .inputs = {kStages, forward, backward, weights},
       .source = zero_bubble,
       .conditions = {even},
       .example = "P=16 tf=1 tb=2 tw=1"},
      {.id = "G6.dualpipe",
       .title = "Bubble time of DualPipe",
       .expression = "(P / 2 - 1) * (tfb + tb - 3 * tw)",
       .result = {"bubble", "s"},
       .inputs = {kStages, positive("tfb", "s", "a forward and a backward that overlap"), backward,
                  weights},
       .source = zero_bubble,
       .conditions = {even, {"twice the parameters, P + 1 activations"}},
       .correction = "The parallelism lecture notes take DualPipe for a zero-bubble schedule; they "
                     "are different ones.",
       .example = "P=16 tfb=2.5 tb=2 tw=1"},
      {.id = "G8",
       .title = "Length of GPipe with messages",
       .expression = "(m + P - 1) * (tf + tb) + 2 * (P - 1) * t",
       .result = {"T", "s"},
       .inputs = {kStages, km, forward, backward, kHop.means("time of a message between stages")},
       .source = kLecture8,
       .conditions = {{"GPipe: strict 1F1B pays for messages in its steady state too"}},
       .example = "P=8 m=32 tf=1ms tb=2ms t=0.1ms"},
      {.id = "G9",
       .title = "Share of the backward during which gradients can be reduced",
       .expression = "1 / m",
       .result = {"share", ""},
       .inputs = {km},
       .source = kBookGpus,
       .conditions = {{"gradients of the micro-batches are added up before they are reduced"}},
       .example = "m=32"},
  };
}

}  // namespace stepsim
