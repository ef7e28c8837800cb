// PublishedSchedule is a row of the table of published pipeline schedules. It holds everything that
// the rest of the program knows about a schedule. To add a schedule, add a file pair in orders/ and
// a row in published_schedule.cc. Plans, `stepsim schedule`, figures and tests read the table.
//
//   for (const ScheduleName name : all_schedules()) { ... published(name).placement ... }

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline/bubble.h"
#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/replay/posting_rules.h"
#include "schedules/pipeline/schedule_name.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// ChunkRule says which numbers of chunks per rank a schedule supports.
enum class ChunkRule : std::uint8_t { kOne, kTwo, kAny, kEven };

// CountRule says which numbers of micro-batches a schedule supports on a number of stages (if no
// group is given).
struct CountRule {
  bool (*is_legal)(std::int64_t stages, std::int64_t microbatches);
  std::string (*text)(std::int64_t stages);  // follows "must be" in messages
};
bool is_any_count(std::int64_t stages, std::int64_t microbatches);
std::string any_count_text(std::int64_t stages);
inline constexpr CountRule kAnyCount{is_any_count, any_count_text};

// PlanningRule belongs to a schedule whose order is planned by the costs, within a limit on
// micro-batches x chunks in flight on a rank.
struct PlanningRule {
  std::int64_t usual_limit_in_stages = 1;               // default of limit / stages
  std::optional<std::int64_t> least_limit_in_stages{};  // unset: a limit of 1 is enough
  bool counts_weight_memory = false;                    // ActivationMemory may be given
  std::int64_t least_limit(std::int64_t stages) const {
    return least_limit_in_stages ? *least_limit_in_stages * stages : 1;
  }
};

// ScheduleNumbers are the inputs of a schedule's maker, checked and with defaults filled in.
struct ScheduleNumbers {
  std::int32_t stages = 1;  // ranks of the pipeline
  std::int32_t microbatches = 1;
  std::int32_t chunks = 1;                         // per rank
  std::optional<std::int32_t> microbatch_group{};  // set if has_groups
  std::int64_t memory_limit = 1;  // this and the next two: set if `planning` is set
  ActivationMemory memory{};
  const StageCosts& costs;
};

struct PublishedSchedule {
  std::string_view name;     // as in plans: "zb_h1"
  std::string_view summary;  // a line in the help of `stepsim schedule`
  ChunkRule chunks = ChunkRule::kOne;
  Placement placement = Placement::kLoop;  // kBidirectional: half of the micro-batches enter at the
                                           // last rank
  CountRule counts = kAnyCount;
  std::int64_t least_stages = 1;
  bool has_groups = false;  // micro-batches go through chunks in groups: interleaved.h
  std::optional<PlanningRule> planning{};
  bool fuses = false;                 // it has FB ops
  bool splits_all_backwards = false;  // it has neither BW nor FB
  bool overlaps_steps = false;        // its bubble is outside the span of each rank, so that the
                                      // next step's forwards must be allowed to start early
  PostingRule posting = kPostAsPlanned;
  bool has_reference_orders = true;  // orders of the authors' own code are tests (tests/reference/
                                     // schedules); else the order is made from the paper's words
  PipelineSchedule (*make)(const ScheduleNumbers& numbers);
  BubbleFormula (*bubble)(const BubbleNumbers& numbers) = nullptr;  // nullptr: none is published
  std::string_view formula_id{};  // id in `stepsim formula`; empty: the formula table has none

  ScheduleName id() const { return ScheduleName{schedule_id(name)}; }
  std::int64_t default_chunks() const { return chunks == ChunkRule::kOne ? 1 : 2; }
  bool is_bidirectional() const { return placement == Placement::kBidirectional; }
  // Returns the number of global stages. Each is held by one rank in one direction.
  std::int64_t stage_count(std::int64_t ranks, std::int64_t chunks_of_rank) const {
    return ranks * (is_bidirectional() ? 1 : chunks_of_rank);
  }
};

// Returns the row of a schedule. REQUIRES: the table has it.
const PublishedSchedule& published(ScheduleName name);

std::vector<ScheduleName> all_schedules();    // in the order of the table
std::string_view name_of(ScheduleName name);  // "1f1b", "zb_h1"
std::optional<ScheduleName> schedule_named(std::string_view name);
std::string schedule_names();  // "naive, naive_sequential, ..."

// Returns "zb_auto_1p, zb_auto_2p and zbv_auto": the schedules that have a property, and `also`.
std::string schedules_with(bool (*has)(const PublishedSchedule& schedule),
                           std::string_view also = {});
bool has_groups(const PublishedSchedule& schedule);
bool plans_by_cost(const PublishedSchedule& schedule);
bool counts_weight_memory(const PublishedSchedule& schedule);
bool fuses(const PublishedSchedule& schedule);

}  // namespace stepsim
