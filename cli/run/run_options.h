// The options of `stepsim run`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "experiment/experiment.h"
#include "sim/base/error.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"
#include "workload/model_counts.h"

namespace stepsim {

struct RunOptions {
  ExperimentSource source;
  std::vector<Fidelity> fidelities = {Fidelity::kFlow};  // one run each, side by side
  Granularity granularity = Granularity::kPipelined;     // of all; kStepped if one is packets
  PacketOptions packets{};                               // kPacket; router of spraying is unset
  bool yes = false;                                      // run however many packet-hops there are
  AttentionFlops attention_flops = AttentionFlops::kCausal;
  std::optional<std::uint32_t> steps;  // unless given: what the plan needs, see steps_of()
  std::uint64_t seed = 0;              // for the jitter of Experiment::variation
  std::string trace;                   // file; empty: none
  std::vector<RankId> trace_ranks;     // ascending; empty: one rank of each role
  std::string json;                    // file, or "-" for standard output; empty: none
  bool explain = false;
  bool require_fit = false;

  bool json_on_stdout() const { return json == "-"; }
  bool has_packets() const { return fidelities.back() == Fidelity::kPacket; }
};

// Reads the arguments behind `stepsim run`, and the experiment that they name. Throws ConfigError
// with all problems of both, and of output files that can't be written.
struct RunRequest {
  RunOptions options;
  Experiment experiment;
  BuiltTopology topology;  // of its cluster
};
RunRequest read_run_request(const std::vector<std::string>& arguments);

// The options, with the help on each.
OptionList run_option_list();

// 2 steps where a step overlaps with the next one (FSDP's first gather, zb_h2 and alike), else 1.
std::uint32_t steps_of(const RunOptions& options, const ParallelPlan& plan);

SimulationOptions simulation_options(const RunRequest& request, const OpGraph& graph,
                                     Fidelity fidelity);

}  // namespace stepsim
