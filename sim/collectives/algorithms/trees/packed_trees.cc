#include "sim/collectives/algorithms/trees/packed_trees.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

// Numbers of pieces that are tried, as long as members^3 x pieces^2 is no more than kMostLooks:
// some 10 ms.
constexpr std::array<std::uint32_t, 7> kPieces = {1, 2, 3, 4, 6, 8, 12};
constexpr std::int64_t kMostLooks = 4 << 20;
// Trees that are as close to the bound of the ports are not packed again in more pieces.
constexpr double kClose = 1.04;

}  // namespace

PackedTrees PackedTreesCollective::best(const CollectiveTask& task, const MemberWays& ways,
                                        std::uint32_t members) {
  const double n = members;
  const double unit = std::ranges::min(ways.links).value();
  const double bound = (n - 1) * unit / least_ports(ways, members).value();
  const auto seconds = [&](const PackedTrees& trees) {
    return trees.rounds * to_seconds(ways.trip) +
           trees.length / (n * trees.pieces) * static_cast<double>(task.bytes.value()) / unit;
  };
  const std::int64_t cube = std::int64_t{members} * members * members;
  PackedTrees best;
  for (const std::uint32_t pieces : kPieces) {
    if (pieces > 1 && cube * pieces * pieces > kMostLooks) break;
    PackedTrees packed = pack_trees(ways, members, pieces);
    const bool is_close = packed.length <= kClose * bound * pieces;
    if (best.sends.empty() || seconds(packed) < seconds(best)) best = std::move(packed);
    if (is_close) break;
  }
  return best;
}

PackedTreesCollective::PackedTreesCollective(const CollectiveTask& task, const GroupShape& shape)
    : task_(task),
      n_(shape.members()),
      together_(std::ranges::any_of(
          shape.ways.ways, [](const MemberWays::Way& way) { return way.links.size() > 1; })) {
  assert(is_ring_op(task.op));
  const bool scatters = task.op != CollectiveOp::kAllGather;
  const bool gathers = task.op != CollectiveOp::kReduceScatter;
  PackedTrees down;
  PackedTrees up;
  if (gathers) {
    down = best(task, shape.ways, n_);
    pieces_ = down.pieces;
  }
  if (scatters) {
    const MemberWays back = reversed(shape.ways);
    up = gathers ? pack_trees(back, n_, pieces_) : best(task, back, n_);
    pieces_ = up.pieces;
  }
  for (const PackedTrees::Send& send : down.sends) lanes_ = std::max(lanes_, send.from_port + 1);
  for (const PackedTrees::Send& send : up.sends) lanes_ = std::max(lanes_, send.to_port + 1);
  rounds_ = up.rounds + down.rounds;
  sent_of_.assign(slot(lanes_, 0, 0), 0);
  received_.assign(sent_of_.size(), 0);
  came_.resize(std::size_t{n_} * n_ * pieces_);
  add_reduce_scatter(up);
  // What has come in of other members' shards is of no use to an all-gather.
  for (std::size_t at = 0; at < came_.size(); ++at) {
    const std::size_t chunks = std::size_t{n_} * pieces_;
    if (at / chunks != at % chunks / pieces_) came_[at].clear();
  }
  for (const PackedTrees::Send& send : down.sends) {
    add(send, send.from_port, up.rounds + send.round, false);
  }
  came_ = {};
}

// Backwards in time and over the reversed ways, so the last comes first.
void PackedTreesCollective::add_reduce_scatter(const PackedTrees& trees) {
  for (std::size_t i = trees.sends.size(); i-- > 0;) {
    PackedTrees::Send send = trees.sends[i];
    std::swap(send.from, send.to);
    add(send, send.to_port, trees.rounds - 1 - send.round, true);
  }
}

void PackedTreesCollective::add(const PackedTrees::Send& send, std::uint32_t lane,
                                std::uint32_t round, bool reduce) {
  const std::size_t chunks = std::size_t{n_} * pieces_;
  sends_.push_back({.to = send.to,
                    .chunk = send.chunk,
                    .reduce = reduce,
                    .gates = came_[send.from * chunks + send.chunk]});
  sent_of_[slot(lane, round, send.from)] = static_cast<std::uint32_t>(sends_.size());
  ++received_[slot(lane, round, send.to)];
  came_[send.to * chunks + send.chunk].push_back({.lane = lane, .round = round});
}

std::optional<CollectiveMessage> PackedTreesCollective::message(std::uint32_t lane,
                                                                std::uint32_t round,
                                                                std::uint32_t member) const {
  const Sent* const found = sent(lane, round, member);
  if (found == nullptr) return std::nullopt;
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  const std::int64_t shard = part(elements, found->chunk / pieces_, n_);
  const std::int64_t piece = part(shard, found->chunk % pieces_, pieces_);
  return CollectiveMessage{
      .to = found->to, .bytes = Bytes(piece * task_.element.value()), .reduce = found->reduce};
}

void PackedTreesCollective::gates(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                                  std::vector<LaneGate>& out) const {
  if (together_) {
    for (std::uint32_t other = 0; round > 0 && other < lanes_; ++other) {
      out.push_back({.lane = other, .round = round - 1});
    }
    return;
  }
  const Sent* const found = sent(lane, round, member);
  if (found != nullptr) out.insert(out.end(), found->gates.begin(), found->gates.end());
}

void PackedTreesCollective::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                                   std::vector<std::uint32_t>& out) const {
  const Sent* const found = sent(lane, round, member);
  out.push_back(found->chunk % pieces_ * n_ + found->chunk / pieces_);
}

}  // namespace stepsim
