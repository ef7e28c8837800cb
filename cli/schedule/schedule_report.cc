#include "cli/schedule/schedule_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "cli/schedule/schedule_gantt.h"
#include "cli/schedule/schedule_times.h"
#include "cli/session/progress.h"
#include "schedules/pipeline/published/bubble_formula.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedRanks = 16;

// "1 stage", "4 micro-batches"
std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : what.ends_with("ch") ? "es" : "s");
}

// Returns "1.00 ms", or "1.00 ms to 2.00 ms" if stages differ.
std::string time_text(const StageCosts& costs, std::int64_t PipelineCosts::*kind) {
  const auto [least, most] = std::ranges::minmax(
      costs.listed(), {}, [&](const PipelineCosts& stage) { return stage.*kind; });
  const std::string text = to_text(Duration(least.*kind));
  return least.*kind == most.*kind ? text : text + " to " + to_text(Duration(most.*kind));
}

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string seconds_text(double picoseconds) {
  return to_text(Duration(std::llround(picoseconds)));
}

// Adds the text in lines that fit. All lines except the first are indented further.
void add_wrapped(std::string_view text, ReportText& report) {
  std::string line = "   ";
  for (const std::string_view word : words_of(text)) {
    if (line.size() + 1 + word.size() > kReportWidth) {
      report.line("{}", line);
      line = "     ";
    }
    line.append(" ").append(word);
  }
  report.line("{}", line);
}

struct PublishedBubble {
  BubbleFormula formula;
  Duration value{};
  std::int64_t unit = 1;  // unit of the times in formula.broken
};

// Evaluates the formula in the largest unit in which all times are whole, so that conditions read
// well.
std::optional<PublishedBubble> published_bubble(const ScheduleOptions& options,
                                                const PlayedSchedule& own) {
  if (!schedule_named(options.name)) return std::nullopt;
  ScheduleRequest request = options.request;
  const std::int64_t unit = unit_of(costs_of(request));
  request.costs = in_units(request.costs, unit);
  for (PipelineCosts& costs : request.stage_costs) costs = in_units(costs, unit);
  std::optional<BubbleFormula> formula = bubble_formula(request);
  if (!formula) return std::nullopt;
  if (own.posting && replay(own.schedule, own.costs).starts != own.replayed.starts) {
    formula->broken.push_back("messages must travel by themselves, go in batches (--batch-p2p)");
  }
  const std::int64_t whole = formula->numerator / formula->denominator;
  const std::int64_t rest = formula->numerator % formula->denominator;
  const Duration value(whole * unit + rest * unit / formula->denominator);
  return PublishedBubble{std::move(*formula), value, unit};
}

void add_formula(const std::optional<PublishedBubble>& published, ReportText& report) {
  if (!published) {
    report.line("  {:<{}}none is published for it", "formula", kReportLabel);
    return;
  }
  const BubbleFormula& formula = published->formula;
  report.line("  {:<{}}{:>12}  {}", "formula", kReportLabel, to_text(published->value),
              formula.text);
  report.line("  {:<{}}{:>12}  {}: {}", "", kReportLabel, "",
              formula.measure == BubbleMeasure::kSpan ? "for the span bubble" : "for the bubble",
              formula.source);
  if (formula.holds()) {
    report.line("  {:<{}}{:>12}  {}", "", kReportLabel, "", report.paint("holds", Paint::kGood));
    return;
  }
  report.line("  {:<{}}{:>12}  {}: because", "", kReportLabel, "",
              report.paint("does not hold", Paint::kBad));
  for (const std::string& condition : formula.broken) add_wrapped(condition, report);
  if (published->unit != kSecond) {
    report.line("    (times in units of {})", to_text(Duration(published->unit)));
  }
}

