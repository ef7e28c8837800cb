#include "sim/collectives/proof.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

enum class LaneOrder : std::uint8_t { kFirstLaneFirst, kLastLaneFirst, kSideBySide };

struct Wrong {
  std::string what;
};

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

// Promise holds the data that members bring to an operation and the data that it promises them
// (sim/collectives/collective.h).
class Promise {
 public:
  Promise(const CollectiveTask& task, const CollectiveAlgorithm& algorithm)
      : task_(task), n_(algorithm.members()) {
    const bool owned = task.op == CollectiveOp::kAllGather || task.op == CollectiveOp::kGather ||
                       task.op == CollectiveOp::kScatter || task.op == CollectiveOp::kReduceScatter;
    if (!owned) return;
    owner_.resize(n_);
    if (algorithm.shards() != n_) throw Wrong{"must have a shard for each member"};
    for (std::uint32_t member = 0; member < n_; ++member) {
      const std::uint32_t shard = algorithm.shard_of(member);
      if (shard >= n_ || owner_[shard]) {
        throw Wrong{"shard " + number(shard) + " must belong to one member"};
      }
      owner_[shard] = member;
    }
  }

  bool brings(std::uint32_t member, std::uint32_t shard) const {
    switch (task_.op) {
      case CollectiveOp::kAllReduce:
      case CollectiveOp::kReduceScatter:
      case CollectiveOp::kReduce:
      case CollectiveOp::kBarrier:
        return true;
      case CollectiveOp::kAllGather:
      case CollectiveOp::kGather:
        return owner_[shard] == member;
      case CollectiveOp::kBroadcast:
      case CollectiveOp::kScatter:
        return member == task_.root;
      case CollectiveOp::kAllToAll:
        return shard / n_ == member;
      case CollectiveOp::kSendReceive:
      case CollectiveOp::kPermute:
        return shard == member;
    }
    return false;
  }

  enum class End : std::uint8_t { kAnything, kSumOfAll, kOneMembers };
  struct Expected {
    End end = End::kAnything;
    std::uint32_t member = 0;  // for kOneMembers: the member whose data it is
  };
  Expected of(std::uint32_t member, std::uint32_t shard) const {
    const Expected anything;
    const Expected sum{.end = End::kSumOfAll};
    const auto data_of = [](std::uint32_t whose) {
      return Expected{.end = End::kOneMembers, .member = whose};
    };
    switch (task_.op) {
      case CollectiveOp::kAllReduce:
      case CollectiveOp::kBarrier:
        return sum;
      case CollectiveOp::kReduceScatter:
        return owner_[shard] == member ? sum : anything;
      case CollectiveOp::kReduce:
        return member == task_.root ? sum : anything;
      case CollectiveOp::kAllGather:
        return data_of(*owner_[shard]);
      case CollectiveOp::kGather:
        return member == task_.root ? data_of(*owner_[shard]) : anything;
      case CollectiveOp::kBroadcast:
        return data_of(task_.root);
      case CollectiveOp::kScatter:
        return owner_[shard] == member ? data_of(task_.root) : anything;
      case CollectiveOp::kAllToAll: {
        const bool nothing =
            task_.matrix != nullptr && task_.matrix->between(shard / n_, shard % n_) == Bytes(0);
        return shard % n_ == member && !nothing ? data_of(shard / n_) : anything;
      }
      case CollectiveOp::kSendReceive:
      case CollectiveOp::kPermute:
        return target(shard) == member ? data_of(shard) : anything;
    }
    return anything;
  }

 private:
  std::uint32_t target(std::uint32_t member) const {
    if (task_.op == CollectiveOp::kSendReceive) return (member + 1) % n_;
    if (task_.permutation.empty()) return (member + task_.shift) % n_;
    return task_.permutation[member];
  }

  const CollectiveTask& task_;
  std::uint32_t n_;
  std::vector<std::optional<std::uint32_t>> owner_;  // by shard, for operations that have owners
};

// BlockBytes counts the bytes of the blocks of a message, by the rules of algorithm.h.
class BlockBytes {
 public:
  BlockBytes(const CollectiveTask& task, const CollectiveAlgorithm& algorithm)
      : task_(task), algorithm_(algorithm), n_(algorithm.members()) {}

