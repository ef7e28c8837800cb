// TransferOwner names the op that waits for a transfer: a message, a collective, or a host op.
// TransferTable gives transfers their ids and remembers their owners.

#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "sim/base/ids.h"

namespace stepsim {

using OpenMessageId = Id<struct OpenMessageTag>;      // of Channels; ids are reused
using CollectiveRunId = Id<struct CollectiveRunTag>;  // of CollectiveRuns; ids are reused

struct MessageTransfer {
  OpenMessageId message;
};

// A whole collective that is one transfer, or its message from `from` to `to` in this lane and
// round.
struct CollectiveTransfer {
  CollectiveRunId run;
  LaneId lane{};
  std::uint32_t round = 0;
  MemberId from{};
  MemberId to{};
};

struct HostTransfer {
  RankStreamId stream;
};

using TransferOwner = std::variant<MessageTransfer, CollectiveTransfer, HostTransfer>;

// Transfer::order decides which transfers go first among those that start at the same instant on a
// packet network. It depends only on what is sent, so the order in which ops are started changes
// nothing.
class TransferOrder {
 public:
  // Orders by source, then by a hash of the message's description.
  static TransferOrder of_message(RankId source, std::uint32_t hash) {
    return TransferOrder(std::uint64_t{source.index()} << 32 | hash);
  }
  // Orders by the sender's stream, then by lane and round.
  static TransferOrder of_collective(RankStreamId sender, LaneId lane, std::uint32_t round) {
    return TransferOrder(of_sender(sender.index()) | lane_and_round(lane, round));
  }
  // A switch sends after all members.
  static TransferOrder of_switch(MemberId place, LaneId lane, std::uint32_t round) {
    return TransferOrder(of_sender(~place.index()) | lane_and_round(lane, round));
  }
  static TransferOrder of_host(RankStreamId stream) {
    return TransferOrder(std::uint64_t{stream.index()} << 40);
  }

  std::uint64_t key() const { return key_; }

 private:
  explicit TransferOrder(std::uint64_t key) : key_(key) {}

  // The parts have 24, 20 and 20 bits. Larger numbers wrap around; ids of transfers then decide
  // among equals.
  static std::uint64_t of_sender(std::uint32_t sender) {
    return std::uint64_t{sender & 0xffffff} << 40;
  }
  static std::uint64_t lane_and_round(LaneId lane, std::uint32_t round) {
    return std::uint64_t{lane.index() & 0xfffff} << 20 | (round & 0xfffff);
  }

  std::uint64_t key_;
};

// Ids of ended transfers are reused.
class TransferTable {
 public:
  TransferId add(const TransferOwner& owner) {
    if (free_.empty()) {
      owners_.push_back(owner);
      return TransferId(static_cast<std::uint32_t>(owners_.size() - 1));
    }
    const TransferId id = free_.back();
    free_.pop_back();
    owners_[id.index()] = owner;
    return id;
  }
  TransferOwner remove(TransferId id) {
    free_.push_back(id);
    return owners_[id.index()];
  }

 private:
  std::vector<TransferOwner> owners_;
  std::vector<TransferId> free_;
};

}  // namespace stepsim
