// Every algorithm, proven: symbolic contributions are moved through its messages, and each member
// must end with exactly what the operation promises, each contribution once. A new operation or
// algorithm is proven as soon as it has its enumerator.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/choose_algorithm.h"

namespace stepsim {
namespace {

using Op = CollectiveOp;
using Choice = AlgorithmChoice;

GroupShape shape_of(std::vector<std::uint32_t> sizes, bool torus, bool wraps) {
  GroupShape shape;
  std::uint32_t members = 1;
  for (const std::uint32_t size : sizes) {
    shape.dimensions.push_back({.size = size, .torus_axis = torus, .wraps = torus && wraps});
    members *= size;
  }
  // Members in an order that is not that of their positions.
  for (std::uint32_t p = 0; p < members; ++p) shape.order.push_back((p * 7 + 3) % members);
  if (std::gcd(members, 7U) != 1) std::iota(shape.order.begin(), shape.order.end(), 0U);
  return shape;
}

CollectiveTask task_of(Op op, const GroupShape& shape, std::int64_t elements) {
  return {.op = op,
          .bytes = op == Op::kBarrier ? Bytes(0) : Bytes(2 * elements),
          .element = Bytes(2),
          .root = shape.members() / 3,
          .shift = 3};
}

// The members whose data are in a block: bit m for member m.
using Content = std::uint64_t;

class Proof {
 public:
  Proof(const CollectiveTask& task, const CollectiveAlgorithm& algorithm)
      : task_(task), algorithm_(algorithm), n_(algorithm.members()), shards_(algorithm.shards()) {
    has_.assign(n_, std::vector<Content>(shards_ * algorithm.pieces(), 0));
    for (std::uint32_t member = 0; member < n_; ++member) {
      for (std::uint32_t block = 0; block < has_[member].size(); ++block) {
        if (brings(member, block % shards_)) has_[member][block] = bit(member);
      }
    }
  }

  // All messages of a round are read before any is written: nobody may rely on the others.
  void run_lane(std::uint32_t lane) {
    for (std::uint32_t round = 0; round < algorithm_.rounds(); ++round) {
      arrivals_.clear();
      std::vector<std::uint32_t> received(n_, 0);
      for (std::uint32_t member = 0; member < n_; ++member) {
        const auto message = algorithm_.message(lane, round, member);
        if (!message) continue;
        ASSERT_LT(message->to, n_);
        ASSERT_NE(message->to, member);
        ++received[message->to];
        blocks_.clear();
        algorithm_.blocks(lane, round, member, blocks_);
        check_bytes(*message);
        for (const std::uint32_t block : blocks_) {
          ASSERT_LT(block, has_[member].size());
          ASSERT_NE(has_[member][block], 0U) << "sends what it does not have";
          arrivals_.push_back({message->to, block, message->reduce, has_[member][block]});
        }
      }
      for (std::uint32_t member = 0; member < n_; ++member) {
        ASSERT_EQ(algorithm_.receives(lane, round, member), received[member])
            << "round " << round << ", member " << member;
      }
      for (const Arrival& arrival : arrivals_) {
        Content& target = has_[arrival.to][arrival.block];
        if (arrival.reduce && task_.op != Op::kBarrier) {
          ASSERT_EQ(target & arrival.content, 0U) << "a contribution is added twice";
        }
        target = arrival.content | (arrival.reduce ? target : 0);
      }
    }
  }

  void expect_promise() const {
    for (std::uint32_t member = 0; member < n_; ++member) {
      for (std::uint32_t block = 0; block < has_[member].size(); ++block) {
        const Content expected = promised(member, block % shards_);
        if (expected == 0) continue;
        ASSERT_EQ(has_[member][block], expected) << "member " << member << ", block " << block;
      }
    }
  }

 private:
  struct Arrival {
    std::uint32_t to;
    std::uint32_t block;
    bool reduce;
    Content content;
  };

  static Content bit(std::uint32_t member) { return Content{1} << member; }
  Content all() const { return n_ == 64 ? ~Content{0} : bit(n_) - 1; }
  std::uint32_t owner(std::uint32_t shard) const {
    for (std::uint32_t member = 0; member < n_; ++member) {
      if (algorithm_.shard_of(member) == shard) return member;
    }
    ADD_FAILURE() << "nobody owns shard " << shard;
    return 0;
  }

  // What each operation starts from and promises, as sim/collectives/collective.h says.
  bool brings(std::uint32_t member, std::uint32_t shard) const {
    switch (task_.op) {
      case Op::kAllReduce:
      case Op::kReduceScatter:
      case Op::kReduce:
      case Op::kBarrier:
        return true;
      case Op::kAllGather:
      case Op::kGather:
        return shard == algorithm_.shard_of(member);
      case Op::kBroadcast:
      case Op::kScatter:
        return member == task_.root;
      case Op::kAllToAll:
        return shard / n_ == member;
      case Op::kSendReceive:
      case Op::kPermute:
        return shard == member;
    }
    return false;
  }

