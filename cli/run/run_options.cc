#include "cli/run/run_options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command_line.h"
#include "cli/headroom_option.h"
#include "cli/help/moved_keys.h"
#include "cli/html_option.h"
#include "cli/rank_list.h"
#include "experiment/simulation_fields.h"
#include "sim/base/small_letters.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::uint32_t kMostRanks = 1 << 20;

// "packet_bytes" is given as --packet-bytes.
std::string flag_of(const AnyField& field) {
  return with_dashes(field.name());
}

// A truth value is a flag that stands alone.
bool takes_value(const AnyField& field) {
  return field.accepts() != Text<bool>::accepts();
}

// Returns the text of a flag, in the words of files: --fidelity all is all three network models.
std::string text_of_flag(const po::variables_map& values, const AnyField& field) {
  if (!takes_value(field)) return "true";
  const std::string text = values[flag_of(field)].as<std::string>();
  return field.name() == "fidelity" && text == "all" ? "latency-bandwidth,flow,packet" : text;
}

// Puts the flags over what the experiment's file says.
void read_fields_of_simulation(const po::variables_map& values, ExperimentOptions& simulation,
                               std::vector<Problem>& problems) {
  for (const auto& field : simulation_fields().fields()) {
    const std::string name = flag_of(*field);
    if (values.count(name) == 0) continue;
    for (std::string& message : field->read(text_of_flag(values, *field), &simulation)) {
      problems.push_back({"--" + name, std::move(message)});
    }
    if (auto message = limit_problem(*field, &simulation)) {
      problems.push_back({"--" + name, std::move(*message)});
    }
  }
  if (simulation.fidelities.empty()) {
    problems.push_back({"--fidelity", "must name a network model"});
    simulation.fidelities = ExperimentOptions{}.fidelities;
  }
  for (Problem& problem : check_simulation(simulation)) {
    problems.push_back({"--" + with_dashes(problem.field), std::move(problem.message)});
  }
}

// Packets always go with stepped collectives: a pipelined one is a single transfer over all its
// edges, which no packet can follow.
void check_packets(const po::variables_map& values, RunOptions& options,
                   std::vector<Problem>& problems) {
  if (!options.has_packets()) {
    const auto refuse = [&](const std::string& name) {
      if (values.count(name) == 0) return;
      problems.push_back({"--" + name, "needs --fidelity packet or all"});
    };
    for (const auto& field : simulation_fields().fields()) {
      if (acts_on_packets(*field)) refuse(flag_of(*field));
    }
    refuse("transport");
    refuse("yes");
    return;
  }
  if (values.count("granularity") != 0 &&
      options.simulation.granularity == Granularity::kPipelined) {
    problems.push_back({"--granularity",
                        "must be stepped with --fidelity packet or all, is \"pipelined\": a "
                        "pipelined collective has no messages that packets could carry"});
  }
  options.simulation.granularity = Granularity::kStepped;
}

// The packets of a transport are as large as others, unless it says so.
void read_transport(const po::variables_map& values, const std::string& transport,
                    ExperimentOptions& simulation, std::vector<Problem>& problems) {
  if (!simulation.transport) return;
  if (values.count("packet-bytes") == 0 || transport.find("payload=") != std::string::npos) return;
  simulation.transport->payload = simulation.packets.packet_bytes;
  const AnyField& payload = *transport_fields().find("payload");
  if (auto message = limit_problem(payload, &*simulation.transport)) {
    problems.push_back({"--packet-bytes", std::move(*message)});
  } else {
    for (const Problem& problem : check_transport(*simulation.transport, 0, 0)) {
      problems.push_back(
          {"--packet-bytes", "of transport." + problem.field + ": " + problem.message});
    }
  }
}

void read_fold(const po::variables_map& values, ExperimentOptions& simulation,
               std::vector<Problem>& problems) {
  if (values.count("fold") == 0) return;
  const std::string text = values["fold"].as<std::string>();
  if (text != "on" && text != "off") {
    problems.push_back({"--fold", "must be on or off, is \"" + text + "\""});
  }
  simulation.fold = text != "off";
}

void read_seed(const po::variables_map& values, ExperimentOptions& simulation,
               std::vector<Problem>& problems) {
  if (values.count("seed") == 0) return;
  const std::string text = values["seed"].as<std::string>();
  const auto seed = number_in<std::uint64_t>(text);
  if (!seed) problems.push_back({"--seed", "must be a whole number, is \"" + text + "\""});
  if (seed) simulation.seed = *seed;
}

