// Channels matches sends with receives and moves their messages. A send and a receive match when
// source, destination, kind, micro-batch, boundary and step are equal; their order says nothing.
// In a folded job source and destination are simulated ranks, and a message stands for all between
// ranks like them.
//
// Rendezvous: the message starts when both have been posted, and both end when it has arrived.
// Eager: it starts when the send is posted, which ends when it has arrived; the receive ends when
// it is posted and the message has arrived. A messages op ends when all its messages have.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/ops/communication_reports.h"
#include "sim/run/ops/last_cause.h"
#include "sim/run/ops/streams.h"
#include "sim/run/ops/transfer_owner.h"
#include "sim/run/ops/transport.h"

namespace stepsim {

class Channels {
 public:
  Channels(const Job& job, const Streams& streams, const LastCause& last_cause,
           Transport& transport);

  // Posts the messages op that `stream` starts. Throws MismatchError when send and receive differ
  // in size.
  void post(RankStreamId stream, Time now, CommunicationReports& reports);

  void arrived(const MessageTransfer& transfer, CommunicationReports& reports);

  Bytes sent(Axis axis) const { return sent_[static_cast<std::size_t>(axis)]; }

  using Past = std::array<Bytes, kMostAxes>;
  Past past() const { return sent_; }
  // What was sent since `past` is sent `times` more, by messages of micro-batches that are that far
  // behind one another (repeats.h).
  void repeat(std::uint64_t times, const Past& past, std::int32_t microbatches);

  // For the deadlock report: describes what a posted messages op still waits for, "the receive of
  // activation, micro-batch 3, boundary 0 by rank 8", and adds the rank to `ranks`.
  std::string waits_for(RankStreamId stream, std::vector<RankId>& ranks) const;

 private:
  struct Key {
    RankId source;
    RankId destination;
    std::optional<std::int32_t> microbatch;
    std::int32_t boundary;
    std::uint32_t step;
    MessageKind kind;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  // A message, or all that look like it; at least one of its sides is posted.
  struct Open {
    std::optional<RankStreamId> sender{};
    std::optional<RankStreamId> receiver{};
    bool eager = false;           // from the sender
    bool arrived = false;         // eager: before its receive was posted
    Bytes bytes;                  // from the first side to post
    std::uint32_t from_chip = 0;  // known once the sender is
    std::uint32_t to_chip = 0;
    Key key;
  };
  struct Posted {  // by stream: the messages op that runs
    std::uint32_t left = 0;
    Time moving;
    bool waited_for_other_stage = false;
    std::optional<RankStreamId> late{};  // the peer for which it waited until `moving`
  };

  OpenMessageId open(const Key& key, Bytes bytes);  // returns the existing one, or a new one
  Key key_of(RankStreamId stream, const Message& message) const;
  RankId peer_of(RankId in_graph, const Message& message) const;
  void move(OpenMessageId id, Axis axis, Time now);
  void match(const Open& open, RankStreamId late, Time now, CommunicationReports& reports);
  std::string describe_mismatch(const Open& open, const Message& message) const;
  static std::string describe(const Key& key);
  void one_done(RankStreamId stream, CommunicationReports& reports);
  void close(OpenMessageId id);
  bool other_stage(RankStreamId a, RankStreamId b) const;

  const Job& job_;
  const OpGraph& graph_;
  const Streams& streams_;
  const LastCause& last_cause_;
  Transport& transport_;
  std::unordered_map<Key, OpenMessageId, KeyHash> ids_;  // iterated by repeat() only, in any order
  std::vector<Open> open_;
  std::vector<OpenMessageId> free_;
  std::vector<Posted> posted_;
  std::array<Bytes, kMostAxes> sent_{};
};

}  // namespace stepsim
