#include "cli/goodput/goodput_options.h"

#include <cmath>

#include "cli/command_line.h"
#include "cli/html_option.h"
#include "proto/catalog/load_failures.h"
#include "proto/messages/message_file.h"
#include "sim/base/csv_table.h"
#include "sim/fields/field_assignments.h"
#include "sim/fields/quantity_field.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostRuns = 1'000'000;
constexpr std::int64_t kMostSpareNodes = 1 << 20;
constexpr std::int64_t kMostJobChips = 1 << 24;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr std::int64_t kMostShrink = 64;

std::optional<Duration> read_time(const CommandLine& line, const std::string& option, bool may_be_0,
                                  std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const std::string text = line.value(option);
  const auto time = Text<Duration>::read(text);
  if (time && (may_be_0 || *time > Duration())) return time;
  problems.push_back(
      {"--" + option, refused_text(Text<Duration>::accepts(), text, Text<Duration>::hint(text))});
  return std::nullopt;
}

void read_job(const CommandLine& line, GoodputRequest& request, std::vector<Problem>& problems) {
  ExperimentSource& source = request.source;
  if (!line.words.empty()) source.experiment = line.words[0];
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "stepsim goodput takes one EXPERIMENT"});
  }
  source.model = line.value("model");
  source.cluster = line.value("cluster");
  source.plan = line.value("plan");
  source.software = line.value("software");
  if (line.options.count("set") != 0) {
    source.overrides = line.options["set"].as<std::vector<std::string>>();
  }
  request.step_time = read_time(line, "step-time", false, problems);
  const auto chips = read_whole_number(line, "chips", 1, kMostJobChips, problems);
  const auto node = read_whole_number(line, "chips-per-node", 1, kMostJobChips, problems);
  request.chips = chips.value_or(1);
  request.chips_per_node = std::min(node.value_or(8), request.chips);
  if (line.options.count("step-time") == 0) {
    for (const char* option : {"chips", "chips-per-node"}) {
      if (line.options.count(option) == 0) continue;
      problems.push_back({std::string("--") + option, "must stand with --step-time"});
    }
    return;
  }
  if (line.options.count("chips") == 0) {
    problems.push_back({"--chips", "must be given with --step-time"});
  }
  for (const char* option : {"model", "cluster", "plan", "software", "set", "shrink", "tokens"}) {
    if (line.options.count(option) == 0) continue;
    problems.push_back({std::string("--") + option, "must not stand with --step-time"});
  }
  if (!source.experiment.empty()) {
    problems.push_back({source.experiment, "must not stand with --step-time"});
  }
}

void read_length(const CommandLine& line, GoodputRequest& request, std::vector<Problem>& problems) {
  request.length = {.tokens = read_positive(line, "tokens", 1e18, problems),
                    .steps = read_whole_number(line, "steps", 1, kMostSteps, problems),
                    .days = read_positive(line, "days", 1e5, problems)};
  const auto given =
      line.options.count("tokens") + line.options.count("steps") + line.options.count("days");
  if (given > 1) problems.push_back({"--tokens", "must not stand with --steps or --days"});
  const auto& published = request.table.published;
  if (given > 0) return;
  if (published && !request.step_time) {
    request.length.days = published->days;
    return;
  }
  problems.push_back(
      {"--tokens", "must be given, as in 15.6e12; or --steps, or --days without failures"});
}

