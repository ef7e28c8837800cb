#include "cli/run/replay_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/network/packet_run.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "experiment/build_cluster.h"
#include "experiment/simulation_fields.h"
#include "import/input_bytes.h"
#include "import/job_file.h"
#include "import/replay.h"
#include "proto/load_experiment.h"
#include "sim/base/quantity_text.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

po::options_description job_file_options() {
  po::options_description options("Options", 100, 50);
  add_replay_options(options);
  add_json_option(options);
  add_input_option(options);
  return options;
}

// ASTRA-sim's times need nothing of a cluster: chips that reach one another at once.
Cluster cluster_for(const TraceJob& job, const ReplayRequest& request) {
  if (request.cluster.empty()) {
    return one_node(static_cast<int>(job.ranks), Bandwidth(1e18));
  }
  return build_cluster(load_cluster(request.cluster, request.library, request.chip));
}

struct Astra {
  std::vector<AstraDimension> dimensions;
  AstraSystem system;
};

Astra read_astra(const TraceJob& job, const ReplayRequest& request) {
  std::vector<Problem> problems;
  Astra astra;
  astra.dimensions = read_astra_network(request.astra_network, problems);
  astra.system = read_astra_system(request.astra_system, problems);
  throw_if_any(problems);
  check_astra_times(job, astra.dimensions, astra.system, problems);
  throw_if_any(std::move(problems));
  return astra;
}

ChipSpec astra_chip(ChipSpec chip, const AstraSystem& system) {
  if (system.peak_tflops) chip.peak = peaks_of_all_types(Throughput(*system.peak_tflops * 1e12));
  if (system.memory_gb_per_s) chip.memory_bandwidth = Bandwidth(*system.memory_gb_per_s * 1e9);
  return chip;
}

struct ReplayedJob {
  const TraceJob* job;
  const OpGraph* graph;
  const SimulationOptions* options;
  const SimulationResult* result;
};

template <class V>
ByName<V> by_axis(const OpGraph& graph, const std::array<V, kMostAxes>& values) {
  ByName<V> axes;
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    axes.emplace_back(graph.axes[axis], values[axis]);
  }
  return axes;
}

