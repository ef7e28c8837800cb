#include "cli/help.h"

#include "cli/accuracy_command.h"
#include "cli/collective/collective_options.h"
#include "cli/figures_command.h"
#include "cli/formula/formula_command.h"
#include "cli/network_command.h"
#include "cli/run/run_options.h"
#include "cli/schedule/schedule_options.h"
#include "cli/topology_command.h"
#include "cli/validate/validate_command.h"
#include "proto/suggestion.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr const char* kOverview =
    R"(stepsim replays training steps of large language models on clusters that need not exist.

Usage:
  stepsim run EXPERIMENT [options]   simulate a training step
  stepsim collective OP [options]    run one collective on a cluster
  stepsim network CASE [options]     run raw transfers over explicit links
  stepsim schedule NAME [options]    simulate and compare pipeline schedules
  stepsim topology CLUSTER [options] measure and draw a cluster's network
  stepsim formula [ID] [SYMBOL=...]  list, explain, evaluate or solve a closed form
  stepsim validate [ID|WORD...]      what the books say against simulation, and why they differ
  stepsim figures --out DIR          the books' figures, drawn from simulation
  stepsim import hf CONFIG.json      print a published model as a model file
  stepsim accuracy FILE.csv...       compare predictions with measured tables
  stepsim catalog [KIND] [NAME]      list or print built-in chips, clusters, models, ...
  stepsim help [SUBCOMMAND]          what it does and takes
  stepsim --version

Try: stepsim run llama3-70b-dgx-h100-512

Exit status: 0 done; 1 the answer is no (--require-fit, validate, an order that never ends); 2 the input is wrong; 3 stepsim is wrong;
130 interrupted.
)";

constexpr const char* kRun =
    R"(stepsim run simulates training steps: how long, where the time goes, whether it fits.

Usage:
  stepsim run EXPERIMENT [options]
  stepsim run --model llama3-70b --cluster dgx-h100-512
              --plan tp=8,pp=4,dp=16,microbatch=1,global-batch=1024,sequence=8192,zero=1

EXPERIMENT is a file (.textproto or .json) or a name of the catalog. With an EXPERIMENT, --model
and --cluster take the place of its own, and the keys of --plan go over its plan. Quantities take
units: 64MiB, 400Gbps, 50GB/s, 5us, 989TFLOPS.

)";

constexpr const char* kCollective =
    R"(stepsim collective runs one collective on an idle cluster: how long, how fast, which links are
hottest, and what the closed form says.

Usage:
  stepsim collective OP --cluster dgx-h100-16 --bytes 64MiB [options]
  stepsim collective all-to-all --cluster v5p-4x4x4 --sweep 1KiB:1GiB

OP is all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, gather, scatter,
barrier, send-receive or permute. Bandwidths are those of nccl-tests: bytes / time, and what that
means for a port.

)";

constexpr const char* kNetwork =
    R"(stepsim network runs raw transfers over explicit links and says when each one ends.

Usage:
  stepsim network CASE [options]

CASE is a .json or .json.gz file with links and flows; docs/network-cases.md describes it.

)";

constexpr const char* kSchedule =
    R"(stepsim schedule simulates one pipeline schedule by itself: who does what when, the bubble beside
the published one, and how many activations each rank holds.

Usage:
  stepsim schedule NAME --stages P --microbatches M [options]
  stepsim schedule FILE [options]
  stepsim schedule 1f1b --stages 8 --microbatches 32 --compare zb_h1,zb_h2,zbv_auto,dualpipe

NAME is naive, naive_sequential, gpipe, gpipe_lifo, 1f1b, eager_1f1b, interleaved_1f1b,
breadth_first, breadth_first_lifo, zb_h1, zb_h1_quickstart, zb_h2, zb_auto_1p, zb_auto_2p,
interleaved_zb1p, zbv_hand, zbv_auto, v_half, v_min, dualpipe, dualpipev, chimera, hanayo or optimal. A FILE
has a line a rank with its ops in order: F0.0 F1.0 BW0.0 BW1.0 (micro-batch, dot, chunk). Times are
of one micro-batch on one chunk and take units: 5us, 1.5ms.

)";

constexpr const char* kTopology =
    R"(stepsim topology says what a cluster is: counts, diameter, bisection bandwidth, what each level
offers its chips, and which way messages take.

Usage:
  stepsim topology CLUSTER [options]

CLUSTER is a name of the catalog or a file (.textproto or .json). Bandwidths count one direction and
are maximum flows over the built network, with its faults; no routing can pass them.

)";

