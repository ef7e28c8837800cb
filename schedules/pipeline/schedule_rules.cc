#include "schedules/pipeline/schedule_rules.h"

#include <fmt/format.h>

#include "schedules/pipeline/orders/interleaved.h"

namespace stepsim {

ChunkRule chunk_rule(ScheduleName name) {
  switch (name) {
    case ScheduleName::kInterleaved:
    case ScheduleName::kInterleavedZeroBubble:
    case ScheduleName::kBreadthFirst:
    case ScheduleName::kBreadthFirstLifo:
      return ChunkRule::kAny;
    case ScheduleName::kHanayo:
      return ChunkRule::kEven;
    case ScheduleName::kZeroBubbleVHand:
    case ScheduleName::kZeroBubbleVAuto:
    case ScheduleName::kVHalf:
    case ScheduleName::kVMin:
    case ScheduleName::kDualPipe:
    case ScheduleName::kDualPipeV:
    case ScheduleName::kChimera:
      return ChunkRule::kTwo;
    default:
      return ChunkRule::kOne;
  }
}

std::int64_t default_chunks(ScheduleName name) {
  return chunk_rule(name) == ChunkRule::kOne ? 1 : 2;
}

bool is_bidirectional(ScheduleName name) {
  return name == ScheduleName::kDualPipe || name == ScheduleName::kChimera;
}

std::int64_t stage_count(ScheduleName name, std::int64_t ranks, std::int64_t chunks) {
  return ranks * (is_bidirectional(name) ? 1 : chunks);
}

bool is_interleaved(ScheduleName name) {
  return name == ScheduleName::kInterleaved || name == ScheduleName::kInterleavedZeroBubble;
}

bool is_legal_group(std::int64_t group, std::int64_t stages, std::int64_t microbatches) {
  if (group < stages || group > microbatches) return false;
  return microbatches % group == 0 || microbatches % group >= stages;
}

bool plans_by_cost(ScheduleName name) {
  return counts_weight_memory(name) || name == ScheduleName::kZeroBubbleVAuto;
}

bool counts_weight_memory(ScheduleName name) {
  return name == ScheduleName::kZeroBubbleAuto1P || name == ScheduleName::kZeroBubbleAuto2P;
}

bool has_fused_ops(ScheduleName name) {
  return name == ScheduleName::kDualPipe || name == ScheduleName::kDualPipeV;
}

bool is_legal_count(ScheduleName name, std::int64_t stages, std::int64_t microbatches) {
  switch (name) {
    case ScheduleName::kNaive:
      return microbatches == 1;
    case ScheduleName::kZeroBubbleH1:
    case ScheduleName::kZeroBubbleH2:
    case ScheduleName::kDualPipeV:
      return microbatches >= 2 * stages;
    case ScheduleName::kDualPipe:
      return microbatches >= 2 * stages && microbatches % 2 == 0;
    case ScheduleName::kChimera:
      return microbatches >= 2 && microbatches % 2 == 0;
    case ScheduleName::kInterleaved:
      return microbatches >= stages && default_microbatch_group(stages, microbatches).has_value();
    case ScheduleName::kInterleavedZeroBubble:
      return microbatches >= 1 && default_microbatch_group(stages, microbatches).has_value();
    default:
      return microbatches >= 1;
  }
}

std::string count_rule(ScheduleName name, std::int64_t stages) {
  switch (name) {
    case ScheduleName::kNaive:
      return "1 (naive_sequential runs more)";
    case ScheduleName::kZeroBubbleH1:
    case ScheduleName::kZeroBubbleH2:
    case ScheduleName::kDualPipeV:
      return fmt::format("at least 2 x stages = {}", 2 * stages);
    case ScheduleName::kDualPipe:
      return fmt::format("even (both directions together) and at least 2 x stages = {}",
                         2 * stages);
    case ScheduleName::kChimera:
      return "even (half of them in each direction)";
    case ScheduleName::kInterleaved:
      return fmt::format(
          "at least stages = {} and a multiple of max(1, microbatches div stages), which makes "
          "equal groups, unless a microbatch_group is given",
          stages);
    case ScheduleName::kInterleavedZeroBubble:
      return "a multiple of max(1, microbatches div stages), which makes equal groups, unless a "
             "microbatch_group is given";
    default:
      return "at least 1";
  }
}

}  // namespace stepsim
