#include "cli/help.h"

#include "cli/run_options.h"
#include "proto/suggestion.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr const char* kOverview =
    R"(stepsim replays training steps of large language models on clusters that need not exist.

Usage:
  stepsim run EXPERIMENT [options]   simulate a training step
  stepsim catalog [KIND] [NAME]      list or print built-in chips, clusters, models, ...
  stepsim help [SUBCOMMAND]          what it does and takes
  stepsim --version

Try: stepsim run llama3-70b-dgx-h100-512

Exit status: 0 done; 1 the answer is no (--require-fit); 2 the input is wrong; 3 stepsim is wrong;
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
  if (arguments[0] == "catalog") return kCatalog;
  refuse_subcommand(arguments[0]);
}

void refuse_subcommand(const std::string& name) {
  const std::vector<std::string> subcommands = {"run", "catalog", "help"};
  throw ConfigError({{name, "no such subcommand" + did_you_mean(name, subcommands) +
                                " There are: " + comma_separated(subcommands)}});
}

}  // namespace stepsim
