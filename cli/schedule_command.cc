#include "cli/schedule_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "cli/command_line.h"
#include "cli/progress.h"
#include "cli/run_outputs.h"
#include "cli/schedule_gantt.h"
#include "proto/suggestion.h"
#include "schedules/pipeline/formulas.h"
#include "schedules/pipeline/make_schedule.h"
#include "schedules/pipeline/replay.h"
#include "schedules/pipeline/schedule_file.h"
#include "sim/base/quantity_text.h"
#include "traces/json_text.h"
#include "traces/output_file.h"
#include "traces/report_text.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kSecond = 1'000'000'000'000;  // in the picoseconds of all costs
constexpr std::int64_t kMostTime = std::int64_t{1} << 62;
constexpr std::size_t kListedRanks = 16;

po::options_description visible_options() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("stages", text("P"), "ranks of the pipeline; must be given unless NAME is a file");
  add("microbatches", text("M"), "must be given unless NAME is a file");
  add("chunks", text("V"),
      "chunks (virtual stages) a rank; by default 1, or 2 where it needs them");
  add("microbatch-group", text("N"),
      "of interleaved_1f1b and interleaved_zb1p: micro-batches in "
      "turn on a chunk");
  add("forward-time", text("T"), "of one micro-batch on one chunk, default 1s");
  add("backward-input-time", text("T"), "default 1s");
  add("backward-weight-time", text("T"), "default 1s");
  add("send-time", text("T"), "from one rank to the next, default 0");
  add("memory-limit", text("K"),
      "of zb_auto_1p, zb_auto_2p and zbv_auto: micro-batches x chunks "
      "in flight on a rank");
  add("compare", text("NAMES"),
      "a table of NAME and these (a,b,... or all) with the same work; "
      "each takes the options above that it has");
  add("json", text("FILE"), "NAME's result as JSON; - for standard output, and nothing else there");
  add("help", "this text");
  return options;
}

// ---- what is asked for ----

struct ScheduleOptions {
  std::string name;                // or a file
  ScheduleRequest request;         // 0 stages or micro-batches: not given, or not readable
  std::vector<std::string> named;  // --compare; may be "all"
  std::string json;
};

// A schedule, where it comes from, and its replay.
struct PlayedSchedule {
  std::string name;
  PipelineSchedule schedule;
  PipelineCosts costs;
  PipelineReplay replayed;
};

std::optional<std::int64_t> read_count(const CommandLine& line, const std::string& option,
                                       std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const std::string text = line.value(option);
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (text.empty() || error != std::errc() || rest != end || count < 1) {
    problems.push_back(
        {"--" + option, fmt::format("must be a whole number, at least 1, is \"{}\"", text)});
    return std::nullopt;
  }
  return count;
}

void read_time(const CommandLine& line, const std::string& option, std::int64_t least,
               std::int64_t& picoseconds, std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return;
  const std::string text = line.value(option);
  const std::optional<Duration> time = parse_duration(text);
  if (!time || time->count() < least) {
    problems.push_back({"--" + option, fmt::format("must be {}{}, is \"{}\"", accepted_duration(),
                                                   least > 0 ? ", more than 0" : "", text)});
    return;
  }
  picoseconds = time->count();
}

std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string name; std::getline(words, name, ',');) names.push_back(name);
  return names;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const ScheduleName name : kScheduleNames) names.emplace_back(name_of(name));
  return names;
}

Problem unknown_name(const std::string& field, const std::string& name, bool may_be_file) {
  return {field,
          fmt::format(
              "\"{}\" is no schedule{}{} There are: {}", name, may_be_file ? " and no file" : "",
              [&] {
                const std::string hint = did_you_mean(name, all_names());
                return hint.empty() ? std::string(".") : hint;
              }(),
              schedule_names())};
}

