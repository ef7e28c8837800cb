// CollectiveAlgorithm describes a collective as messages: which member sends which data to which
// member in which round. It is a pure function of (lane, round, member) and is evaluated lazily.
// Nothing of size n^2 is ever stored.
//
// Lanes run side by side (two directions of a ring, rotated axis orders of a torus, messages that
// leave at once) and do not wait for each other. Within a lane a member goes through the rounds in
// order. It may send the message of round r when all messages to it in the rounds before r have
// arrived. Its messages of a lane leave one after another, the next as soon as its port is free. A
// message that arrives in round r can only be passed on in a later round.
//
// If lanes depend on each other, gate() names the round of another lane that a member must have
// finished first, or gates() several of them. In addition to the members there may be switches that
// add and copy (endpoints()). They take part like members from the start, but have no data of their
// own.
//
// Only the proof (sim/collectives/proof.h) asks which data a message carries. The data are cut into
// shards() shards, each into pieces() pieces, and block b is piece b / shards() of shard
// b % shards(). Arriving blocks replace those of the receiver (copy) or are added to them (reduce).
// Part i of E elements cut into n is [i E / n, (i + 1) E / n).
//
//   all-reduce, broadcast, reduce               shards: as many as the algorithm likes
//   all-gather, reduce-scatter, gather, scatter n shards; shard_of(member) belongs to the member
//   all-to-all                                  n^2 shards: source * n + destination, each as long
//                                               as part `destination` of the source's buffer, or
//                                               as the matrix says
//   send-receive, permute                       n shards: the whole buffer of each member
//   barrier                                     one shard of no bytes: "I have heard of these"

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/collectives/byte_matrix.h"
#include "sim/collectives/collective.h"

namespace stepsim {

inline constexpr std::size_t kMaxDimensions = 4;

struct StepList;  // step_list.h

// CollectiveTask is a collective of one group. REQUIRES: bytes is a whole number of elements.
struct CollectiveTask {
  CollectiveOp op = CollectiveOp::kAllReduce;
  Bytes bytes;  // the larger of one member's send and receive buffer
  Bytes element{2};
  std::uint32_t root = 0;                        // member: broadcast, reduce, gather, scatter
  std::uint32_t shift = 1;                       // permute
  const ByteMatrix* matrix = nullptr;            // for a ragged all-to-all; null: equal shards
  const StepList* steps = nullptr;               // kCustom
  std::span<const std::uint32_t> permutation{};  // permute: where each member sends; empty: shift
  std::optional<ExpertHalf> experts{};           // all-to-all: kernels of serving may run it
  // Pipelines of chunks are not cut: the messages of all chunks are added up anyway.
  bool in_one_piece = false;
};

struct CollectiveMessage {
  std::uint32_t to = 0;  // member
  Bytes bytes;
  bool reduce = false;
  bool in_node = false;          // the link is inside a node, though the group spans several
  std::optional<LinkId> link{};  // from or to a switch: the link between the two
};

// LaneGate names round `round` of lane `lane` of the same member. The gate opens when its message
// of that round has left and everything that it receives in it has arrived.
struct LaneGate {
  std::uint32_t lane = 0;
  std::uint32_t round = 0;
};

// What a member sends in all rounds of a lane, always to the same other member.
struct LaneSum {
  std::uint32_t to = 0;  // member
  Bytes bytes;
};

class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;

  virtual std::uint32_t members() const = 0;
  virtual std::uint32_t endpoints() const { return members(); }  // members, then switches
  virtual std::uint32_t lanes() const = 0;
  virtual std::uint32_t rounds() const = 0;  // the same for every lane

  // Returns the message that `member` sends in this round; nullopt if it only receives.
  virtual std::optional<CollectiveMessage> message(std::uint32_t lane, std::uint32_t round,
                                                   std::uint32_t member) const = 0;

  // Returns the rounds [first, last) of a lane outside of which `member` sends nothing.
  virtual std::pair<std::uint32_t, std::uint32_t> sending_rounds(std::uint32_t /*lane*/,
                                                                 std::uint32_t /*member*/) const {
    return {0, rounds()};
  }

  // Returns the number of the queue that a member's messages of this lane leave by. Lanes of one
  // queue leave one after another, in the order in which they may. Below lanes().
  virtual std::uint32_t queue(std::uint32_t lane) const { return lane; }

  // Returns whether a member waits until its message of a round has arrived before it sends the
  // next one of the lane, as if each round were a send and a receive that end together.
  virtual bool in_turn() const { return false; }

  // gate() returns the round of another lane that `member` must have finished before it sends in
  // this round; nullopt if there is none, or if gates() names several.
  virtual bool gated() const { return false; }
  virtual std::optional<LaneGate> gate(std::uint32_t, std::uint32_t, std::uint32_t) const {
    return std::nullopt;
  }

  // Appends all gates of a message, of which each must be open. Asked only if gated().
  virtual void gates(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                     std::vector<LaneGate>& out) const {
    if (const auto one = gate(lane, round, member)) out.push_back(*one);
  }

  // Returns whether all lanes go through their rounds side by side: no gate holds a lane back
  // behind the others.
  virtual bool in_step() const { return false; }

  // Returns a range [first, last) of lanes that contains this lane and all lanes whose gates may
  // name it.
  virtual std::pair<std::uint32_t, std::uint32_t> lanes_behind(std::uint32_t) const {
    return {0, lanes()};
  }

  // Returns how many messages arrive at `member` in this round.
  virtual std::uint32_t receives(std::uint32_t lane, std::uint32_t round,
                                 std::uint32_t member) const = 0;

  virtual std::uint32_t shards() const = 0;
  virtual std::uint32_t pieces() const { return 1; }

  // Returns the shard that `member` owns: the one it brings to an all-gather and keeps in a
  // reduce-scatter.
  virtual std::uint32_t shard_of(std::uint32_t member) const = 0;

  // Returns whether pieces are equal fractions of a shard, with each message rounded to whole
  // bytes.
  virtual bool cuts_equally() const { return false; }

  // Returns whether the switches among the endpoints add and copy data while they arrive. The
  // collective is then one transfer, also when stepped. As packets it is stored and forwarded chunk
  // by chunk.
  virtual bool cuts_through() const { return false; }

  // Returns whether in every lane each member passes everything it receives on to the same other
  // member, all the way round. Pipelined, a byte then takes the trips of its own way and not the
  // longest trip of each round.
  virtual bool relays() const { return false; }
  // Returns the sum of message(lane, round, member) over all rounds. REQUIRES: relays()
  virtual LaneSum lane_sum(std::uint32_t /*lane*/, std::uint32_t /*member*/) const { return {}; }

  // Returns whether, in an all-to-all with a matrix that nodes share, messages between nodes carry
  // ByteMatrix::shared.
  virtual bool forwards_shared() const { return false; }

  // Returns the size of the chunks that members store and forward, where a pipeline of them is
  // taken in one piece and its filling counts; otherwise 0.
  virtual Bytes forwarded_chunk() const { return Bytes(0); }

  // Appends the blocks that message(lane, round, member) carries. REQUIRES: there is one.
  virtual void blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                      std::vector<std::uint32_t>& out) const = 0;
};

}  // namespace stepsim
