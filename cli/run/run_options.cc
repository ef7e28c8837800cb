#include "cli/run/run_options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/command_line.h"
#include "cli/rank_list.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::uint32_t kMostSteps = 1000;
constexpr std::uint32_t kMostRanks = 1 << 20;

template <typename Choice>
void read_choice(const po::variables_map& values, const char* name,
                 const std::map<std::string, Choice>& choices, Choice& result,
                 std::vector<Problem>& problems) {
  if (values.count(name) == 0) return;
  const std::string value = values[name].as<std::string>();
  if (const auto found = choices.find(value); found != choices.end()) {
    result = found->second;
    return;
  }
  std::string accepted;
  for (const auto& [choice, meaning] : choices) {
    accepted += (accepted.empty() ? "" : " or ") + choice;
  }
  problems.push_back({std::string("--") + name, "must be " + accepted + ", is \"" + value + "\""});
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

void read_numbers(const po::variables_map& values, RunOptions& options,
                  std::vector<Problem>& problems) {
  if (values.count("steps") != 0) {
    const std::string text = values["steps"].as<std::string>();
    options.simulation.options.steps = number<std::uint32_t>(text);
    if (!options.simulation.options.steps || *options.simulation.options.steps < 1 ||
        *options.simulation.options.steps > kMostSteps) {
      problems.push_back({"--steps", "must be a whole number from 1 to " +
                                         std::to_string(kMostSteps) + ", is \"" + text + "\""});
    }
  }
  if (values.count("seed") != 0) {
    const std::string text = values["seed"].as<std::string>();
    const auto seed = number<std::uint64_t>(text);
    if (!seed) problems.push_back({"--seed", "must be a whole number, is \"" + text + "\""});
    if (seed) options.simulation.options.seed = *seed;
  }
  if (values.count("trace-ranks") != 0 && values.count("trace") == 0) {
    problems.push_back({"--trace-ranks", "needs --trace, which says where the trace goes"});
  }
}

// A whole number from `least` to `most`; the message says so otherwise.
std::optional<std::int64_t> read_size(const po::variables_map& values, const std::string& name,
                                      std::int64_t least, std::int64_t most,
                                      std::vector<Problem>& problems) {
  if (values.count(name) == 0) return std::nullopt;
  const std::string text = values[name].as<std::string>();
  const auto size = number<std::int64_t>(text);
  if (size && *size >= least && *size <= most) return size;
  problems.push_back({"--" + name, "must be a whole number from " + std::to_string(least) + " to " +
                                       std::to_string(most) + ", is \"" + text + "\""});
  return std::nullopt;
}

// Packets always go with stepped collectives: a pipelined one is a single transfer over all its
// edges, which no packet can follow.
void read_packets(const po::variables_map& values, RunOptions& options,
                  std::vector<Problem>& problems) {
  constexpr std::int64_t kMostPacketBytes = std::numeric_limits<std::int32_t>::max();
  options.yes = values.count("yes") != 0;
  if (!options.has_packets()) {
    for (const char* name : {"packet-bytes", "switching", "buffer-bytes", "spraying", "yes"}) {
      if (values.count(name) == 0) continue;
      problems.push_back({std::string("--") + name, "needs --fidelity packet or all"});
    }
    return;
  }
  if (values.count("granularity") != 0 &&
      options.simulation.options.granularity == Granularity::kPipelined) {
    problems.push_back({"--granularity",
                        "must be stepped with --fidelity packet or all, is \"pipelined\": a "
                        "pipelined collective has no messages that packets could carry"});
  }
  options.simulation.options.granularity = Granularity::kStepped;
  PacketOptions& packets = options.simulation.options.packets;
  if (const auto bytes = read_size(values, "packet-bytes", 1, kMostPacketBytes, problems)) {
    packets.packet_bytes = Bytes(*bytes);
    packets.header_bytes = std::min(packets.header_bytes, packets.packet_bytes);
  }
  read_choice<Switching>(
      values, "switching",
      {{"store-and-forward", Switching::kStoreAndForward}, {"cut-through", Switching::kCutThrough}},
      packets.switching, problems);
  if (const auto bytes = read_size(values, "buffer-bytes", packets.packet_bytes.value(),
                                   std::numeric_limits<std::int64_t>::max() / 2, problems)) {
    packets.buffer_bytes = Bytes(*bytes);
  }
  if (const auto routes = read_size(values, "spraying", 1, 4096, problems)) {
    packets.spraying = PacketSpraying{.routes = static_cast<std::uint32_t>(*routes)};
  }
}

// What to run and what to write.
RunOptions read_options(const CommandLine& line, std::vector<Problem>& problems) {
  const po::variables_map& values = line.options;
  RunOptions options;
  const auto text = [&](const char* name) {
    if (values.count(name) == 0) return std::string();
    std::string value = values[name].as<std::string>();
    if (value.empty()) problems.push_back({std::string("--") + name, "must not be empty"});
    return value;
  };
  if (!line.words.empty()) options.source.experiment = line.words.front();
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one EXPERIMENT"});
  }
  options.source.model = text("model");
  options.source.cluster = text("cluster");
  options.source.plan = text("plan");
  options.source.library = text("library");
  if (values.count("set") != 0) {
    options.source.overrides = values["set"].as<std::vector<std::string>>();
  }
  options.trace = read_output_path(line, "trace", OutputFormat::kChromeTrace, problems);
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  options.require_fit = values.count("require-fit") != 0;
  return options;
}

