// Channels matches sends with receives and moves their messages. A send and a receive match when
// source, destination, kind, micro-batch, boundary and step are equal; their order says nothing.
//
// Rendezvous: the message starts when both have been posted, and both end when it has arrived.
// Eager: it starts when the send is posted, which ends when it has arrived; the receive ends when
// it is posted and the message has arrived. A messages op ends when all its messages have.

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/streams.h"
#include "sim/run/transfer_owner.h"
#include "sim/run/transport.h"

namespace stepsim {

class Channels {
 public:
  Channels(const OpGraph& graph, const Streams& streams, Transport& transport);

  // Posts the messages op that `stream` starts. Throws MismatchError when send and receive differ
  // in size.
  void post(std::uint32_t stream, Time now, Meetings& meetings);

  // REQUIRES: the transfer's owner is a message.
  void arrived(const TransferOwner& owner, Meetings& meetings);

  Bytes sent(Axis axis) const { return sent_[static_cast<std::size_t>(axis)]; }

  // What a posted messages op still waits for: "the receive of activation, micro-batch 3, boundary
  // 0 by rank 8"; the rank is added to `ranks`. For the deadlock report.
  std::string waits_for(std::uint32_t stream, std::vector<std::uint32_t>& ranks) const;

 private:
  struct Key {
    std::uint32_t source;
    std::uint32_t destination;
    std::int32_t microbatch;
    std::int32_t boundary;
    std::uint32_t step;
    MessageKind kind;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  // A message of which at least one side is posted.
  struct Open {
    std::uint32_t sender = 0;  // streams; kNobody while not posted
    std::uint32_t receiver = 0;
    bool eager = false;    // as the sender says
    bool arrived = false;  // eager: before its receive was posted
    Bytes bytes;           // as the first side to post says
    Key key;
  };
  struct Posted {  // by stream: the messages op that runs
    std::uint32_t left = 0;
    Time moving;
    bool waited_for_other_stage = false;
  };
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  Key key_of(std::uint32_t stream, const Message& message) const;
  void move(std::uint32_t index, Axis axis, Time now);
  void match(const Open& open, std::uint32_t late, Time now, Meetings& meetings);
  std::string describe_mismatch(const Open& open, const Message& message) const;
  static std::string describe(const Key& key);
  void one_done(std::uint32_t stream, Meetings& meetings);
  void close(std::uint32_t index);
  bool other_stage(std::uint32_t a, std::uint32_t b) const;

  const OpGraph& graph_;
  const Streams& streams_;
  Transport& transport_;
  std::unordered_map<Key, std::uint32_t, KeyHash> index_;  // looked up only, never iterated
  std::vector<Open> open_;
  std::vector<std::uint32_t> free_;
  std::vector<Posted> posted_;
  std::array<Bytes, kAxes> sent_{};
};

}  // namespace stepsim
