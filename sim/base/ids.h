// Typed indices. An Id is a position in the table that owns the things it names (LinkId in Fabric,
// RankId in OpGraph, ...); it is meaningless outside that table. Ids are dense and start at 0, so
// `table[id.index()]` is the lookup.

#pragma once

#include <compare>
#include <cstdint>

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

using NodeId = Id<struct NodeTag>;  // a chip, a switch, a host or a network card
using LinkId = Id<struct LinkTag>;  // one direction of a cable
using RankId = Id<struct RankTag>;  // one process of the training job
using OpId = Id<struct OpTag>;      // position in the flat op table of a Program
using StreamId = Id<struct StreamTag>;
using ProgramId = Id<struct ProgramTag>;
using TransferId = Id<struct TransferTag>;  // one transfer in flight: slots are used again
using CommunicatorId = Id<struct CommunicatorTag>;

}  // namespace stepsim