ScheduleOptions read_options(const std::vector<std::string>& arguments,
                             std::vector<Problem>& problems) {
  const CommandLine line = read_command_line(arguments, visible_options(), problems);
  ScheduleOptions options;
  if (line.words.empty()) {
    problems.push_back({"NAME", "must be given: a schedule file, or one of " + schedule_names()});
  } else {
    options.name = line.words.front();
  }
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one NAME"});
  }
  ScheduleRequest& request = options.request;
  request.costs = {kSecond, kSecond, kSecond, 0};
  request.stages = read_count(line, "stages", problems).value_or(0);
  request.microbatches = read_count(line, "microbatches", problems).value_or(0);
  request.chunks = read_count(line, "chunks", problems);
  request.microbatch_group = read_count(line, "microbatch-group", problems);
  request.memory_limit = read_count(line, "memory-limit", problems);
  read_time(line, "forward-time", 1, request.costs.forward, problems);
  read_time(line, "backward-input-time", 1, request.costs.backward_input, problems);
  read_time(line, "backward-weight-time", 1, request.costs.backward_weight, problems);
  read_time(line, "send-time", 0, request.costs.send, problems);
  if (line.options.count("compare") != 0) {
    options.named = split_names(line.value("compare"));
    if (options.named.empty()) problems.push_back({"--compare", "must name a schedule, or be all"});
  }
  for (const std::string& name : options.named) {
    if (name != "all" && !schedule_named(name)) {
      problems.push_back(unknown_name("--compare", name, false));
    }
  }
  if (!options.name.empty() && !schedule_named(options.name)) {
    std::error_code ignored;
    if (!std::filesystem::exists(options.name, ignored)) {
      problems.push_back(unknown_name("NAME", options.name, true));
    }
  }
  options.json = read_output_path(line, "json", true, problems);
  const bool is_file = !options.name.empty() && !schedule_named(options.name);
  for (const auto& [option, count] :
       {std::pair("stages", request.stages), std::pair("microbatches", request.microbatches)}) {
    if (!is_file && count == 0 && line.options.count(option) == 0) {
      problems.push_back({std::string("--") + option, "must be given"});
    }
  }
  return options;
}