void add_comparison(const Comparison& comparison, ReportText& report) {
  report.section("Compared", "same work; * no other is as good in makespan, peak, sends, copies");
  report.line("  {:<19}{:>3}{:>12}{:>12}{:>9}{:>9}{:>12}{:>8}{:>7}{:>7}", "", "V", "makespan",
              "bubble", "of it", "of ideal", "span bubble", "peak", "sends", "copies");
  for (const PlayedSchedule& row : comparison.rows) {
    const PipelineReplay& replayed = row.replayed;
    const auto time = [&](std::int64_t units) {
      return seconds_text(ratio(units, comparison.units));
    };
    report.line("{} {:<19.19}{:>3}{:>12}{:>12}{:>8.2f}%{:>8.2f}%{:>12}{:>8.2f}{:>7}{:>7}",
                is_on_front(row, comparison) ? report.paint("*", Paint::kGood) : " ", row.name,
                row.schedule.chunks, time(replayed.makespan), time(replayed.bubble()),
                100 * ratio(replayed.bubble(), replayed.makespan),
                100 * ratio(replayed.bubble(), replayed.ideal), time(replayed.span_bubble),
                ratio(peak_of(row), parts_of(row.schedule)), sends_of(row), copies_of(row));
  }
  report.line("  V: chunks a rank; peak: activations of one micro-batch on 1/P of the model;");
  report.line("  sends: messages in a step; copies: of the parameters");
  if (comparison.rows.front().posting) {
    report.line("  messages of each in batches, as its runtime posts them");
  }
  for (const Problem& problem : comparison.skipped) {
    add_wrapped(problem.field.substr(10) + " left out: " + problem.message, report);
  }
}

void add_search(const PlayedSchedule& own, ReportText& report) {
  const OptimalSchedule& found = *own.found;
  report.line("  {:<{}}{:>12}  {}", "objective", kReportLabel, to_text(Duration(found.objective)),
              own.costs.are_even()
                  ? "span bubble, then makespan"
                  : "longest span of a rank less the busiest one's work, then makespan");
  const std::string proof = found.is_proven
                                ? report.paint("proven", Paint::kGood) + ": no order has less"
                                : fmt::format("not proven: {} is the least there could be",
                                              to_text(Duration(found.lower_bound)));
  report.line("  {:<{}}{:>12}  {}", "", kReportLabel, "", proof);
  if (own.posting) {
    report.line("  {:<{}}{:>12}  searched with messages that travel by themselves", "",
                kReportLabel, "");
  }
  report.line("  {:<{}}{:>12}  {}", "", kReportLabel, "",
              !schedule_named(found.origin) && found.origin != "sequential"
                  ? fmt::format("found by {}, {} states", found.origin, grouped(found.states))
                  : fmt::format("{} with split backwards; nothing better in {} states",
                                found.origin, grouped(found.states)));
}

std::string peaks_text(const std::vector<std::int64_t>& peaks) {
  if (peaks.size() > kListedRanks) {
    const std::int64_t least = *std::min_element(peaks.begin(), peaks.end());
    const auto most = std::max_element(peaks.begin(), peaks.end());
    if (least == *most) return fmt::format("{} on every rank", least);
    return fmt::format("{} to {}, first on rank {}", least, *most, most - peaks.begin());
  }
  return fmt::format("{}", fmt::join(peaks, " "));
}

// ---- JSON ----

const ResultTable<PublishedBubble>& bubble_results() {
  static const ResultTable<PublishedBubble> kTable = [] {
    ResultTable<PublishedBubble> table;
    table.add("bubble_s", &PublishedBubble::value, {"what the formula says", "s"});
    table.add("source", [](const PublishedBubble& bubble) { return bubble.formula.source; },
              {"where it was published"});
    table.add("holds", [](const PublishedBubble& bubble) { return bubble.formula.holds(); },
              {"whether its conditions are met"});
    table.add("because", [](const PublishedBubble& bubble) { return bubble.formula.broken; },
              {"conditions that are not met"});
    return table;
  }();
  return kTable;
}

struct ComparedSchedule {
  const Comparison* comparison;
  const PlayedSchedule* row;

  // Times of a comparison are fractions of a picosecond: rounded to the nearest.
  Duration time(std::int64_t units) const {
    return Duration((units + comparison->units / 2) / comparison->units);
  }
};

std::vector<ComparedSchedule> compared_schedules(const Comparison& comparison) {
  std::vector<ComparedSchedule> rows;
  for (const PlayedSchedule& row : comparison.rows) rows.push_back({&comparison, &row});
  return rows;
}