  void check(std::uint32_t from, const CollectiveMessage& message,
             const std::vector<std::uint32_t>& blocks) const {
    // This is a torus all-to-all.
    if (algorithm_.cuts_equally()) {
      const std::int64_t all = std::int64_t{n_} * algorithm_.pieces();
      const auto pieces = static_cast<std::int64_t>(blocks.size());
      // From the bytes that are exact in a whole number for each piece, so that nothing overflows.
      const std::int64_t above = message.bytes.value() - task_.bytes.value() / all * pieces;
      const std::int64_t exact = task_.bytes.value() % all * pieces;
      if (std::abs(above) > pieces || std::abs(above * all - exact) * 2 > all) {
        throw Wrong{"a message from member " + number(from) + " to " + number(message.to) +
                    " is of " + number(static_cast<std::uint64_t>(message.bytes.value())) +
                    " bytes, but " + number(blocks.size()) + " pieces are not"};
      }
      return;
    }
    const std::int64_t expected = of(from, message.to, blocks);
    if (message.bytes.value() != expected) {
      throw Wrong{"a message from member " + number(from) + " to " + number(message.to) +
                  " is of " + number(static_cast<std::uint64_t>(message.bytes.value())) +
                  " bytes, but its blocks are of " + number(static_cast<std::uint64_t>(expected))};
    }
  }

 private:
  std::int64_t of(std::uint32_t from, std::uint32_t to,
                  const std::vector<std::uint32_t>& blocks) const {
    if (task_.matrix != nullptr && task_.matrix->sharing != NodeSharing::kNone &&
        algorithm_.forwards_shared() && task_.matrix->node_of[from] != task_.matrix->node_of[to]) {
      return shared(blocks);
    }
    std::int64_t sum = 0;
    for (const std::uint32_t block : blocks) sum += of(block);
    return sum;
  }

  std::int64_t of(std::uint32_t block) const {
    const std::uint32_t shards = algorithm_.shards();
    const std::uint32_t shard = block % shards;
    const std::int64_t element = task_.element.value();
    const std::int64_t elements = task_.bytes.value() / element;
    if (task_.matrix != nullptr) {
      return part(task_.matrix->between(shard / n_, shard % n_).value(), block / shards,
                  algorithm_.pieces());
    }
    std::int64_t size = part(elements, shard, shards);
    if (task_.op == CollectiveOp::kAllToAll) size = part(elements, shard % n_, n_);
    if (task_.op == CollectiveOp::kSendReceive || task_.op == CollectiveOp::kPermute) {
      size = elements;
    }
    return element * part(size, block / shards, algorithm_.pieces());
  }

  // Counts blocks between nodes: each pair of source and destination node once.
  std::int64_t shared(const std::vector<std::uint32_t>& blocks) const {
    const ByteMatrix& matrix = *task_.matrix;
    std::set<std::pair<std::uint32_t, std::uint32_t>> counted;
    std::int64_t sum = 0;
    for (const std::uint32_t block : blocks) {
      const std::uint32_t shard = block % algorithm_.shards();
      const std::uint32_t source = shard / n_;
      const std::uint32_t destination = shard % n_;
      const bool to_node = matrix.sharing == NodeSharing::kToNode;
      const std::uint32_t one = to_node ? source : destination;
      const std::uint32_t node = matrix.node_of[to_node ? destination : source];
      if (!counted.emplace(one, node).second) continue;
      sum += part(matrix.between_node(one, node).value(), block / algorithm_.shards(),
                  algorithm_.pieces());
    }
    return sum;
  }

  const CollectiveTask& task_;
  const CollectiveAlgorithm& algorithm_;
  std::uint32_t n_;
};

class Proof {
 public:
  Proof(const CollectiveTask& task, const CollectiveAlgorithm& algorithm)
      : task_(task),
        algorithm_(algorithm),
        promise_(task, algorithm),
        bytes_(task, algorithm),
        n_(algorithm.members()),
        endpoints_(algorithm.endpoints()),
        words_((n_ + 63) / 64),
        blocks_(std::size_t{algorithm.shards()} * algorithm.pieces()),
        has_(endpoints_ * blocks_ * words_, 0),
        lanes_(std::size_t{algorithm.lanes()} * endpoints_),
        arrived_(lanes_.size()),
        there_(lanes_.size()) {
    for (std::uint32_t member = 0; member < n_; ++member) {
      for (std::uint32_t block = 0; block < blocks_; ++block) {
        if (promise_.brings(member, block % algorithm.shards())) {
          content(member, block)[member / 64] |= std::uint64_t{1} << (member % 64);
        }
      }
    }
  }

