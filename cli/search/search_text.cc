#include "cli/search/search_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cli/headroom_option.h"
#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/field_text.h"
#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/shown_text.h"
#include "sim/fields/key_spelling.h"
#include "traces/results/report_text.h"

namespace stepsim {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kKilowattHour = 3.6e6;  // joules

std::string quoted_json(std::string_view text) {
  return '"' + json_escaped(text) + '"';
}

// The value of a key as in files; "" if it is not set.
std::string value_of_key(const ParallelPlan& plan, std::string_view key) {
  const AnyField* const field = find_key(key);
  if (key == "chunks") return std::to_string(chunks_of(plan));
  return field->write(&plan).value_or("");
}

const std::vector<FoundPlan>& listed(const SearchResult& result) {
  return result.best.empty() ? result.nearest : result.best;
}

// The number in the list of the plan from which another was refined; unset where that was the best
// one of its cluster and is not listed.
std::optional<std::size_t> number_of_start(const SearchResult& result, const RefinedPlan& refined) {
  const auto is_start = [&](const FoundPlan& plan) {
    return plan.place == refined.plan.place && plan.number == refined.plan.number;
  };
  const auto at = std::ranges::find_if(listed(result), is_start);
  if (at == listed(result).end()) return std::nullopt;
  return static_cast<std::size_t>(at - listed(result).begin()) + 1;
}

// ---- JSON ----

std::string keys_json(KeyGroup group, const ParallelPlan& plan) {
  constexpr std::array<std::string_view, 13> kAlways = {
      "tp",   "cp",         "dp",       "pp",     "ep",        "global_batch",     "sequence",
      "zero", "microbatch", "schedule", "chunks", "recompute", "sequence_parallel"};
  std::set<std::string> shown(kAlways.begin(), kAlways.end());
  for (const FieldValue& value : changed_keys(plan)) shown.insert(value.path);
  std::string text;
  for (const auto& field : fields_of(group).fields()) {
    const std::string key(field->name());
    if (!shown.contains(key)) continue;
    const std::string value = value_of_key(plan, key);
    const bool is_plain =
        number_in<double>(value).has_value() || value == "true" || value == "false";
    text += (text.empty() ? "" : ", ") + quoted_json(key) + ": " +
            (is_plain ? value : quoted_json(value));
  }
  return '{' + text + '}';
}

// Returns a word of a command line as a shell reads it.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:+-@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char character : text) {
    quoted += character == '\'' ? std::string("'\\''") : std::string(1, character);
  }
  return quoted + "'";
}

// The command that runs a plan.
std::string run_command_of(const SearchRequest& request, const FoundPlan& found) {
  const ExperimentSource& source = request.sources[found.place];
  std::string command = "stepsim run";
  if (!source.experiment.empty()) command += " " + shell_word(source.experiment);
  const auto add = [&command](std::string_view option, const std::string& value) {
    if (!value.empty()) command += fmt::format(" --{} {}", option, shell_word(value));
  };
  add("model", source.model);
  add("cluster", source.cluster);
  add("chip", source.chip);
  add("library", source.library);
  for (const std::string& pair : source.overrides) add("set", pair);
  return command + " " + words_of_plan(found.plan, &shell_word);
}

// Whether a refined plan may be listed and is better than another, if there is one.
bool is_better(const FoundPlan& refined, const FoundPlan* other, const SearchRequest& request) {
  const bool may_be = refined.leaves_headroom || (request.options.takes_likely && refined.fits);
  if (!may_be) return false;
  return other == nullptr || merit_of(refined, request.options) < merit_of(*other, request.options);
}

std::string found_json(const SearchRequest& request, const FoundPlan& found) {
  const std::string interval = found.step_interval_s
                                   ? fmt::format("[{:.12f}, {:.12f}]", found.step_interval_s->low,
                                                 found.step_interval_s->high)
                                   : "null";
  const std::string peak_interval =
      found.peak_interval_bytes ? fmt::format("[{:.0f}, {:.0f}]", found.peak_interval_bytes->low,
                                              found.peak_interval_bytes->high)
                                : "null";
  return fmt::format(
      R"({{"cluster": {}, "plan": {}, "software": {}, "pass": {}, "step_time_s": {}, "step_time_interval_s": {}, )"
      R"("peak_bytes": {}, "peak_interval_bytes": {}, "fits": {}, "fits_certainty": "{}", )"
      R"("model_flops_utilization": {}, "chips": {}, "cost": {}, "energy_joules": {}, "run": {}}})",
      quoted_json(request.places[found.place].base.cluster.name),
      keys_json(KeyGroup::kPlan, found.plan), keys_json(KeyGroup::kSoftware, found.plan),
      keys_json(KeyGroup::kPass, found.plan), exact_seconds(found.step), interval,
      found.peak.value(), peak_interval, found.fits ? "true" : "false", name_of(found.certainty),
      json_number(found.mfu), found.chips, json_number(found.cost),
      found.joules ? json_number(*found.joules) : "null",
      quoted_json(run_command_of(request, found)));
}

