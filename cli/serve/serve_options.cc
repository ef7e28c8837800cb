#include "cli/serve/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/command_line.h"
#include "cli/html_option.h"
#include "proto/catalog/engine_releases.h"
#include "proto/catalog/load_mix.h"
#include "proto/catalog/serving_software.h"
#include "proto/load_experiment.h"
#include "proto/plan_text.h"
#include "schedules/plan/keys/key_groups.h"
#include "serving/passes/pool_text.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostReplicas = 4096;
constexpr std::int64_t kMostChips = 1 << 20;

void read_router(const CommandLine& line, ServeOptions& options, std::vector<Problem>& problems) {
  if (line.options.count("router") == 0) return;
  const std::string text = line.value("router");
  if (const auto policy = router_named(text)) {
    options.serving.router = *policy;
    return;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kRouterPolicies; ++i) {
    names.emplace_back(name_of(static_cast<RouterPolicy>(i)));
  }
  problems.push_back({"--router", "must be " + either_of(names) + ", is \"" + shortened(text) +
                                      "\"" + did_you_mean(text, names)});
}

// The value of an option with the keys of the release that it names, if it names one.
std::string with_release_of_chip(const CommandLine& line, const std::string& option,
                                 std::string_view plan, std::vector<Problem>& problems) {
  const std::string given = line.value(option.substr(2));
  const std::string text = given.empty() ? std::string(default_engine().name) : given;
  const std::string experiment = line.words.empty() ? "" : line.words.front();
  if (line.value("cluster").empty() && experiment.empty()) {
    if (text.find('@') == std::string::npos) return text;
    problems.push_back({option,
                        "must stand with --model and --cluster: the defaults of a release "
                        "follow from the chip"});
    return with_release(text, option, {}, problems);
  }
  EngineSetting setting;
  try {
    ClusterSpec cluster;
    std::string keys(plan);
    if (!experiment.empty()) {
      const Experiment own = load_experiment({.experiment = experiment});
      const Ranks& mesh = own.plan.mesh;
      keys += fmt::format(",tp={},pp={},dp={},ep={}", mesh.tp, mesh.pp, mesh.dp, mesh.ep);
      cluster = own.cluster;
    }
    if (!line.value("cluster").empty() || !line.value("chip").empty()) {
      const std::string name = line.value("cluster");
      cluster.chip = name.empty() ? load_chip(line.value("chip"))
                                  : load_cluster(name, {}, line.value("chip")).chip;
    }
    setting = setting_of(keys, cluster.chip.name, cluster.chip.memory_capacity);
  } catch (const ConfigError& error) {
    // Loading the model finds problems of an experiment again.
    if (experiment.empty())
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  return with_release(text, option, setting, problems);
}

// The software of an engine brings the time of its front.
void add_front_time(const CommandLine& line, const ServedModelSource& model, ReplicaGroup& group) {
  if (!model.given() ||
      with_underscores(line.value("engine")).find("front_time") != std::string::npos)
    return;
  const auto software = software_of(model.software, group.engine->name);
  if (software && software->engine == group.engine->name) {
    group.options.host.front_time = software->front_time;
  }
}

// A group of replicas and the plan that holds for it: the keys of --prefill or --decode go over
// those of `plan`.
ReplicaGroup read_own_group(const CommandLine& line, const char* option, const ReplicaGroup& engine,
                            const ServedModelSource& model, std::string& plan,
                            std::vector<Problem>& problems) {
  const std::string name = std::string("--") + option;
  const bool has_model = model.given();
  const PoolKeys keys =
      has_model ? split_pool_keys(line.value(option)) : PoolKeys{"", line.value(option)};
  if (keys.plan.empty()) return read_group(keys.others, name, engine, problems);
  plan = with_plan_keys(plan, keys.plan, name, problems);
  ReplicaGroup of_plan = engine;
  if (problems.empty()) {
    // The defaults of a release follow from the plan, too.
    of_plan = read_engine(with_release_of_chip(line, "--engine", plan, problems), problems);
    add_front_time(line, model, of_plan);
  }
  return read_group(keys.others, name, of_plan, problems);
}

void read_replicas(const CommandLine& line, ServeOptions& options, std::vector<Problem>& problems) {
  const auto given = [&line](const char* option) { return line.options.count(option) != 0; };
  const std::string plan = options.model.plan;
  ReplicaGroup group =
      read_engine(with_release_of_chip(line, "--engine", plan, problems), problems);
  options.model.engine = group.engine->name;
  add_front_time(line, options.model, group);
  group.count = read_whole_number(line, "replicas", 1, kMostReplicas, problems).value_or(1);
  options.serving.replicas = group;
  if (given("prefill") != given("decode")) {
    problems.push_back({given("prefill") ? "--decode" : "--prefill",
                        "must be given too: prefill and decode apart need replicas for both"});
  }
  if (given("prefill") && given("replicas")) {
    problems.push_back({"--replicas",
                        "must not stand with --prefill and --decode, whose workers= "
                        "say how many there are"});
  }
  for (const char* const option : {"decode-step-time", "decode-plan"}) {
    if (!given(option) || given("decode")) continue;
    problems.push_back({std::string("--") + option, "must stand with --prefill and --decode"});
  }
  if (given("prefill")) {
    options.model.part = ServedPart::kPrompts;
    options.serving.replicas =
        read_own_group(line, "prefill", group, options.model, options.model.plan, problems);
  }
  if (given("decode")) {
    std::string own = given("decode-plan") ? line.value("decode-plan") : plan;
    options.serving.decode = read_own_group(line, "decode", group, options.model, own, problems);
    const bool differs = own != options.model.plan || !value_of_plan(own, "cp").empty();
    if (options.model.given() && differs) options.decode_plan = own;
  }
  if (given("decode-step-time")) {
    options.decode_step_time =
        read_step_time(line.value("decode-step-time"), "--decode-step-time", problems);
  }
}

void read_model(const CommandLine& line, ServeOptions& options, std::vector<Problem>& problems) {
  ServedModelSource& model = options.model;
  model = {.model = line.value("model"),
           .cluster = line.value("cluster"),
           .plan = keys_of_replica(line, problems),
           .chip = line.value("chip"),
           .library = line.value("library"),
           .experiment = line.words.empty() ? "" : line.words.front(),
           .software = line.value("software"),
           .engine = {},
           .exact = line.options.count("exact-steps") != 0};
  check_software_name(model.software, problems);
  if (!model.given()) {
    for (const char* const option : {"chip", "library", "software", "exact-steps", "decode-plan"}) {
      if (line.options.count(option) == 0) continue;
      problems.push_back({std::string("--") + option, "must stand with --model and --cluster"});
    }
    if (line.value("transfer") == "network") {
      problems.push_back({"--transfer", "must be a time without --model and --cluster"});
    }
    return;
  }
  for (const char* const option : {"model", "cluster"}) {
    if (!model.experiment.empty() || !line.value(option).empty()) continue;
    problems.push_back({std::string("--") + option, "must be given, as --plan or another part is"});
  }
  if (line.options.count("chips-per-replica") != 0) {
    problems.push_back({"--chips-per-replica", "must not stand with --model, whose plan says it"});
  }
}

// What belongs to one of the models.
void read_served(const CommandLine& line, ServeOptions& options, std::vector<Problem>& problems) {
  if (line.options.count("requests") == 0) {
    problems.push_back({"--requests",
                        "must be given, as in poisson:rate=4,count=1000,input=1024,"
                        "output=128; or --cases F.jsonl"});
  } else {
    for (const std::string& text : line.options["requests"].as<std::vector<std::string>>()) {
      options.sources.push_back(read_request_source(with_mix(text, problems), problems));
    }
  }
  read_model(line, options, problems);
  if (line.options.count("step-time") == 0) {
    if (!options.model.given()) {
      problems.push_back({"--step-time",
                          "must be given: a time, as in 10ms, or linear:base=5ms,"
                          "token=2us,kv=1ns; or --model and --cluster, which are simulated"});
    }
  } else {
    options.step_time = read_step_time(line.value("step-time"), "--step-time", problems);
  }
  read_replicas(line, options, problems);
  read_router(line, options, problems);
}

bool has_host_tier(const ModelReplicas& model) {
  const auto has = [](const ReplicaGroup& group) {
    return group.options.cache.host_blocks > 0 || group.options.cache.host_memory > Bytes(0);
  };
  return has(model.replicas) || (model.decode && has(*model.decode));
}

void refuse_host_memory(const ModelReplicas& model, std::vector<Problem>& problems) {
  const bool any = model.replicas.options.cache.host_memory > Bytes(0) ||
                   (model.decode && model.decode->options.cache.host_memory > Bytes(0));
  if (!any) return;
  problems.push_back({"--engine host-memory",
                      "must stand with --model, which says what a block takes; without one "
                      "host-blocks says how many there are"});
}

void read_transport(const CommandLine& line, ServeOptions& options,
                    std::vector<Problem>& problems) {
  bool moves = false;
  bool has_tier = false;
  for (std::size_t i = 0; i < options.serving.models(); ++i) {
    const ModelReplicas model = options.serving.model(i);
    moves = moves || model.decode;
    has_tier = has_tier || has_host_tier(model);
    if (!options.model.given()) refuse_host_memory(model, problems);
  }
  const std::string transfer = line.value("transfer");
  const std::string host = line.value("host-transfer");
  options.transfer_over_network = transfer == "network";
  if (!transfer.empty() && !moves) {
    problems.push_back({"--transfer", "must stand with --prefill and --decode"});
  } else if (!transfer.empty() && !options.transfer_over_network) {
    options.transfer = read_transfer(transfer, "--transfer", problems);
  }
  if (!host.empty() && !has_tier) {
    problems.push_back({"--host-transfer", "must stand with --engine host-blocks or host-memory"});
  } else if (host == "network" && !options.model.given()) {
    problems.push_back({"--host-transfer", "must be a time without --model and --cluster"});
  } else if (!host.empty() && host != "network") {
    options.host_transfer = read_transfer(host, "--host-transfer", problems);
  } else if (!options.model.given()) {
    options.host_transfer = TimedKvTransport::Rates{};
  }
}

// The arguments of each model: those up to the second --model, those up to the third, ... Options
// that hold for all models go to the first wherever they stand, the cluster's to each.
std::vector<std::vector<std::string>> arguments_by_model(
    const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 12> kOfModel = {
      "model",  "plan",    "pass",   "requests",    "engine",    "replicas",
      "router", "prefill", "decode", "decode-plan", "step-time", "decode-step-time"};
  constexpr std::array<std::string_view, 5> kOfEach = {"cluster", "chip", "library", "software",
                                                       "exact-steps"};
  std::vector<std::vector<std::string>> parts(1);
  std::vector<std::string> of_each;
  po::parsed_options parsed(nullptr);
  const po::options_description options = serve_option_list();
  try {
    const int style = po::command_line_style::unix_style ^ po::command_line_style::allow_guessing;
    parsed =
        po::command_line_parser(arguments).options(options).style(style).allow_unregistered().run();
  } catch (const po::error&) {
    return {arguments};  // whoever reads them says what is wrong
  }
  bool has_model = false;
  for (const auto& option : parsed.options) {
    const bool is_model = option.string_key == "model" && !option.unregistered;
    if (is_model && has_model) parts.emplace_back();
    has_model = has_model || is_model;
    const bool is_own = std::ranges::count(kOfModel, option.string_key) > 0;
    const bool is_of_each = std::ranges::count(kOfEach, option.string_key) > 0;
    std::vector<std::string>& part = is_own ? parts.back() : is_of_each ? of_each : parts.front();
    part.insert(part.end(), option.original_tokens.begin(), option.original_tokens.end());
  }
  if (parts.size() == 1) return {arguments};
  for (std::vector<std::string>& part : parts) {
    part.insert(part.end(), of_each.begin(), of_each.end());
  }
  return parts;
}

void read_others(const std::vector<std::vector<std::string>>& parts, ServeOptions& options,
                 std::vector<Problem>& problems) {
  if (options.step_time && parts.size() > 1) {
    problems.push_back({"--step-time", "must not stand with several models"});
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::vector<Problem> own;
    const CommandLine line = read_command_line(parts[i], serve_option_list(), own);
    ServeOptions& other = options.others.emplace_back();
    read_served(line, other, own);
    other.asked = asked_json(line);
    for (RequestSource& source : other.sources) source.model = static_cast<std::uint32_t>(i);
    options.serving.others.push_back(
        {other.serving.replicas, other.serving.decode, other.serving.router});
    for (Problem& problem : own) {
      problems.push_back(
          {"model " + std::to_string(i + 1) + ": " + problem.field, std::move(problem.message)});
    }
  }
}

// What holds for all models.
void read_run(const CommandLine& line, ServeOptions& options, std::vector<Problem>& problems) {
  read_transport(line, options, problems);
  if (line.options.count("slo") != 0) {
    options.objective = read_objective(line.value("slo"), problems);
  }
  options.chips_per_replica =
      read_whole_number(line, "chips-per-replica", 1, kMostChips, problems).value_or(1);
  const auto seed = read_whole_number(line, "seed", 0, std::int64_t{1} << 53, problems);
  options.serving.seed = static_cast<std::uint64_t>(seed.value_or(1));
  options.requests_out = read_output_path(line, "requests-out", OutputFormat::kCsv, problems);
  options.trace = read_output_path(line, "trace", OutputFormat::kChromeTrace, problems);
  options.serving.records_steps = !options.trace.empty();
  refuse_same_output(line, "json", "trace", problems);
  refuse_same_output(line, "json", "requests-out", problems);
  refuse_same_output(line, "requests-out", "trace", problems);
  options.html = read_html_path(line, {"json", "trace", "requests-out"}, problems);
  options.asked = asked_json(line);
}

void refuse_beside_cases(const CommandLine& line, std::vector<Problem>& problems) {
  for (const auto& [name, value] : line.options) {
    const bool is_fine =
        name == "cases" || name == "json" || name == "max-input" || name == "words";
    if (!is_fine) problems.push_back({"--" + name, "must not stand with --cases"});
  }
}

}  // namespace

