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

}  // namespace stepsim
