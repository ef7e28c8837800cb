// Graphs of messages from chip to neighbouring chip, or to one destination after another. The
// books' arguments count these by hand. Rank r sits on chip r.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/graph_by_hand.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// All-gather of n shards along a line or ring. In every round a chip passes on the whole shard that
// it received last, in both directions at once. On a ring, the shard of the opposite chip comes
// from one direction only: ceil((n - 1) / 2) rounds. On a line it takes n - 1.
OpGraph whole_shard_all_gather(std::uint32_t n, Bytes shard, bool wraps);

// All-gather of n shards along a line, in rounds that all chips start together. A round takes as
// long as its hop, but at least `floor`. Use ideal_chip().
OpGraph all_gather_in_rounds(std::uint32_t n, Bytes shard, Duration floor);

// Reduce-scatter around a ring in one direction, n - 1 rounds. In every round a chip sends a shard,
// receives one and adds it to its own. The addition moves `added` bytes through the chip's memory.
OpGraph reduce_scatter_with_adds(std::uint32_t n, Bytes shard, Bytes added);

// All-reduces over a mesh without wraparound, one after another: reduce-scatter along x, then y;
// all-gather along y, then x. Along a line of n every shard moves from neighbour to neighbour, in
// both directions at once: n - 1 rounds.
class MeshAllReduce {
 public:
  // Uses rank x + size_x * y of `graph`, which has size_x * size_y ranks.
  MeshAllReduce(GraphByHand& graph, std::uint32_t size_x, std::uint32_t size_y);

  // `ready[rank]`: ops that must end before the all-reduce starts. Returns the last ops of each
  // rank.
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
  std::uint32_t messages_ = 0;  // count of messages, for their numbers
};

// Every rank sends `chunk` to the ranks of destinations[rank], one after another. All receives are
// posted at the start.
OpGraph messages_in_order(const std::vector<std::vector<std::uint32_t>>& destinations, Bytes chunk);

// The same, but sends are posted a nanosecond apart without waiting for earlier ones, so the
// network has them in this order. Use ideal_chip().
OpGraph messages_at_once(const std::vector<std::vector<std::uint32_t>>& destinations, Bytes chunk);

// Every rank's order is 0, 1, ..., n - 1, without the rank itself.
std::vector<std::vector<std::uint32_t>> same_order(std::uint32_t n);
// Rank r sends to r + 1 first, then to r + 2, ...
std::vector<std::vector<std::uint32_t>> rotated_order(std::uint32_t n);
// Every rank has its own random order.
std::vector<std::vector<std::uint32_t>> random_order(std::uint32_t n, std::uint64_t seed);

}  // namespace stepsim
