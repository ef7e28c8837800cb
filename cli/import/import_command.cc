#include "cli/import/import_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/outputs.h"
#include "cli/run/replay_run.h"
#include "cli/session/standard_output.h"
#include "import/astra/astra.h"
#include "import/importer.h"
#include "import/job_file.h"
#include "proto/hugging_face/import_model.h"
#include "sim/base/error.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

// The options that say how a file is read; each importer takes some of them.
constexpr std::array<std::string_view, 9> kReadingOptions = {
    "as", "groups", "ranks", "op", "hardware", "step", "model", "set", "verbose"};

po::options_description import_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("to", text("FILE"), "write what was read: a file that stepsim run takes, or a table");
  add("as", text("FAMILY"),
      "hf: read the file as one of this family, of which its own is another name");
  add("groups", text("FILE"), "chakra: comm_group.json, the ranks of each group");
  add("ranks", text("N"),
      "chakra, kineto: one file stands for so many ranks that do the same; nccl-topology: machines "
      "side by side; others: how many there are, if the file does not say");
  add("op", text("OP"), "nccl-tests: the collective of a log that does not name it");
  add("hardware", text("NAME"), "nccl-tests: the devices of a log that does not name them");
  add("step", text("N"), "kineto: the profiled step, counted from 0");
  add("model", text("MODEL"), "trainers: a model of the catalog, for settings that have none");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "trainers: a field that goes over what was read, as in plan.tp=8");
  add("verbose", "trainers: list also the keys that change no step's time");
  add_replay_options(options);
  add_json_option(options);
  add_input_option(options);
  return options;
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const Importer& importer : importers()) names.emplace_back(importer.kind);
  names.emplace_back("astra-cluster");
  names.emplace_back("families");
  return names;
}

OutputFormat format_of(ImportResult result) {
  switch (result) {
    case ImportResult::kModel:
    case ImportResult::kExperiment:
    case ImportResult::kCluster:
    case ImportResult::kAlgorithm:
      return OutputFormat::kTextproto;
    case ImportResult::kTable:
      return OutputFormat::kCsv;
    case ImportResult::kJob:
      break;
  }
  return OutputFormat::kJson;
}