  Content promised(std::uint32_t member, std::uint32_t shard) const {
    const bool own = shard == algorithm_.shard_of(member);
    const bool root = member == task_.root;
    const std::uint32_t shift = task_.op == Op::kPermute ? task_.shift : 1;
    switch (task_.op) {
      case Op::kAllReduce:
      case Op::kBarrier:
        return all();
      case Op::kReduceScatter:
        return own ? all() : 0;
      case Op::kReduce:
        return root ? all() : 0;
      case Op::kAllGather:
        return bit(owner(shard));
      case Op::kGather:
        return root ? bit(owner(shard)) : 0;
      case Op::kBroadcast:
        return bit(task_.root);
      case Op::kScatter:
        return own ? bit(task_.root) : 0;
      case Op::kAllToAll:
        return shard % n_ == member ? bit(shard / n_) : 0;
      case Op::kSendReceive:
      case Op::kPermute:
        return (shard + shift) % n_ == member ? bit(shard) : 0;
    }
    return 0;
  }

  // The bytes of a message are those of its blocks, by the rule of sim/collectives/algorithm.h. The
  // torus all-to-all cuts shards into equal pieces and rounds each message.
  void check_bytes(const CollectiveMessage& message) const {
    const std::int64_t elements = task_.bytes.value() / 2;
    if (task_.op == Op::kAllToAll && algorithm_.pieces() > 1) {
      const double exact = static_cast<double>(task_.bytes.value()) *
                           static_cast<double>(blocks_.size()) / (n_ * algorithm_.pieces());
      ASSERT_NEAR(static_cast<double>(message.bytes.value()), exact, 0.5);
      return;
    }
    const auto part = [](std::int64_t whole, std::int64_t i, std::int64_t parts) {
      return (i + 1) * whole / parts - i * whole / parts;
    };
    std::int64_t sum = 0;
    for (const std::uint32_t block : blocks_) {
      const std::uint32_t shard = block % shards_;
      std::int64_t size = part(elements, shard, shards_);
      if (task_.op == Op::kAllToAll) size = part(elements, shard % n_, n_);
      if (task_.op == Op::kSendReceive || task_.op == Op::kPermute) size = elements;
      sum += part(size, block / shards_, algorithm_.pieces());
    }
    ASSERT_EQ(message.bytes.value(), 2 * sum);
  }