const ResultTable<ReplayedJob>& parts_of_replay_results() {
  static const ResultTable<ReplayedJob> kTable = [] {
    const auto part = [](Duration Breakdown::*member) {
      return [member](const ReplayedJob& replayed) { return replayed.result->breakdown.*member; };
    };
    ResultTable<ReplayedJob> table;
    table.add("compute", part(&Breakdown::compute), {"ranks compute", "s"});
    table.add("exposed_communication",
              [](const ReplayedJob& replayed) {
                return by_axis(*replayed.graph, replayed.result->breakdown.exposed_communication);
              },
              {"waits while data of a group moves", "s"});
    table.add("bubble", part(&Breakdown::bubble), {"waits for another stage", "s"});
    table.add("idle", part(&Breakdown::idle), {"waits for a peer, or has ended", "s"});
    table.add("launch", part(&Breakdown::launch), {"waits for its host", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<PathPart>& path_of_replay_results() {
  static const ResultTable<PathPart> kTable = [] {
    ResultTable<PathPart> table;
    table.add("label", &PathPart::label, {"what runs"});
    table.add("duration_s", &PathPart::duration, {"time on the path", "s"});
    return table;
  }();
  return kTable;
}

const ResultTable<SimulatorStatistics>& cost_of_replay_results() {
  static const ResultTable<SimulatorStatistics> kTable = [] {
    using Statistics = SimulatorStatistics;
    ResultTable<Statistics> table;
    table.add("events", &Statistics::events, {"from the queue or the network"});
    table.add("rate_updates", &Statistics::rate_updates, {"changes of a transfer's rate"});
    table.add("wall_s", &Statistics::wall_s, {"wall clock", "s"});
    table.add("cpu_s", &Statistics::cpu_s, {"CPU clock", "s"});
    table.add("peak_rss_bytes", &Statistics::peak_rss_bytes, {"peak memory", "bytes"});
    return table;
  }();
  return kTable;
}

const ResultTable<ReplayedJob>& replay_results() {
  static const ResultTable<ReplayedJob> kTable = [] {
    using Job = ReplayedJob;
    ResultTable<Job> table;
    table.add("step_time_s", [](const Job& one) { return one.result->step_time; },
              {"from the start to the last end", "s"});
    table.add("steps", [](const Job&) { return 1; }, {"that were replayed"});
    table.add("source", [](const Job& one) { return one.job->source; }, {"kind of the files"});
    table.add("ranks", [](const Job& one) { return one.job->ranks; }, {"of the job"});
    table.add("nodes", [](const Job& one) { return one.job->nodes(); }, {"ops of all ranks"});
    table.add("fidelity", [](const Job& one) { return name_of(one.options->fidelity); },
              {"flow, packet or latency-bandwidth"});
    table.add("granularity", [](const Job& one) { return name_of(one.options->granularity); },
              {"pipelined or stepped"});
    table.object("breakdown_s", parts_of_replay_results(), std::identity{},
                 {"parts of the step, mean of all ranks", "s"});
    table.list("critical_path", path_of_replay_results(),
               [](const Job& one) { return one.result->critical_path; },
               {"longest first; adds up to step_time_s", "s"});
    table.add("bytes_by_axis",
              [](const Job& one) { return by_axis(*one.graph, one.result->bytes_by_axis); },
              {"sent by all ranks", "bytes"});
    table.object("simulator", cost_of_replay_results(),
                 [](const Job& one) { return &one.result->statistics; }, {"the simulation alone"});
    return table;
  }();
  return kTable;
}

std::string replay_report(const TraceJob& job, const OpGraph& graph, const ReplayRequest& request,
                          const SimulationResult& result) {
  const Breakdown& parts = result.breakdown;
  std::string text = fmt::format(
      "{} of {} ranks on {}: {} ({} ns)\n\n  compute {:>24}\n", job.source, job.ranks,
      request.as_astra ? "ASTRA-sim's times" : request.cluster, to_text(result.step_time),
      result.step_time.count() / 1000, to_text(parts.compute));
  for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
    const Duration exposed = parts.exposed_communication[axis];
    if (exposed > Duration()) {
      text += fmt::format("  {:<12} {:>19}   exposed\n", graph.axes[axis], to_text(exposed));
    }
  }
  return text + fmt::format("  idle {:>27}\n", to_text(parts.idle));
}

SimulationResult simulate_job(const OpGraph& graph, const Cluster& cluster,
                              const SimulationOptions& options) {
  try {
    return simulate(graph, cluster, options);
  } catch (const MismatchError& error) {
    throw ConfigError({{"ranks", std::string("disagree: ") + error.what()}});
  } catch (const DeadlockError& error) {
    throw ConfigError({Problem{"ranks", error.what()}});
  }
}

}  // namespace

const AnyResultTable& replayed_results() {
  return replay_results();
}

void add_replay_options(po::options_description& options) {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  auto add = options.add_options();
  add("cluster", text("CLUSTER"), "replay the work on this cluster: a catalog name or a file");
  add("chip", text("CHIP"), "replace the cluster's chip");
  add("library", text("LIBRARY"), "replace its communication library");
  add("retime", "kernels take what the chip makes of their FLOPs and bytes, not their own times");
  add("rendezvous", "sends wait for their receives, as those of NCCL do");
  add("fidelity", text("latency-bandwidth|flow|packet"), "network model (default: flow)");
  add("granularity", text("pipelined|stepped"), "detail of collectives (default: pipelined)");
  add("compat", text("astra"), "collectives take the times of ASTRA-sim, in its network");
  add("astra-network", text("FILE"), "network.yml of ASTRA-sim's analytical backend, for --compat");
  add("astra-system", text("FILE"), "JSON of its system, for --compat");
  add("yes", "run even if a packet simulation takes long");
}

ReplayRequest read_replay_request(const CommandLine& line, std::vector<Problem>& problems) {
  ReplayRequest request;
  request.cluster = line.value("cluster");
  request.chip = line.value("chip");
  request.library = line.value("library");
  request.retimed = line.options.count("retime") != 0;
  request.rendezvous = line.options.count("rendezvous") != 0;
  request.yes = line.options.count("yes") != 0;
  request.astra_network = line.value("astra-network");
  request.astra_system = line.value("astra-system");
  const auto choose = [&](const char* option, auto& result) {
    using Choice = std::remove_reference_t<decltype(result)>;
    if (line.options.count(option) == 0) return;
    const std::optional<Choice> read = Text<Choice>::read(line.value(option));
    if (read) {
      result = *read;
    } else {
      problems.push_back({std::string("--") + option, "must be " + Text<Choice>::accepts() +
                                                          ", is \"" + line.value(option) + "\""});
    }
  };
  choose("fidelity", request.fidelity);
  choose("granularity", request.granularity);
  if (request.fidelity == Fidelity::kPacket) request.granularity = Granularity::kStepped;
  const std::string compat = line.value("compat");
  request.as_astra = compat == "astra";
  if (!compat.empty() && !request.as_astra) {
    problems.push_back({"--compat", "must be astra, is \"" + compat + "\""});
  }
  const bool has_both = !request.astra_network.empty() && !request.astra_system.empty();
  const bool has_any = !request.astra_network.empty() || !request.astra_system.empty();
  if (request.as_astra && !has_both) {
    problems.push_back({"--compat", "astra needs --astra-network and --astra-system"});
  }
  if (!request.as_astra && has_any) {
    problems.push_back({"--astra-network", "needs --compat astra"});
  }
  const bool has_parts =
      !request.chip.empty() || !request.library.empty() || request.retimed || request.rendezvous;
  if (request.cluster.empty() && has_parts) {
    problems.push_back(
        {"--cluster", "must be given with --chip, --library, --retime and --rendezvous"});
  }
  return request;
}

Replayed run_replay(const TraceJob& job, const ReplayRequest& request) {
  Cluster cluster = cluster_for(job, request);
  const std::size_t chips = cluster.places.chips.size();
  if (chips < job.ranks) {
    throw ConfigError(
        {{"--cluster",
          fmt::format("must have a chip for each of the {} ranks, has {}", job.ranks, chips)}});
  }
  Astra astra;
  ReplayOptions how{
      .chip = &cluster.chip, .retimed = request.retimed, .rendezvous = request.rendezvous};
  if (request.as_astra) {
    astra = read_astra(job, request);
    cluster.chip = astra_chip(std::move(cluster.chip), astra.system);
    how.retimed = astra.system.is_roofline;
    how.collective_time = [&astra](const TraceNode& node, std::uint32_t members) {
      return astra_time(node, members, astra.dimensions[0], astra.system);
    };
  }
  const OpGraph graph = replay(job, how);
  SimulationOptions options;
  options.fidelity = request.fidelity;
  options.granularity = request.granularity;
  options.fold = job.programs.size() == 1;
  announce_packets(graph, cluster, options, request.yes);
  Progress progress;
  progress.watch(options);
  const SimulationResult result = simulate_job(graph, cluster, options);
  progress.wipe();
  return {.report = replay_report(job, graph, request, result),
          .json = replay_results().json({&job, &graph, &options, &result}) + '\n'};
}

bool names_job_file(const std::vector<std::string>& arguments) {
  return !arguments.empty() && looks_like_job(arguments.front());
}

ExitStatus run_job_file(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, job_file_options(), problems);
  const ReplayRequest request = read_replay_request(line, problems);
  const std::string json = read_output_path(line, "json", OutputFormat::kJson, problems);
  if (line.words.size() != 1) problems.push_back({"WORKLOAD", "must be one file"});
  if (!request.asked())
    problems.push_back({"--cluster", "must be given: a catalog name or a file"});
  throw_if_any(problems);
  const std::optional<std::string> text = read_bytes(line.words[0], problems);
  throw_if_any(problems);
  const std::optional<TraceJob> job = read_job(*text, line.words[0], problems);
  throw_if_any(std::move(problems));
  const Replayed replayed = run_replay(*job, request);
  Outputs outputs;
  outputs.write(json, replayed.json);
  outputs.commit();
  outputs.print(json == "-" ? replayed.json : replayed.report);
  return outputs.end(ExitStatus::kDone);
}

}  // namespace stepsim
