#include "cli/schedule/schedule_comparison.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/session/progress.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "schedules/pipeline/replay/posted_replay.h"

namespace stepsim {
namespace {

PlayedSchedule played(const ScheduleOptions& options, std::string name, PipelineSchedule schedule,
                      const StageCosts& costs) {
  const std::optional<PostingRule> rule = posting_of(options, name);
  PipelineReplay replayed =
      rule ? replay_posted(schedule, costs, rule->post(schedule, costs)) : replay(schedule, costs);
  return {std::move(name), std::move(schedule), costs, std::move(replayed), rule};
}

// Returns the number of parts of a schedule, which is known before the schedule is made.
std::int64_t parts_of(const ScheduleRequest& request) {
  return published(request.name).stage_count(1, chunks_of(request));
}

// Returns whether `a` is nowhere worse and somewhere better.
bool beats(const PlayedSchedule& a, const PlayedSchedule& b) {
  const auto counts = [](const PlayedSchedule& row, const PlayedSchedule& other) {
    return std::array{row.replayed.makespan, peak_of(row) * parts_of(other.schedule), sends_of(row),
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
    ScheduleRequest request = request_for(*name, given);
    request.stage_costs.clear();  // compare() cuts them for the schedule
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
    for (const std::int64_t chunks : {1, 2}) {
      OptimalRequest request = optimal_request(given);
      request.stage_costs.clear();
      if (!given.chunks) {
        request.chunks = chunks;
        if (request.memory_limit) *request.memory_limit *= chunks;  // the same memory in bytes
      }
      for (const Problem& problem : check_options(request)) {
        if (std::find(problems.begin(), problems.end(), problem) != problems.end()) continue;
        problems.push_back({"--compare optimal", problem.field + " " + problem.message});
      }
      compared.optimal.push_back(std::move(request));
      if (given.chunks || !problems.empty()) break;
    }
  }
  return compared;
}

OptimalSchedule search_with_progress(OptimalRequest request) {
  Progress progress;
  request.progress_context = &progress;
  request.progress = [](void* context, double done) {
    static_cast<Progress*>(context)->show(done);
    return true;
  };
  return optimal_schedule(request);
}

std::optional<PostingRule> posting_of(const ScheduleOptions& options, const std::string& name) {
  if (!options.batch_p2p) return std::nullopt;
  const std::optional<ScheduleName> known = schedule_named(name);
  return known ? published(*known).posting : kPostAsPlanned;
}

Comparison compare(const ScheduleOptions& options, const PlayedSchedule& own,
                   ComparedRequests compared) {
  const std::int64_t parts = parts_of(own.schedule);
  const std::int64_t ranks = own.schedule.size();
  Comparison comparison{.rows = {}, .units = parts, .skipped = std::move(compared.skipped)};
  for (const ScheduleRequest& request : compared.requests) {
    comparison.units = std::lcm(comparison.units, parts_of(request));
  }
  for (const OptimalRequest& request : compared.optimal) {
    comparison.units = std::lcm(comparison.units, request.chunks);
  }
  const std::int64_t ops =
      ranks * own.schedule.microbatches * 12 * std::max<std::int64_t>(parts, 2);
  if (longest(longest_stage(own.costs)) > kMostTime / ops / parts / comparison.units) {
    throw_if_any({{"--compare", "times are too long to be compared exactly"}});
  }
  const auto cut = [&](const StageCosts& costs, std::int64_t into) {
    return recut(costs, parts * ranks, into * ranks, comparison.units);
  };
  const auto give = [&](auto& request, std::int64_t into) {
    StageCosts costs = cut(own.costs.are_even() ? request.costs : own.costs, into);
    request.costs = longest_stage(costs);
    if (!costs.are_even()) request.stage_costs = costs.listed();
    return costs;
  };
  comparison.rows.push_back(played(options, own.name, own.schedule, cut(own.costs, parts)));
  for (ScheduleRequest& request : compared.requests) {
    const StageCosts costs = give(request, parts_of(request));
    comparison.rows.push_back(
        played(options, std::string(name_of(request.name)), make_schedule(request), costs));
  }
  for (OptimalRequest& request : compared.optimal) {
    const StageCosts costs = give(request, request.chunks);
    comparison.rows.push_back(
        played(options, std::string(kOptimal), search_with_progress(request).schedule, costs));
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
    // Both directions cross equally many boundaries between ranks.
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