// How to simulate it: what is given goes over what the experiment's file says.
void read_simulation(const po::variables_map& values, RunOptions& options,
                     std::vector<Problem>& problems) {
  ExperimentOptions& simulation = options.simulation.options;
  const std::vector<Fidelity> all = {Fidelity::kLatencyBandwidth, Fidelity::kFlow,
                                     Fidelity::kPacket};
  read_choice<std::vector<Fidelity>>(values, "fidelity",
                                     {{"latency-bandwidth", {Fidelity::kLatencyBandwidth}},
                                      {"flow", {Fidelity::kFlow}},
                                      {"packet", {Fidelity::kPacket}},
                                      {"all", all}},
                                     simulation.fidelities, problems);
  read_choice<Granularity>(
      values, "granularity",
      {{"pipelined", Granularity::kPipelined}, {"stepped", Granularity::kStepped}},
      simulation.granularity, problems);
  read_choice<AttentionFlops>(
      values, "attention-flops",
      {{"causal", AttentionFlops::kCausal}, {"full", AttentionFlops::kFull}},
      simulation.attention_flops, problems);
  read_packets(values, options, problems);
  read_numbers(values, options, problems);
  if (values.count("explain") != 0) options.simulation.explains = true;
  // A trace shows one rank of each program unless it says which; explain() reads one of each.
  simulation.record_links = !options.trace.empty();
  simulation.record_each_role =
      options.simulation.explains || (!options.trace.empty() && values.count("trace-ranks") == 0);
  if (!options.trace.empty() && simulation.fidelities.size() > 1) {
    problems.push_back({"--trace", "is of one run: give one --fidelity instead of all"});
  }
}

void check_outputs(const RunOptions& options, std::vector<Problem>& problems) {
  std::error_code error;
  if (!options.trace.empty() && std::filesystem::weakly_canonical(options.trace, error) ==
                                    std::filesystem::weakly_canonical(options.json, error)) {
    problems.push_back({"--json", "must be another file than --trace, is " + options.json});
  }
}

}  // namespace

po::options_description run_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("model", text("NAME|FILE"), "catalog name, config.json of Hugging Face, or a model file");
  add("cluster", text("NAME|FILE"), "catalog name or a cluster file");
  add("library", text("NAME"), "communication library (default: the chip's); ideal for none");
  add("plan", text("KEYS|NAME|FILE"),
      "keys such as tp=8,pp=4,dp=16,global-batch=1024, or a catalog name or a file");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change one field of the experiment: plan.tp=4; can be repeated");
  add("fidelity", text("latency-bandwidth|flow|packet|all"),
      "network model (default: flow); all runs the three side by side, with stepped collectives");
  add("granularity", text("pipelined|stepped"),
      "simulate a collective as one transfer, or every message of it (default: pipelined; with "
      "packets always stepped)");
  add("packet-bytes", text("N"), "packets only: bytes of a packet (default: 4096)");
  add("switching", text("store-and-forward|cut-through"),
      "packets only: when a switch sends a packet on (default: store-and-forward)");
  add("buffer-bytes", text("N"),
      "packets only: room in the queue of a link; nothing is lost (default: no limit)");
  add("spraying", text("N"), "packets only: spread each message over up to N routes (default: 1)");
  add("yes", "packets only: run even if there are more than 10^9 packet-hops");
  add("steps", text("K"),
      "number of training steps to simulate (default: 1; 2 for FSDP and for schedules that overlap "
      "steps)");
  add("seed", text("N"), "seed of the random numbers that jitter draws (default: 0)");
  add("trace", text("FILE"),
      "write a Chrome trace for ui.perfetto.dev; FILE ends in .json or .json.gz");
  add("trace-ranks", text("LIST"),
      "ranks in the trace: 0,8-15 (default: one of each pipeline stage)");
  add("json", text("FILE"),
      "write the result as JSON; - writes it to standard output, and nothing else there");
  add("attention-flops", text("causal|full"), "how model FLOPs count attention (default: causal)");
  add("explain",
      "compare each part of the step with the books' formulas and explain the differences");
  add("require-fit", "exit with status 1 if the plan does not fit in memory");
  return options;
}

RunRequest read_run_request(const std::vector<std::string>& arguments) {
  RunRequest request;
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, run_option_list(), problems);
  request.options = read_options(line, problems);
  RunOptions& options = request.options;
  const ExperimentSource& source = options.source;
  const bool nothing_given = source.experiment.empty() && source.model.empty() &&
                             source.cluster.empty() && source.plan.empty();
  if (nothing_given) {
    problems.push_back({"EXPERIMENT",
                        "must be given: a file, a catalog name, or --model, "
                        "--cluster and --plan; see stepsim help run"});
    throw ConfigError(std::move(problems));
  }
  std::uint32_t ranks = kMostRanks;
  std::vector<Problem> of_experiment;
  try {
    LoadedExperiment loaded = load_with_topology(source);
    request.experiment = std::move(loaded.experiment);
    request.topology = std::move(loaded.topology);
    request.record = std::move(loaded.record);
    request.publication = std::move(loaded.publication);
    options.simulation = loaded.simulation;
    ranks = static_cast<std::uint32_t>(request.experiment.plan.ranks());
  } catch (const ConfigError& error) {
    of_experiment = error.problems();
  }
  read_simulation(line.options, options, problems);
  std::ranges::move(of_experiment, std::back_inserter(problems));
  if (line.options.count("trace-ranks") != 0) {
    const std::vector<std::uint32_t> traced = read_rank_list(
        line.value("trace-ranks"),
        {.option = "--trace-ranks", .what = "ranks of the plan", .count = ranks}, problems);
    std::vector<RankId>& recorded = options.simulation.options.recorded_ranks;
    for (const std::uint32_t rank : traced) recorded.emplace_back(rank);
    std::ranges::sort(recorded);
  }
  check_outputs(options, problems);
  throw_if_any(std::move(problems));
  return request;
}

}  // namespace stepsim
