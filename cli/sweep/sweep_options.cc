#include "cli/sweep/sweep_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iterator>
#include <utility>

#include "cli/help/moved_keys.h"
#include "cli/html_option.h"
#include "cli/sweep/sweep_table.h"
#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"
#include "traces/files/output_place.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::uint64_t kMostShards = 1'000'000;

std::vector<std::string> texts_of(const CommandLine& line, const std::string& option) {
  if (line.options.count(option) == 0) return {};
  return line.options[option].as<std::vector<std::string>>();
}

// Takes "x=...", "y=..." and "series=..." out of the words.
void take_plot_words(std::vector<std::string>& words, SweepPlot& plot) {
  const std::pair<std::string_view, std::string*> parts[] = {
      {"x=", &plot.x}, {"y=", &plot.y}, {"series=", &plot.series}};
  for (const auto& [beginning, value] : parts) {
    std::erase_if(words, [&, &beginning = beginning, &value = value](const std::string& word) {
      if (!word.starts_with(beginning)) return false;
      *value = word.substr(beginning.size());
      return true;
    });
  }
}

SweepOutputs read_outputs(CommandLine& line, std::vector<Problem>& problems) {
  SweepOutputs outputs;
  outputs.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  outputs.csv = read_output_path(line, "csv", OutputFormat::kCsv, problems);
  outputs.plot.file = read_output_path(line, "plot", OutputFormat::kSvg, problems);
  outputs.html = read_html_path(line, {"json", "csv", "plot"}, problems);
  for (const auto& [one, other] : {std::pair("json", "csv"), {"json", "plot"}, {"csv", "plot"}}) {
    refuse_same_output(line, one, other, problems);
  }
  for (const char* option : {"json", "csv", "plot", "html"}) {
    refuse_same_output(line, "store", option, problems);
  }
  take_plot_words(line.words, outputs.plot);
  const SweepPlot& plot = outputs.plot;
  if (plot.file.empty() && outputs.html.empty() && outputs.json.empty() &&
      !(plot.x + plot.y + plot.series).empty()) {
    problems.push_back(
        {"--plot", "must be given with x=, y= and series=, which say what it shows, or --html"});
  }
  const std::vector<std::string> columns = sweep_columns();
  if (!plot.y.empty() && std::ranges::count(columns, plot.y) == 0) {
    problems.push_back(
        {"y", "must be a column of the table, is \"" + plot.y + "\"" +
                  did_you_mean(plot.y, columns, "There are: " + comma_separated(columns))});
  }
  return outputs;
}

void check_plot_axes(const SweepPlot& plot, const SweepSpace& space,
                     std::vector<Problem>& problems) {
  const std::vector<std::string> paths = space.paths();
  for (const auto& [name, path] : {std::pair("x", plot.x), {"series", plot.series}}) {
    if (path.empty() || std::ranges::count(paths, path) > 0) continue;
    problems.push_back(
        {name, "must be a field of --over, is \"" + path + "\"" + did_you_mean(path, paths)});
  }
  if (!plot.file.empty() && paths.empty()) {
    problems.push_back({"--plot", "needs a field that varies: --over"});
  }
}

// What was asked for, as JSON: equal for all shards of one sweep.
std::string description_of(const ExperimentSource& source, const std::vector<std::string>& axes) {
  Json object = Json::object();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) object[name] = value;
  };
  add("experiment", source.experiment);
  add("model", source.model);
  add("cluster", source.cluster);
  add("chip", source.chip);
  add("library", source.library);
  add("plan", source.plan);
  add("software", source.software);
  add("pass", source.pass);
  add("transport", source.transport);
  if (!source.overrides.empty()) object["set"] = source.overrides;
  object["over"] = axes;
  return json_text(object);
}

ExperimentSource read_source_of_sweep(const CommandLine& line, std::vector<Problem>& problems) {
  ExperimentSource source{.has_axes = true};
  if (!line.words.empty()) source.experiment = line.words.front();
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one EXPERIMENT"});
  }
  source.model = line.value("model");
  source.cluster = line.value("cluster");
  source.chip = line.value("chip");
  source.library = line.value("library");
  source.plan = line.value("plan");
  source.software = line.value("software");
  source.pass = line.value("pass");
  source.transport = line.value("transport");
  source.overrides = texts_of(line, "set");
  const bool has_any = !source.experiment.empty() || !source.model.empty() ||
                       !source.cluster.empty() || !source.plan.empty();
  if (!has_any) {
    problems.push_back({"EXPERIMENT",
                        "must be given: a file, a catalog name, or --model, --cluster and --plan; "
                        "see stepsim help sweep"});
  }
  return source;
}

