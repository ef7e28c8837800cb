// The options of `stepsim run`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "sim/base/error.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"
#include "workload/model_counts.h"

namespace stepsim {

struct RunOptions {
  ExperimentSource source;
  std::vector<Fidelity> fidelities = {Fidelity::kFlow};  // one run each, side by side
  Granularity granularity = Granularity::kPipelined;     // of all; kStepped where one is packets
  PacketOptions packets{};                               // kPacket; router of spraying is unset
  bool yes = false;                                      // run however many packet-hops there are
  AttentionFlops attention_flops = AttentionFlops::kCausal;
  std::optional<std::uint32_t> steps;  // unless given: what the plan needs, see steps_of()
  std::uint64_t seed = 0;              // of Experiment::variation's jitter
  std::string trace;                   // file; empty: none
  std::vector<RankId> trace_ranks;     // ascending; empty: one of each role
  std::string json;                    // file, or "-" for standard output; empty: none
  bool explain = false;
  bool require_fit = false;
  bool help = false;

  bool json_on_stdout() const { return json == "-"; }
  bool has_packets() const { return fidelities.back() == Fidelity::kPacket; }
};

// Reads the arguments behind `stepsim run`, and the experiment that they name. Throws ConfigError
// with the problems of both at once, and of output files that can't be written.
struct RunRequest {
  RunOptions options;
  Experiment experiment;   // as it came from the default constructor if options.help
  BuiltTopology topology;  // of its cluster
};
RunRequest read_run_request(const std::vector<std::string>& arguments);

// The options as a person reads them, for `stepsim help run`.
std::string describe_run_options();

// 2 steps where a step overlaps with the next one (FSDP's first gather, zb_h2 and alike), else 1.
std::uint32_t steps_of(const RunOptions& options, const ParallelPlan& plan);

SimulationOptions simulation_options(const RunRequest& request, const OpGraph& graph,
                                     Fidelity fidelity);

}  // namespace stepsim