std::string counts_json(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [reason, count] : counts) {
    text += (text.empty() ? "" : ", ") + quoted_json(reason) + ": " + std::to_string(count);
  }
  return '{' + text + '}';
}

std::string refined_json(const SearchRequest& request, const SearchResult& result,
                         const Refinement& refinement) {
  if (request.refine == RefineEffort::kNone) return "";
  std::string plans;
  for (const RefinedPlan& refined : refinement.plans) {
    std::string changes;
    for (const PlanChange& change : refined.changes) {
      changes +=
          fmt::format(R"({}{{"key": {}, "from": {}, "to": {}}})", changes.empty() ? "" : ", ",
                      quoted_json(change.key), quoted_json(change.from), quoted_json(change.to));
    }
    const std::optional<std::size_t> of = number_of_start(result, refined);
    std::string found = found_json(request, refined.plan);
    found.pop_back();  // the brace
    plans += fmt::format("{}{}, \"of\": {}, \"changes\": [{}]}}",
                         plans.empty() ? "\n      " : ",\n      ", found,
                         of ? std::to_string(*of) : "null", changes);
  }
  return fmt::format(
      ",\n  \"refined\": {{\"plans\": [{}],\n    \"considered\": {}, \"excluded\": {}, "
      "\"simulated\": {}, "
      "\"is_whole\": {}}}",
      plans, refinement.considered, counts_json(refinement.excluded), refinement.simulated,
      refinement.is_whole ? "true" : "false");
}

std::string plans_json(const SearchRequest& request, const std::vector<FoundPlan>& plans) {
  const auto found = [&request](const FoundPlan& plan) { return found_json(request, plan); };
  return json_lines(json_values(plans, found), 4);
}

// What a whole training takes with a plan.
struct Training {
  double days = 0;
  std::optional<Interval> days_interval{};
  double cost = 0;  // chip-hours where there is no price
  std::optional<double> kilowatt_hours{};
};

Training training_of(const SearchRequest& request, const FoundPlan& plan) {
  constexpr double kDay = 86400;  // seconds
  const double steps = *request.tokens /
                       static_cast<double>(plan.plan.batch.global_batch * plan.plan.batch.sequence);
  Training training{.days = steps * to_seconds(plan.step) / kDay, .cost = steps * plan.cost};
  if (plan.step_interval_s) {
    training.days_interval = Interval{.low = steps * plan.step_interval_s->low / kDay,
                                      .high = steps * plan.step_interval_s->high / kDay};
  }
  if (plan.joules) training.kilowatt_hours = steps * *plan.joules / kKilowattHour;
  return training;
}

std::string training_json(const SearchRequest& request, const FoundPlan& plan) {
  if (!request.tokens) return "null";
  const Training training = training_of(request, plan);
  const std::string interval =
      training.days_interval ? fmt::format("[{}, {}]", json_number(training.days_interval->low),
                                           json_number(training.days_interval->high))
                             : "null";
  return fmt::format(
      R"({{"tokens": {}, "days": {}, "days_interval": {}, "cost": {}, "energy_kwh": {}}})",
      json_number(*request.tokens), json_number(training.days), interval,
      json_number(training.cost),
      training.kilowatt_hours ? json_number(*training.kilowatt_hours) : "null");
}

// The best plan of all as `best` has them, and whether it was refined.
std::string answer_json(const SearchRequest& request, const SearchResult& result,
                        const Refinement& refinement) {
  const FoundPlan* const winner = winner_of(request, result, refinement);
  if (winner == nullptr) return "null";
  std::string found = found_json(request, *winner);
  found.pop_back();  // the brace
  const bool is_refined = result.best.empty() || winner != &result.best.front();
  return fmt::format("{}, \"refined\": {}, \"training\": {}}}", found,
                     is_refined ? "true" : "false", training_json(request, *winner));
}

// The best plan of a place, refined or not, and how good that is known to be.
struct BestOfCluster {
  const FoundPlan* plan = nullptr;  // none that may be listed
  double bound_gap = 0;             // of the plans of the space
};

