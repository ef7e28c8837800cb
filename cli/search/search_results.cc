#include "cli/search/search_results.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "schedules/plan/keys/key_groups.h"
#include "sim/base/field_text.h"
#include "sim/base/json_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/shown_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

ByName<RawJson> keys_of(KeyGroup group, const ParallelPlan& plan) {
  constexpr std::array<std::string_view, 13> kAlways = {
      "tp",   "cp",         "dp",       "pp",     "ep",        "global_batch",     "sequence",
      "zero", "microbatch", "schedule", "chunks", "recompute", "sequence_parallel"};
  std::set<std::string> shown(kAlways.begin(), kAlways.end());
  for (const FieldValue& value : changed_keys(plan)) shown.insert(value.path);
  ByName<RawJson> keys;
  for (const auto& field : fields_of(group).fields()) {
    const std::string key(field->name());
    if (!shown.contains(key)) continue;
    const std::string value = value_of_key(plan, key);
    const bool is_plain =
        number_in<double>(value).has_value() || value == "true" || value == "false";
    keys.emplace_back(key, RawJson{is_plain ? value : json_of(value)});
  }
  return keys;
}

// All of a search.
struct WholeSearch {
  const SearchRequest* request;
  const SearchResult* result;
  const Refinement* refinement;
  const PlanVerdict* why;  // nullptr: not asked for
};

// A plan that was found. `plan` may be nullptr in lists by cluster: none fits there.
struct ListedPlan {
  const WholeSearch* whole;
  const FoundPlan* plan;
  const RefinedPlan* refined = nullptr;
  std::size_t place = 0;
  double bound_gap = 0;
};

ByName<std::uint64_t> by_reason(const std::map<std::string, std::uint64_t>& counts) {
  return {counts.begin(), counts.end()};
}

template <class Low>
OrNull<std::vector<Low>> ends_of(const std::optional<Interval>& interval, Low (*write)(double)) {
  if (!interval) return {};
  return {std::vector{write(interval->low), write(interval->high)}};
}

std::int64_t whole_bytes(double bytes) {
  return std::llround(bytes);
}

double as_it_is(double value) {
  return value;
}

// Where there may be no plan.
void add_place(ResultTable<ListedPlan>& table) {
  table.add(
      "cluster",
      [](const ListedPlan& one) { return one.whole->request->places[one.place].base.cluster.name; },
      {"its name"});
  table.add("plan",
            [](const ListedPlan& one) {
              return OrNull{one.plan != nullptr
                                ? std::optional(keys_of(KeyGroup::kPlan, one.plan->plan))
                                : std::nullopt};
            },
            {"the usual keys, and those that are not the defaults; null: none fits"});
}

const ResultTable<ListedPlan>& rest_of_plan_results() {
  static const ResultTable<ListedPlan> kTable = [] {
    const auto keys = [](KeyGroup group) {
      return [group](const ListedPlan& one) { return keys_of(group, one.plan->plan); };
    };
    const auto found = [](auto member) {
      return [member](const ListedPlan& one) { return one.plan->*member; };
    };
    ResultTable<ListedPlan> table;
    table.add("software", keys(KeyGroup::kSoftware), {"keys that are not the defaults"});
    table.add("pass", keys(KeyGroup::kPass), {"keys that are not the defaults"});
    table.add("step_time_s", found(&FoundPlan::step), {"of a step", "s"});
    table.add(
        "step_time_interval_s",
        [](const ListedPlan& one) { return ends_of(one.plan->step_interval_s, &nearest_time); },
        {"[low, high]: where 8 of 10 measured steps would lie; null: not known", "s"});
    table.add("peak_bytes", found(&FoundPlan::peak), {"memory of the fullest chip", "bytes"});
    table.add(
        "peak_interval_bytes",
        [](const ListedPlan& one) { return ends_of(one.plan->peak_interval_bytes, &whole_bytes); },
        {"[low, high]: the same of it; null: not known", "bytes"});
    table.add("fits", found(&FoundPlan::fits), {"whether it fits"});
    table.add("fits_certainty", [](const ListedPlan& one) { return name_of(one.plan->certainty); },
              {"sure, likely or no"});
    table.add("model_flops_utilization", found(&FoundPlan::mfu), {"MFU", "0 to 1"});
    table.add("chips", found(&FoundPlan::chips), {"that the plan uses"});
    table.add("cost", found(&FoundPlan::cost),
              {"of a step: chip-hours, or with --chip-hour their price"});
    table.add("energy_joules", [](const ListedPlan& one) { return OrNull{one.plan->joules}; },
              {"of a step; null where the chip doesn't say its power", "J"});
    table.add("run",
              [](const ListedPlan& one) { return run_command_of(*one.whole->request, *one.plan); },
              {"the command that runs it"});
    return table;
  }();
  return kTable;
}

