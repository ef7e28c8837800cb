// DeviceTrace is what ran on chips, as a trace has it: slices of kernels, copies and communication
// for each rank, and its steps. PyTorch's Kineto traces and stepsim's own become one
// (import/trace/read_trace.h); `stepsim diff` lays two side by side, and `stepsim import kineto`
// replays one.
//
// Times are whole nanoseconds, since 1970 where the file says so. Nothing is rounded but digits
// below a nanosecond.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/collective.h"

namespace stepsim {

// What a slice does. From kAllReduce to kCommunication it communicates.
enum class SliceKind : std::uint8_t {
  kMatmul,
  kAttention,
  kNorm,
  kConvolution,
  kElementwise,
  kReduction,
  kEmbedding,
  kLoss,
  kOptimizer,
  kCopy,
  kHost,  // ops of the processor, in traces without a chip
  kOtherWork,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendReceive,
  kCommunication,  // other
  kWaiting,        // for others of its group
  kIdle,
};
inline constexpr std::size_t kSliceKinds = 21;
std::string_view name_of(SliceKind kind);  // "all-gather"
constexpr bool communicates(SliceKind kind) {
  return kind >= SliceKind::kAllReduce && kind <= SliceKind::kCommunication;
}

// Returns the kind of a kernel by its name, of NVIDIA or AMD, or of an op of stepsim.
SliceKind kind_of_kernel(std::string_view name);
// Returns the kind of a collective by its name: "allreduce", "_allgather_base", "all-to-all".
SliceKind kind_of_collective(std::string_view name);
std::optional<CollectiveOp> collective_of(SliceKind kind);

// What a slice of communication says of itself.
struct SliceCollective {
  std::int64_t bytes = 0;                  // of the larger buffer; 0: not told
  std::optional<std::uint32_t> members{};  // of its group
  std::uint32_t group = 0;                 // DeviceTrace::names: its ranks or its name
};

// Recompute, and gradients of weights, are of the backward.
enum class SliceDirection : std::uint8_t { kUnknown, kForward, kBackward };
std::string_view name_of(SliceDirection direction);  // "forward"; "" if it is not known

struct TraceSlice {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t moving = 0;  // from then on all members were there; = start if that is not known
  std::uint32_t name = 0;   // DeviceTrace::names
  std::uint32_t lane = 0;   // stream
  SliceKind kind = SliceKind::kOtherWork;
  SliceDirection direction = SliceDirection::kUnknown;
  std::int32_t layer = -1;                    // -1: the trace doesn't say
  std::uint32_t step = 0;                     // index into RankTrace::steps, while it is read
  std::optional<std::uint32_t> collective{};  // RankTrace::collectives
};

struct TraceStep {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string name;  // "ProfilerStep#4"
};

struct RankTrace {
  std::optional<std::uint32_t> rank{};  // unset: the file does not say
  std::vector<TraceSlice> slices;       // by start, then end
  std::vector<SliceCollective> collectives;
  std::vector<TraceStep> steps;  // at least one; in order
};

struct DeviceTrace {
  std::vector<RankTrace> ranks;
  std::vector<std::string> names;
  std::vector<std::string> notes;
  bool knows_waits = false;   // TraceSlice::moving is known of all collectives
  bool is_simulated = false;  // one of stepsim's own
};

// Returns the step to look at: of all but the first, which carries the profiler's start, and the
// last, whose end is not seen, that of median length. REQUIRES: there are steps.
std::size_t usual_step(const std::vector<TraceStep>& steps);

// Sets `moving` of collectives whose members are all in the trace: matched by group, kind and
// order where all members have equally many, by their ends otherwise. Sets knows_waits if all
// collectives of several members were matched.
void find_waits(DeviceTrace& trace);

}  // namespace stepsim