const ResultTable<ComparedSchedule>& compared_schedule_results() {
  static const ResultTable<ComparedSchedule> kTable = [] {
    using Row = ComparedSchedule;
    ResultTable<Row> table;
    table.add("schedule", [](const Row& one) { return one.row->name; }, {"its name"});
    table.add("chunks", [](const Row& one) { return one.row->schedule.chunks; }, {"a rank"});
    table.add("makespan_s", [](const Row& one) { return one.time(one.row->replayed.makespan); },
              {"of a step", "s"});
    table.add("bubble_s", [](const Row& one) { return one.time(one.row->replayed.bubble()); },
              {"makespan less the ideal", "s"});
    table.add("bubble_fraction",
              [](const Row& one) {
                return ratio(one.row->replayed.bubble(), one.row->replayed.makespan);
              },
              {"of the makespan", "0 to 1"});
    table.add("span_bubble_s",
              [](const Row& one) { return one.time(one.row->replayed.span_bubble); },
              {"longest idle time of a rank between its first start and last end", "s"});
    table.add("peak_in_flight_stages",
              [](const Row& one) { return ratio(peak_of(*one.row), parts_of(one.row->schedule)); },
              {"activations of one micro-batch on 1/P of the model"});
    table.add("sends", [](const Row& one) { return sends_of(*one.row); }, {"messages in a step"});
    table.add("parameter_copies", [](const Row& one) { return copies_of(*one.row); },
              {"copies of the parameters"});
    table.add("on_pareto_front",
              [](const Row& one) { return is_on_front(*one.row, *one.comparison); },
              {"whether no other is as good in makespan, peak, sends and copies"});
    return table;
  }();
  return kTable;
}

struct ScheduleResult {
  const ScheduleOptions* options;
  const PlayedSchedule* own;
  const Comparison* comparison;  // nullptr: none was asked for
};

std::vector<std::vector<std::string>> orders_of(const ScheduleResult& result) {
  std::vector<std::vector<std::string>> ranks;
  for (const auto& ops : result.own->schedule.ranks) {
    std::vector<std::string>& rank = ranks.emplace_back();
    for (const PipelineOp& op : ops) rank.push_back(to_text(op));
  }
  return ranks;
}

std::vector<std::vector<Duration>> starts_of(const ScheduleResult& result) {
  std::vector<std::vector<Duration>> ranks;
  for (const auto& starts : result.own->replayed.starts) {
    std::vector<Duration>& rank = ranks.emplace_back();
    for (const std::int64_t start : starts) rank.emplace_back(start);
  }
  return ranks;
}

void add_played(ResultTable<ScheduleResult>& table) {
  const auto count = [](auto member) {
    return [member](const ScheduleResult& result) {
      return std::invoke(member, result.own->schedule);
    };
  };
  const auto time = [](auto member) {
    return [member](const ScheduleResult& result) {
      return Duration(std::invoke(member, result.own->replayed));
    };
  };
  table.add("schedule", [](const ScheduleResult& result) { return result.own->name; },
            {"its name"});
  table.add("stages", count(&PipelineSchedule::size), {"of the pipeline"});
  table.add("microbatches", count(&PipelineSchedule::microbatches), {"of a step"});
  table.add("chunks", count(&PipelineSchedule::chunks), {"a rank"});
  table.add("per_rank", orders_of,
            {"ops of each rank in order: F0, B0, W0, lower case for odd chunks"});
  table.add("start_s", starts_of, {"when they start", "s"});
  table.add("makespan_s", time(&PipelineReplay::makespan), {"of a step", "s"});
  table.add("bubble_s", time(&PipelineReplay::bubble), {"makespan less the ideal", "s"});
  table.add("bubble_fraction",
            [](const ScheduleResult& result) {
              return ratio(result.own->replayed.bubble(), result.own->replayed.makespan);
            },
            {"of the makespan", "0 to 1"});
  table.add("bubble_over_ideal",
            [](const ScheduleResult& result) {
              return ratio(result.own->replayed.bubble(), result.own->replayed.ideal);
            },
            {"of the busiest rank's work"});
  table.add("span_bubble_s", time(&PipelineReplay::span_bubble),
            {"longest idle time of a rank between its first start and last end", "s"});
  table.add("peak_in_flight",
            [](const ScheduleResult& result) { return result.own->replayed.peak_in_flight; },
            {"micro-batches x chunks, by rank; held until W or BW is done"});
  table.object("formula", bubble_results(),
               [](const ScheduleResult& result) {
                 return OrNull{published_bubble(*result.options, *result.own)};
               },
               {"the published bubble; null where there is none"});
}

