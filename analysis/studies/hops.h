// Graphs of messages that go from chip to neighbouring chip, or to one destination after another:
// what the books' arguments count by hand. Rank r sits on chip r.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/graph_by_hand.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// All-gather of n shards along a line or ring: in every round a chip passes on whole the shard that
// it got last, in both directions at once. On a ring, the shard of the opposite chip comes one way
// only: ceil((n - 1) / 2) rounds; on a line n - 1.
OpGraph whole_shard_all_gather(std::uint32_t n, Bytes shard, bool wraps);

// All-gather of n shards along a line in rounds of all chips: a round takes as long as its hop, but
// `floor` at the least. On ideal_chip().
OpGraph all_gather_in_rounds(std::uint32_t n, Bytes shard, Duration floor);

// Reduce-scatter around a ring in one direction, n - 1 rounds: in every round a chip sends a shard
// on, receives one and adds it to its own, which moves `added` bytes through the chip's memory.
OpGraph reduce_scatter_with_adds(std::uint32_t n, Bytes shard, Bytes added);

// All-reduces over a mesh without wraparound, one after another: reduce-scatter along x, then y,
// all-gather along y, then x. Along a line of n every shard goes from neighbour to neighbour, both
// ways at once: n - 1 rounds.
class MeshAllReduce {
 public:
  // Rank x + size_x * y of `graph`, which has size_x * size_y ranks.
  MeshAllReduce(GraphByHand& graph, std::uint32_t size_x, std::uint32_t size_y);

  // `ready[rank]` is what must have ended before. Returns what ends last of each rank.
  std::vector<std::vector<Dependency>> add(Bytes bytes, std::vector<std::vector<Dependency>> ready);

 private:
  struct Direction {
    std::vector<std::uint32_t> order;  // ranks, by position
    CommunicatorId communicator;
    std::vector<StreamId> streams;  // by position
  };
  void add_lines(const std::vector<Direction>& directions, Bytes shard, bool gathers,
                 std::vector<std::vector<Dependency>>& ready);

  GraphByHand& graph_;
  std::vector<Direction> along_x_;
  std::vector<Direction> along_y_;
  std::uint32_t size_x_;
  std::uint32_t size_y_;
  std::uint32_t messages_ = 0;  // numbers them
};

// Every rank sends `chunk` to the ranks of destinations[rank] one after another; all receives are
// posted at the start.
OpGraph messages_in_order(const std::vector<std::vector<std::uint32_t>>& destinations, Bytes chunk);

// The same, sends posted a nanosecond after each other, whatever those before them do: the network
// has them in this order. On ideal_chip().
OpGraph messages_at_once(const std::vector<std::vector<std::uint32_t>>& destinations, Bytes chunk);

// Everybody's order is 0, 1, ..., n - 1, without itself.
std::vector<std::vector<std::uint32_t>> same_order(std::uint32_t n);
// Rank r sends to r + 1 first, then to r + 2, ...
std::vector<std::vector<std::uint32_t>> rotated_order(std::uint32_t n);
// An order of each rank's own, drawn by lot.
std::vector<std::vector<std::uint32_t>> random_order(std::uint32_t n, std::uint64_t seed);

}  // namespace stepsim
