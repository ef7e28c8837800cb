#include "cli/serve/serve_command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/serve/serve_cases.h"
#include "cli/serve/serve_options.h"
#include "cli/serve/served_load_options.h"
#include "cli/session/out_of_range.h"
#include "cli/session/progress.h"
#include "cli/session/session.h"
#include "cli/session/standard_output.h"
#include "proto/serving_case/read_cases.h"
#include "sim/base/quantity_text.h"
#include "traces/formats/serving_trace.h"
#include "traces/results/serving_report.h"

namespace stepsim {
namespace {

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

ExitStatus run_cases(const ServeOptions& options, std::vector<Problem> problems) {
  std::vector<SchedulerCase> cases;
  try {
    if (!options.cases.empty()) cases = read_cases(options.cases);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  throw_if_any(std::move(problems));
  const std::vector<ComputedCase> computed = compute(cases);
  Outputs outputs;
  const std::string json = options.json.empty() ? "" : cases_results().json(computed) + '\n';
  outputs.write(options.json, json);
  outputs.commit();
  outputs.print(options.json == "-" ? json : cases_report(computed));
  return outputs.end(status_of(computed));
}

// Makes the requests and finds what is wrong with them; all problems are thrown at once.
RequestList checked_requests(const ServeOptions& options, std::vector<Problem> problems) {
  RequestList list;
  // Sources with problems can't be made.
  if (problems.empty()) {
    std::vector<RequestSource> sources = options.sources;
    for (const ServeOptions& other : options.others) {
      sources.insert(sources.end(), other.sources.begin(), other.sources.end());
    }
    list = make_requests(sources);
    problems = check(list, options.serving);
  }
  throw_if_any(std::move(problems));
  return list;
}

// A model and its replicas; null without --model. `decode`: of decode replicas that have a plan of
// their own.
struct ServedModels {
  std::unique_ptr<ServedModel> replicas;
  std::unique_ptr<ServedModel> decode;
  std::int64_t chips_per_replica = 1;
  // Step times that were given in place of a model's.
  LinearStepTime given{{}};
  LinearStepTime decode_given{{}};

  ServedModel& of_decode() { return decode ? *decode : *replicas; }
  std::int64_t chips(const ModelReplicas& served) const {
    const std::int64_t of_decode = decode ? decode->chips() : chips_per_replica;
    return served.replicas.count * chips_per_replica +
           (served.decode ? served.decode->count * of_decode : 0);
  }
};

const ServeOptions& options_of(const ServeOptions& options, std::size_t model) {
  return model > 0 ? options.others[model - 1] : options;
}

ServedModels load_models(const ServeOptions& options, ReplicaGroup& replicas,
                         std::optional<ReplicaGroup>& decode, std::vector<Problem>& problems) {
  ServedModels models;
  models.chips_per_replica = options.chips_per_replica;
  models.given = LinearStepTime(options.step_time.value_or(LinearStepTime::Rates{}));
  models.decode_given = LinearStepTime(options.decode_step_time.value_or(LinearStepTime::Rates{}));
  if (!options.model.given()) return models;
  models.replicas = std::make_unique<ServedModel>(options.model);
  if (options.decode_plan) {
    ServedModelSource source = options.model;
    source.plan = *options.decode_plan;
    source.part = ServedPart::kTokens;
    models.decode = std::make_unique<ServedModel>(source);
  }
  models.replicas->complete(replicas.options, problems);
  if (decode) models.of_decode().complete(decode->options, problems);
  models.chips_per_replica = models.replicas->chips();
  return models;
}

ModelCosts costs_of(const ServeOptions& options, ServedModels& models) {
  StepCost* const cost =
      options.step_time ? static_cast<StepCost*>(&models.given) : &models.replicas->cost();
  StepCost* const own = models.decode && !options.step_time ? &models.decode->cost() : cost;
  return {cost, options.decode_step_time ? static_cast<StepCost*>(&models.decode_given) : own};
}

// Replicas are on neighbouring chips of the cluster, model by model, those that prefill first.
// Throws ConfigError if the cluster is too small.
std::vector<ReplicaPlace> places_of(const ServingOptions& options,
                                    std::vector<ServedModels>& models) {
  std::vector<ReplicaPlace> places;
  std::int64_t next = 0;
  const auto add = [&](ServedModel& model, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, next += model.chips()) {
      places.push_back(model.place(static_cast<std::uint32_t>(next)));
    }
  };
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ModelReplicas served = options.model(i);
    add(*models[i].replicas, served.replicas.count);
    if (served.decode) add(models[i].of_decode(), served.decode->count);
  }
  const Cluster& cluster = models.front().replicas->cluster();
  const auto chips = static_cast<std::int64_t>(cluster.places.chips.size());
  if (next > chips) {
    throw ConfigError(
        {{"--cluster", fmt::format("has {} chips, but all replicas have {}: transfers over the "
                                   "network, and several models, need a cluster of them all",
                                   chips, next)}});
  }
  return places;
}

// The way to the hosts' memory; null if no engine has a tier there.
std::unique_ptr<KvTransport> make_host_transport(const ServeOptions& options,
                                                 std::vector<ServedModels>& models) {
  bool has_tier = false;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ModelReplicas model = options.serving.model(i);
    has_tier = has_tier || model.replicas.options.cache.host_blocks > 0 ||
               (model.decode && model.decode->options.cache.host_blocks > 0);
  }
  if (!has_tier) return nullptr;
  if (options.host_transfer) return std::make_unique<TimedKvTransport>(*options.host_transfer);
  return std::make_unique<NetworkKvTransport>(models.front().replicas->cluster_with_hosts(),
                                              places_of(options.serving, models));
}