  void run(LaneOrder order) {
    const std::uint32_t lanes = algorithm_.lanes();
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      pass_rounds(static_cast<std::uint32_t>(i / endpoints_),
                  static_cast<std::uint32_t>(i % endpoints_));
    }
    // Each pass sends what may be sent and then delivers it. It goes lane by lane, and the first
    // lane that can go on does.
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t i = 0; i < lanes; ++i) {
        const std::uint32_t lane = order == LaneOrder::kLastLaneFirst ? lanes - 1 - i : i;
        while (send_all(lane)) {
          moved = true;
          if (order == LaneOrder::kSideBySide) break;
          deliver();
        }
      }
      deliver();
    }
    expect_done();
    expect_promise();
  }

 private:
  struct LaneState {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    std::uint32_t applied = 0;  // rounds whose arrivals have been added to the member's data
  };
  struct Flight {
    std::uint32_t lane = 0;
    std::uint32_t round = 0;
    std::uint32_t to = 0;
    bool reduce = false;
    std::vector<std::uint32_t> blocks{};
    std::vector<std::uint64_t> payload{};  // indexed by block and word
  };

  std::uint64_t* content(std::uint32_t member, std::size_t block) {
    return &has_[(member * blocks_ + block) * words_];
  }
  LaneState& state(std::uint32_t lane, std::uint32_t member) {
    return lanes_[std::size_t{lane} * endpoints_ + member];
  }

  // Receives rounds for which everything has arrived, and passes rounds without a message to send,
  // as far as possible. The data that arrived in a round count when the member has also sent in it.
  void pass_rounds(std::uint32_t lane, std::uint32_t member) {
    LaneState& at = state(lane, member);
    const std::vector<std::uint32_t>& arrived = arrived_[std::size_t{lane} * endpoints_ + member];
    while (at.received < algorithm_.rounds()) {
      const std::uint32_t there = at.received < arrived.size() ? arrived[at.received] : 0;
      if (there < algorithm_.receives(lane, at.received, member)) break;
      ++at.received;
    }
    while (at.sent < algorithm_.rounds() && at.received >= at.sent &&
           !algorithm_.message(lane, at.sent, member)) {
      ++at.sent;
    }
    std::vector<Flight>& there = there_[std::size_t{lane} * endpoints_ + member];
    for (; at.applied < std::min(at.sent, at.received); ++at.applied) {
      for (const Flight& flight : there) {
        if (flight.round == at.applied) apply(flight);
      }
      std::erase_if(there, [&](const Flight& flight) { return flight.round == at.applied; });
    }
  }

  bool may_send(std::uint32_t lane, std::uint32_t member) {
    const LaneState& at = state(lane, member);
    if (at.sent == algorithm_.rounds() || at.received < at.sent) return false;
    if (!algorithm_.gated()) return true;
    gates_.clear();
    algorithm_.gates(lane, at.sent, member, gates_);
    return std::ranges::all_of(gates_, [&](const LaneGate& gate) {
      const LaneState& other = state(gate.lane, member);
      return other.sent > gate.round && other.received > gate.round;
    });
  }

  bool send_all(std::uint32_t lane) {
    std::vector<std::uint32_t> senders;
    for (std::uint32_t member = 0; member < endpoints_; ++member) {
      pass_rounds(lane, member);
      if (may_send(lane, member)) senders.push_back(member);
    }
    for (const std::uint32_t member : senders) send(lane, member);
    for (const std::uint32_t member : senders) pass_rounds(lane, member);
    return !senders.empty();
  }

  void send(std::uint32_t lane, std::uint32_t member) {
    LaneState& at = state(lane, member);
    const CollectiveMessage message = *algorithm_.message(lane, at.sent, member);
    const std::string whose =
        "member " + number(member) + " in round " + number(at.sent) + " of lane " + number(lane);
    if (message.to >= endpoints_ || message.to == member) {
      throw Wrong{whose + " sends to " + number(message.to) + ", which is no other member"};
    }
    scratch_.clear();
    algorithm_.blocks(lane, at.sent, member, scratch_);
    for (const std::uint32_t block : scratch_) {
      if (block >= blocks_) throw Wrong{whose + " sends block " + number(block) + " of none"};
    }
    bytes_.check(member, message, scratch_);
    Flight flight{.lane = lane, .round = at.sent, .to = message.to, .reduce = message.reduce};
    for (const std::uint32_t block : scratch_) {
      const std::uint64_t* words = content(member, block);
      if (std::all_of(words, words + words_, [](std::uint64_t word) { return word == 0; })) {
        throw Wrong{whose + " sends block " + number(block) + ", which it does not have"};
      }
      flight.payload.insert(flight.payload.end(), words, words + words_);
    }
    flight.blocks = scratch_;
    flights_.push_back(std::move(flight));
    ++at.sent;
  }

  void deliver() {
    std::vector<Flight> flights;
    std::swap(flights, flights_);
    for (Flight& flight : flights) {
      const std::uint32_t lane = flight.lane;
      const std::uint32_t to = flight.to;
      std::vector<std::uint32_t>& arrived = arrived_[std::size_t{lane} * endpoints_ + to];
      if (arrived.size() <= flight.round) arrived.resize(flight.round + 1, 0);
      const std::uint32_t awaited = algorithm_.receives(lane, flight.round, to);
      if (++arrived[flight.round] > awaited) {
        throw Wrong{"in round " + number(flight.round) + " of lane " + number(lane) + " member " +
                    number(to) + " receives more than " + number(awaited) + " messages"};
      }
      there_[std::size_t{lane} * endpoints_ + to].push_back(std::move(flight));
      pass_rounds(lane, to);
    }
  }

  void apply(const Flight& flight) {
    for (std::size_t i = 0; i < flight.blocks.size(); ++i) {
      std::uint64_t* target = content(flight.to, flight.blocks[i]);
      const std::uint64_t* from = &flight.payload[i * words_];
      for (std::uint32_t word = 0; word < words_; ++word) {
        if (flight.reduce && (target[word] & from[word]) != 0 &&
            task_.op != CollectiveOp::kBarrier) {
          throw Wrong{"member " + number(flight.to) + " adds a contribution to block " +
                      number(flight.blocks[i]) + " twice, in round " + number(flight.round) +
                      " of lane " + number(flight.lane)};
        }
        target[word] = from[word] | (flight.reduce ? target[word] : 0);
      }
    }
  }

  void expect_done() {
    for (std::uint32_t lane = 0; lane < algorithm_.lanes(); ++lane) {
      for (std::uint32_t member = 0; member < endpoints_; ++member) {
        const LaneState& at = state(lane, member);
        if (at.sent == algorithm_.rounds() && at.received == algorithm_.rounds()) continue;
        throw Wrong{"member " + number(member) + " never gets beyond round " +
                    number(std::min(at.sent, at.received)) + " of lane " + number(lane) +
                    ": it waits for what nobody sends"};
      }
    }
  }

  void expect_promise() {
    std::vector<std::uint64_t> expected(words_);
    std::vector<std::uint64_t> all(words_, ~std::uint64_t{0});
    if (n_ % 64 != 0) all.back() = (std::uint64_t{1} << (n_ % 64)) - 1;
    for (std::uint32_t member = 0; member < n_; ++member) {
      for (std::uint32_t block = 0; block < blocks_; ++block) {
        const Promise::Expected wanted = promise_.of(member, block % algorithm_.shards());
        if (wanted.end == Promise::End::kAnything) continue;
        if (wanted.end == Promise::End::kSumOfAll) {
          expected = all;
        } else {
          std::ranges::fill(expected, 0);
          expected[wanted.member / 64] = std::uint64_t{1} << (wanted.member % 64);
        }
        if (std::ranges::equal(expected, std::span(content(member, block), words_))) continue;
        for (std::uint32_t who = 0; who < n_; ++who) {
          const bool has = (content(member, block)[who / 64] >> (who % 64) & 1) != 0;
          const bool must = (expected[who / 64] >> (who % 64) & 1) != 0;
          if (has == must) continue;
          throw Wrong{"member " + number(member) + " ends with block " + number(block) +
                      (has ? " that has the data of member " : " without the data of member ") +
                      number(who) + (has ? ", which does not belong there" : "")};
        }
      }
    }
  }

  const CollectiveTask& task_;
  const CollectiveAlgorithm& algorithm_;
  Promise promise_;
  BlockBytes bytes_;
  std::uint32_t n_;
  std::uint32_t endpoints_;
  std::uint32_t words_;
  std::size_t blocks_;
  std::vector<std::uint64_t> has_;  // by member, block and word: bit m for the data of member m
  std::vector<LaneState> lanes_;    // by lane and member
  std::vector<std::vector<std::uint32_t>> arrived_;  // by lane and member, of each round
  std::vector<std::vector<Flight>> there_;           // arrived, not applied; the same
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> scratch_;
  std::vector<LaneGate> gates_;  // scratch
};

}  // namespace

std::optional<std::string> disproof(const CollectiveTask& task,
                                    const CollectiveAlgorithm& algorithm) {
  try {
    Proof(task, algorithm).run(LaneOrder::kFirstLaneFirst);
    if (algorithm.lanes() > 1) {
      Proof(task, algorithm).run(LaneOrder::kLastLaneFirst);
      Proof(task, algorithm).run(LaneOrder::kSideBySide);
    }
  } catch (const Wrong& wrong) {
    return wrong.what;
  }
  return std::nullopt;
}

}  // namespace stepsim
