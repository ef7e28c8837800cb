#include "schedules/pipeline/published/published_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "schedules/pipeline/orders/breadth_first.h"
#include "schedules/pipeline/orders/chimera.h"
#include "schedules/pipeline/orders/controllable_memory.h"
#include "schedules/pipeline/orders/dual_pipe.h"
#include "schedules/pipeline/orders/gpipe.h"
#include "schedules/pipeline/orders/hanayo.h"
#include "schedules/pipeline/orders/interleaved.h"
#include "schedules/pipeline/orders/naive.h"
#include "schedules/pipeline/orders/one_forward_one_backward.h"
#include "schedules/pipeline/orders/zero_bubble.h"
#include "schedules/pipeline/orders/zero_bubble_auto.h"
#include "schedules/pipeline/orders/zero_bubble_v.h"

namespace stepsim {
namespace {

constexpr CountRule kTwiceTheStages{
    [](std::int64_t stages, std::int64_t microbatches) { return microbatches >= 2 * stages; },
    [](std::int64_t stages) { return fmt::format("at least 2 x stages = {}", 2 * stages); }};

constexpr CountRule kEvenAndTwiceTheStages{
    [](std::int64_t stages, std::int64_t microbatches) {
      return microbatches >= 2 * stages && microbatches % 2 == 0;
    },
    [](std::int64_t stages) {
      return fmt::format("even (both directions together) and at least 2 x stages = {}",
                         2 * stages);
    }};

constexpr CountRule kEven{
    [](std::int64_t, std::int64_t microbatches) {
      return microbatches >= 2 && microbatches % 2 == 0;
    },
    [](std::int64_t) { return std::string("even (half of them in each direction)"); }};

constexpr CountRule kJustOne{
    [](std::int64_t, std::int64_t microbatches) { return microbatches == 1; },
    [](std::int64_t) { return std::string("1 (naive_sequential runs more)"); }};

constexpr const char* kEqualGroups =
    "a multiple of max(1, microbatches div stages), which makes equal groups, unless a "
    "microbatch_group is given";

constexpr CountRule kEqualGroupsOfAll{
    [](std::int64_t stages, std::int64_t microbatches) {
      return microbatches >= stages && default_microbatch_group(stages, microbatches).has_value();
    },
    [](std::int64_t stages) {
      return fmt::format("at least stages = {} and {}", stages, kEqualGroups);
    }};

constexpr CountRule kEqualGroupsOfAny{
    [](std::int64_t stages, std::int64_t microbatches) {
      return microbatches >= 1 && default_microbatch_group(stages, microbatches).has_value();
    },
    [](std::int64_t) { return std::string(kEqualGroups); }};

InterleavedShape interleaved_shape(const ScheduleNumbers& n) {
  return {n.stages, n.microbatches, n.chunks, *n.microbatch_group};
}

PipelineSchedule planned_zb_auto(const ScheduleNumbers& n) {
  return zb_auto(n.stages, n.microbatches, n.costs, n.memory_limit, n.memory);
}

constexpr auto kTable = std::to_array<PublishedSchedule>({
    {.name = "naive",
     .summary = "one micro-batch through all stages and back",
     .counts = kJustOne,
     .posting = kPostAroundOps,
     .make = [](const ScheduleNumbers& n) { return naive(n.stages); },
     .bubble = naive_bubble},
    {.name = "naive_sequential",
     .summary = "one micro-batch after another",
     .posting = kPostAroundOps,
     .make = [](const ScheduleNumbers& n) { return naive_sequential(n.stages, n.microbatches); },
     .bubble = naive_bubble},
    {.name = "gpipe",
     .summary = "all forwards, then all backwards",
     .posting = kPostAroundOps,
     .make = [](const ScheduleNumbers& n) { return gpipe(n.stages, n.microbatches); },
     .bubble = gpipe_bubble,
     .formula_id = "G1.ratio"},
    {.name = "gpipe_lifo",
     .summary = "all forwards, then all backwards in reverse",
     .posting = kPostAroundOps,
     .make = [](const ScheduleNumbers& n) { return gpipe_lifo(n.stages, n.microbatches); },
     .bubble = gpipe_bubble},
    {.name = "1f1b",
     .summary = "a warm-up, then one forward and one backward in turn",
     .posting = kPostAroundOps,
     .make =
         [](const ScheduleNumbers& n) {
           return one_forward_one_backward(n.stages, n.microbatches);
         },
     .bubble = one_forward_one_backward_bubble,
     .formula_id = "G1.ratio"},
    {.name = "eager_1f1b",
     .summary = "1f1b with twice the warm-up: slow messages cost less",
     .make =
         [](const ScheduleNumbers& n) {
           return eager_one_forward_one_backward(n.stages, n.microbatches);
         },
     .bubble = eager_one_forward_one_backward_bubble},
    {.name = "interleaved_1f1b",
     .summary = "1f1b over several chunks a rank, in groups of micro-batches",
     .chunks = ChunkRule::kAny,
     .counts = kEqualGroupsOfAll,
     .has_groups = true,
     .posting = kPostByTurns,
     .make = [](const ScheduleNumbers& n) { return interleaved_1f1b(interleaved_shape(n)); },
     .bubble = interleaved_1f1b_bubble,
     .formula_id = "G2"},
    {.name = "breadth_first",
     .summary = "each chunk for all micro-batches before the next chunk",
     .chunks = ChunkRule::kAny,
     .make =
         [](const ScheduleNumbers& n) { return breadth_first(n.stages, n.microbatches, n.chunks); },
     .bubble = breadth_first_bubble},
    {.name = "breadth_first_lifo",
     .summary = "breadth_first with backwards in reverse",
     .chunks = ChunkRule::kAny,
     .make =
         [](const ScheduleNumbers& n) {
           return breadth_first_lifo(n.stages, n.microbatches, n.chunks);
         },
     .bubble = breadth_first_bubble},
    {.name = "zb_h1",
     .summary = "1f1b with weight gradients where it would wait; memory of 1f1b",
     .counts = kTwiceTheStages,
     .splits_all_backwards = true,
     .make = [](const ScheduleNumbers& n) { return zb_h1(n.stages, n.microbatches); },
     .bubble = zb_h1_bubble},
    {.name = "zb_h1_quickstart",
     .summary = "zb_h1 that splits only the backwards that need it",
     .posting = kPostAroundOps,
     .make = [](const ScheduleNumbers& n) { return zb_h1_quickstart(n.stages, n.microbatches); },
     .bubble = zb_h1_bubble},
    {.name = "zb_h2",
     .summary = "zero bubble by hand, with twice the memory of 1f1b",
     .counts = kTwiceTheStages,
     .splits_all_backwards = true,
     .overlaps_steps = true,
     .make = [](const ScheduleNumbers& n) { return zb_h2(n.stages, n.microbatches); },
     .bubble = zb_h2_bubble},
    {.name = "zb_auto_1p",
     .summary = "zero bubble planned by times, memory of 1f1b",
     .planning = PlanningRule{.usual_limit_in_stages = 1, .counts_weight_memory = true},
     .splits_all_backwards = true,
     .make = planned_zb_auto,
     .bubble = zb_auto_1p_bubble},
    {.name = "zb_auto_2p",
     .summary = "zero bubble planned by times, twice the memory of 1f1b",
     .planning = PlanningRule{.usual_limit_in_stages = 2, .counts_weight_memory = true},
     .splits_all_backwards = true,
     .overlaps_steps = true,
     .make = planned_zb_auto,
     .bubble = zb_auto_2p_bubble},
    {.name = "interleaved_zb1p",
     .summary = "interleaved_1f1b with split backwards",
     .chunks = ChunkRule::kAny,
     .counts = kEqualGroupsOfAny,
     .has_groups = true,
     .splits_all_backwards = true,
     .make = [](const ScheduleNumbers& n) { return interleaved_zb1p(interleaved_shape(n)); },
     .bubble = interleaved_zb1p_bubble},
    {.name = "zbv_hand",
     .summary = "zero bubble on two chunks laid out as a V, memory of 1f1b",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kV,
     .splits_all_backwards = true,
     .overlaps_steps = true,
     .make = [](const ScheduleNumbers& n) { return zbv_hand(n.stages, n.microbatches); },
     .bubble = zbv_bubble},
    {.name = "zbv_auto",
     .summary = "zbv_hand planned by times",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kV,
     .planning = PlanningRule{.usual_limit_in_stages = 2, .least_limit_in_stages = 2},
     .splits_all_backwards = true,
     .overlaps_steps = true,
     .make =
         [](const ScheduleNumbers& n) {
           return zbv_auto(n.stages, n.microbatches, median_stage(n.costs), n.memory_limit);
         },
     .bubble = zbv_bubble},
    {.name = "v_half",
     .summary = "a V with half the memory of 1f1b",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kV,
     .splits_all_backwards = true,
     .make = [](const ScheduleNumbers& n) { return v_half(n.stages, n.microbatches); },
     .bubble = v_half_bubble},
    {.name = "v_min",
     .summary = "a V with a third of the memory of 1f1b",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kV,
     .splits_all_backwards = true,
     .make = [](const ScheduleNumbers& n) { return v_min(n.stages, n.microbatches); },
     .bubble = v_min_bubble},
    {.name = "dualpipe",
     .summary = "two directions; a forward fused with a backward hides all-to-alls",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kBidirectional,
     .counts = kEvenAndTwiceTheStages,
     .fuses = true,
     .posting = kPostCommitted,
     .make = [](const ScheduleNumbers& n) { return dualpipe(n.stages, n.microbatches); },
     .bubble = dualpipe_bubble},
    {.name = "dualpipev",
     .summary = "dualpipe cut in half: a V with one copy of the parameters",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kV,
     .counts = kTwiceTheStages,
     .least_stages = 2,
     .fuses = true,
     .posting = kPostCommitted,
     .make = [](const ScheduleNumbers& n) { return dualpipev(n.stages, n.microbatches); },
     .bubble = dualpipev_bubble},
    {.name = "chimera",
     .summary = "two 1f1b pipelines in opposite directions",
     .chunks = ChunkRule::kTwo,
     .placement = Placement::kBidirectional,
     .counts = kEven,
     .make = [](const ScheduleNumbers& n) { return chimera(n.stages, n.microbatches); },
     .bubble = chimera_bubble},
    {.name = "hanayo",
     .summary = "waves down and up the ranks, one copy of the parameters",
     .chunks = ChunkRule::kEven,
     .placement = Placement::kV,
     .has_reference_orders = false,
     .make = [](const ScheduleNumbers& n) { return hanayo(n.stages, n.microbatches, n.chunks); }},
});

constexpr bool ids_differ() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    for (std::size_t j = i + 1; j < kTable.size(); ++j) {
      if (schedule_id(kTable[i].name) == schedule_id(kTable[j].name)) return false;
    }
  }
  return true;
}
static_assert(ids_differ(), "two schedules have the same id: rename one");