BestOfCluster best_of_cluster(std::size_t place, const SearchRequest& request,
                              const SearchResult& result, const Refinement& refinement) {
  const BestOfPlace& of_space = result.best_of_places[place];
  BestOfCluster best{.plan = of_space.plan ? &*of_space.plan : nullptr,
                     .bound_gap = of_space.bound_gap};
  for (const RefinedPlan& refined : refinement.plans) {
    if (refined.plan.place == place && is_better(refined.plan, best.plan, request)) {
      best.plan = &refined.plan;
    }
  }
  return best;
}

std::string best_of_clusters_json(const SearchRequest& request, const SearchResult& result,
                                  const Refinement& refinement) {
  std::vector<std::string> clusters;
  for (std::size_t place = 0; place < result.best_of_places.size(); ++place) {
    const BestOfCluster best = best_of_cluster(place, request, result, refinement);
    std::string found = best.plan
                            ? found_json(request, *best.plan)
                            : fmt::format(R"({{"cluster": {}, "plan": null}})",
                                          quoted_json(request.places[place].base.cluster.name));
    found.pop_back();  // the brace
    clusters.push_back(fmt::format(R"({}, "bound_gap": {}, "training": {}}})", found,
                                   json_number(best.bound_gap),
                                   best.plan ? training_json(request, *best.plan) : "null"));
  }
  return json_lines(clusters, 4);
}

std::string why_json(const SearchRequest& request, const PlanVerdict& why) {
  std::string problems;
  for (const Problem& problem : why.problems) {
    problems += (problems.empty() ? "" : ", ") + quoted_json(problem.field + " " + problem.message);
  }
  return fmt::format(R"({{"plan": {}, "problems": [{}], "found": {}, "step_bound_s": {}, )"
                     R"("memory_bound_bytes": {}}})",
                     keys_json(KeyGroup::kPlan, *request.why), problems,
                     why.found ? found_json(request, *why.found) : "null",
                     why.problems.empty() ? exact_seconds(why.step_bound) : "null",
                     why.problems.empty() ? std::to_string(why.memory_bound.value()) : "null");
}

// ---- the table ----

// What a step loses most to: "tp 12 %, bubble 8 %".
std::string losses(const FoundPlan& plan) {
  std::vector<std::pair<double, std::string>> parts;
  const double step = to_seconds(plan.breakdown.sum());
  const auto add = [&](Duration time, const std::string& name) {
    parts.emplace_back(to_seconds(time) / step, name);
  };
  for (std::size_t axis = 0; axis < plan.axes.size(); ++axis) {
    add(plan.breakdown.exposed_communication[axis], plan.axes[axis]);
  }
  add(plan.breakdown.bubble, "bubble");
  add(plan.breakdown.idle, "idle");
  add(plan.breakdown.launch, "launch");
  std::ranges::stable_sort(parts, std::ranges::greater{}, &std::pair<double, std::string>::first);
  std::string text;
  for (std::size_t i = 0; i < 2 && parts[i].first >= 0.005; ++i) {
    text += (text.empty() ? "" : ", ") +
            fmt::format("{} {:.0f} %", parts[i].second, 100 * parts[i].first);
  }
  return text.empty() ? "nothing" : text;
}

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool is_text = false;
};

std::string short_name(std::string_view key) {
  return key == "microbatch" ? "mb" : std::string(key);
}

// The keys of the space and dp, in the order of the table of keys.
std::vector<std::string> searched_keys(const SearchRequest& request) {
  std::set<std::string> keys = {"dp"};
  for (const SearchPlace& place : request.places) {
    for (const Dimension& dimension : place.space.dimensions()) keys.insert(dimension.key);
  }
  std::vector<std::string> listed;
  for (const AnyField* const field : all_keys()) {
    if (keys.contains(std::string(field->name()))) listed.emplace_back(field->name());
  }
  return listed;
}

// The keys that the listed plans differ in, in the order of the table of keys.
std::vector<std::string> varied_keys(const SearchRequest& request,
                                     const std::vector<FoundPlan>& plans) {
  std::vector<std::string> varied;
  for (const std::string& key : searched_keys(request)) {
    const std::string first = value_of_key(plans.front().plan, key);
    if (std::ranges::any_of(
            plans, [&](const FoundPlan& plan) { return value_of_key(plan.plan, key) != first; })) {
      varied.push_back(key);
    }
  }
  return varied;
}

using PlanPointers = std::vector<const FoundPlan*>;  // nullptr: none, whose cells are empty

// Adds a column with a cell a plan.
template <typename Cell>
void add_column(std::string title, bool is_text, const PlanPointers& plans, const Cell& cell,
                std::vector<Column>& columns) {
  Column column{.title = std::move(title), .cells = {}, .is_text = is_text};
  for (const FoundPlan* const plan : plans) column.cells.push_back(plan ? cell(*plan) : "");
  columns.push_back(std::move(column));
}