// Reads what to run and what to write.
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
  options.source.software = text("software");
  options.source.pass = text("pass");
  options.source.transport = text("transport");
  options.source.chip = text("chip");
  options.source.library = text("library");
  if (values.count("set") != 0) {
    options.source.overrides = values["set"].as<std::vector<std::string>>();
  }
  if (const std::string family = text("as"); !family.empty()) {
    options.source.overrides.push_back("model.as=" + family);
  }
  options.trace = read_trace_request(line, problems);
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  refuse_same_output(line, "trace", "json", problems);
  options.sensitivity_plot =
      read_output_path(line, "plot-sensitivity", OutputFormat::kSvg, problems);
  refuse_same_output(line, "trace", "plot-sensitivity", problems);
  refuse_same_output(line, "json", "plot-sensitivity", problems);
  options.html = read_html_path(line, {"trace", "json", "plot-sensitivity"}, problems);
  options.timeline_plot = read_output_path(line, "plot-timeline", OutputFormat::kSvg, problems);
  for (const char* const other : {"trace", "json", "html", "plot-sensitivity"}) {
    refuse_same_output(line, other, "plot-timeline", problems);
  }
  options.sensitivity = values.count("sensitivity") != 0 || !options.sensitivity_plot.empty();
  options.breakeven = text("breakeven");
  options.require_fit = values.count("require-fit") != 0;
  if (const auto headroom = read_headroom(line, problems)) {
    options.headroom = *headroom;
    if (!options.require_fit) {
      problems.push_back({"--headroom", "needs --require-fit, which asks whether the plan fits"});
    }
  }
  options.yes = values.count("yes") != 0;
  return options;
}

// How to simulate it.
void read_simulation(const po::variables_map& values, RunOptions& options,
                     std::vector<Problem>& problems) {
  ExperimentOptions& simulation = options.simulation;
  read_fields_of_simulation(values, simulation, problems);
  check_packets(values, options, problems);
  read_transport(values, options.source.transport, simulation, problems);
  read_seed(values, simulation, problems);
  read_fold(values, simulation, problems);
  // A trace shows one rank of each program unless it is told which.
  const bool has_trace = !options.trace.path.empty();
  simulation.record_links = has_trace;
  simulation.share_timelines = has_trace;
  simulation.record_each_role = has_trace && values.count("trace-ranks") == 0;
  if (!has_trace && values.count("trace-ranks") != 0) {
    problems.push_back({"--trace-ranks", "needs --trace, which says where the trace goes"});
  }
  if (simulation.fidelities.size() > 1 && (options.sensitivity || !options.breakeven.empty())) {
    problems.push_back({options.sensitivity ? "--sensitivity" : "--breakeven",
                        "is of one run: give one --fidelity instead of all"});
  }
  if (has_trace && simulation.fidelities.size() > 1) {
    problems.push_back({"--trace", "shows one run: give one --fidelity instead of all"});
  }
  const bool draws = !options.html.empty() || !options.timeline_plot.empty();
  if (draws && simulation.fidelities.size() > 1) {
    problems.push_back({options.html.empty() ? "--plot-timeline" : "--html",
                        "shows one run: give one --fidelity instead of all"});
  }
}

// Returns the word for the value in help: "N", "SIZE", "pipelined|stepped".
std::string placeholder_of(const AnyField& field) {
  std::string text = field.accepts();
  if (text.starts_with("a whole number")) return "N";
  if (text.starts_with("a size")) return "SIZE";
  text.erase(std::min(text.find(", or several"), text.size()));
  for (const std::string_view between : {", ", " or "}) {
    for (std::size_t at = 0; (at = text.find(between, at)) != std::string::npos;) {
      text.replace(at, between.size(), "|");
    }
  }
  return field.name() == "fidelity" ? text + "|all" : text;
}

// "packets only: bytes of a packet (default: 4096)".
std::string help_of_flag(const AnyField& field) {
  std::string help(field.doc().help);
  if (help.ends_with('.')) help.pop_back();
  help[0] = small_letter(help[0]);
  if (field.name() == "fidelity") help += "; all: the three side by side";
  if (acts_on_packets(field)) help = "packets only: " + help;
  if (!takes_value(field)) return help;
  const auto value = simulation_fields().default_of(field);
  return help + " (default: " + value.value_or(std::string(field.doc().unset)) + ")";
}

