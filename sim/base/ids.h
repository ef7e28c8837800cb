// Typed indices. An Id is a position in the table that owns the things it names (LinkId in Fabric,
// RankId in OpGraph, ...); it is meaningless outside that table. Ids are dense and start at 0, so
// `table[id.index()]` is the lookup.

#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace stepsim {

template <typename Thing>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t index) : index_(index) {}
  constexpr std::uint32_t index() const { return index_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint32_t index_ = 0;
};

// OptionalId is an id or nothing, in the memory of an id. Tables that hot loops read use it; other
// code uses std::optional. It allows at most 2^32 - 1 things.
template <typename IdType>
class OptionalId {
 public:
  constexpr OptionalId() = default;
  constexpr OptionalId(IdType id) : index_(id.index()) {}  // NOLINT: implicit, like std::optional
  constexpr explicit operator bool() const { return index_ != kNothing; }
  constexpr IdType operator*() const { return IdType(index_); }  // REQUIRES: it holds an id
  friend constexpr bool operator==(OptionalId, OptionalId) = default;

 private:
  static constexpr std::uint32_t kNothing = UINT32_MAX;
  std::uint32_t index_ = kNothing;
};

// IdTable is the table that owns the things an id names.
template <typename IdType, typename Thing>
class IdTable : public std::vector<Thing> {
 public:
  using std::vector<Thing>::vector;
  Thing& operator[](IdType id) { return std::vector<Thing>::operator[](id.index()); }
  const Thing& operator[](IdType id) const { return std::vector<Thing>::operator[](id.index()); }

  // Returns the id that the next push_back() will assign.
  IdType next() const { return IdType(static_cast<std::uint32_t>(this->size())); }
};

using NodeId = Id<struct NodeTag>;              // a chip, a switch, a host or a network card
using LinkId = Id<struct LinkTag>;              // one direction of a cable
using LinkGroupId = Id<struct LinkGroupTag>;    // links that packets are spread over
using HostId = Id<struct HostTag>;              // a machine that chips are attached to
using RankId = Id<struct RankTag>;              // one process of the training job
using OpId = Id<struct OpTag>;                  // position in the flat op table of a Program
using StreamId = Id<struct StreamTag>;          // a stream of a Program
using RankStreamId = Id<struct RankStreamTag>;  // a stream of one rank, among those of all ranks
using ProgramId = Id<struct ProgramTag>;
using TransferId = Id<struct TransferTag>;  // one transfer in flight; ids are reused
using CommunicatorId = Id<struct CommunicatorTag>;
using GroupId = Id<struct GroupTag>;                    // a group of ranks of a communicator
using MemberId = Id<struct MemberTag>;                  // a place in a group; switches come last
using LaneId = Id<struct LaneTag>;                      // a lane of a collective algorithm
using ComputeWorkId = Id<struct ComputeWorkTag>;        // position in OpGraph::compute_works
using CollectiveWorkId = Id<struct CollectiveWorkTag>;  // position in OpGraph::collective_works

}  // namespace stepsim