// Adds step, MFU and memory.
void add_measures(const PlanPointers& plans, std::vector<Column>& columns) {
  add_column(
      "step", false, plans,
      [](const FoundPlan& plan) { return fmt::format("{:.3f} s", to_seconds(plan.step)); },
      columns);
  add_column(
      "MFU", false, plans,
      [](const FoundPlan& plan) { return fmt::format("{:.1f} %", 100 * plan.mfu); }, columns);
  add_column(
      "memory", false, plans,
      [](const FoundPlan& plan) {
        return fmt::format("{:.1f} GB", static_cast<double>(plan.peak.value()) / kGigabyte);
      },
      columns);
}

std::string certainty_of(const FoundPlan& plan) {
  return std::string(name_of(plan.certainty));
}

std::vector<Column> columns_of(const SearchRequest& request, const std::vector<FoundPlan>& plans) {
  PlanPointers listed;
  for (const FoundPlan& plan : plans) listed.push_back(&plan);
  std::vector<Column> columns;
  const auto add = [&](std::string title, bool is_text, const auto& cell) {
    add_column(std::move(title), is_text, listed, cell, columns);
  };
  add_measures(listed, columns);
  const auto is_sure = [](const FoundPlan& plan) { return plan.certainty == FitCertainty::kSure; };
  if (!std::ranges::all_of(plans, is_sure)) {
    add("fits", true, certainty_of);
  }
  if (request.has_price || request.options.objective == Objective::kCost) {
    add(request.has_price ? "cost" : "chip-hours", false,
        [](const FoundPlan& plan) { return fmt::format("{:.3f}", plan.cost); });
  }
  const auto has_power = [](const FoundPlan& plan) { return plan.joules.has_value(); };
  if (request.places.size() > 1 && std::ranges::any_of(plans, has_power)) {
    add("energy", false, [](const FoundPlan& plan) {
      return plan.joules ? fmt::format("{:.3f} kWh", *plan.joules / kKilowattHour) : "";
    });
  }
  if (request.places.size() > 1) {
    add("cluster", true,
        [&](const FoundPlan& plan) { return request.places[plan.place].base.cluster.name; });
  }
  for (const std::string& key : varied_keys(request, plans)) {
    add(short_name(key), !number_in<double>(value_of_key(plans.front().plan, key)).has_value(),
        [&](const FoundPlan& plan) { return value_of_key(plan.plan, key); });
  }
  add("loses most to", true, losses);
  return columns;
}

void add_columns(const std::vector<Column>& columns, ReportText& text) {
  const auto row = [&](const auto& cell) {
    std::string line;
    for (const Column& column : columns) {
      std::size_t width = column.title.size();
      for (const std::string& one : column.cells) width = std::max(width, one.size());
      line += column.is_text ? fmt::format("  {:<{}}", cell(column), width)
                             : fmt::format("  {:>{}}", cell(column), width);
    }
    text.line("{}", line);
  };
  row([](const Column& column) { return column.title; });
  for (std::size_t i = 0; i < columns.front().cells.size(); ++i) {
    row([i](const Column& column) { return column.cells[i]; });
  }
}

void add_table(const SearchRequest& request, const std::vector<FoundPlan>& plans,
               ReportText& text) {
  add_columns(columns_of(request, plans), text);
}

// "12.3", "4.56", "0.0789": three digits
std::string three_digits(double value) {
  return value >= 1000 ? grouped(value) : fmt::format("{:.3g}", value);
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "";
  return three_digits(interval->low) + " to " + three_digits(interval->high);
}

// Adds what a whole training takes.
void add_training_columns(const SearchRequest& request, const PlanPointers& plans,
                          std::vector<Column>& columns) {
  const auto add = [&](const char* title, const auto& cell) {
    add_column(
        title, false, plans,
        [&](const FoundPlan& plan) { return cell(training_of(request, plan)); }, columns);
  };
  add("days", [](const Training& training) { return three_digits(training.days); });
  add("8 of 10", [](const Training& training) { return interval_text(training.days_interval); });
  add(request.has_price ? "cost" : "chip-hours",
      [](const Training& training) { return three_digits(training.cost); });
  add("MWh", [](const Training& training) {
    return training.kilowatt_hours ? three_digits(*training.kilowatt_hours / 1000) : "";
  });
}

