// Group J: sums over the parts of a machine, for the figures in the sources' hardware tables.

#include "books/formulas/formula_groups.h"
#include "books/formulas/formula_inputs.h"

namespace stepsim {

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<Formula> hardware_formulas() {
  const FormulaInput parts = count("n", "chips");
  const FormulaInput link = positive("w", "B/s", "one-way bandwidth of a link");
  return {
      {.id = "J1",
       .title = "Peak of a pod",
       .expression = "n * C",
       .result = {"peak", "FLOP/s"},
       .inputs = {parts, kC},
       .source = kBookTpus,
       .example = "n=256 C=197TFLOPS"},
      {.id = "J1.memory",
       .title = "Memory of a pod",
       .expression = "n * Q",
       .result = {"memory", "B"},
       .inputs = {parts, kCapacity},
       .source = kBookTpus,
       .example = "n=8960 Q=96GB"},
      {.id = "J1.hosts",
       .title = "Hosts of a pod",
       .expression = "n / h",
       .result = {"hosts", ""},
       .inputs = {parts, count("h", "chips of a host")},
       .source = kBookTpus,
       .example = "n=8960 h=4"},
      {.id = "J1.cores",
       .title = "Cores of a pod",
       .expression = "n * c",
       .result = {"cores", ""},
       .inputs = {parts, count("c", "cores of a chip")},
       .source = kBookTpus,
       .example = "n=8960 c=2"},
      {.id = "J1.shared",
       .title = "Shared memory of a GPU",
       .expression = "sm * S",
       .result = {"memory", "B"},
       .inputs = {count("sm", "streaming multiprocessors"),
                  positive("S", "B", "shared memory of each")},
       .source = kBookGpus,
       .example = "sm=132 S=256kB"},
      {.id = "J2",
       .title = "Bandwidth of all links of a chip, both directions",
       .expression = "2 * links * w",
       .result = {"bandwidth", "B/s"},
       .inputs = {count("links", "links, or axes of a torus"), link},
       .source = kBookTpus,
       .correction =
           "Lecture 7 calls 600 GB/s the H100's NVLink; that is the A100's, the H100 has 900.",
       .example = "links=18 w=25GB/s"},
      {.id = "J3",
       .title = "Bits a second as bytes",
       .expression = "bits / 8",
       .result = {"bandwidth", "B/s"},
       .inputs = {positive("bits", "bit/s", "bits a second")},
       .source = kLecture7,
       .correction = "Lecture 7 gives a TPU's link 600 Gb/s in the text and 150 GB/s in the table. "
                     "Both are wrong: it has 45 (v4) or 90 GB/s (v5p) one way.",
       .example = "bits=600e9"},
      {.id = "J4",
       .title = "A chip's share of its host's network",
       .expression = "w / c",
       .result = {"bandwidth", "B/s"},
       .inputs = {link, count("c", "chips of a host")},
       .source = kBookTraining,
       .example = "w=25GB/s c=4"},
      {.id = "J5",
       .title = "NVLink over network bandwidth",
       .expression = "W / w",
       .result = {"ratio", ""},
       .inputs = {kEgress, positive("w", "B/s", "one-way bandwidth of the network")},
       .source = kLecture8,
       .correction = "Lecture 8's 24 divides both directions by one; one-way it is 12.",
       .example = "W=300GB/s w=25GB/s"},
      {.id = "J6",
       .title = "Rate of one GPU of a run",
       .expression = "rate / n",
       .result = {"each", "FLOP/s"},
       .inputs = {positive("rate", "FLOP/s", "rate of the whole run"), count("n", "GPUs")},
       .source = kLecture7,
       .correction = "Lecture 7 prints 502 PFLOP/s a GPU; that is all 3072 of Megatron's run, 163 "
                     "TFLOP/s each.",
       .example = "rate=502PFLOPS n=3072"},
  };
}

}  // namespace stepsim
