// OpGraph describes the work of every rank of a job in one training step: programs by role, the
// ranks that run them, and the communicators on which they meet.
//
// Ranks of one role do the same work, so there is one Program per role. For every rank the graph
// says which program it runs and on which chip. A program is the loop body of one step. It is never
// unrolled, and an op may depend on an op of the previous step.
//
//   program  =  streams, each a list of ops that run in order;
//   an op starts when the previous op of its stream has ended and its dependencies have ended.
//
// Four kinds of op:
//   compute     a run of kernels (ComputeWork) on the program's compute stream
//   collective  one operation of a communicator group (CollectiveWork)
//   messages    sends and receives that are posted together and end together (Message)
//   host        a copy to or from the chip's host, or work of the host on its memory (HostWork)
//
// An op names a communicator, never a list of ranks: a partition of the ranks into groups. The
// n-th op of each member on a communicator is one collective. A communicator is used from one
// stream only.
//
// Build one with ProgramBuilder (sim/program/program_builder.h). Everything is plain data after
// that.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/chips/kernel.h"
#include "sim/collectives/byte_matrix.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/step_list.h"
#include "sim/program/variation.h"

namespace stepsim {

// Axis is the purpose of communication, and the key of exposed communication in the breakdown. Axes
// are opaque here: the code that makes a graph numbers its axes from 0 and names them in
// OpGraph::axes. schedules/plan/axis.h has those of a training plan.
enum class Axis : std::uint8_t;
inline constexpr std::size_t kMostAxes = 8;

enum class MemoryCategory : std::uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kCache,  // of keys and values: inference
  kGatheredParameters,
  kBuffers,
  kFixedOverhead,
};
inline constexpr std::size_t kMemoryCategories = 8;
std::string_view name_of(MemoryCategory category);  // "gathered_parameters"
using MemoryBytes = std::array<Bytes, kMemoryCategories>;

// A run of kernels without communication between them. Works are shared by programs.
struct ComputeWork {
  std::vector<Kernel> kernels;
  std::uint32_t path_label = 0;  // what it counts as on the critical path: OpGraph::path_labels
};

// Returns the launches that a run costs its host: at least one.
std::uint32_t launches_of(const ComputeWork& work);

struct CollectiveWork {
  CommunicatorId communicator;
  CollectiveOp op = CollectiveOp::kAllReduce;
  Bytes bytes;  // the larger of one member's send and receive buffer
  DataType type = DataType::kBf16;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  std::uint32_t root = 0;   // member of the group: broadcast, reduce, gather, scatter
  std::uint32_t shift = 1;  // permute: member m sends to member m + shift, cyclically
  // All-to-all: index of the bytes between members in OpGraph::byte_matrices; `bytes` is then its
  // largest_buffer(). Unset: all pairs exchange equally much.
  std::optional<std::uint32_t> byte_matrix{};
  std::optional<std::uint32_t> permutation{};  // permute: OpGraph::permutations instead of `shift`
  std::optional<std::uint32_t> step_list{};    // kCustom: OpGraph::step_lists
  std::optional<ExpertHalf> experts{};         // all-to-all: kernels of serving may run it
  friend bool operator==(const CollectiveWork&, const CollectiveWork&) = default;
};

enum class MessageKind : std::uint8_t {
  kActivation,
  kGradient,
  kState,  // concerns the whole step: the norm of its gradients
};
std::string_view name_of(MessageKind kind);  // "activation"

// One half of a point-to-point message. A send and a receive match when source, destination,
// kind, micro-batch and boundary are equal (and the step): never by order.
struct Message {
  bool is_send = false;
  MessageKind kind = MessageKind::kActivation;
  bool eager = false;  // the send does not wait until its receive is posted
  CommunicatorId communicator;
  std::uint32_t peer = 0;                      // member of the communicator's group
  std::optional<std::int32_t> microbatch = 0;  // unset for kState
  std::int32_t boundary = 0;  // between global stages `boundary` and `boundary` + 1
  Bytes bytes;
};

enum class HostAction : std::uint8_t {
  kCopyOut,  // from the chip to its host
  kCopyIn,
  kUpdate,  // the host reads and writes its memory
  kOther,   // takes `time`, and no link: what a trace has of the host, or of other streams
};
struct HostWork {
  HostAction action = HostAction::kCopyOut;
  Bytes bytes;         // copied, or read and written
  bool stays = false;  // the copied bytes stay on the host from kCopyOut to kCopyIn
  Duration time{};     // kOther
  friend bool operator==(const HostWork&, const HostWork&) = default;
};

enum class OpKind : std::uint8_t { kCompute, kCollective, kMessages, kHost };

// Dependency is an op that must have ended: the one at `position` on `stream` of the same rank, in
// this step or the previous one (which counts as ended in the first step).
struct Dependency {
  StreamId stream;
  std::uint32_t position = 0;
  bool previous_step = false;
};

// MemoryChange is bytes that appear when the op starts or disappear when it ends.
struct MemoryChange {
  MemoryCategory category = MemoryCategory::kActivations;
  bool at_end = false;  // false: allocated at the start; true: freed at the end
  Bytes bytes;          // positive
};