constexpr const char* kFormula =
    R"(stepsim formula knows the closed forms of the books on training at scale: what they say, where they
hold, and what their sources print wrongly. It simulates nothing.

Usage:
  stepsim formula                           every formula, by group
  stepsim formula E                         those of a group
  stepsim formula E7                        one: symbols, source, conditions, an example
  stepsim formula E7 B=48000 N=64 F=32768 MX=2 MY=1
  stepsim formula A6 chip=h100-sxm          chip= and model= fill the symbols that they know
  stepsim formula E4 Y_max=16 chip=tpu-v5p W=180GB/s F=?     solve for one input

Values take units: 64MiB, 400Gbps, 50GB/s, 5us, 989TFLOPS. docs/formulas.md has them all.

)";

constexpr const char* kValidate =
    R"(stepsim validate puts what the books say beside simulations of it: predicted, simulated, the
difference, the range in which the mechanism puts that difference, and the mechanism.

Usage:
  stepsim validate                 every experiment, a minute or less
  stepsim validate fsdp            what the books say about a thing: any word of a chapter's name, of
                                   a statement or of a regime ("part 5", bubble, nvswitch, latency)
  stepsim validate S3 S5.knee      experiments and rows by id
  stepsim validate B1              the rows that test a formula
  stepsim validate --list          what there is, with the books' statements
  stepsim validate --cases         the worked figures of the books, through stepsim formula

Exit status 1 unless every row is as expected. docs/validation.md has the results.

)";

constexpr const char* kImport =
    R"(stepsim import prints a model that was made elsewhere as a model file.

Usage:
  stepsim import hf CONFIG.json > my-model.textproto

CONFIG.json is the file of that name beside a model on Hugging Face. Families: llama, mistral,
mixtral, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, gemma, gemma2,
gemma3_text, gpt2, gpt_oss, bloom, starcoder2. A run takes such a file as it is, too: stepsim run --model config.json ...

)";

constexpr const char* kAccuracy =
    R"(stepsim accuracy simulates the rows of measured tables and says how far off the predictions are.

Usage:
  stepsim accuracy FILE.csv... [options]

A table has training runs, kernels or collectives, told apart by the columns in its header;
docs/accuracy.md lists them. Rows that can't be simulated are counted with the reason.

)";

constexpr const char* kFigures =
    R"(stepsim figures draws the books' figures from simulation: formulas as lines, simulated steps and
collectives as points, an SVG each, the same bytes each time. docs/figures.md shows them.

Usage:
  stepsim figures --out DIR              all of them
  stepsim figures bubble --out DIR       some

)";

constexpr const char* kCatalog =
    R"(stepsim catalog says what is built in.

Usage:
  stepsim catalog              every kind and its names
  stepsim catalog KIND         names of chips, clusters, models, plans or experiments
  stepsim catalog KIND NAME    one entry, as its file says it

Clusters exist in every size: dgx-h100-<chips> and v5p-<x>x<y>x<z>; the list shows the usual ones.
)";

}  // namespace

std::string help_text(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0] == "help") return kOverview;
  if (arguments[0] == "run") return kRun + describe_run_options() + "\n";
  if (arguments[0] == "accuracy") return kAccuracy + describe_accuracy_options() + "\n";
  if (arguments[0] == "collective") return kCollective + describe_collective_options() + "\n";
  if (arguments[0] == "figures") return kFigures + describe_figures_options() + "\n";
  if (arguments[0] == "formula") return kFormula + describe_formula_options() + "\n";
  if (arguments[0] == "network") return kNetwork + describe_network_options() + "\n";
  if (arguments[0] == "schedule") return kSchedule + describe_schedule_options() + "\n";
  if (arguments[0] == "topology") return kTopology + describe_topology_options() + "\n";
  if (arguments[0] == "validate") return kValidate + describe_validate_options() + "\n";
  if (arguments[0] == "catalog") return kCatalog;
  if (arguments[0] == "import") return kImport;
  refuse_subcommand(arguments[0]);
}

void refuse_subcommand(const std::string& name) {
  const std::vector<std::string> subcommands = {"run",      "accuracy", "collective", "formula",
                                                "network",  "schedule", "topology",   "figures",
                                                "validate", "import",   "catalog",    "help"};
  throw ConfigError(
      {{name, "no such subcommand" +
                  did_you_mean(name, subcommands, "There are: " + comma_separated(subcommands))}});
}

}  // namespace stepsim