// The best plan of each of several clusters, in one table.
void add_clusters(const SearchRequest& request, const SearchResult& result,
                  const Refinement& refinement, ReportText& text) {
  if (result.best_of_places.empty()) return;
  text.section("Best of each cluster",
               request.tokens
                   ? fmt::format("days, {} and energy of a training of {:.4g} tokens (--tokens)",
                                 request.has_price ? "cost" : "chip-hours", *request.tokens)
                   : "");
  PlanPointers plans;
  Column names{.title = "cluster", .cells = {}, .is_text = true};
  Column proofs{.title = "proof", .cells = {}, .is_text = true};
  for (std::size_t place = 0; place < request.places.size(); ++place) {
    const BestOfCluster best = best_of_cluster(place, request, result, refinement);
    plans.push_back(best.plan);
    names.cells.push_back(request.places[place].base.cluster.name);
    proofs.cells.push_back(
        best.plan == nullptr  ? (best.bound_gap > 0 ? "not known" : "nothing fits")
        : best.bound_gap == 0 ? "proven"
                              : fmt::format("within {:.1f} %", 100 * best.bound_gap));
  }
  std::vector<Column> columns = {std::move(names)};
  add_column(
      "chips", false, plans, [](const FoundPlan& plan) { return grouped(plan.chips); }, columns);
  add_measures(plans, columns);
  add_column("fits", true, plans, certainty_of, columns);
  if (request.tokens) add_training_columns(request, plans, columns);
  columns.push_back(std::move(proofs));
  add_columns(columns, text);
  text.blank();
  for (std::size_t place = 0; place < plans.size(); ++place) {
    if (plans[place] == nullptr) continue;
    text.wrapped(
        2, request.places[place].base.cluster.name + ": " + words_of_plan(plans[place]->plan));
  }
}

// What a whole training takes with the best plan of one cluster.
void add_training(const SearchRequest& request, const FoundPlan& plan, ReportText& text) {
  if (!request.tokens || request.places.size() > 1) return;
  std::vector<Column> columns;
  add_training_columns(request, {&plan}, columns);
  text.section("Training", fmt::format("of {:.4g} tokens with the best plan", *request.tokens));
  add_columns(columns, text);
}

void add_reasons(const std::map<std::string, std::uint64_t>& excluded, ReportText& text) {
  std::vector<std::pair<std::string, std::uint64_t>> reasons(excluded.begin(), excluded.end());
  std::ranges::stable_sort(reasons, std::ranges::greater{},
                           &std::pair<std::string, std::uint64_t>::second);
  for (const auto& [reason, count] : reasons) {
    text.line("  {:<{}}{:>12}", reason, kReportLabel, grouped(static_cast<std::int64_t>(count)));
  }
}

void add_counts(const SearchResult& result, ReportText& text) {
  text.section("Plans", fmt::format("{} considered, {} simulated",
                                    grouped(static_cast<std::int64_t>(result.considered)),
                                    grouped(static_cast<std::int64_t>(result.simulated))));
  add_reasons(result.excluded, text);
}

std::string words_of(const std::vector<PlanChange>& changes) {
  std::string text;
  for (const PlanChange& change : changes) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", change.key, change.to);
  }
  return text;
}

// What is said of the first plan below its table.
void add_plan(const SearchRequest& request, const char* title, const FoundPlan& plan,
              ReportText& text) {
  text.wrapped(2, fmt::format("{}: {}", title, words_of_plan(plan.plan)));
  if (plan.step_interval_s) {
    text.wrapped(2, fmt::format("8 of 10 measured steps of such runs would lie between {:.3f} and "
                                "{:.3f} s.",
                                plan.step_interval_s->low, plan.step_interval_s->high));
  }
  const Bytes capacity = request.places[plan.place].base.cluster.chip.memory_capacity;
  if (plan.peak_interval_bytes) {
    text.wrapped(2, fmt::format("8 of 10 measured peaks would lie between {:.1f} and {:.1f} GB of "
                                "{:.1f}.",
                                plan.peak_interval_bytes->low / kGigabyte,
                                plan.peak_interval_bytes->high / kGigabyte,
                                static_cast<double>(capacity.value()) / kGigabyte));
  }
}

void add_refined(const SearchRequest& request, const SearchResult& result,
                 const Refinement& refinement, ReportText& text) {
  if (request.refine == RefineEffort::kNone || refinement.considered == 0) return;
  text.section("Refined", "the best plans with one more key changed after the other");
  if (refinement.plans.empty()) {
    text.wrapped(2, "No change of a key outside the space makes them better.");
  } else {
    text.line("  {:>11}  {:>6}  {:>8}  {:>3}  {}", "step", "MFU", "memory", "of", "changes");
  }
  for (const RefinedPlan& refined : refinement.plans) {
    const std::optional<std::size_t> of = number_of_start(result, refined);
    text.line("  {:>9.3f} s  {:>4.1f} %  {:>5.1f} GB  {:>3}  {}", to_seconds(refined.plan.step),
              100 * refined.plan.mfu, static_cast<double>(refined.plan.peak.value()) / kGigabyte,
              of ? std::to_string(*of) : "", words_of(refined.changes));
  }
  text.blank();
  if (!refinement.plans.empty()) {
    const FoundPlan& first = refinement.plans.front().plan;
    add_plan(request, first.fits ? "Refined" : "Nearest", first, text);
  }
  text.line("  {:<{}}{:>12}", "tried", kReportLabel,
            grouped(static_cast<std::int64_t>(refinement.considered)));
  text.line("  {:<{}}{:>12}", "simulated", kReportLabel,
            grouped(static_cast<std::int64_t>(refinement.simulated)));
  add_reasons(refinement.excluded, text);
  if (!refinement.is_whole) {
    text.wrapped(2,
                 "It ended before no change was left that makes them better: --refine whole "
                 "goes on.");
  }
}

