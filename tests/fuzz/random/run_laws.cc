#include "tests/fuzz/random/run_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "experiment/build_cluster.h"
#include "experiment/step/step_report.h"
#include "proto/messages/json_value.h"
#include "schedules/plan/plan_schedule.h"
#include "tests/fuzz/random/changed_cluster.h"
#include "tests/fuzz/random/choices.h"
#include "tests/fuzz/random/collective_laws.h"
#include "tests/fuzz/random/folding_laws.h"
#include "tests/fuzz/random/random_run.h"
#include "traces/results/result_json.h"

namespace stepsim {
namespace {

constexpr double kRounding = 1e-9;

// Returns the object whose last member was cut off behind the comma. REQUIRES: json_of_run() made
// it.
Json parsed(const std::string& json) {
  return parse_json(json.substr(0, json.rfind(',')) + '}').value.value();
}

// Simulated times have 12 digits behind the point, so their doubles round to whole picoseconds.
std::int64_t picoseconds(const Json& seconds) {
  return std::llround(seconds.get<double>() * 1e12);
}

// Returns the sum of all numbers in an object, also in objects inside it.
std::int64_t sum_of(const Json& parts, std::int64_t (*value_of)(const Json&)) {
  std::int64_t sum = 0;
  for (const auto& [key, part] : parts.items()) {
    sum += part.is_object() ? sum_of(part, value_of) : value_of(part);
  }
  return sum;
}

std::string broken_sum(const char* what, std::int64_t sum, std::int64_t whole) {
  return sum == whole ? "" : fmt::format("{} adds up to {}, not {}", what, sum, whole);
}

std::string broken_parts(const Json& result) {
  const std::int64_t step = picoseconds(result["step_time_s"]);
  std::string broken = broken_sum("breakdown_s", sum_of(result["breakdown_s"], picoseconds), step);
  std::int64_t path = 0;
  for (const Json& part : result["critical_path"]) path += picoseconds(part["duration_s"]);
  if (broken.empty()) broken = broken_sum("critical_path", path, step);
  const Json& memory = result["memory"];
  const auto bytes = [](const Json& value) { return value.get<std::int64_t>(); };
  if (broken.empty()) {
    broken = broken_sum("memory.by_category_bytes", sum_of(memory["by_category_bytes"], bytes),
                        bytes(memory["peak_bytes"]));
  }
  return broken;
}

std::string broken_limit(const SimulatedStep& step) {
  const double utilization = step.metrics.hardware_flops_utilization;
  if (!(utilization <= 1 + kRounding)) {
    return fmt::format("hardware_flops_utilization is {}", utilization);
  }
  // The latency-bandwidth network lets any number of transfers have all of a link.
  if (step.options.fidelity == Fidelity::kLatencyBandwidth) return "";
  for (const LinkTotal& link : step.result.links) {
    if (link.utilization <= 1 + 1e-6) continue;
    return fmt::format("utilization of link {} is {}", link.link.index(), link.utilization);
  }
  return "";
}

// Returns the result if ops that start in the same instant start in another order.
std::string shuffled_json(const LoadedExperiment& loaded, const Cluster& cluster) {
  ExperimentOptions options = loaded.simulation;
  options.before = [](const OpGraph&, const Cluster&, SimulationOptions& run) {
    run.shuffle_seed = 1;
  };
  return json_of_run(loaded, cluster, simulate_experiment(loaded.experiment, cluster, options));
}

// Returns the line around a place in a text.
std::string_view line_at(std::string_view text, std::size_t place) {
  const std::size_t end = std::min(text.find('\n', place), text.size());
  const std::size_t before = text.substr(0, place).rfind('\n');
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return text.substr(begin, end - begin);
}

std::string broken_order(const std::string& json, const std::string& shuffled) {
  const auto [place, other] = std::ranges::mismatch(json, shuffled);
  if (place == json.end() && other == shuffled.end()) return "";
  const auto at = static_cast<std::size_t>(place - json.begin());
  return fmt::format("another order of simultaneous ops makes{} of{}", line_at(shuffled, at),
                     line_at(json, at));
}

// Whether nothing that communicates makes compute slower. Then a step is a maximum of sums of
// times, which no longer time makes shorter.
bool is_monotone(const Cluster& cluster) {
  const CommunicationUnits& units = cluster.chip.communication;
  return (cluster.library.ideal() || units.units == 0) && !units.fixed;
}

// Sharing links takes no less time than having each for oneself.
std::string broken_contention(const LoadedExperiment& loaded, const Cluster& cluster,
                              const SimulatedStep& step) {
  // Packets that are sprayed may have several planes of a network, where one way has one.
  if (!is_monotone(cluster) || loaded.simulation.packets.spraying) return "";
  ExperimentOptions options = loaded.simulation;
  options.fidelities = {Fidelity::kLatencyBandwidth};
  const Time alone =
      simulate_experiment(loaded.experiment, cluster, options).runs.front().result.end;
  // The time of each op is rounded up to a picosecond.
  const double slack = static_cast<double>(step.result.statistics.ops) / kPicosecondsPerSecond;
  if (to_seconds(step.result.end.since_start) >= to_seconds(alone.since_start) - slack) return "";
  return fmt::format("ends at {} s with contention, and at {} s without",
                     to_seconds(step.result.end.since_start), to_seconds(alone.since_start));
}

// Orders that are planned by times follow them in whole nanoseconds, and packets that meet within a
// picosecond may change places.
bool scales(const LoadedExperiment& loaded) {
  return !plans_by_cost(loaded.experiment.plan) &&
         loaded.simulation.fidelities.front() != Fidelity::kPacket;
}

double seconds_on(const Cluster& cluster, const LoadedExperiment& loaded) {
  const Time end =
      simulate_experiment(loaded.experiment, cluster, loaded.simulation).runs.front().result.end;
  return to_seconds(end.since_start);
}

// Where messages share links, a difference may grow in every round. Returns whether a picosecond on
// each link, a nanosecond or so in all, makes one of 0.1 %; rounding decides the time of such a
// step.
bool hangs_on_picoseconds(const LoadedExperiment& loaded, double seconds) {
  const Cluster cluster = with_longer_links(cluster_for_steps(loaded.experiment), Duration(1));
  return std::abs(seconds_on(cluster, loaded) / seconds - 1) > 1e-3;
}

// Where all is three times as slow, a step takes three times as long.
std::string broken_scale(const LoadedExperiment& loaded, const SimulatedStep& step) {
  if (!scales(loaded)) return "";
  constexpr int kSlower = 3;
  const Cluster cluster = slowed(cluster_for_steps(loaded.experiment), kSlower);
  const double seconds = to_seconds(step.result.end.since_start);
  Experiment slower = loaded.experiment;
  std::optional<Duration>& launch = slower.plan.launches.host_launch_cost;  // the hosts, too
  if (launch) launch = kSlower * *launch;
  const Time end = simulate_experiment(slower, cluster, loaded.simulation).runs.front().result.end;
  const double ratio = to_seconds(end.since_start) / seconds / kSlower;
  // Where messages meet within a picosecond, rounding decides which goes first.
  if (std::abs(ratio - 1) < 5e-3 || hangs_on_picoseconds(loaded, seconds)) return "";
  return fmt::format("{} times as slow a cluster takes {} times as long", kSlower, kSlower * ratio);
}

// The record of a run is an experiment that gives the same result.
std::string broken_record(const LoadedExperiment& loaded, const std::string& json) {
  const std::string record = record_json(loaded.record, loaded.simulation, "test");
  const RandomOutcome again = run_random(record, Laws::kOfTheRun);
  if (!again.refused.empty()) {
    return fmt::format("the record of the run is refused: {}: {}", again.refused.front().field,
                       again.refused.front().message);
  }
  return again.json == json ? "" : "the record of the run gives another result " + again.broken;
}

}  // namespace

std::string json_of_run(const LoadedExperiment& loaded, const Cluster& cluster,
                        const SimulatedExperiment& done) {
  const SimulatedStep& step = done.runs.front();
  const FinishedRun run{loaded.experiment, cluster,     done.graph,
                        step.options,      step.result, step.metrics};
  const AskedExperiment asked{record_json(loaded.record, loaded.simulation, "test"), {}, {}, {}};
  std::string json = result_json(report_on(run, asked, loaded.simulation.explains));
  json.resize(json.rfind("\"simulator\""));
  return json;
}

std::string broken_law(const LoadedExperiment& loaded, const Cluster& cluster,
                       const SimulatedExperiment& done, const std::string& json) {
  const Json result = parsed(json);
  std::string broken = broken_parts(result);
  const SimulatedStep& step = done.runs.front();
  if (broken.empty()) broken = broken_limit(step);
  if (broken.empty()) broken = broken_order(json, shuffled_json(loaded, cluster));
  if (broken.empty()) broken = broken_contention(loaded, cluster, step);
  Choices choices(digest_of(json));
  if (broken.empty()) broken = broken_folding(loaded, choices);
  std::uint64_t skipped = 0;
  if (broken.empty()) broken = broken_repeats(loaded, skipped);
  if (broken.empty() && choices.one_in(3)) broken = broken_scale(loaded, step);
  if (broken.empty() && choices.one_in(5)) broken = broken_record(loaded, json);
  if (broken.empty() && choices.one_in(2)) {
    broken = broken_collective(choices, [&] { return cluster_for_steps(loaded.experiment); });
  }
  return broken;
}

}  // namespace stepsim
