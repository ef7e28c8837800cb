// Every algorithm, proven: symbolic contributions are moved through its messages, and each member
// must end with exactly what the operation promises, each contribution once.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/axis_rings.h"
#include "sim/collectives/choose_algorithm.h"

namespace stepsim {
namespace {

constexpr AlgorithmChoice kChoices[] = {
    AlgorithmChoice::kAuto, AlgorithmChoice::kRing, AlgorithmChoice::kBidirectionalRing,
    AlgorithmChoice::kHierarchical, AlgorithmChoice::kMultiAxis};
constexpr CollectiveOp kOps[] = {CollectiveOp::kAllReduce, CollectiveOp::kAllGather,
                                 CollectiveOp::kReduceScatter};

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

std::uint32_t shard_number(const GroupShape& shape, const std::vector<std::uint32_t>& at) {
  std::uint32_t shard = 0;
  for (std::size_t d = shape.dimensions.size(); d-- > 0;) {
    shard = shard * shape.dimensions[d].size + at[d];
  }
  return shard;
}

// The shards of a box, in the coordinates of the algorithm's own dimensions.
std::vector<std::uint32_t> shards_in(const ShardBox& box, const std::vector<std::uint32_t>& sizes) {
  std::vector<std::uint32_t> shards;
  GroupShape shape;
  for (const std::uint32_t size : sizes) shape.dimensions.push_back({.size = size});
  std::vector<std::uint32_t> at(sizes.size(), 0);
  std::uint32_t total = 1;
  for (const std::uint32_t size : sizes) total *= size;
  for (std::uint32_t i = 0; i < total; ++i) {
    std::uint32_t rest = i;
    bool inside = true;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
      inside = inside && at[d] >= box.begin[d] && at[d] < box.begin[d] + box.count[d];
    }
    if (inside) shards.push_back(shard_number(shape, at));
  }
  return shards;
}

// What a member has of a shard: how often each member's contribution is in it.
using Content = std::vector<int>;

// Runs one lane under the dependency rule of algorithm.h and returns what everybody ends with.
std::vector<std::vector<Content>> run_lane(const CollectiveAlgorithm& algorithm, CollectiveOp op,
                                           std::uint32_t lane,
                                           const std::vector<std::uint32_t>& sizes) {
  const std::uint32_t n = algorithm.members();
  std::vector<std::vector<Content>> has(n, std::vector<Content>(n, Content(n, 0)));
  for (std::uint32_t member = 0; member < n; ++member) {
    for (std::uint32_t shard = 0; shard < n; ++shard) {
      const bool own = op != CollectiveOp::kAllGather || shard == algorithm.shard_of(member);
      if (own) has[member][shard][member] = 1;
    }
  }
  for (std::uint32_t round = 0; round < algorithm.rounds(); ++round) {
    // All messages of a round are read before any is written: nobody may rely on the others.
    struct Arrival {
      std::uint32_t to, shard;
      bool reduce;
      Content content;
    };
    std::vector<Arrival> arrivals;
    std::vector<int> received(n, 0);
    for (std::uint32_t member = 0; member < n; ++member) {
      const auto message = algorithm.message(lane, round, member);
      if (!message) continue;
      EXPECT_LT(message->to, n);
      EXPECT_NE(message->to, member);
      ++received[message->to];
      for (const std::uint32_t shard : shards_in(message->shards, sizes)) {
        arrivals.push_back({message->to, shard, message->reduce, has[member][shard]});
      }
    }
    for (const Arrival& arrival : arrivals) {
      Content& target = has[arrival.to][arrival.shard];
      for (std::uint32_t who = 0; who < n; ++who) {
        target[who] = arrival.content[who] + (arrival.reduce ? target[who] : 0);
      }
    }
    for (const int count : received) EXPECT_EQ(count, 1) << "one message a round and lane";
  }
  return has;
}

void expect_promise(const GroupShape& shape, CollectiveOp op, AlgorithmChoice choice, Bytes bytes) {
  const auto algorithm = choose_algorithm(op, choice, shape, bytes, Bytes(2));
  const std::uint32_t n = shape.members();
  ASSERT_EQ(algorithm->members(), n);
  const AlgorithmChoice resolved = resolve(choice, shape);
  const bool flat =
      resolved == AlgorithmChoice::kRing || resolved == AlgorithmChoice::kBidirectionalRing;
  std::vector<std::uint32_t> sizes;
  for (const GroupDimension& dimension : shape.dimensions) sizes.push_back(dimension.size);
  if (flat) sizes = {n};
  std::vector<bool> owned(n, false);
  for (std::uint32_t member = 0; member < n; ++member) owned[algorithm->shard_of(member)] = true;
  EXPECT_EQ(std::count(owned.begin(), owned.end(), true), n) << "every shard has one owner";
  for (std::uint32_t lane = 0; lane < algorithm->lanes(); ++lane) {
    const auto has = run_lane(*algorithm, op, lane, sizes);
    for (std::uint32_t member = 0; member < n; ++member) {
      for (std::uint32_t shard = 0; shard < n; ++shard) {
        if (op == CollectiveOp::kReduceScatter && shard != algorithm->shard_of(member)) continue;
        for (std::uint32_t who = 0; who < n; ++who) {
          const bool brings = op != CollectiveOp::kAllGather || shard == algorithm->shard_of(who);
          ASSERT_EQ(has[member][shard][who], brings ? 1 : 0)
              << name_of(op) << " " << name_of(choice) << " of " << n << ", lane " << lane
              << ": member " << member << ", shard " << shard << ", contribution of " << who;
        }
      }
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

TEST(CollectivesTest, EveryMemberEndsWithWhatTheOperationPromises) {
  for (const CollectiveOp op : kOps) {
    for (const AlgorithmChoice choice : kChoices) {
      for (std::uint32_t n = 2; n <= 33; ++n) {
        expect_promise(shape_of({n}, false, false), op, choice, Bytes(2 * 64 * n));
        expect_promise(shape_of({n}, true, true), op, choice, Bytes(2 * 64 * n));
      }
      for (const auto& sizes : std::vector<std::vector<std::uint32_t>>{
               {2, 2}, {3, 5}, {8, 2}, {4, 4, 2}, {2, 3, 4}, {4, 1, 3}}) {
        expect_promise(shape_of(sizes, false, false), op, choice, Bytes(2 * 960));
        expect_promise(shape_of(sizes, true, true), op, choice, Bytes(2 * 960));
        expect_promise(shape_of(sizes, true, false), op, choice, Bytes(2 * 960));
      }
    }
  }
}

// All-gather and reduce-scatter of N bytes: each of n shards crosses n - 1 edges, (n - 1) N in
// all; all-reduce twice that (FORMULAS B2, C1, C2). Also when nothing divides anything.
TEST(CollectivesTest, SendsTheBytesOfTheClosedForm) {
  for (const AlgorithmChoice choice : kChoices) {
    for (const std::int64_t elements : {1, 7, 1000, 8191, 40320}) {
      for (const auto& sizes :
           std::vector<std::vector<std::uint32_t>>{{2}, {5}, {8}, {3, 5}, {4, 4, 2}}) {
        const GroupShape shape = shape_of(sizes, true, true);
        const std::int64_t n = shape.members();
        const Bytes bytes(elements * 2);
        for (const CollectiveOp op : kOps) {
          const auto algorithm = choose_algorithm(op, choice, shape, bytes, Bytes(2));
          const std::int64_t passes = op == CollectiveOp::kAllReduce ? 2 : 1;
          EXPECT_EQ(bytes_sent(*algorithm), passes * (n - 1) * bytes.value())
              << name_of(op) << " " << name_of(choice) << " n=" << n << " elements=" << elements;
        }
      }
    }
  }
}

TEST(CollectivesTest, AutoTakesTheAlgorithmOfTheShape) {
  EXPECT_EQ(resolve(AlgorithmChoice::kAuto, shape_of({8}, false, false)), AlgorithmChoice::kRing);
  EXPECT_EQ(resolve(AlgorithmChoice::kAuto, shape_of({8}, true, true)),
            AlgorithmChoice::kBidirectionalRing);
  EXPECT_EQ(resolve(AlgorithmChoice::kAuto, shape_of({8}, true, false)), AlgorithmChoice::kRing);
  EXPECT_EQ(resolve(AlgorithmChoice::kAuto, shape_of({8, 4}, false, false)),
            AlgorithmChoice::kHierarchical);
  EXPECT_EQ(resolve(AlgorithmChoice::kAuto, shape_of({4, 4}, true, true)),
            AlgorithmChoice::kMultiAxis);
  EXPECT_EQ(resolve(AlgorithmChoice::kRing, shape_of({4, 4}, true, true)), AlgorithmChoice::kRing);
}

}  // namespace
}  // namespace stepsim
