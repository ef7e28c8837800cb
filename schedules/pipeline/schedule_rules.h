// What the authors of each schedule ask for: chunks a rank, stages, and micro-batches.

#pragma once

#include <cstdint>
#include <string>

#include "schedules/pipeline/schedule_name.h"

namespace stepsim {

// Of a time in costs: all ops one after the other must fit in 64 bits. In picoseconds 53.4 days.
inline constexpr std::int64_t kMostTime = std::int64_t{1} << 62;

enum class ChunkRule : std::uint8_t { kOne, kTwo, kAny, kEven };
ChunkRule chunk_rule(ScheduleName name);

// 1, or 2 where a schedule needs or takes several.
std::int64_t default_chunks(ScheduleName name);

// Half of the micro-batches enter at the last rank: two copies of every stage.
bool is_bidirectional(ScheduleName name);

// Global stages, each held by one rank in one direction.
std::int64_t stage_count(ScheduleName name, std::int64_t ranks, std::int64_t chunks);

// Whether micro-batches go through chunks in groups: interleaved.h.
bool is_interleaved(ScheduleName name);
bool is_legal_group(std::int64_t group, std::int64_t stages, std::int64_t microbatches);

// Whether the order depends on the costs, so that a memory limit can be given; of these the ones
// that count what B gives back.
bool plans_by_cost(ScheduleName name);
bool counts_weight_memory(ScheduleName name);

bool has_fused_ops(ScheduleName name);

// Whether the schedule exists for this number of micro-batches on so many stages, without a group
// being given; and how that is said behind "must be".
bool is_legal_count(ScheduleName name, std::int64_t stages, std::int64_t microbatches);
std::string count_rule(ScheduleName name, std::int64_t stages);

}  // namespace stepsim
