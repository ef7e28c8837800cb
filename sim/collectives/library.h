// CommunicationLibrary holds what a communication library adds to the links: the time to start, the
// cost of a hop beyond the wire, and the share of a link and of a chip that its protocols use. The
// data are in catalog/libraries/. Which algorithm and protocol a collective takes follows from them
// (library_choice.h).
//
// The default is the ideal library: it adds nothing. Links that are driven by DMA (ICI of TPUs) are
// ideal.
//
// With n members, S bytes and x = S / n, a collective in h rounds that sends V bytes a member takes
//
//   start + h * (hop + latency of the route) + V / bandwidth + x / copy
//         + fill * y / (y + fill_bytes)
//
//   y          x; in switches and along trees S, for all bytes pass each member
//   bandwidth  min(link_fraction * link, most): the links carry V * link / bandwidth bytes, so
//              that what is left over for others is right
//   copy       a member's own shard goes from one buffer to the other, beside the network
//   fill       chunks (Simple) or open channels (LL) grow with the data, up to a limit, and the
//              pipeline has to fill with them
//
// If every member has a message for every other one, each doubling of the members beyond two costs
// `doubling` more, because peers are served a few at a time, and their number squared costs
// `peers_squared` (10 ns: nothing among 8, 38 us among 64; why is not known).
//
// The form is fitted (scripts/fit_library_ways.py); docs/accuracy.md says how well. Not
// modelled: registered buffers, proxies on the host, jitter.
//
// A collective runs in channels, each a block of threads that holds one compute unit of the chip
// while the collective runs, waiting included. A channel moves at most `rate`, and if it adds, at
// most what the unit can add of the type. All channels together move at most what the device memory
// can read and write. So `bandwidth` above is also at most
//
//   open channels * min(rate, reduction throughput of a unit)      and      memory / accesses

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/collectives/direct_kernels.h"

namespace stepsim {

// LL and LL128 are NCCL's: flags travel with every 8 or 128 bytes, so no fence is needed.
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
inline constexpr std::size_t kProtocols = 3;
std::string_view name_of(Protocol protocol);  // "LL", "LL128", "Simple"

enum class HopKind : std::uint8_t { kNvlink, kPcie, kNetwork };
inline constexpr std::size_t kHopKinds = 3;

// LibraryPath is the kind of kernel that a set of constants is for. Algorithms of stepsim that NCCL
// does not have are timed as a ring.
enum class LibraryPath : std::uint8_t {
  kRing,
  kTree,
  kNvls,
  kNvlsTree,  // the switch of each node, and trees between the nodes
  kMessages,
  kRelay,  // all-to-alls that nodes share, of experts: kernels of their own (DeepEP); where there
           // are none, as messages
};
inline constexpr std::size_t kLibraryPaths = 6;
std::string_view name_of(LibraryPath path);  // "ring", "nvls-tree", "messages"

// sim/collectives/library_fields.cc explains every field below, where it is declared for files
// (`stepsim help library`).

// ProtocolChannels says how many channels a collective opens and what one channel can do. From
// NCCL's kernels (src/enqueue.cc, src/graph/connect.cc, src/include/comm.h).
struct ProtocolChannels {
  std::int64_t most = 0;
  std::int64_t network = 0;
  std::int64_t network_most = 0;
  Bytes bytes{};
  Bytes member_bytes{};
  std::optional<Bandwidth> rate{};  // unset: no limit
  double accesses = 0;
};

struct ProtocolTiming {
  LibraryPath path = LibraryPath::kRing;
  Protocol protocol = Protocol::kSimple;
  Duration start{};
  Duration doubling{};
  Duration peers_squared{};
  std::array<Duration, kHopKinds> hop{};  // by HopKind, as link_fraction
  std::array<double, kHopKinds> link_fraction = {1, 1, 1};
  std::optional<Bandwidth> most{};  // unset: no limit
  std::optional<Bandwidth> copy{};  // unset: a copy takes no time
  Duration fill{};
  Bytes fill_bytes{1};
  std::optional<Bytes> most_bytes{};  // unset: no limit
  ProtocolChannels channels{};

  bool takes(Bytes bytes) const { return !most_bytes || bytes <= *most_bytes; }
};

struct CommunicationLibrary {
  std::string name = "ideal";
  std::vector<ProtocolTiming> timings;  // empty: ideal; else what the library can take
  HopKind inside = HopKind::kNvlink;  // between chips of a node; from the topology, not from files
  std::optional<std::int64_t> most_channels{};  // unset: no limit
  bool copy_engines = false;
  // Kernels of serving inside a node, where the library has them.
  std::optional<DirectAllReduce> direct_all_reduce{};
  std::optional<TokenExchange> dispatch{};
  std::optional<TokenExchange> combine{};
  std::optional<BulkExchange> bulk_dispatch{};
  std::optional<BulkExchange> bulk_combine{};
  // Launch of a kernel in passes that are in no CUDA graph, as those whose host reads how many
  // tokens have come. Unset: launching costs nothing.
  std::optional<Duration> host_launch{};

  bool ideal() const { return timings.empty(); }
  // Returns nullptr if there is none.
  const ProtocolTiming* find(LibraryPath path, Protocol protocol) const;
};

// Returns no problem if every field is within its limits, ring and messages have their timings, no
// timing is there twice, and each path has a protocol for any size.
std::vector<Problem> check(const CommunicationLibrary& library);

}  // namespace stepsim