const ResultTable<ListedPlan>& listed_plan_results() {
  static const ResultTable<ListedPlan> kTable = [] {
    ResultTable<ListedPlan> table;
    add_place(table);
    table.include(rest_of_plan_results(), std::identity{});
    return table;
  }();
  return kTable;
}

const ResultTable<PlanChange>& change_results() {
  static const ResultTable<PlanChange> kTable = [] {
    ResultTable<PlanChange> table;
    table.add("key", &PlanChange::key, {"that was changed"});
    table.add("from", &PlanChange::from, {"before"});
    table.add("to", &PlanChange::to, {"after"});
    return table;
  }();
  return kTable;
}

const ResultTable<ListedPlan>& refined_plan_results() {
  static const ResultTable<ListedPlan> kTable = [] {
    ResultTable<ListedPlan> table;
    table.include(listed_plan_results(), std::identity{});
    table.add(
        "of",
        [](const ListedPlan& one) {
          return OrNull{number_of_start(*one.whole->result, *one.refined)};
        },
        {"number of the plan of best that it comes from; null: the best of its cluster, which is "
         "not listed"});
    table.list("changes", change_results(),
               [](const ListedPlan& one) { return one.refined->changes; },
               {"keys that were changed"});
    return table;
  }();
  return kTable;
}

struct TrainingOfPlan {
  double tokens = 0;
  Training training{};
};

OrNull<TrainingOfPlan> training_of_listed(const ListedPlan& one) {
  const auto& tokens = one.whole->request->tokens;
  if (!tokens || one.plan == nullptr) return {};
  return {TrainingOfPlan{*tokens, training_of(*one.whole->request, *one.plan)}};
}

const ResultTable<TrainingOfPlan>& training_results() {
  static const ResultTable<TrainingOfPlan> kTable = [] {
    using Plan = TrainingOfPlan;
    ResultTable<Plan> table;
    table.add("tokens", &Plan::tokens, {"of the training"});
    table.add("days", [](const Plan& one) { return one.training.days; }, {"it takes", "days"});
    table.add("days_interval",
              [](const Plan& one) { return ends_of(one.training.days_interval, &as_it_is); },
              {"[low, high]; null where the step has none", "days"});
    table.add("cost", [](const Plan& one) { return one.training.cost; },
              {"chip-hours, or with --chip-hour their price"});
    table.add("energy_kwh", [](const Plan& one) { return OrNull{one.training.kilowatt_hours}; },
              {"null where the chip doesn't say its power", "kWh"});
    return table;
  }();
  return kTable;
}

void add_training(ResultTable<ListedPlan>& table) {
  table.object("training", training_results(), training_of_listed,
               {"a whole training with the plan, without failures; null without --tokens"});
}

const ResultTable<ListedPlan>& answer_of_search_results() {
  static const ResultTable<ListedPlan> kTable = [] {
    ResultTable<ListedPlan> table;
    table.include(listed_plan_results(), std::identity{});
    table.add("refined",
              [](const ListedPlan& one) {
                const auto& best = one.whole->result->best;
                return best.empty() || one.plan != &best.front();
              },
              {"whether it is one of refined"});
    add_training(table);
    return table;
  }();
  return kTable;
}