std::optional<std::uint32_t> read_count(const CommandLine& line, const std::string& option,
                                        std::int64_t low, std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const auto number = read_whole_number(line, option, low, 1 << 20, problems);
  if (!number) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

// Returns whether what says where a job runs is meant for a replay, not for the reader.
bool is_replayed(const Importer& importer) {
  const auto& options = importer.options;
  return std::ranges::find(options, "chip") == options.end();
}

ImportRequest read_import_request(const CommandLine& line, const Importer& importer,
                                  std::vector<Problem>& problems) {
  ImportRequest request;
  request.files.assign(line.words.begin() + 1, line.words.end());
  for (const std::string_view option : kReadingOptions) {
    const std::string name(option);
    const bool is_taken = std::ranges::find(importer.options, option) != importer.options.end();
    if (line.options.count(name) != 0 && !is_taken) {
      problems.push_back(
          {"--" + name, fmt::format("stepsim import {} does not take it", importer.kind)});
    }
  }
  request.as = line.value("as");
  request.groups = line.value("groups");
  request.ranks = read_count(line, "ranks", 1, problems).value_or(0);
  request.op = line.value("op");
  request.hardware = line.value("hardware");
  request.step = read_count(line, "step", 0, problems);
  request.model = line.value("model");
  if (line.options.count("set") != 0) {
    request.sets = line.options["set"].as<std::vector<std::string>>();
  }
  request.verbose = line.options.count("verbose") != 0;
  if (!is_replayed(importer)) {
    request.cluster = line.value("cluster");
    request.chip = line.value("chip");
    request.library = line.value("library");
  }
  return request;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += "note: " + note + "\n";
  return text;
}

std::string facts_text(Json facts, const std::vector<std::string>& notes,
                       const std::string& replayed) {
  facts["notes"] = notes;
  std::string text = json_text(facts);
  if (!replayed.empty()) {
    // The times of a replay are exact texts, which a value of JSON would round.
    text.pop_back();
    text += ",\n\"replay\": " + replayed.substr(0, replayed.size() - 1) + "}";
  }
  return text + "\n";
}

struct ImportOutputs {
  std::string to;
  std::string json;
};

ExitStatus finish(const Importer& importer, Imported imported, const ReplayRequest& replay,
                  const ImportOutputs& paths) {
  std::string shown = imported.text;
  std::string written = imported.text;
  std::string replayed_json;
  if (imported.job) {
    Json facts = job_facts(*imported.job);
    for (const auto& [key, value] : imported.facts.items()) facts[key] = value;
    imported.facts = std::move(facts);
    shown = job_report(*imported.job) + imported.report + notes_text(imported.notes);
    if (!paths.to.empty()) written = job_text(*imported.job);
    if (replay.asked()) {
      const Replayed replayed = run_replay(*imported.job, replay);
      shown += "\n" + replayed.report;
      replayed_json = replayed.json;
    }
  }
  imported.facts["kind"] = std::string(importer.kind);
  const std::string json =
      paths.json.empty() ? "" : facts_text(imported.facts, imported.notes, replayed_json);
  Outputs outputs;
  outputs.write(paths.to, written);
  outputs.write(paths.json, json);
  outputs.commit();
  if (!imported.job && !paths.to.empty()) shown = notes_text(imported.notes);
  if (importer.result == ImportResult::kTable && paths.to.empty()) {
    print_error(notes_text(imported.notes));
  }
  outputs.print(paths.json == "-" ? json : shown);
  return outputs.end(ExitStatus::kDone);
}

// An experiment or a cluster takes only those options of a replay that say where it runs.
void refuse_replay_options(const CommandLine& line, const std::string& kind,
                           std::vector<Problem>& problems) {
  for (const char* const option : {"retime", "rendezvous", "fidelity", "granularity", "compat",
                                   "astra-network", "astra-system"}) {
    if (line.options.count(option) != 0) {
      problems.push_back(
          {std::string("--") + option,
           "stepsim import " + kind + " has nothing to replay; stepsim run takes it"});
    }
  }
}

ExitStatus print_astra_cluster(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.words.size() != 3) {
    problems.push_back({"FILES", "must be network.yml and the JSON of the system"});
  }
  const std::string to = read_output_path(line, "to", OutputFormat::kTextproto, problems);
  throw_if_any(problems);
  const std::vector<AstraDimension> dimensions = read_astra_network(line.words[1], problems);
  const AstraSystem system = read_astra_system(line.words[2], problems);
  throw_if_any(std::move(problems));
  std::string text;
  for (const std::string& note : system.notes) text += "# " + note + "\n";
  text += astra_cluster(dimensions, system);
  Outputs outputs;
  outputs.write(to, text);
  outputs.commit();
  outputs.print(to.empty() ? text : "");
  return outputs.end(ExitStatus::kDone);
}