std::string keys_of_replica(const CommandLine& line, std::vector<Problem>& problems) {
  const std::string plan = line.value("plan");
  const std::string pass = line.value("pass");
  if (plan.find('=') != std::string::npos) {
    const KeyTexts keys = split_keys_text(plan);
    if (!keys.pass.empty()) {
      problems.push_back({"--plan", "has keys of --pass: " + shortened(keys.pass)});
    }
    if (!keys.software.empty()) {
      problems.push_back(
          {"--plan", "has keys of a training software: leave out " + shortened(keys.software)});
    }
  }
  if (!pass.empty() &&
      (pass.find('=') == std::string::npos || !split_keys_text(pass).plan.empty())) {
    problems.push_back({"--pass", "must be keys of a pass, as in cache_dtype=fp8, is \"" +
                                      shortened(pass) + "\""});
  }
  return plan + (plan.empty() || pass.empty() ? "" : ",") + pass;
}

po::options_description serve_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  add("requests", po::value<std::vector<std::string>>()->value_name("KIND:KEYS"),
      "what is asked: poisson:, gamma:, burst:, closed: or file:; given again for each further "
      "tenant");
  add("engine", text("[NAME[@RELEASE],]KEYS"),
      "scheduler of a replica and its keys (default: vllm; see stepsim help engine); with a "
      "release, as in vllm@0.11 or vllm@0.11/offline, that one's defaults for the chip");
  add("model", text("NAME|FILE"), "the model that is served: steps are simulated passes");
  add("cluster", text("NAME|FILE"), "the chips of a replica");
  add("plan", text("KEYS"), "how a replica divides the model: tp=8, or dp=16,ep=16");
  add("pass", text("KEYS"), "keys of its passes: cache_dtype=fp8; see stepsim help pass");
  add("chip", text("NAME|FILE"), "replaces the cluster's chip");
  add("library", text("NAME|FILE"), "replaces the cluster's communication library");
  add("software", text("NAME"),
      "whose kernels, library and front run: vllm, sglang, trtllm or none (default: the engine's)");
  add("exact-steps", "simulate every step; else steps in between are interpolated");
  add("step-time", text("TIME|linear:KEYS"),
      "how long a step takes, instead of the model's: always the same, or base, token (computed) "
      "and kv (token read)");
  add("replicas", text("N"), "copies of the model behind the router (default: 1)");
  add("router", text("POLICY"), "round-robin (default), least-tokens or prefix-aware");
  add("prefill", text("workers=N,KEYS"),
      "replicas that compute prompts only; with --decode. Keys are those of engines, and of a "
      "plan, "
      "which go over --plan: workers=2,tp=4,cp=2");
  add("decode", text("workers=N,KEYS"),
      "replicas that take over behind the first token; keys as above, those of a plan over "
      "--decode-plan");
  add("decode-step-time", text("TIME|linear:KEYS"), "of decode replicas (default: --step-time)");
  add("decode-plan", text("KEYS"), "how a decode replica divides the model (default: --plan)");
  add("transfer", text("network|TIME|linear:KEYS"),
      "how the KV cache of a prompt comes from prefill to decode: as flows over the cluster's "
      "network, or in a time: base, token (default: 0)");
  add("host-transfer", text("network|TIME|linear:KEYS"),
      "how blocks come back from the host's memory (--engine host-memory): over the links of the "
      "chips to it (default with --model), or in a time: base, token (default: 0)");
  add("slo", text("KEYS"), "objective that goodput counts by: ttft=2s,tpot=50ms,end-to-end=20s");
  add("chips-per-replica", text("N"), "chips that tokens a second a chip counts (default: 1)");
  add("seed", text("N"), "seed of the drafts that are accepted (default: 1)");
  add("requests-out", text("F.csv"), "write what became of each request, a row each");
  add("trace", text("FILE"), "write steps, queues and requests as Chrome trace JSON");
  add("cases", text("F.jsonl"),
      "compute scheduler cases, one a line, and compare them with what they expect");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

ServeOptions read_serve_options(const std::vector<std::string>& arguments,
                                std::vector<Problem>& problems) {
  const std::vector<std::vector<std::string>> parts = arguments_by_model(arguments);
  const CommandLine line = read_command_line(parts.front(), serve_option_list(), problems);
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "is one word too many: serve takes one EXPERIMENT"});
  }
  ServeOptions options;
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  if (line.options.count("cases") != 0) {
    options.cases = line.value("cases");
    if (options.cases.empty()) problems.push_back({"--cases", "must not be empty"});
    refuse_beside_cases(line, problems);
  } else {
    read_served(line, options, problems);
    read_others(parts, options, problems);
    read_run(line, options, problems);
  }
  return options;
}

}  // namespace stepsim