  const CollectiveTask& task_;
  const CollectiveAlgorithm& algorithm_;
  std::uint32_t n_;
  std::uint32_t shards_;
  std::vector<std::vector<Content>> has_;  // by member and block
  std::vector<Arrival> arrivals_;
  std::vector<std::uint32_t> blocks_;
};

std::string text(const GroupShape& shape) {
  std::string result;
  for (const GroupDimension& dimension : shape.dimensions) {
    result += (result.empty() ? "" : "x") + std::to_string(dimension.size) +
              (dimension.wraps ? "w" : "") + (dimension.torus_axis ? "t" : "");
  }
  return result;
}

// Lanes are independent: they are run in order and backwards.
void prove(Op op, Choice choice, const GroupShape& shape, std::int64_t elements) {
  const CollectiveTask task = task_of(op, shape, elements);
  const std::string what = std::string(name_of(op)) + " " + std::string(name_of(choice)) + " of " +
                           text(shape) + ", " + std::to_string(elements) + " elements";
  SCOPED_TRACE(what);
  if (!refusal(op, choice, shape).empty()) {
    ASSERT_THROW(choose_algorithm(task, choice, shape), ConfigError);
    return;
  }
  const auto algorithm = choose_algorithm(task, choice, shape);
  const std::uint32_t n = shape.members();
  ASSERT_EQ(algorithm->members(), n);
  std::vector<bool> owned(n, false);
  for (std::uint32_t member = 0; member < n; ++member) owned[algorithm->shard_of(member)] = true;
  ASSERT_EQ(std::count(owned.begin(), owned.end(), true), n) << "every shard has one owner";
  for (const bool backwards : {false, true}) {
    if (backwards && algorithm->lanes() == 1) continue;
    Proof proof(task, *algorithm);
    for (std::uint32_t i = 0; i < algorithm->lanes(); ++i) {
      proof.run_lane(backwards ? algorithm->lanes() - 1 - i : i);
      if (testing::Test::HasFatalFailure()) return;
    }
    proof.expect_promise();
    if (testing::Test::HasFatalFailure()) return;
  }
}

void prove_all(const GroupShape& shape, std::int64_t elements) {
  for (const Op op : kCollectiveOps) {
    for (const Choice choice : kAlgorithmChoices) {
      prove(op, choice, shape, elements);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(CollectivesTest, EveryMemberOfARowEndsWithWhatTheOperationPromises) {
  for (std::uint32_t n = 2; n <= 64; ++n) {
    prove_all(shape_of({n}, false, false), 12 * n);
    if (n <= 24 || n == 63 || n == 64) {
      prove_all(shape_of({n}, true, true), 12 * n + 5);
      prove_all(shape_of({n}, true, false), 7);
    }
  }
}

TEST(CollectivesTest, EveryMemberOfABoxEndsWithWhatTheOperationPromises) {
  for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{
           {2, 2}, {3, 5}, {8, 2}, {4, 4}, {4, 4, 2}, {2, 3, 4}, {3, 3, 3}, {2, 2, 2, 3}}) {
    for (const std::int64_t elements : {1, 960, 40'321}) {
      prove_all(shape_of(sizes, false, false), elements);
      prove_all(shape_of(sizes, true, true), elements);
      prove_all(shape_of(sizes, true, false), elements);
    }
  }
}

// Enough data for many chunks: 64 KiB each (pipeline_chunks()).
TEST(CollectivesTest, PipelinesInChunksKeepThePromise) {
  for (const std::uint32_t n : {2U, 3U, 5U, 8U, 13U, 16U}) {
    const GroupShape shape = shape_of({n}, false, false);
    for (const std::int64_t elements : {40'000, 400'003, 4'000'037}) {
      prove(Op::kBroadcast, Choice::kChain, shape, elements);
      prove(Op::kReduce, Choice::kChain, shape, elements);
      prove(Op::kAllReduce, Choice::kDoubleBinaryTree, shape, elements);
    }
  }
}

std::int64_t bytes_sent(const CollectiveAlgorithm& algorithm) {
  std::int64_t sum = 0;
  for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
    for (std::uint32_t round = 0; round < algorithm.rounds(); ++round) {
      for (std::uint32_t member = 0; member < algorithm.members(); ++member) {
        if (const auto message = algorithm.message(lane, round, member)) {
          sum += message->bytes.value();
        }
      }
    }
  }
  return sum;
}

// Each of n shards (all-gather, reduce-scatter, all-to-all: n - 1 messages of each) and each whole
// buffer (broadcast, reduce) must cross n - 1 edges, (n - 1) N in all; all-reduce is two of them
// (FORMULAS B2, C1, C2, C24). Also when nothing divides anything.
TEST(CollectivesTest, SendsTheBytesOfTheDefinition) {
  for (const std::int64_t elements : {1, 7, 1000, 8191, 40'320, 1'000'001}) {
    for (const auto& sizes :
         std::vector<std::vector<std::uint32_t>>{{2}, {5}, {8}, {3, 5}, {4, 4, 2}}) {
      const GroupShape shape = shape_of(sizes, true, true);
      const std::int64_t n = shape.members();
      for (const Op op : kCollectiveOps) {
        for (const Choice choice : algorithms_for(op, shape)) {
          const auto algorithm = choose_algorithm(task_of(op, shape, elements), choice, shape);
          const std::int64_t bytes = 2 * elements;
          const bool power_of_two = (n & (n - 1)) == 0;
          std::int64_t expected = (n - 1) * bytes;
          if (op == Op::kAllReduce) {
            expected *= 2;
            if (choice == Choice::kRecursiveDoubling) continue;  // sends more on purpose
            if (choice == Choice::kHalvingDoubling && !power_of_two) continue;
          }
          if (op == Op::kGather || op == Op::kScatter) {
            if (choice != Choice::kDirect) continue;  // relays
            const std::int64_t own = algorithm->shard_of(static_cast<std::uint32_t>(n / 3));
            expected = bytes - 2 * ((own + 1) * elements / n - own * elements / n);
          }
          if (op == Op::kBarrier) expected = 0;
          if (op == Op::kSendReceive || op == Op::kPermute) expected = n * bytes;
          if (choice == Choice::kTorusAllToAll) continue;  // the next test
          EXPECT_EQ(bytes_sent(*algorithm), expected)
              << name_of(op) << " " << name_of(choice) << " n=" << n << " elements=" << elements;
        }
      }
    }
  }
}

// Of the bytes of a member 1/n go to each, over the sum of the shorter ways on every axis. The mean
// distance on a ring of n is n/4 (even) or (n^2 - 1) / (4 n) (odd), on a line (n^2 - 1) / (3 n)
// (FORMULAS B6).
TEST(CollectivesTest, ATorusAllToAllGoesTheShorterWays) {
  struct Case {
    std::vector<std::uint32_t> sizes;
    bool wraps;
    double hops;
  };
  for (const Case& of : {Case{{8}, true, 2.0}, Case{{5}, true, 1.2}, Case{{4}, false, 1.25},
                         Case{{4, 8}, true, 3.0}, Case{{4, 4, 4}, true, 3.0}}) {
    const GroupShape shape = shape_of(of.sizes, true, of.wraps);
    const CollectiveTask task = task_of(Op::kAllToAll, shape, 960'000);
    const auto algorithm = choose_algorithm(task, Choice::kTorusAllToAll, shape);
    const double expected = 1'920'000.0 * shape.members() * of.hops;
    EXPECT_NEAR(static_cast<double>(bytes_sent(*algorithm)) / expected, 1, 1e-5) << text(shape);
  }
}

Choice automatic(Op op, const GroupShape& shape, std::int64_t bytes) {
  return resolve(op, Choice::kAuto, shape, Bytes(bytes)).choice;
}

TEST(CollectivesTest, AutoTakesTheAlgorithmOfTheShape) {
  constexpr std::int64_t kLarge = 1 << 30;
  EXPECT_EQ(automatic(Op::kAllReduce, shape_of({8}, false, false), kLarge), Choice::kRing);
  EXPECT_EQ(automatic(Op::kAllReduce, shape_of({8}, true, true), kLarge),
            Choice::kBidirectionalRing);
  EXPECT_EQ(automatic(Op::kAllReduce, shape_of({8}, true, false), kLarge), Choice::kRing);
  EXPECT_EQ(automatic(Op::kAllReduce, shape_of({8, 4}, false, false), kLarge),
            Choice::kHierarchical);
  EXPECT_EQ(automatic(Op::kAllReduce, shape_of({4, 4}, true, true), 1), Choice::kMultiAxis);
  EXPECT_EQ(automatic(Op::kAllToAll, shape_of({4, 4}, true, true), 1), Choice::kTorusAllToAll);
  EXPECT_EQ(automatic(Op::kAllToAll, shape_of({64}, false, false), 1), Choice::kDirect);
  EXPECT_EQ(automatic(Op::kAllToAll, shape_of({65}, false, false), 1), Choice::kPairwise);
  EXPECT_EQ(resolve(Op::kAllReduce, Choice::kRing, shape_of({4, 4}, true, true), {}).choice,
            Choice::kRing);
}

// A ring all-reduce of n has 2 (n-1) rounds and sends 2 (n-1)/n S: trips of 64 KiB weigh more below
// S = n 64 KiB.
TEST(CollectivesTest, AutoTakesFewRoundsWhereTripsWeighMoreThanBytes) {
  const GroupShape eight = shape_of({8}, false, false);
  constexpr std::int64_t kEven = 8 * kTripBytes;
  EXPECT_EQ(automatic(Op::kAllReduce, eight, kEven), Choice::kRing);
  EXPECT_EQ(automatic(Op::kAllReduce, eight, kEven - 8), Choice::kHalvingDoubling);
  EXPECT_EQ(automatic(Op::kAllGather, eight, kEven - 8), Choice::kRecursiveDoubling);
  EXPECT_EQ(automatic(Op::kReduceScatter, eight, kEven - 8), Choice::kHalvingDoubling);
  EXPECT_EQ(automatic(Op::kAllGather, shape_of({7}, false, false), 1000), Choice::kBruck);
  EXPECT_EQ(automatic(Op::kReduceScatter, shape_of({7}, false, false), 1000), Choice::kRing);
  EXPECT_EQ(automatic(Op::kAllReduce, shape_of({48}, false, false), 1000),
            Choice::kDoubleBinaryTree);
  EXPECT_EQ(automatic(Op::kBroadcast, eight, 1000), Choice::kBinomialTree);
  EXPECT_EQ(automatic(Op::kBroadcast, eight, 1 << 30), Choice::kChain);
}

TEST(CollectivesTest, ARefusalSaysWhyAndWhatCanRun) {
  const GroupShape seven = shape_of({7}, false, false);
  EXPECT_EQ(refusal(Op::kAllGather, Choice::kRecursiveDoubling, seven),
            "needs a power of two members for this operation, the group has 7; in this group there "
            "are: ring, bidirectional-ring, direct, pairwise, bruck");
  EXPECT_EQ(refusal(Op::kAllToAll, Choice::kTorusAllToAll, seven),
            "needs a group that fills a box of torus axes; in this group there are: direct, "
            "pairwise");
  EXPECT_EQ(refusal(Op::kBroadcast, Choice::kRing, seven),
            "can't do broadcast; in this group there are: chain, binomial-tree");
  EXPECT_EQ(refusal(Op::kAllReduce, Choice::kHalvingDoubling, seven), "");
}

}  // namespace
}  // namespace stepsim
