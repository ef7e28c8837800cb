// PipelineSchedule is the order of ops on each pipeline rank. It is a pure function of the number
// of ranks, micro-batches and chunks, and for some schedules of the costs. It says neither how long
// an op runs nor what is sent between ranks.
//
// Notation (as in `stepsim schedule` and in schedule files): the micro-batch, then the chunk on
// that rank:
//
//   F3.0        forward                     B3.0   backward, gradient of the input only
//   W3.0        gradient of the weights     BW3.0  both backwards in one
//   FB5.0/2.1   forward of 5 on chunk 0 fused with the full backward of 2 on chunk 1

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepsim {

enum class PipelineOpKind : std::uint8_t {
  kForward,
  kBackward,  // gradients of input and weights
  kBackwardInput,
  kBackwardWeight,
  kForwardBackward,
};

struct PipelineOp {
  PipelineOpKind kind = PipelineOpKind::kForward;
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;
  std::int32_t backward_microbatch = 0;  // kForwardBackward: micro-batch of its backward
  std::int32_t backward_chunk = 0;
  friend bool operator==(const PipelineOp&, const PipelineOp&) = default;
};

// Limits on the size of schedules that are made or read.
inline constexpr std::int32_t kMostMicrobatches = 1 << 20;
inline constexpr std::int32_t kMostChunks = 1 << 10;    // per rank
inline constexpr std::int64_t kMostForwards = 1 << 24;  // stages x micro-batches x chunks

// Placement says which global stage chunk c of a rank is:
enum class Placement : std::uint8_t {
  kLoop,           // c * ranks + rank; with one chunk: rank
  kV,              // c * ranks + rank for even c, (c + 1) * ranks - 1 - rank for odd c
  kBidirectional,  // rank for micro-batches of direction 0, ranks - 1 - rank for direction 1: two
                   // copies of the parameters
};

struct PipelineSchedule {
  std::int32_t microbatches = 0;
  std::int32_t chunks = 1;
  Placement placement = Placement::kLoop;
  std::vector<std::vector<PipelineOp>> ranks{};

  std::int32_t size() const { return static_cast<std::int32_t>(ranks.size()); }
};

// Returns the number of global stages that a micro-batch passes.
std::int32_t stage_count(const PipelineSchedule& schedule);
std::int32_t stage_of(const PipelineSchedule& schedule, std::int32_t rank, std::int32_t chunk);

// Return the chunk (the same on every rank) and the rank in which a micro-batch passes a global
// stage.
std::int32_t chunk_of(const PipelineSchedule& schedule, std::int32_t microbatch,
                      std::int32_t stage);
std::int32_t rank_of(const PipelineSchedule& schedule, std::int32_t microbatch, std::int32_t stage);

// Returns whether a rank sends another rank messages of one kind from several of its chunks, and
// the other may take them in another order. That happens in a V of more than two chunks, which
// passes the same two ranks more than once in one direction. A loop does that too, but in the same
// order on every rank.
bool shares_ways(const PipelineSchedule& schedule);

std::string to_text(const PipelineOp& op);  // "F3.0", "FB5.0/2.1"

}  // namespace stepsim
