#include "sim/collectives/algorithms/torus/twisted_all_to_all.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/collectives/parts.h"

namespace stepsim {

TwistedAllToAll::TwistedAllToAll(const CollectiveTask& task, GroupShape shape)
    : task_(task),
      shape_(std::move(shape)),
      grid_(shape_.dimensions),
      position_(shape_.members()),
      ways_(directions()),
      sent_(directions()) {
  assert(shape_.twists());
  for (std::uint32_t position = 0; position < shape_.members(); ++position) {
    position_[shape_.order[position]] = position;
  }
  find_ways();
  const std::uint32_t most = *std::ranges::max_element(most_hops_);
  for (std::uint32_t directions = 0; directions < this->directions(); ++directions) {
    std::vector<std::int64_t>& sent = sent_[directions];
    sent.assign(std::size_t{grid_.axes()} * most, 0);
    for (const Way& way : ways_[directions]) {
      for (std::uint32_t axis = 0; axis < grid_.axes(); ++axis) {
        for (std::uint32_t number = 0; number < way.hops[axis]; ++number) {
          sent[axis * most + number] += splits_ / way.alike;
        }
      }
    }
  }
  for (std::uint32_t axis = 0; axis < grid_.axes(); ++axis) rounds_ += most_hops_[axis];
}

// Finds the shortest paths from position 0. A shortest path goes at most half a round of a long
// axis and at most all of a short one. The latter is half of the ring that the twist makes of it.
void TwistedAllToAll::find_ways() {
  struct Found {
    std::uint32_t directions;
    Hops hops;
  };
  std::vector<std::vector<Found>> found(members());  // by position
  std::vector<std::uint32_t> shortest(members(), std::numeric_limits<std::uint32_t>::max());
  const auto reach = [&](std::uint32_t axis) {
    return shape_.dimensions[axis].wraps ? shape_.dimensions[axis].size / 2
                                         : shape_.dimensions[axis].size;
  };
  const auto look = [&](auto& self, std::uint32_t axis, std::uint32_t at, Found way) -> void {
    if (axis >= std::min<std::size_t>(grid_.axes(), way.hops.size())) {
      const std::uint32_t length = std::accumulate(way.hops.begin(), way.hops.end(), 0U);
      if (length > shortest[at]) return;
      if (length < shortest[at]) found[at].clear();
      shortest[at] = length;
      found[at].push_back(way);
      return;
    }
    for (const bool back : {false, true}) {
      std::uint32_t there = at;
      way.hops[axis] = 0;
      if (back) way.directions |= 1U << axis;
      if (!back) self(self, axis + 1, there, way);
      for (std::uint32_t hops = 1; hops <= reach(axis); ++hops) {
        there = *grid_.neighbour(there, axis, back);
        way.hops[axis] = hops;
        self(self, axis + 1, there, way);
      }
    }
  };
  look(look, 0, 0, {.directions = 0, .hops = {}});
  for (const std::vector<Found>& to_one : found) {
    const auto alike = static_cast<std::uint32_t>(to_one.size());
    splits_ = std::lcm(splits_, alike);
    for (std::uint32_t number = 0; number < alike; ++number) {
      const Hops& hops = to_one[number].hops;
      ways_[to_one[number].directions].push_back({.hops = hops, .number = number, .alike = alike});
      for (std::uint32_t axis = 0; axis < grid_.axes(); ++axis) {
        most_hops_[axis] = std::max(most_hops_[axis], hops[axis]);
      }
    }
  }
}

TwistedAllToAll::Hop TwistedAllToAll::hop(std::uint32_t lane, std::uint32_t round) const {
  Hop result{.rotation = lane / directions(), .directions = lane % directions(), .number = round};
  while (result.number >= most_hops_[axis_of(result, result.phase)]) {
    result.number -= most_hops_[axis_of(result, result.phase++)];
  }
  return result;
}

std::uint32_t TwistedAllToAll::walk(std::uint32_t position, std::uint32_t axis, std::uint32_t hops,
                                    bool back) const {
  for (std::uint32_t hop = 0; hop < hops; ++hop) {
    position = *grid_.neighbour(position, axis, back);
  }
  return position;
}

std::int64_t TwistedAllToAll::pieces_sent(const Hop& hop) const {
  const std::size_t most = sent_[hop.directions].size() / grid_.axes();
  return sent_[hop.directions][axis_of(hop, hop.phase) * most + hop.number];
}

std::optional<CollectiveMessage> TwistedAllToAll::message(std::uint32_t lane, std::uint32_t round,
                                                          std::uint32_t member) const {
  const Hop now = hop(lane, round);
  const std::int64_t sent = pieces_sent(now);
  if (sent == 0) return std::nullopt;
  const std::uint32_t axis = axis_of(now, now.phase);
  const auto to = grid_.neighbour(position_[member], axis, backwards(now.directions, axis));
  const std::int64_t all = std::int64_t{members()} * pieces();
  return CollectiveMessage{.to = shape_.order[*to],
                           .bytes = Bytes(rounded_share(task_.bytes.value(), sent, all))};
}

std::uint32_t TwistedAllToAll::receives(std::uint32_t lane, std::uint32_t round,
                                        std::uint32_t) const {
  return pieces_sent(hop(lane, round)) > 0 ? 1 : 0;
}

void TwistedAllToAll::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                             std::vector<std::uint32_t>& out) const {
  const Hop now = hop(lane, round);
  const std::uint32_t axis = axis_of(now, now.phase);
  for (const Way& way : ways_[now.directions]) {
    if (way.hops[axis] <= now.number) continue;
    const bool back = backwards(now.directions, axis);
    std::uint32_t from = walk(position_[member], axis, now.number, !back);
    std::uint32_t to = walk(position_[member], axis, way.hops[axis] - now.number, back);
    for (std::uint32_t phase = 0; phase < grid_.axes(); ++phase) {
      const std::uint32_t other = axis_of(now, phase);
      const bool back_there = backwards(now.directions, other);
      if (phase < now.phase) from = walk(from, other, way.hops[other], !back_there);
      if (phase > now.phase) to = walk(to, other, way.hops[other], back_there);
    }
    const std::uint32_t shard = shape_.order[from] * members() + shape_.order[to];
    const std::uint32_t share = splits_ / way.alike;
    for (std::uint32_t piece = 0; piece < share; ++piece) {
      out.push_back((now.rotation * splits_ + way.number * share + piece) * shards() + shard);
    }
  }
}

}  // namespace stepsim
