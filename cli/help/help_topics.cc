#include "cli/help/help_topics.h"

#include "cli/help/field_topics.h"
#include "cli/help/help_pages.h"
#include "cli/help/result_topics.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

constexpr const char* kUnits =
    R"(A quantity is a number with a unit, on the command line and (in quotes) in files.

  bytes         64MiB  1GB  512KiB     GB is 10^9 bytes, GiB is 2^30
  bandwidth     400Gbps  50GB/s        b is a bit, B a byte; it counts one direction
  time          5us  1.5ms  2s
  throughput    989TFLOPS              floating-point operations a second

A number without a unit is in bytes, bytes a second, seconds or FLOP a second.
)";

std::string units_text(std::span<const std::string> words) {
  if (!words.empty()) throw ConfigError({{words[0], "stepsim help units takes no more words"}});
  return kUnits;
}

constexpr HelpTopic kTopics[] = {
    {.name = "plan",
     .arguments = "[KEY]",
     .summary = "the keys of --plan: what each does and when to change it",
     .text = plan_help},
    {.name = "software",
     .arguments = "[KEY]",
     .summary = "the keys of --software: what a training software brings",
     .text = software_help},
    {.name = "pass",
     .arguments = "[KEY]",
     .summary = "the keys of --pass: one pass of inference",
     .text = pass_help},
    {.name = "transport",
     .arguments = "[FIELD]",
     .summary = "the kinds and fields of transports of packets",
     .text = transport_help},
    {.name = "simulation",
     .arguments = "[FIELD]",
     .summary = "the fields that say how an experiment is simulated",
     .text = simulation_help},
    {.name = "model",
     .arguments = "[FIELD]",
     .summary = "the fields of a model: what each is",
     .text = model_help},
    {.name = "chip",
     .arguments = "[FIELD]",
     .summary = "the fields of a chip: what each is and when to change it",
     .text = chip_help},
    {.name = "host",
     .arguments = "[FIELD]",
     .summary = "the fields of the machine that chips are attached to",
     .text = host_help},
    {.name = "library",
     .arguments = "[FIELD]",
     .summary = "the fields of a communication library",
     .text = library_help},
    {.name = "cluster",
     .arguments = "[FIELD]",
     .summary = "the fields of a cluster",
     .text = cluster_help},
    {.name = "engine",
     .arguments = "[KEY]",
     .summary = "the engines of stepsim serve and their keys",
     .text = engine_help},
    {.name = "requests",
     .arguments = "[KEY]",
     .summary = "the keys of stepsim serve --requests",
     .text = requests_help},
    {.name = "failures",
     .arguments = "[FIELD]",
     .summary = "the fields of a table of failures, and of checkpoints and restarts",
     .text = failures_help},
    {.name = "topologies",
     .arguments = "[KIND [FIELD]]",
     .summary = "the kinds of topologies and their fields",
     .text = topology_help},
    {.name = "results",
     .arguments = "[SUBCOMMAND]",
     .summary = "the members of the JSON that a subcommand writes",
     .text = results_help},
    {.name = "units",
     .arguments = "",
     .summary = "how sizes, bandwidths and times are written",
     .text = units_text},
    {.name = "completion",
     .arguments = "[bash|zsh]",
     .summary = "what completes words in a shell: source <(stepsim help completion bash)",
     .text = completion},
    {.name = "man",
     .arguments = "[SUBCOMMAND]",
     .summary = "a man page, for packages: stepsim help man run | man -l -",
     .text = man_page},
};

}  // namespace

std::span<const HelpTopic> help_topics() {
  return kTopics;
}

}  // namespace stepsim
