// The options of `stepsim run`.

#pragma once

#include <string>
#include <vector>

#include "cli/run/trace_options.h"
#include "cli/subcommand.h"
#include "experiment/uncertainty.h"
#include "proto/load_experiment.h"

namespace stepsim {

struct RunOptions {
  ExperimentSource source;
  ExperimentOptions simulation;  // several fidelities come side by side
  bool yes = false;              // run however many packet-hops there are
  TraceRequest trace;
  std::string json;           // file, or "-" for standard output; empty: none
  std::string html;           // file; empty: none
  std::string timeline_plot;  // likewise
  bool require_fit = false;
  Headroom headroom{};           // for require_fit
  bool sensitivity = false;      // what 10 % of each lever changes
  std::string sensitivity_plot;  // file; empty: none
  std::string breakeven;         // name of a lever; empty: none

  bool json_on_stdout() const { return json == "-"; }
  bool has_packets() const { return simulation.fidelities.back() == Fidelity::kPacket; }
};

// Reads the arguments behind `stepsim run`, and the experiment that they name. Throws ConfigError
// with all problems of both, and of output files that can't be written.
struct RunRequest {
  RunOptions options;
  Experiment experiment;
  BuiltTopology topology;  // of its cluster
  ExperimentRecord record;
  Publication publication;
};
RunRequest read_run_request(const std::vector<std::string>& arguments);

// The options, with the help on each.
OptionList run_option_list();

}  // namespace stepsim