// A plan is asked for its schedule again and again, so the ids are worked out once.
constexpr auto kIds = [] {
  std::array<ScheduleName, kTable.size()> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = ScheduleName{schedule_id(kTable[i].name)};
  return ids;
}();

}  // namespace

bool is_any_count(std::int64_t, std::int64_t microbatches) {
  return microbatches >= 1;
}

std::string any_count_text(std::int64_t) {
  return "at least 1";
}

const PublishedSchedule& published(ScheduleName name) {
  const auto place = static_cast<std::size_t>(std::ranges::find(kIds, name) - kIds.begin());
  if (place == kIds.size()) throw std::logic_error("a schedule that is not in the table");
  return kTable[place];
}

std::vector<ScheduleName> all_schedules() {
  std::vector<ScheduleName> names;
  for (const PublishedSchedule& schedule : kTable) names.push_back(schedule.id());
  return names;
}

std::string_view name_of(ScheduleName name) {
  return published(name).name;
}

std::optional<ScheduleName> schedule_named(std::string_view name) {
  const auto* row = std::ranges::find(kTable, name, &PublishedSchedule::name);
  if (row == kTable.end()) return std::nullopt;
  return row->id();
}

std::string schedule_names() {
  std::string names;
  for (const PublishedSchedule& schedule : kTable) {
    names += (names.empty() ? "" : ", ") + std::string(schedule.name);
  }
  return names;
}

std::string schedules_with(bool (*has)(const PublishedSchedule&), std::string_view also) {
  std::vector<std::string_view> names;
  for (const PublishedSchedule& schedule : kTable) {
    if (has(schedule)) names.push_back(schedule.name);
  }
  if (!also.empty()) names.push_back(also);
  const std::string_view last = names.back();
  names.pop_back();
  if (names.empty()) return std::string(last);
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

bool has_groups(const PublishedSchedule& schedule) {
  return schedule.has_groups;
}

bool plans_by_cost(const PublishedSchedule& schedule) {
  return schedule.planning.has_value();
}

bool counts_weight_memory(const PublishedSchedule& schedule) {
  return schedule.planning && schedule.planning->counts_weight_memory;
}

bool fuses(const PublishedSchedule& schedule) {
  return schedule.fuses;
}

}  // namespace stepsim