void add_flag(const AnyField& field, po::options_description& options) {
  const std::string name = flag_of(field);
  const std::string help = help_of_flag(field);
  if (!takes_value(field)) {
    options.add_options()(name.c_str(), help.c_str());
    return;
  }
  auto* const value = po::value<std::string>()->value_name(placeholder_of(field));
  options.add_options()(name.c_str(), value, help.c_str());
}

}  // namespace

po::options_description run_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("model", text("NAME|FILE"),
      "catalog name, config.json of Hugging Face or the folder that holds it, or a model file");
  add("as", text("FAMILY"),
      "read that config.json as one of this family, of which its own is another name: --as llama");
  add("cluster", text("NAME|FILE"), "catalog name or a cluster file");
  add("chip", text("NAME|FILE"), "chip (default: the cluster's)");
  add("library", text("NAME|FILE"), "communication library (default: the chip's); ideal for none");
  add("plan", text("KEYS|NAME|FILE"),
      "keys such as tp=8,pp=4,dp=16,global-batch=1024, or a catalog name or a file");
  add_group_options(options);
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change one field of the experiment: plan.tp=4; can be repeated");
  for (const auto& field : simulation_fields().fields()) add_flag(*field, options);
  add("transport", text("NAME[,KEYS]"),
      "packets only: what moves them, such as dcqcn,rto=1ms: stepsim help transport (default: "
      "queues without one)");
  add("yes", "packets only: run even if there are more than 10^9 packet-hops");
  add("seed", text("N"), "seed of the random numbers that jitter draws (default: 0)");
  add("fold", text("on|off"),
      "simulate one of all ranks that do the same at the same time, for the same result; off: "
      "every rank (default: on)");
  add("export", text("KIND PATH"),
      "write the work of the step for others: chakra FOLDER, an .et file a rank; goal FILE, a "
      "schedule of LogGOPSim; kineto FOLDER, the trace as PyTorch's profiler writes it. Or the "
      "plan as settings of a trainer: megatron FILE.sh, torchtitan FILE.toml, maxtext FILE.yml, "
      "nemo FILE.yaml");
  add_trace_options(options, "write a trace");
  add("trace-ranks", text("LIST"),
      "ranks in the trace: 0,8-15 (default: one of each pipeline stage)");
  add_json_option(options);
  add_html_option(options);
  add("sensitivity",
      "also say what 10 % less and 10 % more of each thing that one could buy would change");
  add("plot-sensitivity", text("FILE"), "the same as a picture; FILE ends in .svg");
  add("breakeven", text("NAME"),
      "also say from where on more of one of these no longer helps: nic_bandwidth");
  add("plot-timeline", text("FILE"),
      "draw the pipeline over time, and the memory of a rank of each stage; FILE ends in .svg");
  add("require-fit", "exit with status 1 if the plan does not fit in memory with --headroom");
  add_headroom_option(options);
  add_input_option(options);
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
    say_moved_keys(source.experiment.empty() ? source.plan : source.experiment, loaded.moved_keys);
    request.experiment = std::move(loaded.experiment);
    request.topology = std::move(loaded.topology);
    request.record = std::move(loaded.record);
    request.publication = std::move(loaded.publication);
    options.simulation = std::move(loaded.simulation);
    ranks = static_cast<std::uint32_t>(request.experiment.plan.mesh.ranks());
  } catch (const ConfigError& error) {
    of_experiment = error.problems();
  }
  read_simulation(line.options, options, problems);
  std::ranges::move(of_experiment, std::back_inserter(problems));
  if (line.options.count("trace-ranks") != 0) {
    const std::vector<std::uint32_t> traced = read_rank_list(
        line.value("trace-ranks"),
        {.option = "--trace-ranks", .what = "ranks of the plan", .count = ranks}, problems);
    std::vector<RankId>& recorded = options.simulation.recorded_ranks;
    for (const std::uint32_t rank : traced) recorded.emplace_back(rank);
    std::ranges::sort(recorded);
  }
  throw_if_any(std::move(problems));
  return request;
}

}  // namespace stepsim