ExitStatus run_import_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, import_option_list(), problems);
  const std::string kind = line.words.empty() ? "" : line.words[0];
  if (kind == "families" && line.words.size() == 1) {
    throw_if_any(std::move(problems));
    print(families_text());
    return ExitStatus::kDone;
  }
  if (kind == "astra-cluster") return print_astra_cluster(line, problems);
  const Importer* const importer = find_importer(kind);
  if (importer == nullptr) {
    problems.push_back({"KIND", line.words.empty()
                                    ? "must be given: one of " + comma_separated(kinds())
                                    : "must be one of " + comma_separated(kinds()) + "; is \"" +
                                          kind + "\"" + did_you_mean(kind, kinds())});
    throw ConfigError(std::move(problems));
  }
  const ImportRequest request = read_import_request(line, *importer, problems);
  if (request.files.empty()) {
    problems.push_back({"FILE", "must be given: " + std::string(importer->files)});
  } else if (importer->most_files != 0 && request.files.size() > importer->most_files) {
    problems.push_back({request.files[importer->most_files],
                        fmt::format("stepsim import {} takes one file", kind)});
  }
  const bool may_replay = is_replayed(*importer);
  const ReplayRequest replay = may_replay ? read_replay_request(line, problems) : ReplayRequest{};
  if (!may_replay) refuse_replay_options(line, kind, problems);
  if (replay.asked() && importer->result != ImportResult::kJob) {
    problems.push_back({"--cluster", "stepsim import " + kind + " has nothing to replay"});
  }
  const ImportOutputs paths = {
      .to = read_output_path(line, "to", format_of(importer->result), problems),
      .json = read_output_path(line, "json", OutputFormat::kJson, problems)};
  refuse_same_output(line, "to", "json", problems);
  throw_if_any(std::move(problems));
  return finish(*importer, importer->read(request), replay, paths);
}

std::vector<CommandResult> import_command_results() {
  return {{"a trace that is replayed", &replayed_results()}};
}

}  // namespace

constinit const Subcommand kImportSubcommand = {
    .name = "import",
    .arguments = "KIND FILE...",
    .summary = "read traces, workloads and settings of other software",
    .description =
        R"(stepsim import reads files of other software: models, traces, workloads, settings of trainers.

Usage:
  stepsim import hf CONFIG.json [--as FAMILY] > my-model.textproto
  stepsim import chakra FILE.et... | FOLDER [--cluster C] [--to WORKLOAD.json]
  stepsim import kineto TRACE.json[.gz]... | FOLDER [--step N] [--ranks N] [--cluster C]
  stepsim import aicb WORKLOAD.txt | goal SCHEDULE.goal [--cluster C] [--to WORKLOAD.json]
  stepsim import nccl-tests LOG [--op OP] [--hardware NAME] [--ranks N] > collectives.csv
  stepsim import astra-cluster NETWORK.yml SYSTEM.json > cluster.textproto
  stepsim import nccl-topology TOPOLOGY.xml [--ranks N] [--chip C] > cluster.textproto
  stepsim import slurm-topology topology.conf [--cluster NODES] [--chip C] > cluster.textproto
  stepsim import ns3-topology FILE | htsim-topology FILE.topo [--chip C] > cluster.textproto
  stepsim import msccl ALGORITHM.xml > algorithm.textproto
  stepsim import megatron LOG | SCRIPT [--ranks N] [--cluster C] [--to EXPERIMENT.textproto]
  stepsim import torchtitan CONFIG.toml | .json [--ranks N] [--cluster C] ...
  stepsim import maxtext CONFIG.yml.. | SCRIPT [KEY=VALUE..] ...
  stepsim import nemo CONFIG.yaml [KEY=VALUE..] ...
  stepsim import deepspeed DS_CONFIG.json [HUGGING_FACE_FOLDER] [--model M] ...
  stepsim import llama-factory CONFIG.yaml [DS_CONFIG.json] [KEY=VALUE..] ...
  stepsim import ms-swift SCRIPT | CONFIG.yaml [DS_CONFIG.json] [KEY=VALUE..] ...
  stepsim import primus EXPERIMENT.yaml [MODEL.yaml..] [KEY=VALUE..] ...
  stepsim import nanotron CONFIG.yaml [KEY=VALUE..] ...
  stepsim import families

Traces and workloads become a graph of work. --cluster replays it there; --to writes it as a file
that `stepsim run WORKLOAD.json --cluster C` takes. Networks become clusters, algorithms what
`stepsim collective --algorithm FILE` takes. Settings of trainers become an experiment, which
`stepsim run` takes. What could not be told, or has no counterpart, is listed. `families` lists the
families of models that hf reads. docs/import.md has all kinds.
)",
    .options = import_option_list,
    .run = run_import_command,
    .results = import_command_results,
};

}  // namespace stepsim