std::string proof(const SearchResult& result) {
  if (result.bound_gap == 0) return "proven: no plan of the space is better";
  return fmt::format("within {:.1f} % of the best possible", 100 * result.bound_gap);
}

std::uint64_t not_reached(const SearchResult& result) {
  const auto found = result.excluded.find("not reached");
  return found == result.excluded.end() ? 0 : found->second;
}

// "tp, cp, dp, pp"
std::string listed_keys(const SearchRequest& request) {
  std::string text;
  for (const std::string& key : searched_keys(request)) text += (text.empty() ? "" : ", ") + key;
  return text;
}

void add_scope(const SearchRequest& request, const SearchResult& result, ReportText& text) {
  if (result.bound_gap == 0) {
    return text.wrapped(2, fmt::format("Proven over {}, with all other keys as these plans have "
                                       "them.",
                                       listed_keys(request)));
  }
  const std::uint64_t left = not_reached(result);
  if (left == 0) return;
  text.wrapped(2, fmt::format("{} of {} plans of the space were not reached: of them only a bound "
                              "is known.",
                              grouped(static_cast<std::int64_t>(left)),
                              grouped(static_cast<std::int64_t>(result.considered))));
}

// The heading of the plans of the space.
void add_heading(const SearchRequest& request, const SearchResult& result, ReportText& text) {
  switch (outcome_of(result)) {
    case SearchOutcome::kFound:
      return text.section("Best plans", proof(result));
    case SearchOutcome::kLikely:
      text.section("Likely to fit", proof(result));
      return text.wrapped(2, not_reached(result) > 0
                                 ? "No plan that was reached is sure to fit: these may need more "
                                   "than a chip has, by the upper end of their interval."
                                 : "No plan is sure to fit: these may need more than a chip has, "
                                   "by the upper end of their interval.");
    case SearchOutcome::kNotFast:
      return text.section("Nothing is fast enough",
                          fmt::format("every plan that may fit takes at least {:.3f} s",
                                      to_seconds(*result.least_step)));
    case SearchOutcome::kNothingFits: {
      const bool some_fit =
          std::ranges::any_of(result.nearest, [](const FoundPlan& plan) { return plan.fits; });
      if (!some_fit) return text.section("Nothing fits", "the plans that need the least memory");
      return text.section("Nothing leaves the headroom",
                          fmt::format("{}; the plans that need the least memory",
                                      text_of(request.options.headroom)));
    }
    case SearchOutcome::kNotKnown:
      break;
  }
  const std::optional<double>& limit = request.options.time_limit_s;
  text.section("Not known", limit
                                ? fmt::format("no plan that fits was found within {:.4g} s", *limit)
                                : "no plan that fits was found among those that were simulated");
  add_scope(request, result, text);
}