const ResultTable<ListedPlan>& best_of_cluster_results() {
  static const ResultTable<ListedPlan> kTable = [] {
    ResultTable<ListedPlan> table;
    add_place(table);
    table.include(rest_of_plan_results(),
                  [](const ListedPlan& one) { return one.plan != nullptr ? &one : nullptr; });
    table.add("bound_gap", &ListedPlan::bound_gap, {"of the plans of the space there; 0: proven"});
    add_training(table);
    return table;
  }();
  return kTable;
}

OrNull<ListedPlan> answer_of(const WholeSearch& whole) {
  const FoundPlan* const winner = winner_of(*whole.request, *whole.result, *whole.refinement);
  if (winner == nullptr) return {};
  return {ListedPlan{&whole, winner, nullptr, winner->place}};
}

std::vector<ListedPlan> plans_of(const WholeSearch& whole, const std::vector<FoundPlan>& plans) {
  std::vector<ListedPlan> listed;
  for (const FoundPlan& plan : plans) listed.push_back({&whole, &plan, nullptr, plan.place});
  return listed;
}

std::vector<ListedPlan> best_of_clusters(const WholeSearch& whole) {
  std::vector<ListedPlan> clusters;
  for (std::size_t place = 0; place < whole.result->best_of_places.size(); ++place) {
    const BestOfCluster best =
        best_of_cluster(place, *whole.request, *whole.result, *whole.refinement);
    clusters.push_back({&whole, best.plan, nullptr, place, best.bound_gap});
  }
  return clusters;
}

std::vector<ListedPlan> refined_plans(const WholeSearch& whole) {
  std::vector<ListedPlan> plans;
  for (const RefinedPlan& refined : whole.refinement->plans) {
    plans.push_back({&whole, &refined.plan, &refined, refined.plan.place});
  }
  return plans;
}

const ResultTable<WholeSearch>& refinement_results() {
  static const ResultTable<WholeSearch> kTable = [] {
    const auto of = [](auto member) {
      return [member](const WholeSearch& whole) { return whole.refinement->*member; };
    };
    ResultTable<WholeSearch> table;
    table.list("plans", refined_plan_results(), refined_plans, {"best first"});
    table.add("considered", of(&Refinement::considered), {"changes that were tried"});
    table.add("excluded",
              [](const WholeSearch& whole) { return by_reason(whole.refinement->excluded); },
              {"by reason; with simulated they add up to considered"});
    table.add("simulated", of(&Refinement::simulated), {"plans"});
    table.add("is_whole", of(&Refinement::is_whole),
              {"whether no change is left that makes them better"});
    return table;
  }();
  return kTable;
}

std::vector<std::string> problems_of_plan(const WholeSearch& whole) {
  std::vector<std::string> problems;
  for (const Problem& problem : whole.why->problems) {
    problems.push_back(problem.field + " " + problem.message);
  }
  return problems;
}

const ResultTable<WholeSearch>& verdict_results() {
  static const ResultTable<WholeSearch> kTable = [] {
    const auto bound = [](auto member) {
      return [member](const WholeSearch& whole) {
        return OrNull{whole.why->problems.empty() ? std::optional(whole.why->*member)
                                                  : std::nullopt};
      };
    };
    ResultTable<WholeSearch> table;
    table.add(
        "plan",
        [](const WholeSearch& whole) { return keys_of(KeyGroup::kPlan, *whole.request->why); },
        {"that was asked for"});
    table.add("problems", problems_of_plan, {"rules that it breaks"});
    table.object("found", listed_plan_results(),
                 [](const WholeSearch& whole) -> OrNull<ListedPlan> {
                   const auto& found = whole.why->found;
                   if (!found) return {};
                   return {ListedPlan{&whole, &*found, nullptr, found->place}};
                 },
                 {"null where it can't run"});
    table.add("step_bound_s", bound(&PlanVerdict::step_bound),
              {"a step takes at least this, without a simulation", "s"});
    table.add("memory_bound_bytes", bound(&PlanVerdict::memory_bound),
              {"it needs at least this", "bytes"});
    return table;
  }();
  return kTable;
}