void read_table(const CommandLine& line, GoodputRequest& request, std::vector<Problem>& problems) {
  if (line.options.count("failures") == 0) {
    problems.push_back({"--failures", "must be given: a table of the catalog or a file"});
  } else {
    try {
      request.table = load_failures(line.value("failures"));
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  FailureTable& table = request.table;
  request.table_is_of_catalog = !looks_like_file(line.value("failures"));
  request.checkpoint_keys =
      read_assignments(line.value("checkpoint"), checkpoint_fields(), &table.checkpoint,
                       {.option = "--checkpoint"}, problems);
  request.restart_keys = read_assignments(line.value("restart"), restart_fields(), &table.restart,
                                          {.option = "--restart"}, problems);
  request.gives_spares = line.options.count("spares") != 0;
  request.gives_repair = line.options.count("repair") != 0;
  if (const auto spares = read_whole_number(line, "spares", 0, kMostSpareNodes, problems)) {
    table.spares = *spares;
  }
  if (const auto repair = read_time(line, "repair", true, problems)) {
    for (FailureClass& failure : table.classes) {
      if (failure.loses != FailureScope::kNothing) failure.repair = *repair;
    }
  }
}

void require_experiment(const CommandLine& line, GoodputRequest& request,
                        std::vector<Problem>& problems) {
  ExperimentSource& source = request.source;
  const bool has_parts = !source.model.empty() || !source.cluster.empty();
  if (line.options.count("step-time") != 0 || !source.experiment.empty() || has_parts) return;
  if (request.table.published) {
    source.experiment = request.table.published->experiment;
  } else if (line.options.count("failures") != 0) {
    problems.push_back({"EXPERIMENT",
                        "must be given: a name of the catalog or a file; or --model and "
                        "--cluster; or --step-time and --chips"});
  }
}

// Grams of CO2 a kilowatt-hour, or a file that has them over time.
void read_carbon(const CommandLine& line, GoodputRequest& request, std::vector<Problem>& problems) {
  if (line.options.count("carbon") == 0) return;
  const std::string text = line.value("carbon");
  const auto grams = number_in<double>(text);
  if (!text.ends_with(".csv") && !(grams && *grams >= 0 && *grams <= kMostGrams)) {
    problems.push_back(
        {"--carbon", "must be grams of CO2 a kilowatt-hour, 0 to " + write_double(kMostGrams) +
                         ", or a file ending in .csv, is \"" + shortened(text) + "\""});
    return;
  }
  try {
    request.carbon = grams ? constant_carbon(*grams) : carbon_of(read_csv(text), problems);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

void read_energy(const CommandLine& line, GoodputRequest& request, std::vector<Problem>& problems) {
  read_carbon(line, request, problems);
  constexpr double kMostPue = 10;
  if (const auto pue = read_positive(line, "pue", kMostPue, problems)) {
    request.pue = *pue;
    if (*pue < 1) problems.push_back({"--pue", "must be at least 1, is " + line.value("pue")});
  }
  for (const char* option : {"carbon", "pue"}) {
    if (line.options.count(option) == 0 || line.options.count("step-time") == 0) continue;
    problems.push_back({std::string("--") + option,
                        "must not stand with --step-time: which chips it is of is not known"});
  }
}

void refuse_unknown_size(const GoodputRequest& request, std::vector<Problem>& problems) {
  const CheckpointPolicy& policy = request.table.checkpoint;
  if (!request.step_time || policy.stall || policy.bytes) return;
  problems.push_back({"--checkpoint",
                      "must have stall= or bytes= with --step-time, which comes "
                      "without a model"});
}

}  // namespace

OptionList goodput_option_list() {
  po::options_description options("Options of stepsim goodput", 100, 50);
  auto add = options.add_options();
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  add("failures", text("NAME|FILE"), "how machines fail: stepsim catalog failures");
  add("tokens", text("N"), "length of the training, as in 15.6e12");
  add("steps", text("N"), "the same in steps");
  add("days", text("D"), "the same in days without failures");
  add("checkpoint", text("KEYS"),
      "every=auto|TIME,to=host+peer+storage,async=true,...: stepsim help failures "
      "checkpoint.every");
  add("restart", text("KEYS"), "scheduling, loading, compile, warmup: times of a restart");
  add("spares", text("N"), "nodes that stand by (default: the table's)");
  add("repair", text("TIME"), "time until a node is back, of all failures");
  add("shrink", text("N"), "go on with up to N replicas less where nodes are missing (default: 0)");
  add("runs", text("N"), "runs (default: 1000)");
  add("seed", text("N"), "seed of all that is random (default: 1)");
  add("chip-hour", text("PRICE"), "price of a chip for an hour");
  add("carbon", text("GRAMS|FILE.csv"),
      "grams of CO2 a kilowatt-hour; a file has them by hour of the day or by date");
  add("pue", text("X"), "power of the facility over that of the chips (default: 1, chips alone)");
  add("no-curves", "leave out what other intervals, spares and rates would give");
  add("model", text("NAME|FILE"), "the model, without an EXPERIMENT or instead of its own");
  add("cluster", text("NAME|FILE"), "the cluster, likewise");
  add("plan", text("KEYS"), "the plan, likewise: stepsim help plan");
  add("software", text("NAME|FILE[,KEYS]"), "what runs it: stepsim help software");
  add("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"),
      "change a field of the experiment");
  add("step-time", text("TIME"), "of every step, without a model; with --chips");
  add("chips", text("N"), "chips of the job, with --step-time");
  add("chips-per-node", text("N"), "chips of a node, with --step-time (default: 8)");
  add("plot", text("F.svg"), "draw one run, where the time goes, and the curves");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

GoodputRequest read_goodput_request(const std::vector<std::string>& arguments,
                                    std::vector<Problem>& problems) {
  const CommandLine line = read_command_line(arguments, goodput_option_list(), problems);
  GoodputRequest request;
  read_job(line, request, problems);
  read_table(line, request, problems);
  require_experiment(line, request, problems);
  read_length(line, request, problems);
  if (line.options.count("failures") != 0) refuse_unknown_size(request, problems);
  request.shrink = read_whole_number(line, "shrink", 0, kMostShrink, problems).value_or(0);
  request.runs.runs = read_whole_number(line, "runs", 1, kMostRuns, problems).value_or(1000);
  const auto seed = read_whole_number(line, "seed", 0, std::int64_t{1} << 53, problems);
  request.runs.seed = static_cast<std::uint64_t>(seed.value_or(1));
  request.price = read_positive(line, "chip-hour", 1e6, problems);
  read_energy(line, request, problems);
  request.has_curves = line.options.count("no-curves") == 0;
  request.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  request.plot = read_output_path(line, "plot", OutputFormat::kSvg, problems);
  refuse_same_output(line, "json", "plot", problems);
  request.html = read_html_path(line, {"json", "plot"}, problems);
  request.asked = asked_json(line);
  return request;
}

}  // namespace stepsim