// What SQLite calls an address: its options would count for something else than the file.
std::string read_store(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.value("store").starts_with("file:")) {
    problems.push_back(
        {"--store", "must be the name of a file, is \"" + line.value("store") + "\""});
    return "";
  }
  return read_output_path(line, "store", OutputFormat::kStore, problems);
}

}  // namespace

SweepShard read_shard(std::string_view text, std::vector<Problem>& problems) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto index = number_in<std::uint64_t>(text.substr(0, slash));
    const auto count = number_in<std::uint64_t>(text.substr(slash + 1));
    if (index && count && *count >= 1 && *count <= kMostShards && *index <= *count) {
      return {*index % *count, *count};
    }
  }
  problems.push_back({"--shard",
                      "must be I/N, such as 3/7 for the third of seven, with I from 1 to "
                      "N; is \"" +
                          std::string(text) + "\""});
  return {};
}

bool is_merge(const std::vector<std::string>& arguments) {
  return !arguments.empty() && arguments.front() == "merge";
}

po::options_description sweep_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("over", po::value<std::vector<std::string>>()->composing()->value_name("PATH=A,B,.."),
      "an axis: a field and its values; several axes are crossed, several fields of one axis go "
      "together");
  add("store", text("FILE"),
      "keep results in this SQLite file (.sqlite), and run only what is not there");
  add("model", text("NAME|FILE"), "as for stepsim run");
  add("cluster", text("NAME|FILE"), "as for stepsim run");
  add("chip", text("NAME|FILE"), "as for stepsim run");
  add("library", text("NAME|FILE"), "as for stepsim run");
  add("plan", text("KEYS|NAME|FILE"), "as for stepsim run");
  add("software", text("NAME|FILE[,KEYS]"), "as for stepsim run");
  add("pass", text("decode|prefill[,KEYS]"), "as for stepsim run");
  add("transport", text("NAME[,KEYS]"),
      "as for stepsim run, with --set simulation.fidelity=packet; --over transport.name=.. varies "
      "it");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change one field of all points; can be repeated");
  add("jobs", text("N"),
      "run this many points at once (default: as many as the machine has cores; one in each "
      "process that mpirun started)");
  add("shard", text("I/N"), "run the I-th part of N of the points, into a store of its own");
  add("csv", text("FILE"), "write a table of the points");
  add("plot", text("FILE"),
      "draw a picture: --plot F.svg x=PATH y=COLUMN series=PATH (default: the first axis, "
      "step_time_s, all other axes); --html obeys x, y and series too");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

SweepRequest read_sweep_request(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  CommandLine line = read_command_line(arguments, sweep_option_list(), problems);
  SweepOutputs outputs = read_outputs(line, problems);
  ExperimentSource source = read_source_of_sweep(line, problems);
  const std::string store = read_store(line, problems);
  SweepShard shard;
  if (line.options.count("shard") != 0) shard = read_shard(line.value("shard"), problems);
  if (shard.count > 1 && store.empty()) {
    problems.push_back({"--store", "must be given with --shard: a file of this shard alone"});
  }
  const std::size_t jobs = read_threads(line, "jobs", problems);
  std::vector<std::string> axes;
  bool has_file = true;
  try {
    if (!source.experiment.empty()) {
      AxesOfFile of_file = load_axes(source.experiment);
      say_moved_keys(source.experiment, of_file.moved_keys);
      axes = std::move(of_file.over);
    }
  } catch (const ConfigError& error) {
    has_file = false;
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  std::ranges::move(texts_of(line, "over"), std::back_inserter(axes));
  SweepSpace space(axes, "--over", problems);
  if (axes.empty() && has_file) {
    problems.push_back({"--over",
                        "must be given, as in --over plan.tp=1,2,4; or `over` in the "
                        "file of the experiment"});
  }
  check_plot_axes(outputs.plot, space, problems);
  throw_if_any(std::move(problems));
  const std::string description = description_of(source, axes);
  return {.source = std::move(source),
          .space = std::move(space),
          .description = description,
          .store = store,
          .shard = shard,
          .jobs = jobs,
          .outputs = std::move(outputs)};
}

MergeRequest read_merge_request(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options;
  options.add_options()("store", text("FILE"))("csv", text("FILE"))("plot", text("FILE"));
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  CommandLine line = read_command_line({arguments.begin() + 1, arguments.end()}, options, problems);
  MergeRequest request{
      .inputs = {}, .store = read_store(line, problems), .outputs = read_outputs(line, problems)};
  request.inputs = line.words;
  if (request.store.empty()) {
    problems.push_back({"--store", "must be given: the file that gets the results of all"});
  }
  if (request.inputs.empty()) problems.push_back({"STORE", "must be given, one or more"});
  throw_if_any(std::move(problems));
  return request;
}

}  // namespace stepsim