std::unique_ptr<KvTransport> make_transport(const ServeOptions& options,
                                            std::vector<ServedModels>& models) {
  const bool is_over_network = options.transfer_over_network;
  if (!is_over_network && models.size() == 1) {
    return std::make_unique<TimedKvTransport>(options.transfer);
  }
  std::vector<ReplicaPlace> places = places_of(options.serving, models);
  if (!is_over_network) return std::make_unique<TimedKvTransport>(options.transfer);
  return std::make_unique<NetworkKvTransport>(models.front().replicas->cluster(),
                                              std::move(places));
}

void sum_up(const ServeOptions& options, const std::vector<ServedModels>& models,
            ServingOutcome& run) {
  run.metrics = metrics_of(run.requests, run.result, options.objective);
  run.steady = steady_state_of(run.requests, run.result, options.objective);
  const auto tenants = static_cast<std::uint32_t>(run.requests.tenants.size());
  for (std::uint32_t i = 0; tenants > 1 && i < tenants; ++i) {
    run.tenants.push_back(
        metrics_of(run.requests, run.result, options.objective, {.tenant = TenantId(i)}));
  }
  for (std::size_t i = 0; models.size() > 1 && i < models.size(); ++i) {
    const ServeOptions& own = options_of(options, i);
    const ModelReplicas served = options.serving.model(i);
    run.models.push_back(
        {.name = own.model.model,
         .engine = served.replicas.engine->name,
         .chips = models[i].chips(served),
         .asked = own.asked,
         .metrics = metrics_of(run.requests, run.result, options.objective, {.model = i})});
  }
}

// An engine makes a token of an answer a step, so the longest answer takes at least as many.
void warn_of_steps(const RequestList& requests) {
  constexpr std::int32_t kMany = 1'000'000;
  constexpr double kStepsPerSecond = 500'000;  // of one request to Llama-3 8B: 100,000 in 0.20 s
  std::int32_t longest = 0;
  for (const Request& request : requests.requests) {
    longest = std::max(longest, request.output_tokens);
  }
  if (longest <= kMany || current_session() != nullptr) return;
  print_error(
      fmt::format("stepsim: warning: an answer has {} tokens, each a step that is simulated: "
                  "some {:.0f} s of work\n",
                  longest, longest / kStepsPerSecond));
}

