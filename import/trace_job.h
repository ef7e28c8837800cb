// TraceJob is the work of a job as a trace or a workload file of other software has it: a graph of
// nodes for each rank, and the groups in which ranks meet. Readers of formats make one
// (import/importer.h); replay() (import/replay.h) makes an op graph of it, which simulate() runs on
// any cluster.
//
//   node kind    takes
//   kNothing     no time: it only hands dependencies on
//   kKernel      the chip, one kernel of a lane at a time
//   kGap         its time: the lane waits for the host, which launches
//   kOther       the host's processor, or another lane of the chip: a given time
//   kCollective  what the network of the cluster makes of it
//   kSend        likewise; does not wait for its receive
//   kReceive     until the bytes of its send have arrived
//
// Nodes are in the order in which they are issued where nothing else orders them. Dependencies are
// positions of nodes of the same rank.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/collective.h"

namespace stepsim {

enum class TraceNodeKind : std::uint8_t {
  kNothing,
  kKernel,
  kGap,
  kOther,
  kCollective,
  kSend,
  kReceive
};
inline constexpr std::size_t kTraceNodeKinds = 7;
std::string_view name_of(TraceNodeKind kind);  // "kernel"

struct TraceNode {
  TraceNodeKind kind = TraceNodeKind::kNothing;
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::uint32_t name = 0;               // TraceJob::names
  std::optional<std::uint32_t> lane{};  // kernels and collectives of one lane follow one another
  std::uint32_t group = 0;              // collectives: TraceJob::groups, or divisions
  std::uint32_t root = 0;               // member of the group, of collectives that have one
  std::uint32_t peer = 0;               // rank; sends and receives
  std::int64_t tag = 0;                 // sends and receives: the n-th of equal tags match
  std::optional<Duration> time{};       // kernels: unset if only flops and bytes are known
  Flops flops{};                        // of a kernel
  Bytes bytes{};                        // kernels: moved. Others: as CollectiveWork::bytes, Message
  std::size_t dependencies_end = 0;  // of TraceRank::dependencies; they begin at the previous end
};

struct TraceRank {
  std::vector<TraceNode> nodes;
  std::vector<std::uint32_t> dependencies;

  void add(TraceNode node, std::span<const std::uint32_t> after);
  std::span<const std::uint32_t> dependencies_of(std::size_t node) const;
};

struct TraceJob {
  std::string source;                              // "chakra"
  std::vector<TraceRank> programs;                 // one a rank, or one that all ranks run
  std::uint32_t ranks = 0;                         // at least as many as programs
  std::vector<std::vector<std::uint32_t>> groups;  // of ranks; the first has all
  // Where one program stands for ranks of different groups, its collectives name one of these:
  // groups of one size that have each rank once. Empty: collectives name groups.
  std::vector<std::vector<std::uint32_t>> divisions{};
  std::vector<std::string> names;

  const TraceRank& program_of(std::uint32_t rank) const {
    return programs.size() == 1 ? programs[0] : programs[rank];
  }
  std::size_t nodes() const;  // of all programs
  // A group of the size that collectives have which name `group`.
  std::uint32_t first_group(std::uint32_t group) const {
    return divisions.empty() ? group : divisions[group][0];
  }
};

// Returns every group from 0 to ranks - 1.
std::vector<std::uint32_t> all_ranks(std::uint32_t ranks);

// TraceNames numbers names.
class TraceNames {
 public:
  explicit TraceNames(std::vector<std::string>& names) : names_(names) {}
  std::uint32_t number(std::string_view name);

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace stepsim
