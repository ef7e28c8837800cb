// ways_of() lists the ways in which a library can run a collective in a group: algorithm, protocol,
// and their costs beyond the links. Who knows the routes takes the one that is fastest alone on
// them (sim/run/collectives/collective_plan.h), so what is expected of a way is what the network
// gives, and a faster link or a smaller size never makes a collective slower.
//
// A library has (NCCL, src/graph/tuning.cc), each by the protocols for which it has a timing
//
//   ring       all-reduce, all-gather, reduce-scatter: one a card over nodes, else one
//   tree       all-reduce over nodes: a chain in each node, two binary trees a card between them
//   nvls       all-reduce of floating-point numbers in one node of five and more: the switches add
//   up nvls-tree  the same over nodes of five and more: trees a card between the switches messages
//   exchanges: every message goes straight; an all-to-all is one group of them
//
// Broadcasts and reductions go along the rings, or by a binomial tree. The channels that a protocol
// opens decide how much of the chips it holds (library.h).
//
// A library of serving takes its own kernel for an all-reduce of one node whose switch adds and
// copies, up to the size that it says (direct_kernels.h): the time is the kernel's closed form, of
// which the bytes of one reading take their part of the links. The halves of an exchange with
// experts (ExpertHalf) take kernels of that library likewise: those for few tokens in one node and,
// by RDMA, over several; those for many in one node, where the links carry a copy for each expert.
//
// The ideal library has every algorithm that `auto` weighs (choose_algorithm.h) and, in a node
// whose switch adds and copies, that switch.
//
// An algorithm that is asked for by name has the protocols of its own kind of kernel, or those of a
// ring if the library has no such kernel.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/library.h"

namespace stepsim {

// GroupLinks is what a library knows about the place of a group. An unset bandwidth means no limit.
struct GroupLinks {
  std::uint32_t members = 1;
  std::uint32_t nodes = 1;
  std::uint32_t of_node = 1;  // members of the smallest node
  // Network ports of a node, the fewest of any: the narrowest links on the members' ways out of it.
  std::uint32_t cards = 1;
  std::optional<Bandwidth> inside{};   // the slowest route between neighbours of one node
  std::optional<Bandwidth> network{};  // the slowest route between nodes
  std::optional<Bandwidth> adder{};    // rate at which a compute unit of the chips adds this type
  std::optional<Bandwidth> memory{};   // rate at which a chip's memory reads and writes
  std::int64_t units = 1;              // compute units of a chip
  bool nvls = false;                   // the switch between the chips of a node adds and copies
  std::optional<Bandwidth> switch_adders{};  // limit on its operands; unset: none
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

struct CollectiveWay {
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;  // never kAuto
  LibraryCost cost{};
  std::string protocol;  // "LL"; empty: ideal
  std::string why;       // a sentence, if it is taken whatever it costs; then it is the only one
};

// Returns at least one way. `floating`: switches can add the elements' type (fp32, bf16, fp16).
// REQUIRES: shape.members() > 1; refusal() of the choice is empty; check(library) is empty.
std::vector<CollectiveWay> ways_of(const CommunicationLibrary& library, const CollectiveTask& task,
                                   bool floating, AlgorithmChoice asked, const GroupShape& shape,
                                   const GroupLinks& links);

// Returns the cost of a message of `bytes` over a route of this kind, by the protocol that is
// fastest. `link`: the narrowest link of the route.
LibraryCost cost_of_message(const CommunicationLibrary& library, Bytes bytes, HopKind kind,
                            Bandwidth link);

}  // namespace stepsim
