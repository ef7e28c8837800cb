#include "search/refine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "schedules/plan/inference_plan.h"
#include "schedules/plan/keys/key_groups.h"
#include "search/plan_bench.h"
#include "search/plan_helper.h"
#include "sim/base/parallel.h"

namespace stepsim {
namespace {

constexpr double kLeastGain = 5e-4;                     // of the objective
constexpr std::uint64_t kOpsOfRefinement = 10'000'000;  // some 3 s on one core
constexpr int kMostRounds = 4;

std::string value_in(const ParallelPlan& plan, std::string_view key) {
  return find_key(key)->write(&plan).value_or("");
}

// Returns the orders of the axes that have more than one rank. The others come last.
std::vector<std::string> orders_of(const ParallelPlan& plan) {
  std::vector<std::string> axes;
  std::string rest;
  for (const auto& [name, ranks] : {std::pair{"cp", plan.mesh.cp}, std::pair{"dp", plan.mesh.dp},
                                    std::pair{"pp", plan.mesh.pp}, std::pair{"tp", plan.mesh.tp}}) {
    if (ranks > 1) {
      axes.emplace_back(name);
    } else {
      rest += std::string("-") + name;
    }
  }
  std::vector<std::string> orders;
  if (axes.size() < 2) return orders;
  do {
    std::string order;
    for (const std::string& axis : axes) order += (order.empty() ? "" : "-") + axis;
    orders.push_back(order + rest);
  } while (std::ranges::next_permutation(axes).found);
  return orders;
}

// Returns the maps of axes over the axes of a torus ("tp:x/dp:y+z") that fill them exactly.
std::vector<std::string> maps_of(const ParallelPlan& plan, const Places& places) {
  constexpr std::size_t kMostLevels = 4;
  const std::vector<Level>& levels = places.levels;
  const bool is_torus =
      std::ranges::all_of(levels, [](const Level& level) { return level.name.size() == 1; });
  if (!is_torus || levels.size() < 2 || levels.size() > kMostLevels) return {};
  const std::pair<std::string_view, std::int64_t> axes[] = {
      {"tp", plan.mesh.tp}, {"cp", plan.mesh.cp}, {"dp", plan.mesh.dp}, {"pp", plan.mesh.pp}};
  constexpr std::size_t kAxesOfPlan = std::size(axes);
  std::size_t all = 1;
  for (std::size_t i = 0; i < levels.size(); ++i) all *= kAxesOfPlan;
  std::vector<std::string> maps;
  for (std::size_t number = 0; number < all; ++number) {
    std::string map;
    bool fills = true;
    for (std::size_t axis = 0; axis < kAxesOfPlan; ++axis) {
      std::int64_t chips = 1;
      std::string own;
      std::size_t rest = number;
      for (const Level& level : levels) {
        if (rest % kAxesOfPlan == axis) {
          chips *= level.size;
          own += (own.empty() ? "" : "+") + level.name;
        }
        rest /= kAxesOfPlan;
      }
      fills = fills && chips == axes[axis].second;
      if (!own.empty()) {
        map += (map.empty() ? "" : "/") + std::string(axes[axis].first) + ":" + own;
      }
    }
    if (fills) maps.push_back(std::move(map));
  }
  return maps;
}

// One start on its way.
struct Chain {
  FoundPlan now{};
  bool is_better = false;
};

class Refiner {
 public:
  Refiner(const std::vector<SearchPlace>& places, const SettledKeys& settled, RefineEffort effort,
          const SearchOptions& options, std::optional<double> seconds)
      : options_(options), settled_(settled), effort_(effort) {
    for (const SearchPlace& place : places) benches_.push_back(std::make_unique<PlanBench>(place));
    if (seconds) {
      deadline_ = SearchClock::now() + std::chrono::duration_cast<SearchClock::duration>(
                                           std::chrono::duration<double>(*seconds));
    }
  }

  Refinement run(const std::vector<FoundPlan>& starts) {
    for (const FoundPlan& start : starts) tried_.insert(key_of(start.place, start.plan));
    for (std::size_t i = 0; i < starts.size() && !is_over(); ++i) {
      Chain chain{.now = starts[i]};
      refine(chain);
      if (chain.is_better) add(starts[i], i, std::move(chain.now));
    }
    std::ranges::stable_sort(result_.plans, {}, [&](const RefinedPlan& refined) {
      return std::tuple(merit_of(refined.plan, options_), refined.start);
    });
    return std::move(result_);
  }