// What makes serving long.
std::vector<Problem> named_requests(const RequestList& requests) {
  std::int64_t tokens = 0;
  Time last;
  for (const Request& request : requests.requests) {
    tokens += request.output_tokens;
    last = std::max(last, request.arrival);
  }
  return {{"--requests",
           fmt::format("it has {} requests of {} output tokens together, and the last comes at {}",
                       requests.requests.size(), tokens, to_text(last.since_start))}};
}

ServingResult serve(const ServeOptions& options, std::vector<ServedModels>& models,
                    const RequestList& requests) {
  const std::unique_ptr<KvTransport> transport = make_transport(options, models);
  const ModelCosts first = costs_of(options, models.front());
  ServingCosts costs{
      .replicas = *first.replicas, .decode = first.decode, .transport = transport.get()};
  const std::unique_ptr<KvTransport> host = make_host_transport(options, models);
  costs.host = host.get();
  for (std::size_t i = 1; i < models.size(); ++i) {
    costs.others.push_back(costs_of(options_of(options, i), models[i]));
  }
  Progress progress;
  return run_in_range(
      [&] {
        return simulate_serving(requests, options.serving, costs, [&progress](double share) {
          progress.show(share, "of the requests answered");
        });
      },
      [&] {
        progress.wipe();
        return named_requests(requests);
      });
}

// Serves a load that comes at random for as long as it takes to tell whether it is sustained.
void judge_longer(const ServeOptions& options, std::vector<ServedModels>& models,
                  ServingOutcome& run) {
  constexpr double kMostRequestsToTell = 100'000;
  const auto is_random = [](const RequestSource& source) { return source.rate.has_value(); };
  if (!run.steady || models.size() > 1 || !std::ranges::all_of(options.sources, is_random)) return;
  const double comes = run.steady->per_second(run.steady->requests);
  const double needed = std::min(kTellingTimes * comes * to_seconds(run.metrics.end_to_end.mean),
                                 kMostRequestsToTell);
  const double times = needed / static_cast<double>(run.metrics.requests);
  if (times <= 1) return;
  std::vector<RequestSource> sources = options.sources;
  for (RequestSource& source : sources) {
    source.count = static_cast<std::int64_t>(std::ceil(times * static_cast<double>(*source.count)));
  }
  const RequestList longer = make_requests(sources);
  ServeOptions untraced = options;
  untraced.serving.records_steps = false;
  ServingResult result = serve(untraced, models, longer);
  if (auto steady = steady_state_of(longer, result, options.objective)) run.steady = steady;
}

void simulate(const ServeOptions& options, std::vector<ServedModels>& models, ServingOutcome& run) {
  warn_of_steps(run.requests);
  const auto wall = std::chrono::steady_clock::now();
  const double cpu = processor_seconds();
  run.result = serve(options, models, run.requests);
  sum_up(options, models, run);
  judge_longer(options, models, run);
  run.cpu_s = processor_seconds() - cpu;
  run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  run.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
}

ExitStatus write_run(const ServeOptions& options, const ServingOutcome& run) {
  Outputs outputs;
  outputs.write(options.trace, [&run](OutputFile& file) { write_serving_trace(run.result, file); });
  outputs.write(options.requests_out, [&run](OutputFile& file) { write_requests_csv(run, file); });
  const std::string json =
      options.json.empty() && options.html.empty() ? "" : serving_results().json(run) + '\n';
  outputs.write(options.json, json);
  if (!options.html.empty()) outputs.write(options.html, html_of_result(json));
  outputs.commit();
  outputs.print(options.json == "-" ? json : serving_report(run, shows_color(STDOUT_FILENO)));
  return outputs.end(ExitStatus::kDone);
}