void add_why(const SearchRequest& request, const SearchResult& result, const Refinement& refinement,
             const PlanVerdict& why, ReportText& text) {
  text.section("Why", words_of_plan(*request.why));
  for (const Problem& problem : why.problems) {
    text.wrapped(2, "It can't run: " + problem.field + " " + problem.message);
  }
  if (!why.problems.empty()) return;
  if (!why.found) return text.wrapped(2, "It can't run: its ranks wait for each other forever.");
  const FoundPlan& found = *why.found;
  const Bytes capacity = request.places.front().base.cluster.chip.memory_capacity;
  text.wrapped(2,
               fmt::format("It gives {:.3f} s a step, {:.1f} % MFU, and needs {:.1f} GB of {:.1f} "
                           "GB; it loses most to {}.",
                           to_seconds(found.step), 100 * found.mfu,
                           static_cast<double>(found.peak.value()) / kGigabyte,
                           static_cast<double>(capacity.value()) / kGigabyte, losses(found)));
  text.wrapped(2, fmt::format("Its bounds, without a simulation: at least {:.3f} s and {:.1f} GB.",
                              to_seconds(why.step_bound),
                              static_cast<double>(why.memory_bound.value()) / kGigabyte));
  const auto is_same = [&](const FoundPlan& plan) {
    return changed_keys(plan.plan, found.plan).empty();
  };
  if (const auto at = std::ranges::find_if(result.best, is_same); at != result.best.end()) {
    return text.wrapped(2,
                        fmt::format("It is number {} of the list.", at - result.best.begin() + 1));
  }
  const auto refined = std::ranges::find_if(
      refinement.plans, [&](const RefinedPlan& one) { return is_same(one.plan); });
  if (refined != refinement.plans.end()) {
    const std::optional<std::size_t> of = number_of_start(result, *refined);
    return text.wrapped(
        2, fmt::format("It is what {} was refined to.",
                       of ? fmt::format("number {} of the list", *of) : "the best of a cluster"));
  }
  if (!found.fits) return text.wrapped(2, "It is not in the list because it does not fit.");
  if (!result.best.empty()) {
    const double ratio = to_seconds(found.step) / to_seconds(result.best.front().step);
    text.wrapped(
        2, ratio >= 1 ? fmt::format("It is {:.1f} % slower than the best plan.", 100 * (ratio - 1))
                      : fmt::format("It is {:.1f} % faster than the best plan, but not in "
                                    "the space that was searched.",
                                    100 * (1 - ratio)));
  }
}

}  // namespace

KeyTexts key_texts(const ParallelPlan& plan) {
  const auto text_of = [&plan](KeyGroup group, std::string text) {
    const FieldTable<ParallelPlan>& table = fields_of(group);
    // Over an entry of the catalog, defaults have to be said too.
    for (const FieldValue& value : plan.software.empty() || group == KeyGroup::kPass
                                       ? table.changed(plan)
                                       : table.in_force(plan)) {
      if (value.path == "inference") continue;  // stands first
      text += (text.empty() ? "" : ",") + with_dashes(value.path) + "=" + value.text;
    }
    return text;
  };
  return {.plan = text_of(KeyGroup::kPlan, ""),
          .software = text_of(KeyGroup::kSoftware, plan.software),
          .pass = plan.is_inference()
                      ? text_of(KeyGroup::kPass, std::string(name_of(plan.pass.inference)))
                      : ""};
}

std::string words_of_plan(const ParallelPlan& plan, std::string (*quoted)(const std::string&)) {
  const KeyTexts texts = key_texts(plan);
  const auto word = [quoted](const std::string& text) { return quoted ? quoted(text) : text; };
  std::string words = "--plan " + word(texts.plan);
  if (!texts.software.empty()) words += " --software " + word(texts.software);
  if (!texts.pass.empty()) words += " --pass " + word(texts.pass);
  return words;
}

const FoundPlan* winner_of(const SearchRequest& request, const SearchResult& result,
                           const Refinement& refinement) {
  const FoundPlan* const best = result.best.empty() ? nullptr : &result.best.front();
  if (refinement.plans.empty()) return best;
  const FoundPlan& refined = refinement.plans.front().plan;
  return is_better(refined, best, request) ? &refined : best;
}

SearchOutcome outcome_of(const SearchRequest& request, const SearchResult& result,
                         const Refinement& refinement) {
  const FoundPlan* const winner = winner_of(request, result, refinement);
  if (winner == nullptr) return outcome_of(result);
  return winner->leaves_headroom ? SearchOutcome::kFound : SearchOutcome::kLikely;
}

std::string meaning_of_front(const SearchResult& result) {
  if (result.front_is_whole) return "no plan beats these in time, memory and chips";
  if (!result.front_whole_until) return "of what was simulated";
  return fmt::format("no plan beats these in time, memory and chips, up to {:.3f} s",
                     to_seconds(*result.front_whole_until));
}

std::string search_report(const SearchRequest& request, const SearchResult& result,
                          const Refinement& refinement, const std::optional<PlanVerdict>& why,
                          bool color) {
  ReportText text(color);
  const Experiment& first = request.places.front().base;
  std::string clusters;
  for (const SearchPlace& place : request.places) {
    clusters += (clusters.empty() ? "" : ", ") + place.base.cluster.name;
  }
  text.line("{} on {}: {} sequences of {} tokens", first.model.name, clusters,
            grouped(first.plan.batch.global_batch), grouped(first.plan.batch.sequence));
  const FoundPlan* const winner = winner_of(request, result, refinement);
  const bool is_refined =
      winner != nullptr && (result.best.empty() || winner != &result.best.front());
  add_clusters(request, result, refinement, text);
  if (winner != nullptr) add_training(request, *winner, text);
  if (is_refined) add_refined(request, result, refinement, text);
  add_heading(request, result, text);
  const std::vector<FoundPlan>& plans = listed(result);
  if (!plans.empty()) {
    add_table(request, plans, text);
    text.blank();
    const char* const title = result.best.empty() ? "Nearest"
                              : is_refined        ? "Best of the space"
                                                  : "Best";
    add_plan(request, title, plans.front(), text);
  }
  if (!result.best.empty()) add_scope(request, result, text);
  if (!result.front.empty()) {
    text.section("Front", meaning_of_front(result));
    add_table(request, result.front, text);
  }
  if (!is_refined) add_refined(request, result, refinement, text);
  if (why) add_why(request, result, refinement, *why, text);
  add_counts(result, text);
  return text.text();
}

