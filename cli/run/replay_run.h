// Replays the work of a trace on a cluster: what `stepsim import KIND FILES --cluster C` and
// `stepsim run WORKLOAD.json --cluster C` do.

#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/subcommand.h"
#include "import/astra/astra.h"
#include "import/trace_job.h"
#include "sim/run/simulation_options.h"

namespace stepsim {

struct ReplayRequest {
  std::string cluster;  // empty: none; needed unless `as_astra`
  std::string chip;
  std::string library;
  Fidelity fidelity = Fidelity::kFlow;
  Granularity granularity = Granularity::kPipelined;
  bool retimed = false;     // kernels take what the chip makes of their FLOPs and bytes
  bool rendezvous = false;  // sends wait for their receives
  bool as_astra = false;    // --compat astra
  bool yes = false;
  std::string astra_network;
  std::string astra_system;

  bool asked() const { return !cluster.empty() || as_astra; }
};

void add_replay_options(boost::program_options::options_description& options);
ReplayRequest read_replay_request(const CommandLine& line, std::vector<Problem>& problems);

struct Replayed {
  std::string report;
  std::string json;  // an object; ends in a newline
};
// Throws ConfigError, among others if ranks disagree about a collective.
Replayed run_replay(const TraceJob& job, const ReplayRequest& request);

// stepsim run WORKLOAD.json.
ExitStatus run_job_file(const std::vector<std::string>& arguments);
// Returns whether the arguments of `stepsim run` name a workload file.
bool names_job_file(const std::vector<std::string>& arguments);

const AnyResultTable& replayed_results();

}  // namespace stepsim