std::string option_of(const std::string& field) {
  std::string option = "--" + field;
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

bool is_count_not_given(const ScheduleRequest& request, const Problem& problem) {
  return (problem.field == "stages" && request.stages == 0) ||
         (problem.field == "microbatches" && request.microbatches == 0);
}

// What check() says, in terms of options, without what was said when they were read.
std::vector<Problem> check_options(const ScheduleRequest& request) {
  std::vector<Problem> problems;
  for (const Problem& problem : check(request)) {
    if (is_count_not_given(request, problem)) continue;
    const bool is_time = problem.field.ends_with("_time");
    problems.push_back(
        {option_of(problem.field), problem.message + (is_time ? " (times in picoseconds)" : "")});
  }
  return problems;
}

// The request for `name` with the options that it has: none that only others have.
ScheduleRequest request_for(ScheduleName name, const ScheduleRequest& given) {
  ScheduleRequest request = given;
  request.name = name;
  if (!plans_by_cost(name)) request.memory_limit.reset();
  if (name != ScheduleName::kInterleaved && name != ScheduleName::kInterleavedZeroBubble) {
    request.microbatch_group.reset();
  }
  const std::vector<Problem> problems = check(request);
  if (std::any_of(problems.begin(), problems.end(),
                  [](const Problem& problem) { return problem.field == "chunks"; })) {
    request.chunks.reset();
  }
  return request;
}

PipelineSchedule read_schedule_file(const ScheduleOptions& options,
                                    std::vector<Problem>& problems) {
  const std::string& path = options.name;
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (std::filesystem::is_directory(path, ignored) || !file) {
    problems.push_back({path, "can't be read"});
    return {};
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  PipelineSchedule schedule;
  std::vector<Problem> found;
  try {
    schedule = parse_schedule(text);
    found = check_order(schedule);
  } catch (const ConfigError& error) {
    found = error.problems();
  }
  for (const Problem& problem : found) {
    problems.push_back({path + " " + problem.field, problem.message});
  }
  if (!found.empty()) return schedule;
  const ScheduleRequest& request = options.request;
  const auto must_be = [&](const char* option, std::optional<std::int64_t> given,
                           std::int64_t own) {
    if (given && *given != own) {
      problems.push_back({option, fmt::format("must be the file's {}, is {}", own, *given)});
    }
  };
  const auto given = [](std::int64_t count) {
    return count == 0 ? std::nullopt : std::optional(count);
  };
  must_be("--stages", given(request.stages), schedule.size());
  must_be("--microbatches", given(request.microbatches), schedule.microbatches);
  must_be("--chunks", request.chunks, schedule.chunks);
  const std::int64_t forwards =
      std::int64_t{schedule.size()} * schedule.microbatches * schedule.chunks;
  const PipelineCosts& costs = request.costs;
  const std::int64_t most = kMostTime / forwards / 6;
  if (std::max({costs.forward, costs.backward_input, costs.backward_weight, costs.send}) > most) {
    problems.push_back({"--forward-time", fmt::format("times must be at most {} picoseconds for so "
                                                      "many ops",
                                                      most)});
  }
  return schedule;
}

PlayedSchedule played(std::string name, PipelineSchedule schedule, const PipelineCosts& costs) {
  PipelineReplay replayed = replay(schedule, costs);
  return {std::move(name), std::move(schedule), costs, std::move(replayed)};
}

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// ---- comparing ----

// Parts of 1/P of the model that a micro-batch meets on a rank.
std::int64_t parts_of(const PipelineSchedule& schedule) {
  return stage_count(schedule) / schedule.size();
}

struct Comparison {
  std::vector<PlayedSchedule> rows;  // in 1/units of a picosecond
  std::int64_t units = 1;
  std::vector<Problem> skipped;  // of "all": those that don't take these numbers
};

// The parts of a schedule, known before it is made.
std::int64_t parts_of(const ScheduleRequest& request) {
  const bool is_bidirectional =
      request.name == ScheduleName::kDualPipe || request.name == ScheduleName::kChimera;
  return is_bidirectional ? 1 : request.chunks.value_or(default_chunks(request.name));
}

// What --compare asks for, for so many stages and micro-batches as `given` has. Schedules that
// don't take them are problems, or left out where all are asked for.
struct ComparedRequests {
  std::vector<ScheduleRequest> requests;
  std::vector<Problem> skipped;
};

ComparedRequests compared_requests(const ScheduleOptions& options, const ScheduleRequest& given,
                                   std::vector<Problem>& problems) {
  const bool all =
      std::find(options.named.begin(), options.named.end(), "all") != options.named.end();
  ComparedRequests compared;
  std::vector<std::string> seen{options.name};
  for (const std::string& text : all ? all_names() : options.named) {
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
  return compared;
}

Comparison compare(const PlayedSchedule& own, ComparedRequests compared) {
  const std::int64_t parts = parts_of(own.schedule);
  Comparison comparison{.rows = {}, .units = parts, .skipped = std::move(compared.skipped)};
  for (const ScheduleRequest& request : compared.requests) {
    comparison.units = std::lcm(comparison.units, parts_of(request));
  }
  const PipelineCosts& costs = own.costs;
  const std::int64_t longest =
      std::max({costs.forward, costs.backward_input, costs.backward_weight, costs.send});
  const std::int64_t ops = std::int64_t{own.schedule.size()} * own.schedule.microbatches * 12 *
                           std::max<std::int64_t>(parts, 2);
  if (longest > kMostTime / ops / parts / comparison.units) {
    throw_if_any({{"--compare", "times are too long to be compared exactly"}});
  }
  const auto scaled = [&](std::int64_t own_parts) {
    const std::int64_t factor = parts * comparison.units / own_parts;
    return PipelineCosts{costs.forward * factor, costs.backward_input * factor,
                         costs.backward_weight * factor, costs.send * comparison.units};
  };
  comparison.rows.push_back(played(own.name, own.schedule, scaled(parts)));
  for (ScheduleRequest& request : compared.requests) {
    stop_if_interrupted();
    request.costs = scaled(parts_of(request));
    comparison.rows.push_back(
        played(std::string(name_of(request.name)), make_schedule(request), request.costs));
  }
  return comparison;
}

std::int64_t peak_of(const PlayedSchedule& row) {
  return *std::max_element(row.replayed.peak_in_flight.begin(), row.replayed.peak_in_flight.end());
}

int copies_of(const PlayedSchedule& row) {
  return row.schedule.placement == Placement::kBidirectional ? 2 : 1;
}

// Not worse in bubble, activations and copies of the parameters, and better in one of them.
bool beats(const PlayedSchedule& a, const PlayedSchedule& b) {
  const std::int64_t a_peak = peak_of(a) * parts_of(b.schedule);
  const std::int64_t b_peak = peak_of(b) * parts_of(a.schedule);
  const std::int64_t a_bubble = a.replayed.bubble();
  const std::int64_t b_bubble = b.replayed.bubble();
  const bool no_worse = a_bubble <= b_bubble && a_peak <= b_peak && copies_of(a) <= copies_of(b);
  return no_worse && (a_bubble < b_bubble || a_peak < b_peak || copies_of(a) < copies_of(b));
}

std::string seconds_text(double picoseconds) {
  return to_text(Duration(std::llround(picoseconds)));
}

// In lines that fit, all but the first indented further.
void add_wrapped(std::string_view text, ReportText& report) {
  std::string line = "   ";
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > kReportWidth) {
      report.line("{}", line);
      line = "     ";
    }
    line += " " + word;
  }
  report.line("{}", line);
}

void add_comparison(const Comparison& comparison, ReportText& report) {
  report.section("Compared", "same work a rank; * no other is as good in bubble and memory");
  report.line("  {:<20}{:>6}{:>13}{:>13}{:>9}{:>9}{:>13}{:>8}{:>7}", "", "chunks", "makespan",
              "bubble", "of it", "of ideal", "span bubble", "peak", "copies");
  for (const PlayedSchedule& row : comparison.rows) {
    const PipelineReplay& replayed = row.replayed;
    const bool is_beaten =
        std::any_of(comparison.rows.begin(), comparison.rows.end(),
                    [&](const PlayedSchedule& other) { return beats(other, row); });
    const auto time = [&](std::int64_t units) {
      return seconds_text(ratio(units, comparison.units));
    };
    report.line("{} {:<20.20}{:>6}{:>13}{:>13}{:>8.2f}%{:>8.2f}%{:>13}{:>8.2f}{:>7}",
                is_beaten ? " " : report.paint("*", Paint::kGood), row.name, row.schedule.chunks,
                time(replayed.makespan), time(replayed.bubble()),
                100 * ratio(replayed.bubble(), replayed.makespan),
                100 * ratio(replayed.bubble(), replayed.ideal), time(replayed.span_bubble),
                ratio(peak_of(row), parts_of(row.schedule)), copies_of(row));
  }
  report.line("  peak: activations of one micro-batch on 1/P of the model; copies: of parameters");
  for (const Problem& problem : comparison.skipped) {
    add_wrapped(problem.field.substr(10) + " left out: " + problem.message, report);
  }
}

// ---- what came out ----

struct PublishedBubble {
  BubbleFormula formula;
  Duration value{};
  std::int64_t unit = 1;  // of the times in formula.broken
};

// In the largest unit in which all times are whole, so that its conditions read well.
std::optional<PublishedBubble> published_bubble(const ScheduleOptions& options) {
  if (!schedule_named(options.name)) return std::nullopt;
  ScheduleRequest request = options.request;
  PipelineCosts& costs = request.costs;
  const std::int64_t unit = std::gcd(std::gcd(costs.forward, costs.backward_input),
                                     std::gcd(costs.backward_weight, costs.send));
  for (std::int64_t* time :
       {&costs.forward, &costs.backward_input, &costs.backward_weight, &costs.send}) {
    *time /= unit;
  }
  std::optional<BubbleFormula> formula = bubble_formula(request);
  if (!formula) return std::nullopt;
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

std::string peaks_text(const std::vector<std::int64_t>& peaks) {
  if (peaks.size() > kListedRanks) {
    const std::int64_t least = *std::min_element(peaks.begin(), peaks.end());
    const auto most = std::max_element(peaks.begin(), peaks.end());
    if (least == *most) return fmt::format("{} on every rank", least);
    return fmt::format("{} to {}, first on rank {}", least, *most, most - peaks.begin());
  }
  return fmt::format("{}", fmt::join(peaks, " "));
}

std::string report_of(const ScheduleOptions& options, const PlayedSchedule& own,
                      const std::optional<Comparison>& comparison) {
  const bool color = shows_color(STDOUT_FILENO);
  ReportText report(color);
  const PipelineReplay& replayed = own.replayed;
  const auto text = [](std::int64_t picoseconds) { return to_text(Duration(picoseconds)); };
  report.line("{}", report.paint(own.name, Paint::kBold));
  report.line("  {} stages, {} micro-batches, {} a rank", own.schedule.size(),
              own.schedule.microbatches,
              own.schedule.chunks == 1 ? "1 chunk" : fmt::format("{} chunks", own.schedule.chunks));
  report.line("  forward {}, backward {} (input) + {} (weight), send {}", text(own.costs.forward),
              text(own.costs.backward_input), text(own.costs.backward_weight),
              text(own.costs.send));
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
  report.line("  {:<{}}{:>12}  most that a rank idles from its first start to its last end",
              "span bubble", kReportLabel, text(replayed.span_bubble));
  add_formula(published_bubble(options), report);
  report.section("Peak in flight", "micro-batches x chunks, by rank; held until W or BW is done");
  report.line("  {}", peaks_text(replayed.peak_in_flight));
  if (comparison) add_comparison(*comparison, report);
  if (!options.json.empty()) {
    report.blank();
    report.line("  result   {}", options.json);
  }
  return report.text();
}

template <typename Items, typename ToText>
std::string json_list(const Items& items, const ToText& to_json, std::string_view between = ", ") {
  std::string text = "[";
  std::string_view comma;
  for (const auto& item : items) {
    text += std::exchange(comma, between);
    text += to_json(item);
  }
  return text + "]";
}

std::string json_of(const ScheduleOptions& options, const PlayedSchedule& own) {
  const PipelineReplay& replayed = own.replayed;
  const auto seconds = [](std::int64_t time) { return exact_seconds(Duration(time)); };
  const std::optional<PublishedBubble> published = published_bubble(options);
  const std::string formula =
      !published ? "null"
                 : fmt::format("{{\"bubble_s\": {}, \"source\": \"{}\", \"holds\": {}}}",
                               exact_seconds(published->value),
                               json_escaped(published->formula.source), published->formula.holds());
  return fmt::format(
      "{{\n  \"schedule\": \"{}\",\n  \"stages\": {},\n  \"microbatches\": {},\n"
      "  \"chunks\": {},\n  \"per_rank\": {},\n  \"start_s\": {},\n  \"makespan_s\": {},\n"
      "  \"bubble_s\": {},\n  \"bubble_fraction\": {},\n  \"span_bubble_s\": {},\n"
      "  \"peak_in_flight\": [{}],\n  \"formula\": {}\n}}\n",
      json_escaped(own.name), own.schedule.size(), own.schedule.microbatches, own.schedule.chunks,
      json_list(
          own.schedule.ranks,
          [](const auto& ops) {
            return "\n    " +
                   json_list(ops, [](const PipelineOp& op) { return "\"" + to_text(op) + "\""; });
          },
          ","),
      json_list(
          replayed.starts,
          [&](const auto& starts) { return "\n    " + json_list(starts, seconds); }, ","),
      seconds(replayed.makespan), seconds(replayed.bubble()),
      ratio(replayed.bubble(), replayed.makespan), seconds(replayed.span_bubble),
      fmt::join(replayed.peak_in_flight, ", "), formula);
}

void write(const ScheduleOptions& options, const PlayedSchedule& own,
           const std::optional<Comparison>& comparison) {
  std::optional<OutputFile> json;
  if (!options.json.empty() && options.json != "-") {
    json.emplace(options.json);
    json->write(json_of(options, own));
  }
  stop_if_interrupted();
  if (json) json->commit();
  print(options.json == "-" ? json_of(options, own) : report_of(options, own, comparison));
}

}  // namespace

std::string describe_schedule_options() {
  std::ostringstream text;
  text << visible_options();
  return text.str();
}

void run_schedule_command(const std::vector<std::string>& arguments) {
  catch_interrupts();
  std::vector<Problem> problems;
  ScheduleOptions options = read_options(arguments, problems);
  PipelineSchedule schedule;
  const std::optional<ScheduleName> name = schedule_named(options.name);
  const ScheduleRequest given = options.request;
  if (name) {
    options.request.name = *name;
    if (!options.named.empty()) options.request = request_for(*name, given);
    const std::vector<Problem> wrong = check_options(options.request);
    problems.insert(problems.end(), wrong.begin(), wrong.end());
  } else if (std::error_code ignored; std::filesystem::exists(options.name, ignored)) {
    schedule = read_schedule_file(options, problems);
  }
  ComparedRequests compared;
  if (name || schedule.size() > 0) {
    ScheduleRequest base = given;
    if (!name) base.stages = schedule.size();
    if (!name) base.microbatches = schedule.microbatches;
    compared = compared_requests(options, base, problems);
  }
  throw_if_any(std::move(problems));
  if (name) schedule = make_schedule(options.request);
  const PlayedSchedule own = played(options.name, std::move(schedule), options.request.costs);
  std::optional<Comparison> comparison;
  if (!options.named.empty()) comparison = compare(own, std::move(compared));
  write(options, own, comparison);
}

}  // namespace stepsim