// A name for traces and reports: "block forward: qkv_projection" of layer 17 and micro-batch 3.
// Consecutive compute ops of one pass, such as "F 3", are a part of the program that a trace shows
// as one.
struct OpLabel {
  std::uint32_t name = 0;  // OpGraph::names
  std::optional<std::int32_t> layer{};
  std::optional<std::int32_t> microbatch{};
  std::optional<std::uint32_t> pass{};  // OpGraph::names
  std::uint8_t part = 0;  // a number of whoever makes the graph: what the op is of its step
};

struct Op {
  OpKind kind = OpKind::kCompute;
  Axis axis{};                         // used by communication only
  std::uint32_t work = 0;              // index into the works of its kind, or messages
  std::uint32_t work_count = 1;        // kMessages: messages [work, work + work_count)
  std::uint32_t dependencies_end = 0;  // ends of this op's ranges in the program's tables;
  std::uint32_t memory_end = 0;        // they begin where the previous op's end
};

struct Stream {
  std::string name;
  bool computes = false;  // whether it is the program's compute stream; exactly one is
  std::uint32_t first_op = 0;
  std::uint32_t ops = 0;
};

// LaunchCall is the host's part of an op: as many launches, one after the other.
struct LaunchCall {
  OpId op;
  std::uint32_t launches = 1;
  bool waits = false;  // the host goes on when the op has ended: it reads a result
};

// Ops are stored stream by stream: op id = stream.first_op + position.
struct Program {
  std::string name;  // the role: "stage 0"
  std::vector<Stream> streams;
  std::vector<Op> ops;
  std::vector<OpLabel> labels;  // by op
  std::vector<Dependency> dependencies;
  std::vector<MemoryChange> memory_changes;
  std::vector<LaunchCall> launches{};  // every op in the order of the host; only with OpGraph::host
  MemoryBytes resident{};              // held from the start of the run to its end
  Bytes held_on_host{};                // likewise, on the host

  std::span<const Dependency> dependencies_of(OpId op) const {
    const std::uint32_t i = op.index();
    const std::uint32_t begin = i == 0 ? 0 : ops[i - 1].dependencies_end;
    return {dependencies.data() + begin, ops[i].dependencies_end - begin};
  }
  std::span<const MemoryChange> memory_changes_of(OpId op) const {
    const std::uint32_t i = op.index();
    const std::uint32_t begin = i == 0 ? 0 : ops[i - 1].memory_end;
    return {memory_changes.data() + begin, ops[i].memory_end - begin};
  }
};

// A partition of (some of) the ranks into groups, each an ordered list of members.
struct Communicator {
  std::string name;  // "tp", "dp gradients"
  Axis axis{};
  std::vector<std::vector<RankId>> groups;
  struct Seat {
    std::uint32_t group = 0;
    std::uint32_t member = 0;
  };
  std::vector<Seat> seat_of;   // by rank; REQUIRES: only ranks of a group use the communicator
  bool in_background = false;  // its collectives run beside compute, ahead of those who wait
};

// RankData is the data of a rank that others of its role do not share.
struct RankData {
  ProgramId program;
  std::uint32_t chip = 0;  // number of its chip in Cluster::places
  double slowdown = 1;     // kernels take this times longer (a straggler is above 1)
  std::uint32_t tp = 0;    // coordinates in the dense mesh
  std::uint32_t cp = 0;
  std::uint32_t dp = 0;
  std::uint32_t pp = 0;
};

// HostCost makes ops wait until the host of their rank has launched them.
struct HostCost {
  Duration launch{};                 // time of one launch
  std::uint32_t queue_depth = 1024;  // launches on the compute stream ahead of what has ended
};

struct OpGraph {
  std::vector<Program> programs;
  std::vector<RankData> ranks;
  std::vector<Communicator> communicators;
  std::vector<ComputeWork> compute_works;
  std::vector<CollectiveWork> collective_works;
  std::vector<Message> messages;
  std::vector<HostWork> host_works;
  std::vector<ByteMatrix> byte_matrices;                 // for ragged all-to-alls
  std::vector<std::vector<std::uint32_t>> permutations;  // by member: the member it sends to
  std::vector<StepList> step_lists;                      // proven: disproof() returns nullopt
  std::vector<std::string> names;                        // names of ops
  std::vector<std::string> axes;                         // by Axis; at most kMostAxes
  std::vector<std::string> path_labels;    // of compute on the critical path: "forward"
  Jitter jitter{};                         // jitter of runs of kernels
  std::uint32_t pipeline_stages = 1;       // above 1, waiting with nothing left to run is a bubble
  std::vector<std::string> stage_names{};  // by stage; empty: "stage 0", "stage 1"
  std::optional<HostCost> host{};          // unset: launching costs nothing

  // The bytes that the ranks send in one step for each axis, by the plan's own closed form.
  // simulate() counts the bytes sent and throws std::logic_error if they differ. Unset: no such
  // check.
  std::optional<std::array<Bytes, kMostAxes>> planned_bytes;
};

// Returns "tp", or "axis 3" if the graph does not name it.
std::string name_of(const OpGraph& graph, Axis axis);
// Returns "stage 3", or what the graph calls it: "experts".
std::string name_of_stage(const OpGraph& graph, std::uint32_t stage);

}  // namespace stepsim
