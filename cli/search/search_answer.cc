#include "cli/search/search_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/catalog/catalog.h"
#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_schedule.h"

namespace stepsim {
namespace {

constexpr double kKilowattHour = 3.6e6;  // joules

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

// Whether a refined plan may be listed and is better than another, if there is one.
bool is_better(const FoundPlan& refined, const FoundPlan* other, const SearchRequest& request) {
  const bool may_be = refined.leaves_headroom || (request.options.takes_likely && refined.fits);
  if (!may_be) return false;
  return other == nullptr || merit_of(refined, request.options) < merit_of(*other, request.options);
}

}  // namespace

// The value of a key as in files; "" if it is not set.
std::string value_of_key(const ParallelPlan& plan, std::string_view key) {
  const AnyField* const field = find_key(key);
  if (key == "chunks") return std::to_string(chunks_of(plan.pipeline));
  return field->write(&plan).value_or("");
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

}  // namespace stepsim
