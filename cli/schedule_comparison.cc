#include "cli/schedule_comparison.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/progress.h"
#include "schedules/pipeline/make_schedule.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostTime = std::int64_t{1} << 62;

PlayedSchedule played(std::string name, PipelineSchedule schedule, const PipelineCosts& costs) {
  PipelineReplay replayed = replay(schedule, costs);
  return {std::move(name), std::move(schedule), costs, std::move(replayed)};
}

// The parts of a schedule, known before it is made.
std::int64_t parts_of(const ScheduleRequest& request) {
  const bool is_bidirectional =
      request.name == ScheduleName::kDualPipe || request.name == ScheduleName::kChimera;
  return is_bidirectional ? 1 : request.chunks.value_or(default_chunks(request.name));
}

// Not worse in anything that counts, and better in something.
bool beats(const PlayedSchedule& a, const PlayedSchedule& b) {
  const auto counts = [](const PlayedSchedule& row, const PlayedSchedule& other) {
    return std::array{row.replayed.bubble(), peak_of(row) * parts_of(other.schedule), sends_of(row),
                      copies_of(row)};
  };
  const auto of_a = counts(a, b);
  const auto of_b = counts(b, a);
  return of_a != of_b && std::equal(of_a.begin(), of_a.end(), of_b.begin(), std::less_equal<>());
}

}  // namespace

std::int64_t parts_of(const PipelineSchedule& schedule) {
  return stage_count(schedule) / schedule.size();
}

ComparedRequests compared_requests(const ScheduleOptions& options, const ScheduleRequest& given,
                                   std::vector<Problem>& problems) {
  const bool all =
      std::find(options.named.begin(), options.named.end(), "all") != options.named.end();
  ComparedRequests compared;
  std::vector<std::string> seen{options.name};
  for (const std::string& text : all ? all_schedule_names() : options.named) {
    const std::optional<ScheduleName> name = schedule_named(text);
    if (!name || std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
    seen.push_back(text);
    const ScheduleRequest request = request_for(*name, given);
    const std::vector<Problem> wrong = check_options(request);
    for (const Problem& problem : wrong) {
      if (std::find(problems.begin(), problems.end(), problem) != problems.end()) continue;
      const Problem told{"--compare " + text, problem.field + " " + problem.message};
      (all ? compared.skipped : problems).push_back(told);
    }
    if (wrong.empty()) compared.requests.push_back(request);
  }
  const bool with_optimal =
      std::find(options.named.begin(), options.named.end(), kOptimal) != options.named.end();
  if (with_optimal && options.name != kOptimal) {
    compared.optimal = optimal_request(given);
    for (const Problem& problem : check_options(*compared.optimal)) {
      if (std::find(problems.begin(), problems.end(), problem) != problems.end()) continue;
      problems.push_back({"--compare optimal", problem.field + " " + problem.message});
    }
  }
  return compared;
}

OptimalSchedule search_with_progress(OptimalRequest request) {
  Progress progress;
  request.progress_context = &progress;
  request.progress = [](void* context, double done) {
    return static_cast<Progress*>(context)->show(done);
  };
  OptimalSchedule optimal = optimal_schedule(request);
  stop_if_interrupted();
  return optimal;
}

Comparison compare(const PlayedSchedule& own, ComparedRequests compared) {
  const std::int64_t parts = parts_of(own.schedule);
  Comparison comparison{.rows = {}, .units = parts, .skipped = std::move(compared.skipped)};
  for (const ScheduleRequest& request : compared.requests) {
    comparison.units = std::lcm(comparison.units, parts_of(request));
  }
  if (compared.optimal) comparison.units = std::lcm(comparison.units, compared.optimal->chunks);
  const PipelineCosts& costs = own.costs;
  const std::int64_t ops = std::int64_t{own.schedule.size()} * own.schedule.microbatches * 12 *
                           std::max<std::int64_t>(parts, 2);
  if (longest(costs) > kMostTime / ops / parts / comparison.units) {
    throw_if_any({{"--compare", "times are too long to be compared exactly"}});
  }
  const auto scaled = [&](const PipelineCosts& given, std::int64_t own_parts) {
    const std::int64_t factor = parts * comparison.units / own_parts;
    PipelineCosts same{given.forward * factor, given.backward_input * factor,
                       given.backward_weight * factor, given.send * comparison.units};
    if (given.fused) same.fused = *given.fused * factor;
    return same;
  };
  comparison.rows.push_back(played(own.name, own.schedule, scaled(costs, parts)));
  for (ScheduleRequest& request : compared.requests) {
    stop_if_interrupted();
    request.costs = scaled(request.costs, parts_of(request));
    comparison.rows.push_back(
        played(std::string(name_of(request.name)), make_schedule(request), request.costs));
  }
  if (compared.optimal) {
    compared.optimal->costs = scaled(compared.optimal->costs, compared.optimal->chunks);
    comparison.rows.push_back(played(std::string(kOptimal),
                                     search_with_progress(*compared.optimal).schedule,
                                     compared.optimal->costs));
  }
  return comparison;
}

std::int64_t peak_of(const PlayedSchedule& row) {
  return *std::max_element(row.replayed.peak_in_flight.begin(), row.replayed.peak_in_flight.end());
}

std::int64_t sends_of(const PlayedSchedule& row) {
  const PipelineSchedule& schedule = row.schedule;
  std::int64_t sends = 0;
  for (std::int32_t stage = 1; stage < stage_count(schedule); ++stage) {
    // Both directions cross as many boundaries between ranks.
    const bool crosses = rank_of(schedule, 0, stage - 1) != rank_of(schedule, 0, stage);
    sends += crosses ? 2 * std::int64_t{schedule.microbatches} : 0;
  }
  return sends;
}

std::int64_t copies_of(const PlayedSchedule& row) {
  return row.schedule.placement == Placement::kBidirectional ? 2 : 1;
}

bool is_on_front(const PlayedSchedule& row, const Comparison& comparison) {
  return std::none_of(comparison.rows.begin(), comparison.rows.end(),
                      [&](const PlayedSchedule& other) { return beats(other, row); });
}

}  // namespace stepsim