ExitStatus run_serve_command(const std::vector<std::string>& given) {
  std::vector<Problem> problems;
  const std::vector<std::string> arguments = with_served_load(given);
  ServeOptions options = read_serve_options(arguments, problems);
  const bool has_cases = !options.cases.empty();
  if (has_cases) return run_cases(options, std::move(problems));
  std::vector<ServedModels> models;
  if (problems.empty()) {
    ServingOptions& serving = options.serving;
    models.push_back(load_models(options, serving.replicas, serving.decode, problems));
    for (std::size_t i = 0; i < options.others.size(); ++i) {
      ModelReplicas& served = serving.others[i];
      models.push_back(load_models(options.others[i], served.replicas, served.decode, problems));
    }
  }
  const RequestList requests = checked_requests(options, std::move(problems));
  std::int64_t chips = 0;
  for (std::size_t i = 0; i < models.size(); ++i)
    chips += models[i].chips(options.serving.model(i));
  ServingOutcome run{.requests = requests,
                     .options = options.serving,
                     .objective = options.objective,
                     .chips = chips,
                     .asked = options.asked};
  if (!models.empty() && models.front().replicas) {
    run.borrowed = models.front().replicas->cluster().chip.kernel_constants_of;
  }
  try {
    simulate(options, models, run);
  } catch (const ServingStuck& stuck) {
    print_error(fmt::format("stepsim: the requests are never all answered\n  {}\n", stuck.what()));
    return ExitStatus::kNo;
  }
  return write_run(options, run);
}

std::vector<CommandResult> serve_command_results() {
  return {{"", &serving_results()}, {"--cases", &cases_results()}};
}

}  // namespace

constinit const Subcommand kServeSubcommand = {
    .name = "serve",
    .arguments = "EXPERIMENT | --model NAME --cluster NAME --requests KIND:KEYS [options]",
    .summary = "let replicas of a model answer requests",
    .description =
        R"(stepsim serve lets replicas of a model answer requests: when each token comes, how full
the KV cache is, and where the time of a request goes.

Usage:
  stepsim serve EXPERIMENT [options]
  stepsim serve --model NAME --cluster NAME --plan KEYS --requests KIND:KEYS [options]
  stepsim serve --requests KIND:KEYS --step-time TIME [options]
  stepsim serve --cases F.jsonl [--json F]

  stepsim serve --model llama3-70b --cluster dgx-h100-8 --plan tp=8 \
    --requests poisson:rate=4,count=1000,input=1024,output=uniform:103-128

  stepsim serve --requests poisson:rate=4,count=1000,input=1024,output=uniform:103-128 \
    --engine vllm,sequences=256,kv-blocks=20000 --step-time linear:base=8ms,token=20us,kv=2ns \
    --slo ttft=2s,tpot=50ms

Several models: each --model has the --plan, --engine, --requests, --replicas, --router,
--prefill, --decode and --decode-plan that stand behind it.

Requests, by kind:
  poisson:rate=R,count=N,input=LENGTH,output=LENGTH     at random, R a second
  gamma:rate=R,burstiness=B,...                         in bunches (B < 1) or evenly (B > 1)
  burst:count=N,size=S,every=TIME,...                   S at one instant; without size all at once
  closed:concurrency=C,count=N,...                      C in the system at any time
  file:trace.csv                                        arrival_s, input_tokens, output_tokens
A LENGTH is a number, uniform:LOW-HIGH, lognormal:MEDIAN:SIGMA[:MOST] or empirical:FILE.csv.
mix=NAME stands for both: stepsim catalog mixes. Further keys: `stepsim help requests`.

An EXPERIMENT is a name (stepsim catalog experiments --list) or a file that says how it is served;
options replace what it says.

--cases computes small problems of vLLM's scheduler in whole microseconds and compares them
with the answers in the file. Exit status 1 unless all are as expected. docs/serving.md has
the rules of the engines, `stepsim help results serve` the members of the JSON.
)",
    .options = serve_option_list,
    .run = run_serve_command,
    .results = serve_command_results,
};

}  // namespace stepsim