 private:
  bool is_over() {
    const bool is_late = deadline_ && SearchClock::now() >= *deadline_;
    const bool is_spent = effort_ == RefineEffort::kQuick && ops_ >= kOpsOfRefinement;
    if (is_late || is_spent) result_.is_whole = false;
    return is_late || is_spent;
  }

  static std::string key_of(std::size_t place, const ParallelPlan& plan) {
    std::string text = std::to_string(place) + ":";
    for (const FieldValue& value : changed_keys(plan)) {
      text += value.path + "=" + value.text + ",";
    }
    return text;
  }

  void refine(Chain& chain) {
    for (int round = 0; round < kMostRounds; ++round) {
      bool changed = false;
      const SearchPlace& place = benches_[chain.now.place]->place();
      std::vector<PlanMoves> all =
          moves_of(chain.now.plan, place.base.model, place.places, settled_);
      if (!chain.now.leaves_headroom) {  // first what makes room
        std::stable_partition(all.begin(), all.end(), std::mem_fn(&PlanMoves::makes_room));
      }
      for (const PlanMoves& moves : all) {
        if (is_over()) return;
        changed = try_all(moves, chain) || changed;
      }
      if (!changed) return;
    }
    result_.is_whole = false;
  }

  struct Trial {
    ParallelPlan plan{};
    std::string excluded{};  // why it is not simulated
    SimulatedPlan done{};
  };

  // Tries each value of a key with all others as they are. Returns whether one is better.
  bool try_all(const PlanMoves& moves, Chain& chain) {
    std::vector<Trial> trials;
    for (const auto& move : moves.moves) {
      Trial trial{.plan = chain.now.plan};
      bool is_same = true;
      for (const auto& [key, value] : move) {
        is_same = is_same && value_in(trial.plan, key) == value;
        if (!set_key(key, value, trial.plan).empty()) trial.excluded = "rule of " + key;
      }
      if (is_same) continue;
      complete_inference(benches_[chain.now.place]->place().base.model, trial.plan);
      if (tried_.insert(key_of(chain.now.place, trial.plan)).second)
        trials.push_back(std::move(trial));
    }
    const std::optional<Duration> most = most_step(chain.now);
    const Bytes memory = most_memory(chain.now);
    for_each_in_parallel(trials.size(), options_.threads,
                         [&](std::size_t i) { run(chain.now.place, most, memory, trials[i]); });
    bool changed = false;
    for (Trial& trial : trials) {
      ++result_.considered;
      ops_ += trial.done.ops;
      if (!trial.done.plan) {
        ++result_.excluded[trial.excluded];
        continue;
      }
      ++result_.simulated;
      FoundPlan& found = *trial.done.plan;
      found.place = chain.now.place;
      found.number = chain.now.number;
      if (!is_better(found, chain.now)) continue;
      chain.now = std::move(found);
      chain.is_better = changed = true;
    }
    return changed;
  }

  bool is_better(const FoundPlan& plan, const FoundPlan& than) const {
    if (plan.fits && options_.most_step && plan.step > *options_.most_step) return false;
    const auto [kind, value] = merit_of(plan, options_);
    const auto [other_kind, other] = merit_of(than, options_);
    if (kind != other_kind) return kind < other_kind;
    return value < other * (1 - kLeastGain);
  }

  // Chips stay the same, so that cost and chips go with the step.
  std::optional<Duration> most_step(const FoundPlan& now) const {
    // A slower plan is better than one that does not leave the headroom.
    if (!now.leaves_headroom || options_.objective == Objective::kMemory) return options_.most_step;
    return Duration(std::llround(static_cast<double>(now.step.count()) * (1 - kLeastGain)));
  }

  // What a change may need at least: a plan that does not fit has to need less.
  Bytes most_memory(const FoundPlan& now) const {
    PlanBench& bench = *benches_[now.place];
    if (now.leaves_headroom) return bench.usable(now.plan, options_);
    if (now.fits) return bench.capacity();
    return std::max(bench.capacity(), bench.memory(now.plan) - Bytes(1));
  }

  void run(std::size_t place, std::optional<Duration> most, Bytes most_memory, Trial& trial) const {
    if (!trial.excluded.empty()) return;
    PlanBench& bench = *benches_[place];
    if (const auto problem = bench.problem_of(trial.plan)) {
      trial.excluded = "rule of " + problem->field.substr(problem->field.find('.') + 1);
      return;
    }
    const PlanBounds::Quick bounds = bench.memory_and_quick(trial.plan);
    if (bounds.memory > most_memory) {
      trial.excluded = "memory";
      return;
    }
    if (most && (bounds.step > *most || bench.close(trial.plan) > *most)) {
      trial.excluded = "worse by its bound";
      return;
    }
    trial.done = bench.simulated(trial.plan, options_, deadline_, most);
    if (trial.done.plan) return;
    trial.excluded = trial.done.cannot_run  ? "can't run"
                     : trial.done.is_slower ? "worse while simulated"
                                            : "not reached";
  }

