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
