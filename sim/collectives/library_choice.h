// choose_with_library() turns a request into an algorithm, a protocol, and their costs beyond the
// links. `auto` chooses as NCCL does: the lowest of NCCL's own expectations (ncclTopoTuneModel and
// ncclTopoGetAlgoTime, src/graph/tuning.cc). These decide but are not the predicted time:
//
//   base + h * hop + S / (rate * ratio)      ratio: S over what a member sends
//
//   ring    rate: what the search found, LL at most half of it and `ll_most`, LL128 0.92 of it and
//           channels * ring_ll128_channel; h = n - 1, twice that for all-reduce, of which one (two)
//           a node cross the network; level by level those of the levels one after another
//   tree    all-reduce over nodes: a chain in each node, two binary trees a card between them; half
//           the ring's rate, 2 (d - 1) hops in nodes and 2 log2 M between them
//   nvls    all-reduce of floating-point numbers in one node of five and more: the switches add up
//   nvls-tree  the same over nodes of five and more: trees a card between the switches; two nodes
//           hand each other all data once, more hand it up and down
//
// The channels that the protocol opens decide how much of the chips it holds (library.h).
//
// A library of serving takes its own kernel for an all-reduce of one node whose switch adds and
// copies, up to the size that it says (direct_kernels.h): the time is the kernel's closed form, of
// which the bytes of one reading take their part of the links. The halves of an exchange with
// experts (ExpertHalf) take kernels of that library likewise: those for few tokens in one node and,
// by RDMA, over several; those for many in one node, where the links carry a copy for each expert.
//
// Without a library (ideal) it chooses by closed forms. In a node whose switch adds and copies, the
// switch takes one trip and S/W, or (n - 1) / n of it if shards are sent. Nothing is faster, unless
// the switch adds slowly. Otherwise it chooses as choose_algorithm.h does.
//
// Algorithms that NCCL does not have, or that the user names, get the protocol that is expected to
// be best for a ring of as many rounds.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/library.h"

namespace stepsim {

// GroupLinks is what a library knows about the place of a group. An unset bandwidth means no limit.
struct GroupLinks {
  std::uint32_t members = 1;
  std::uint32_t nodes = 1;
  std::optional<std::uint32_t> of_smallest_node{};  // members; unset: equally many in each
  std::optional<Bandwidth> inside{};   // the slowest route between neighbours of one node
  std::optional<Bandwidth> network{};  // the slowest route between nodes
  std::optional<Bandwidth> adder{};    // rate at which a compute unit of the chips adds this type
  std::optional<Bandwidth> memory{};   // rate at which a chip's memory reads and writes
  std::int64_t units = 1;              // compute units of a chip
  bool nvls = false;                   // the switch between the chips of a node adds and copies
  std::optional<Bandwidth> switch_adders{};  // limit on its operands; unset: none
  std::uint32_t cards() const { return of_smallest_node.value_or(members / nodes); }
  friend bool operator==(const GroupLinks&, const GroupLinks&) = default;
};

// LibraryCost is what the library adds to the transfers of one collective or message.
struct LibraryCost {
  Duration start{};                             // once, before the first byte
  std::array<Duration, kHopKinds> hop{};        // to every message, by the kind of its route
  std::array<double, kHopKinds> wire{1, 1, 1};  // bytes on a link for each byte of data, >= 1
  // Held on each member's chip from the start to the end:
  std::int64_t channels = 0;  // compute units
  Bandwidth memory{};         // of device memory, read and written, while data move
  bool has_trips = false;     // `start` holds the latencies of the links too
  friend bool operator==(const LibraryCost&, const LibraryCost&) = default;
};

struct LibraryChoice {
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;  // never kAuto
  LibraryCost cost{};
  std::string protocol;  // "LL"; empty: ideal
  std::string why;       // a sentence
};

// `floating`: switches can add the elements' type (fp32, bf16, fp16). REQUIRES: shape.members() >
// 1; refusal() of the choice is empty; check(library) is empty.
LibraryChoice choose_with_library(const CommunicationLibrary& library, const CollectiveTask& task,
                                  bool floating, AlgorithmChoice asked, const GroupShape& shape,
                                  const GroupLinks& links);

// Returns the cost of a message of `bytes` over a route of this kind. `link`: the narrowest link of
// the route.
LibraryCost cost_of_message(const CommunicationLibrary& library, Bytes bytes, HopKind kind,
                            Bandwidth link);

}  // namespace stepsim