  void add(const FoundPlan& start, std::size_t number, FoundPlan found) {
    const std::string key = key_of(found.place, found.plan);
    const bool is_known = std::ranges::any_of(result_.plans, [&](const RefinedPlan& other) {
      return key_of(other.plan.place, other.plan.plan) == key;
    });
    if (is_known) return;
    RefinedPlan refined{.plan = std::move(found), .start = number};
    for (const AnyField* const field : all_keys()) {
      const std::string from = field->write(&start.plan).value_or("");
      const std::string to = field->write(&refined.plan.plan).value_or("");
      if (from != to) refined.changes.push_back({std::string(field->name()), from, to});
    }
    result_.plans.push_back(std::move(refined));
  }

  const SearchOptions& options_;
  const SettledKeys& settled_;
  RefineEffort effort_;
  std::vector<std::unique_ptr<PlanBench>> benches_;
  std::optional<SearchClock::time_point> deadline_{};
  std::set<std::string> tried_;
  std::uint64_t ops_ = 0;
  Refinement result_{};
};

}  // namespace

std::vector<PlanMoves> moves_of(const ParallelPlan& plan, const ModelSpec& model,
                                const Places& places, const SettledKeys& settled) {
  std::vector<PlanMoves> all;
  const auto is_settled = [&](const std::string& key) {
    return settled.searched.contains(key) || settled.given.contains(key);
  };
  const auto add = [&](const std::string& key, const std::vector<std::string>& values) {
    if (is_settled(key)) return;
    PlanMoves moves{.key = key, .moves = {}};
    for (const std::string& value : values) moves.moves.push_back({{key, value}});
    if (!moves.moves.empty()) all.push_back(std::move(moves));
  };
  const auto add_pair = [&](std::pair<std::string, std::string> first,
                            std::pair<std::string, std::string> second) {
    if (is_settled(first.first) || settled.given.contains(second.first)) return;
    all.push_back({.key = first.first, .moves = {{std::move(first), std::move(second)}}});
  };
  const std::vector<std::string> truths = {"false", "true"};
  if (plan.mesh.map.empty()) add("order", orders_of(plan));
  add("map", maps_of(plan, places));
  if (plan.mesh.tp > 1) {
    add("sequence_parallel", truths);
    add("overlap_tensor", truths);
    add("tensor_chunks", {"1", "2", "4"});
    add("tensor_pieces", {"1", "4"});
    if (plan.mesh.pp > 1) add("scatter_messages", truths);
  }
  if (plan.mesh.cp > 1) add("cp_mode", {"zigzag_ring", "all_gather", "ulysses"});
  if (plan.mesh.replicas() > 1) {
    add("overlap_gradients", truths);
    add("overlap_parameters", truths);
    if (plan.state.zero == 3) {
      add("reshard_after_forward", truths);
      add("prefetch", {"1", "2"});
    }
  }
  if (model.experts.routed > 0 && plan.mesh.ep > 1) {
    add("dispatch", {"all_to_all", "two_level"});
    add("overlap_expert_parallel", truths);
    add("overlap_shared_experts", truths);
  }
  const std::size_t makes_none = all.size();
  add("offload_activations", truths);
  if (value_in(plan, "recompute") != "none") {
    // More room is worth something only if it is used: less is computed again.
    add_pair({"offload_activations", "true"}, {"recompute", "none"});
  }
  add("offload_optimizer", truths);
  if (!plan.offload.optimizer && !is_settled("host_optimizer")) {
    add_pair({"offload_optimizer", "true"}, {"host_optimizer", "true"});
  }
  for (std::size_t i = makes_none; i < all.size(); ++i) all[i].makes_room = true;
  if (plan.offload.optimizer) add("host_optimizer", truths);
  return all;
}

Refinement refine_plans(const std::vector<SearchPlace>& places,
                        const std::vector<FoundPlan>& starts, const SettledKeys& settled,
                        RefineEffort effort, const SearchOptions& options,
                        std::optional<double> seconds) {
  if (effort == RefineEffort::kNone) return {};
  return Refiner(places, settled, effort, options, seconds).run(starts);
}

}  // namespace stepsim
