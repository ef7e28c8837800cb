// What runs a plan, by themes: the kernels, copies, messages and launches that a training software
// brings. Those that layers are built from stand in workload/ (kernel_choices.h, narrow_types.h).
// software_fields.cc says what each key does and when to change it, and is where a new key is
// declared.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/units.h"
#include "workload/model/model_habits.h"
#include "workload/parts/kernel_choices.h"
#include "workload/parts/narrow_types.h"

namespace stepsim {

// What the host launches as one graph, at the cost of one launch.
enum class CudaGraphs : std::uint8_t {
  kNone,
  kBlocks,  // what has a fixed shape in each pass over a block
  kStep,    // all of the step
};
inline constexpr std::size_t kCudaGraphs = 3;
std::string_view name_of(CudaGraphs graphs);  // "blocks"

// TensorPieces says what tensor ranks send in pieces, beside the matmuls that need them.
struct TensorPieces {
  std::int64_t tensor_chunks = 1;
  std::int64_t tensor_pieces = 1;
  bool overlap_tensor = false;
  bool overlap_shared_experts = false;
};

// MessagePlan says how messages between stages, and gradients, are put together.
struct MessagePlan {
  bool scatter_messages = false;  // each tensor rank sends a share, gathered behind (no ranks of
  // sequence_parallel, which hold shares anyway)
  bool batch_p2p = false;  // messages in batches, as the schedule's runtime posts them (posting.h)
  std::optional<std::int64_t> gradient_bucket_parameters;  // unset: see bucket_parameters()
};

// Buffers are copies that a software makes and keeps.
struct Buffers {
  bool save_gathered = false;  // FSDP: what forwards gathered stays for their backwards
  bool keep_root = false;  // FSDP: the embedding's gathered weights stay until the backward ends
  bool shared_master = false;  // FSDP: the divided fp32 weights are the master weights
  bool fsdp_copies = false;    // into and out of the buffers of its collectives
  bool copy_inputs = false;  // each matmul that tensor ranks divide by columns has its input's copy
  bool gradient_placeholders = false;
};

// OptimizerUpdate says what the update reads, writes and frees.
struct OptimizerUpdate {
  std::int64_t optimizer_bytes = 12;         // per parameter
  std::int64_t optimizer_scratch_bytes = 0;  // per parameter that it updates, while it runs
  std::int64_t second_moment_bytes = 4;  // of those of optimizer_bytes: Muon's matrices have none
  std::int64_t newton_schulz_steps = 5;  // of Muon
  std::int64_t gradient_bytes = 4;       // per parameter
  bool separate_accumulation = false;
  bool hold_gradients = true;   // false: each is used up as soon as it is reduced
  bool free_gradients = false;  // by the optimizer; the next backward makes them again
  bool clip_gradients = false;
  bool post_validation = false;
  bool host_optimizer = false;
  bool host_gradients = false;  // with host_optimizer their sums lie where it runs
};

// HostLaunches says what the host takes to start kernels.
struct HostLaunches {
  std::optional<Duration> host_launch_cost;  // of one launch; unset: launching costs nothing
  std::int64_t host_queue_depth = 1024;      // launches
  CudaGraphs cuda_graphs = CudaGraphs::kNone;
  bool host_reads_counts = true;  // of the tokens of each expert

  // Whether ops wait until the host has launched them.
  bool delay_ops() const { return host_launch_cost && cuda_graphs != CudaGraphs::kStep; }
};

// MemoryFigure is what a software's figure of memory counts: tensors, also what its allocator keeps
// of freed ones, also context and libraries (nvidia-smi).
enum class MemoryFigure : std::uint8_t { kAllocated, kReserved, kDevice };
inline constexpr std::size_t kMemoryFigures = 3;
std::string_view name_of(MemoryFigure figure);  // "reserved"

// Allocator says what lies in memory beside tensors. It is no part of a step: figures of memory
// that a run printed are compared with it (measured).
struct Allocator {
  MemoryFigure figure = MemoryFigure::kDevice;
  // What it keeps beside tensors at the peak, as a part of them. Of twelve public logs of
  // Megatron-LM and what is made of it, which print both (0.6, 0.7, 0.8, 0.8, 2.5, 3.8, 5.4, 7.7,
  // 14, 22, 38, 52 %): the middle.
  double unused = 0.05;
  // Under ZeRO 1 and 2: flat copies of gradients that the optimizer makes, for each parameter whose
  // state the rank holds. Nothing else fits in their blocks.
  std::int64_t flat_gradient_bytes = 0;
};

}  // namespace stepsim
