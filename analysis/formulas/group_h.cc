// Group H: kept activations, recomputation, sequence and context parallelism.

#include "analysis/formulas/formula_groups.h"
#include "analysis/formulas/formula_inputs.h"

namespace stepsim {

std::vector<Formula> activation_formulas() {
  const FormulaInput heads = kN.means("query heads");
  const FormulaInput ways = count("t", "ways of tensor parallelism");
  const Condition dtype = {
      "bf16, dropout masks of a byte, 4 h MLP without a gate, scores are kept"};
  return {
      {.id = "H1",
       .title = "Kept activations of a layer, nothing sharded",
       .expression = "s * b * h * (34 + 5 * N * s / h)",
       .result = {"bytes", "B"},
       .inputs = {ks, ksequences.or_else(1), kh, heads},
       .source = kKorthikanti,
       .conditions = {dtype},
       .correction = "Lectures 7 and 8 give 10 s b h: bytes that tensor parallelism does not "
                     "shard, 4 + 2 + 4, not the "
                     "whole.",
       .example = "s=4096 h=8192 N=64"},
      {.id = "H1.lecture",
       .title = "The lectures' estimate of kept activations",
       .expression = "10 * 2 * s * b * h * L",
       .result = {"bytes", "B"},
       .inputs = {ks, ksequences.or_else(1), kh, kL.or_else(1)},
       .source = kLectures78,
       .conditions = {{"an estimate without derivation: use H1 and H2"}},
       .correction = "See H1.",
       .example = "s=4096 h=8192 L=32"},
      {.id = "H1.unsharded",
       .title = "Bytes an element that tensor parallelism leaves whole",
       .expression = "norms + dropout + inputs",
       .result = {"coefficient", "B"},
       .inputs = {positive("norms", "B", "inputs of the norms").or_else(4),
                  positive("dropout", "B", "dropout masks").or_else(2),
                  positive("inputs", "B", "inputs of attention and MLP").or_else(4)},
       .source = kKorthikanti,
       .example = "norms=4 dropout=2 inputs=4"},
      {.id = "H2",
       .title = "Kept activations of a layer, tensor parallelism",
       .expression = "s * b * h * (10 + 24 / t + 5 * N * s / (h * t))",
       .result = {"bytes", "B"},
       .inputs = {ks, ksequences.or_else(1), kh, heads, ways},
       .source = kKorthikanti,
       .conditions = {dtype},
       .correction = "\"Tensor parallelism halves activation memory\": 24 of 34 parts, and the "
                     "scores, divide by t.",
       .example = "s=4096 h=8192 N=64 t=8"},
      {.id = "H2.sequence",
       .title = "The same with sequence parallelism",
       .expression = "s * b * h / t * (34 + 5 * N * s / h)",
       .result = {"bytes", "B"},
       .inputs = {ks, ksequences.or_else(1), kh, heads, ways},
       .source = kKorthikanti,
       .conditions = {dtype},
       .example = "s=4096 h=8192 N=64 t=8"},
      {.id = "H2.selective",
       .title = "The same with selective recompute too",
       .expression = "34 * s * b * h / t",
       .result = {"bytes", "B"},
       .inputs = {ks, ksequences.or_else(1), kh, ways},
       .source = kKorthikanti,
       .conditions = {{"scores are computed again"}},
       .example = "s=4096 h=8192 t=8"},
      {.id = "H2.full",
       .title = "Kept activations of a layer, full recompute",
       .expression = "2 * s * b * h",
       .result = {"bytes", "B"},
       .inputs = {ks, ksequences.or_else(1), kh},
       .source = kKorthikanti,
       .correction = "Lectures 7 and 8 say \"nearly zero\" and O(L): the inputs of all blocks "
                     "stay, L s b h with 2 for 34.",
       .example = "s=4096 h=8192"},
      {.id = "H4",
       .title = "Tokens of a rank under sequence parallelism",
       .expression = "n / t",
       .result = {"tokens_each", "tokens"},
       .inputs = {count("n", "tokens"), ways},
       .source = kLectures78,
       .conditions = {{"all-gather and reduce-scatter move what the all-reduce did"}},
       .example = "n=1024 t=4"},
      {.id = "H5",
       .title = "Arithmetic that full recompute adds",
       .expression = "f / 6",
       .result = {"overhead", ""},
       .inputs =
           {positive("f", "", "FLOPs a parameter and token that are computed again").or_else(2)},
       .source = kLectures78,
       .conditions = {{"scores are small"}},
       .example = "f=2"},
      {.id = "H7",
       .title = "Bytes that a rank sends to rotate keys and values (bf16)",
       .expression = "(P - 1) * 2 * S / P * K * H * 2",
       .result = {"bytes", "B"},
       .inputs = {count("P", "ways of context parallelism"), count("S", "tokens of the sequence"),
                  kK, kH},
       .source = kLecture8,
       .conditions = {{"one layer, forward; hidden under E23"}},
       .example = "P=8 S=131072 K=8 H=128"},
  };
}

}  // namespace stepsim
