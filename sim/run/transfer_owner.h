// What channels and collectives report to the loop, and how they number their transfers.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

// A communication op that has ended on a stream (index among the streams of all ranks).
struct CommunicationEnd {
  std::uint32_t stream = 0;
  Time moving;  // everybody whom it needs had posted: before, it only waited
  bool waited_for_other_stage = false;  // the last to post stands on another pipeline stage
};

// All who are needed have posted: `stream` goes on because of the last of them, `from`.
struct Join {
  std::uint32_t stream = 0;
  std::uint32_t from = 0;
};

struct Meetings {
  std::vector<CommunicationEnd> ends;
  std::vector<Join> joins;
  std::vector<Join> arrows;  // data: from sender to receiver, from the last member to the others

  void clear() {
    ends.clear();
    joins.clear();
    arrows.clear();
  }
};

// Gives transfers their ids and remembers whose they are. Ids of ended transfers are used again.
template <typename Owner>
class TransferTable {
 public:
  TransferId add(const Owner& owner) {
    if (free_.empty()) {
      owners_.push_back(owner);
      return TransferId(static_cast<std::uint32_t>(owners_.size() - 1));
    }
    const TransferId id = free_.back();
    free_.pop_back();
    owners_[id.index()] = owner;
    return id;
  }
  Owner remove(TransferId id) {
    free_.push_back(id);
    return owners_[id.index()];
  }

 private:
  std::vector<Owner> owners_;
  std::vector<TransferId> free_;
};

// Who waits for a transfer: a message of Channels, (a step of) a collective, or a host op.
struct TransferOwner {
  bool collective = false;
  bool host = false;
  std::uint32_t index = 0;  // of the message in flight, or of the collective; host: the stream
  std::uint32_t lane = 0;   // stepped collectives
  std::uint32_t round = 0;
  std::uint32_t from = 0;  // member
  std::uint32_t to = 0;
  std::uint64_t order = 0;  // Transfer::order; the same in whatever order ops are started
};

}  // namespace stepsim
