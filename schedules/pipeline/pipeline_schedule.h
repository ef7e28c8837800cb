// PipelineSchedule is the order of ops on each pipeline rank: a pure function of the number of
// stages and micro-batches. What an op costs, and what is sent between ranks, is not in here.
//
// Notation (as in `stepsim schedule`): F forward, BW backward with input and weight gradient in
// one, B input gradient only, W weight gradient only; "F3.0" is the forward of micro-batch 3 on
// the rank's chunk 0.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepsim {

enum class PipelineOpKind : std::uint8_t { kForward, kBackward };

struct PipelineOp {
  PipelineOpKind kind = PipelineOpKind::kForward;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
  friend bool operator==(const PipelineOp&, const PipelineOp&) = default;
};

using PipelineSchedule = std::vector<std::vector<PipelineOp>>;  // by rank

std::string to_text(const PipelineOp& op);  // "F3.0", "BW3.0"

}  // namespace stepsim
