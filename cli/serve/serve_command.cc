#include "cli/serve/serve_command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <utility>

#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/serve/serve_cases.h"
#include "cli/serve/serve_options.h"
#include "cli/standard_output.h"
#include "proto/serving_case/read_cases.h"
#include "traces/serving_report.h"
#include "traces/serving_trace.h"

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
  const std::string json = options.json.empty() ? "" : cases_json(computed);
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
    list = make_requests(options.sources);
    problems = check(list, options.serving);
  }
  throw_if_any(std::move(problems));
  return list;
}

// The models of the replicas; null without a model. `decode`: of decode replicas that have a plan
// of their own.
struct ServedModels {
  std::unique_ptr<ServedModel> replicas;
  std::unique_ptr<ServedModel> decode;

  ServedModel& of_decode() { return decode ? *decode : *replicas; }
};

// Replicas are on neighbouring chips of the cluster, those that prefill first. Throws ConfigError.
std::unique_ptr<KvTransport> make_transport(const ServeOptions& options, ServedModels& models) {
  const auto& decode = options.serving.decode;
  if (!options.transfer_over_network || !decode) {
    return std::make_unique<TimedKvTransport>(options.transfer);
  }
  std::vector<ReplicaPlace> places;
  std::int64_t next = 0;
  const auto add = [&](ServedModel& model, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, next += model.chips()) {
      places.push_back(model.place(static_cast<std::uint32_t>(next)));
    }
  };
  add(*models.replicas, options.serving.replicas.count);
  add(models.of_decode(), decode->count);
  const Cluster& cluster = models.replicas->cluster();
  const auto chips = static_cast<std::int64_t>(cluster.places.chips.size());
  if (next > chips) {
    throw ConfigError(
        {{"--cluster", fmt::format("has {} chips, but all replicas have {}: transfers "
                                   "over the network need a cluster of them all",
                                   chips, next)}});
  }
  return std::make_unique<NetworkKvTransport>(cluster, std::move(places));
}

void simulate(const ServeOptions& options, ServedModels& models, ServingOutcome& run) {
  LinearStepTime given(options.step_time.value_or(LinearStepTime::Rates{}));
  LinearStepTime decode_given(options.decode_step_time.value_or(LinearStepTime::Rates{}));
  StepCost& cost = options.step_time ? static_cast<StepCost&>(given) : models.replicas->cost();
  StepCost& own = models.decode && !options.step_time ? models.decode->cost() : cost;
  StepCost& decode_cost = options.decode_step_time ? decode_given : own;
  const std::unique_ptr<KvTransport> transport = make_transport(options, models);
  Progress progress;
  const auto wall = std::chrono::steady_clock::now();
  const double cpu = processor_seconds();
  run.result = simulate_serving(
      run.requests, options.serving,
      {.replicas = cost, .decode = &decode_cost, .transport = transport.get()},
      [&progress](double share) { progress.show(share, "of the requests answered"); });
  run.metrics = metrics_of(run.requests, run.result, options.objective);
  const auto tenants = static_cast<std::uint32_t>(run.requests.tenants.size());
  for (std::uint32_t i = 0; tenants > 1 && i < tenants; ++i) {
    run.tenants.push_back(metrics_of(run.requests, run.result, options.objective, TenantId(i)));
  }
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
  const std::string json = options.json.empty() && options.html.empty() ? "" : serving_json(run);
  outputs.write(options.json, json);
  if (!options.html.empty()) outputs.write(options.html, html_of_result(json));
  outputs.commit();
  outputs.print(options.json == "-" ? json : serving_report(run, shows_color(STDOUT_FILENO)));
  return outputs.end(ExitStatus::kDone);
}

ExitStatus run_serve_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  ServeOptions options = read_serve_options(arguments, problems);
  const bool has_cases = !options.cases.empty();
  if (has_cases) return run_cases(options, std::move(problems));
  ServedModels models;
  if (options.model.given() && problems.empty()) {
    models.replicas = std::make_unique<ServedModel>(options.model);
    if (!options.decode_plan.empty()) {
      ServedModelSource decode = options.model;
      decode.plan = options.decode_plan;
      models.decode = std::make_unique<ServedModel>(decode);
    }
    models.replicas->complete(options.serving.replicas.options, problems);
    if (options.serving.decode) {
      models.of_decode().complete(options.serving.decode->options, problems);
    }
    options.chips_per_replica = models.replicas->chips();
  }
  const RequestList requests = checked_requests(options, std::move(problems));
  const auto& decode = options.serving.decode;
  const std::int64_t chips_of_decode =
      models.decode ? models.decode->chips() : options.chips_per_replica;
  const std::int64_t chips = options.serving.replicas.count * options.chips_per_replica +
                             (decode ? decode->count * chips_of_decode : 0);
  ServingOutcome run{.requests = requests,
                     .options = options.serving,
                     .objective = options.objective,
                     .chips = chips,
                     .asked = options.asked};
  try {
    simulate(options, models, run);
  } catch (const ServingStuck& stuck) {
    print_error(fmt::format("stepsim: the requests are never all answered\n  {}\n", stuck.what()));
    return ExitStatus::kNo;
  }
  return write_run(options, run);
}

}  // namespace

constinit const Subcommand kServeSubcommand = {
    .name = "serve",
    .arguments = "--model NAME --cluster NAME --requests KIND:KEYS [options]",
    .summary = "let replicas of a model answer requests",
    .description =
        R"(stepsim serve lets replicas of a model answer requests: when each token comes, how full
the KV cache is, and where the time of a request goes.

Usage:
  stepsim serve --model NAME --cluster NAME --plan KEYS --requests KIND:KEYS [options]
  stepsim serve --requests KIND:KEYS --step-time TIME [options]
  stepsim serve --cases F.jsonl [--json F]

  stepsim serve --model llama3-70b --cluster dgx-h100-8 --plan tp=8 \
    --requests poisson:rate=4,count=1000,input=1024,output=uniform:103-128

  stepsim serve --requests poisson:rate=4,count=1000,input=1024,output=uniform:103-128 \
    --engine vllm,sequences=256,kv-blocks=20000 --step-time linear:base=8ms,token=20us,kv=2ns \
    --slo ttft=2s,tpot=50ms

Requests, by kind:
  poisson:rate=R,count=N,input=LENGTH,output=LENGTH     at random, R a second
  gamma:rate=R,burstiness=B,...                         in bunches (B < 1) or evenly (B > 1)
  burst:count=N,size=S,every=TIME,...                   S at one instant; without size all at once
  closed:concurrency=C,count=N,...                      C in the system at any time
  file:trace.csv                                        arrival_s, input_tokens, output_tokens
A LENGTH is a number, uniform:LOW-HIGH, lognormal:MEDIAN:SIGMA[:MOST] or empirical:FILE.csv.
Further keys: `stepsim help requests`.

--cases computes small problems of vLLM's scheduler in whole microseconds and compares them
with the answers in the file. Exit status 1 unless all are as expected. docs/serving.md has
the rules of the engines and the fields of the JSON.
)",
    .options = serve_option_list,
    .run = run_serve_command,
};

}  // namespace stepsim