void add_found(ResultTable<ScheduleResult>& table) {
  constexpr std::string_view kSearched = "of optimal";
  const auto found = [](auto value) {
    return [value](const ScheduleResult& result) {
      using Value = decltype(value(*result.own));
      return result.own->found ? std::optional<Value>(value(*result.own)) : std::nullopt;
    };
  };
  table.add("objective_s",
            found([](const PlayedSchedule& own) { return Duration(own.found->objective); }),
            {"span bubble, or longest span less the busiest rank's work", "s", kSearched});
  table.add("proven",
            found([](const PlayedSchedule& own) { return own.found->is_proven && !own.posting; }),
            {"no order has less", "", kSearched});
  table.add("lower_bound_s",
            found([](const PlayedSchedule& own) { return Duration(own.found->lower_bound); }),
            {"the least there could be", "s", kSearched});
  table.add("origin", found([](const PlayedSchedule& own) { return own.found->origin; }),
            {"what found it", "", kSearched});
  table.add("batch_p2p",
            [](const ScheduleResult& result) {
              return result.own->posting ? std::optional(true) : std::nullopt;
            },
            {"true: messages are posted in batches", "", "with --batch-p2p"});
  table.list("comparison", compared_schedule_results(),
             [](const ScheduleResult& result) {
               return result.comparison ? std::optional(compared_schedules(*result.comparison))
                                        : std::nullopt;
             },
             {"the schedule first", "", "with --compare"});
}

const ResultTable<ScheduleResult>& schedule_results() {
  static const ResultTable<ScheduleResult> kTable = [] {
    ResultTable<ScheduleResult> table;
    add_played(table);
    add_found(table);
    return table;
  }();
  return kTable;
}

}  // namespace

std::string schedule_json(const ScheduleOptions& options, const PlayedSchedule& own,
                          const std::optional<Comparison>& comparison) {
  return schedule_results().json({&options, &own, comparison ? &*comparison : nullptr}) + '\n';
}

std::vector<CommandResult> schedule_command_results() {
  return {{"", &schedule_results()}};
}

std::string schedule_report(const ScheduleOptions& options, const PlayedSchedule& own,
                            const std::optional<Comparison>& comparison) {
  const bool color = shows_color(STDOUT_FILENO);
  ReportText report(color);
  const PipelineReplay& replayed = own.replayed;
  const auto text = [](std::int64_t picoseconds) { return to_text(Duration(picoseconds)); };
  report.line("{}", report.paint(own.name, Paint::kBold));
  report.line("  {}, {}, {} a rank", counted(own.schedule.size(), "stage"),
              counted(own.schedule.microbatches, "micro-batch"),
              counted(own.schedule.chunks, "chunk"));
  const PipelineCosts& first = own.costs.at(0);
  report.line("  forward {}, backward {} (input) + {} (weight), {}send {}",
              time_text(own.costs, &PipelineCosts::forward),
              time_text(own.costs, &PipelineCosts::backward_input),
              time_text(own.costs, &PipelineCosts::backward_weight),
              first.fused ? fmt::format("fused {}, ", text(*first.fused)) : "", text(first.send));
  if (own.posting) report.line("  messages in batches {}", own.posting->words);
  report.section("Order", "F forward, BW backward (B input, W weight); lower case: odd chunks");
  for (const std::string& line : gantt_lines(own.schedule, own.costs, replayed, color)) {
    report.line("{}", line);
  }
  report.section("Bubble");
  report.line("  {:<{}}{:>12}", "makespan", kReportLabel, text(replayed.makespan));
  report.line("  {:<{}}{:>12}  {:.2f} % of the makespan, {:.2f} % of the ideal {}", "bubble",
              kReportLabel, text(replayed.bubble()),
              100 * ratio(replayed.bubble(), replayed.makespan),
              100 * ratio(replayed.bubble(), replayed.ideal), text(replayed.ideal));
  report.line("  {:<{}}{:>12}  longest idle time of a rank, first start to last end", "span bubble",
              kReportLabel, text(replayed.span_bubble));
  if (own.found) {
    add_search(own, report);
  } else {
    add_formula(published_bubble(options, own), report);
  }
  report.section("Peak in flight", "micro-batches x chunks, by rank; held until W or BW is done");
  report.line("  {}", peaks_text(replayed.peak_in_flight));
  if (comparison) add_comparison(*comparison, report);
  if (!options.trace.path.empty() || !options.json.empty()) report.blank();
  if (!options.trace.path.empty()) report.line("  trace    {}", options.trace.path);
  if (!options.json.empty()) report.line("  result   {}", options.json);
  return report.text();
}

}  // namespace stepsim