std::string search_json(const SearchRequest& request, const SearchResult& result,
                        const Refinement& refinement, const std::optional<PlanVerdict>& why) {
  std::string keys;
  for (const std::string& key : searched_keys(request)) {
    keys += (keys.empty() ? "" : ", ") + quoted_json(key);
  }
  return fmt::format(
      "{{\n  \"asked\": {},\n  \"objective\": \"{}\",\n  \"considered\": {},\n  \"excluded\": "
      "{},\n"
      "  \"simulated\": {},\n  \"outcome\": \"{}\",\n  \"bound_gap\": {},\n"
      "  \"searched_keys\": [{}],\n  \"answer\": {},\n  \"front_is_whole\": {},\n"
      "  \"front_gap\": {},\n  \"front_whole_until_s\": {},\n"
      "  \"best\": {},\n  \"front\": {}{}{}{}\n}}\n",
      request.asked.empty() ? "{}" : request.asked, name_of(request.options.objective),
      result.considered, counts_json(result.excluded), result.simulated,
      name_of(outcome_of(request, result, refinement)), json_number(result.bound_gap), keys,
      answer_json(request, result, refinement), result.front_is_whole ? "true" : "false",
      json_number(result.front_gap),
      result.front_whole_until ? exact_seconds(*result.front_whole_until) : "null",
      plans_json(request, listed(result)), plans_json(request, result.front),
      result.best_of_places.empty()
          ? ""
          : ",\n  \"best_of_cluster\": " + best_of_clusters_json(request, result, refinement),
      refined_json(request, result, refinement),
      why ? ",\n  \"why\": " + why_json(request, *why) : "");
}

std::string search_csv(const SearchRequest& request, const SearchResult& result) {
  const std::vector<std::string> columns = searched_keys(request);
  std::string text = "rank,cluster";
  for (const std::string& key : columns) text += "," + key;
  text += ",step_time_s,peak_bytes,fits,model_flops_utilization,chips,cost,energy_joules\n";
  std::size_t rank = 0;
  for (const FoundPlan& plan : listed(result)) {
    text += fmt::format("{},{}", ++rank, csv_cell(request.places[plan.place].base.cluster.name));
    for (const std::string& key : columns) text += "," + csv_cell(value_of_key(plan.plan, key));
    text += fmt::format(",{},{},{},{},{},{},{}\n", exact_seconds(plan.step), plan.peak.value(),
                        plan.fits ? "true" : "false", json_number(plan.mfu), plan.chips,
                        json_number(plan.cost), plan.joules ? json_number(*plan.joules) : "");
  }
  return text;
}

Plot search_plot(const SearchRequest& request, const SearchResult& result) {
  const Experiment& first = request.places.front().base;
  Plot plot{.title = "Plans of " + first.model.name,
            .subtitle = fmt::format("{} sequences of {} tokens, {} plans simulated",
                                    first.plan.batch.global_batch, first.plan.batch.sequence,
                                    result.simulated),
            .x = {.label = "step time", .unit = "s"},
            .y = {.label = "memory of the fullest chip", .unit = "B"}};
  const auto curve = [&](const std::string& label, PlotMark mark,
                         const std::vector<FoundPlan>& plans, std::size_t place) {
    PlotCurve made{.label = label, .mark = mark, .points = {}};
    for (const FoundPlan& plan : plans) {
      if (plan.place != place) continue;
      made.points.push_back({to_seconds(plan.step), static_cast<double>(plan.peak.value())});
    }
    if (!made.points.empty()) plot.curves.push_back(std::move(made));
  };
  for (std::size_t place = 0; place < request.places.size(); ++place) {
    const std::string& name = request.places[place].base.cluster.name;
    curve(name + ": best plans", PlotMark::kPoints, listed(result), place);
    curve(name + ": front", PlotMark::kLine, result.front, place);
  }
  return plot;
}

}  // namespace stepsim
