#include "cli/schedule/schedule_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>

#include "cli/schedule/schedule_gantt.h"
#include "cli/schedule/schedule_times.h"
#include "cli/session/progress.h"
#include "schedules/pipeline/published/bubble_formula.h"
#include "sim/base/field_text.h"
#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "traces/results/report_text.h"

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

// Times of a comparison are fractions of a picosecond, rounded to the nearest.
std::string comparison_json(const Comparison& comparison) {
  return json_lines(
      json_values(
          comparison.rows,
          [&](const PlayedSchedule& row) {
            const PipelineReplay& replayed = row.replayed;
            const auto seconds = [&](std::int64_t units) {
              return exact_seconds(Duration((units + comparison.units / 2) / comparison.units));
            };
            return fmt::format(
                "{{\"schedule\": \"{}\", \"chunks\": {}, \"makespan_s\": {}, \"bubble_s\": {}, "
                "\"bubble_fraction\": {}, \"span_bubble_s\": {}, \"peak_in_flight_stages\": {}, "
                "\"sends\": {}, \"parameter_copies\": {}, \"on_pareto_front\": {}}}",
                json_escaped(row.name), row.schedule.chunks, seconds(replayed.makespan),
                seconds(replayed.bubble()), ratio(replayed.bubble(), replayed.makespan),
                seconds(replayed.span_bubble), ratio(peak_of(row), parts_of(row.schedule)),
                sends_of(row), copies_of(row), is_on_front(row, comparison));
          }),
      4);
}

}  // namespace

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

std::string schedule_json(const ScheduleOptions& options, const PlayedSchedule& own,
                          const std::optional<Comparison>& comparison) {
  const PipelineReplay& replayed = own.replayed;
  const auto seconds = [](std::int64_t time) { return exact_seconds(Duration(time)); };
  const auto quoted_op = [](const PipelineOp& op) { return json_quoted(to_text(op)); };
  const auto order = [&](const auto& ops) { return json_list(json_values(ops, quoted_op)); };
  const auto times = [&](const auto& starts) { return json_list(json_values(starts, seconds)); };
  const std::optional<PublishedBubble> published = published_bubble(options, own);
  const std::string formula =
      !published
          ? "null"
          : fmt::format("{{\"bubble_s\": {}, \"source\": \"{}\", \"holds\": {}, \"because\": {}}}",
                        exact_seconds(published->value), json_escaped(published->formula.source),
                        published->formula.holds(),
                        json_list(json_values(published->formula.broken, json_quoted)));
  return fmt::format(
      "{{\n  \"schedule\": \"{}\",\n  \"stages\": {},\n  \"microbatches\": {},\n"
      "  \"chunks\": {},\n  \"per_rank\": {},\n  \"start_s\": {},\n  \"makespan_s\": {},\n"
      "  \"bubble_s\": {},\n  \"bubble_fraction\": {},\n  \"bubble_over_ideal\": {},\n"
      "  \"span_bubble_s\": {},\n  \"peak_in_flight\": [{}],\n  \"formula\": {}{}{}{}\n}}\n",
      json_escaped(own.name), own.schedule.size(), own.schedule.microbatches, own.schedule.chunks,
      json_lines(json_values(own.schedule.ranks, order), 4),
      json_lines(json_values(replayed.starts, times), 4), seconds(replayed.makespan),
      seconds(replayed.bubble()), ratio(replayed.bubble(), replayed.makespan),
      ratio(replayed.bubble(), replayed.ideal), seconds(replayed.span_bubble),
      fmt::join(replayed.peak_in_flight, ", "), formula,
      own.found
          ? fmt::format(",\n  \"objective_s\": {},\n  \"proven\": {},\n  \"lower_bound_s\": {},\n"
                        "  \"origin\": \"{}\"",
                        seconds(own.found->objective), own.found->is_proven && !own.posting,
                        seconds(own.found->lower_bound), json_escaped(own.found->origin))
          : "",
      own.posting ? ",\n  \"batch_p2p\": true" : "",
      comparison ? ",\n  \"comparison\": " + comparison_json(*comparison) : "");
}

}  // namespace stepsim