void add_proof(ResultTable<WholeSearch>& table) {
  const auto of = [](auto member) {
    return [member](const WholeSearch& whole) { return whole.result->*member; };
  };
  table.add("asked",
            [](const WholeSearch& whole) {
              return RawJson{whole.request->asked.empty() ? "{}" : whole.request->asked};
            },
            {"the command's words and options"});
  table.add("objective",
            [](const WholeSearch& whole) { return name_of(whole.request->options.objective); },
            {"step, memory or cost"});
  table.add("considered", of(&SearchResult::considered), {"combinations of values in the space"});
  table.add(
      "excluded", [](const WholeSearch& whole) { return by_reason(whole.result->excluded); },
      {"by reason; with simulated they add up to considered: rule of KEY (the first that is "
       "broken), chips (no multiple of tp x cp x pp), same as another, memory, headroom (it can't "
       "leave it), worse by its bound, can't run, not reached"});
  table.add("simulated", of(&SearchResult::simulated), {"plans"});
  table.add(
      "outcome",
      [](const WholeSearch& whole) {
        return name_of(outcome_of(*whole.request, *whole.result, *whole.refinement));
      },
      {"found; likely (no plan leaves the headroom, and these fit by their prediction); nothing "
       "fits (proven: no plan of the space leaves the headroom); not fast enough (proven, with "
       "--step-at-most); not known (none was found, and some were not reached)"});
  table.add("bound_gap", of(&SearchResult::bound_gap),
            {"0: the best plan of the space is proven; 0.02: another may be up to 2 % better; 1: "
             "nothing was found"});
  table.add("searched_keys", [](const WholeSearch& whole) { return searched_keys(*whole.request); },
            {"the keys of the space, over which bound_gap holds"});
  table.object("answer", answer_of_search_results(), answer_of,
               {"the best plan of all; null: none"});
  table.add("front_is_whole", of(&SearchResult::front_is_whole),
            {"whether every plan that could be on the front was simulated"});
  table.add("front_gap", of(&SearchResult::front_gap),
            {"0 then; 0.02: a plan that was not simulated may have 2 % less time and memory than "
             "each of the front"});
  table.add(
      "front_whole_until_s",
      [](const WholeSearch& whole) { return OrNull{whole.result->front_whole_until}; },
      {"the front is whole up to this step time; null: all of it, or nothing is proven", "s"});
}

const ResultTable<WholeSearch>& search_results() {
  static const ResultTable<WholeSearch> kTable = [] {
    ResultTable<WholeSearch> table;
    add_proof(table);
    table.list(
        "best", listed_plan_results(),
        [](const WholeSearch& whole) { return plans_of(whole, listed(*whole.result)); },
        {"those that leave the headroom, best first; where none does, those that are likely to "
         "fit, or those with the least memory of what was simulated"});
    table.list("front", listed_plan_results(),
               [](const WholeSearch& whole) { return plans_of(whole, whole.result->front); },
               {"plans that no other beats in time, memory and chips, by step time"});
    table.list("best_of_cluster", best_of_cluster_results(), best_of_clusters,
               {"the best plan of each, refined or not", "", "with several clusters"});
    table.object(
        "refined", refinement_results(),
        [](const WholeSearch& whole) {
          return whole.request->refine == RefineEffort::kNone ? nullptr : &whole;
        },
        {"the best plans with one more key changed after the other", "", "unless --refine none"});
    table.object("why", verdict_results(),
                 [](const WholeSearch& whole) { return whole.why == nullptr ? nullptr : &whole; },
                 {"what becomes of a plan", "", "with --why"});
    return table;
  }();
  return kTable;
}

}  // namespace

std::string search_json(const SearchRequest& request, const SearchResult& result,
                        const Refinement& refinement, const std::optional<PlanVerdict>& why) {
  return search_results().json({&request, &result, &refinement, why ? &*why : nullptr}) + '\n';
}

std::vector<CommandResult> search_command_results() {
  return {{"", &search_results()}};
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
