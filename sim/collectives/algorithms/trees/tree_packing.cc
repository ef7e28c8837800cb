#include "sim/collectives/algorithms/trees/tree_packing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace stepsim {
namespace {

constexpr double kRounding = 1e-9;  // of a round

// Returns the first slot of each link among those of the links at the same end of the ways, widest
// first. `at_start`: at the members that they leave.
std::vector<std::uint32_t> first_ports(const MemberWays& ways, std::uint32_t members,
                                       const std::vector<std::uint32_t>& slots, bool at_start) {
  std::vector<std::vector<std::uint32_t>> links(members);
  for (const MemberWays::Way& way : ways.ways) {
    std::vector<std::uint32_t>& of_member = links[at_start ? way.from : way.to];
    const std::uint32_t link = at_start ? way.links.front() : way.links.back();
    if (std::ranges::find(of_member, link) == of_member.end()) of_member.push_back(link);
  }
  std::vector<std::uint32_t> first(ways.links.size(), 0);
  for (std::vector<std::uint32_t>& of_member : links) {
    std::ranges::stable_sort(of_member, std::greater{},
                             [&](std::uint32_t link) { return ways.links[link]; });
    std::uint32_t next = 0;
    for (const std::uint32_t link : of_member) next = (first[link] = next) + slots[link];
  }
  return first;
}

class Packing {
 public:
  Packing(const MemberWays& ways, std::uint32_t members, std::uint32_t pieces)
      : ways_(ways),
        chunks_(std::size_t{members} * pieces),
        holders_(chunks_, 1),
        has_(members * chunks_, 0),
        gets_(members * chunks_, 0),
        near_(members * chunks_, 0),
        out_(members),
        in_(members),
        offers_(ways.ways.size(), 0),
        order_(ways.ways.size()) {
    packed_.pieces = pieces;
    left_ = std::size_t{members} * (chunks_ - pieces);
    std::iota(order_.begin(), order_.end(), 0U);
    for (std::uint32_t way = 0; way < ways.ways.size(); ++way) {
      out_[ways.ways[way].from].push_back(way);
      in_[ways.ways[way].to].push_back(way);
    }
    cut_into_slots();
    from_port_ = first_ports(ways, members, slots_, true);
    to_port_ = first_ports(ways, members, slots_, false);
    for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) {
      gets_[at(chunk / pieces, chunk)] = 1;
      for (const std::uint32_t way : out_[chunk / pieces]) ++near_[at(ways.ways[way].to, chunk)];
    }
    for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) arrive({chunk / pieces, chunk});
  }

  PackedTrees pack() {
    for (std::uint32_t round = 0; left_ > 0; ++round) {
      if (arrivals_.size() <= round + 3) arrivals_.resize(round + 4);
      for (const auto& arrival : arrivals_[round]) arrive(arrival);
      std::ranges::stable_sort(order_, std::greater{},
                               [this](std::uint32_t way) { return offers_[way]; });
      bool moved = true;
      while (moved) {
        moved = false;
        for (const std::uint32_t way : order_) moved = hand_on(way, round) || moved;
      }
    }
    return std::move(packed_);
  }

 private:
  struct Arrival {
    std::uint32_t member;
    std::uint32_t chunk;
  };

  std::size_t at(std::uint32_t member, std::uint32_t chunk) const {
    return member * chunks_ + chunk;
  }

  void cut_into_slots() {
    const double unit = std::ranges::min(ways_.links).value();
    for (const Bandwidth link : ways_.links) {
      const double units = link.value() / unit;
      slots_.push_back(std::max(1U, static_cast<std::uint32_t>(std::ceil(units - kRounding))));
      takes_.push_back(std::max(1.0, slots_.back() / units));
      free_.emplace_back(slots_.back(), 0.0);
    }
  }

  void arrive(const Arrival& arrival) {
    has_[at(arrival.member, arrival.chunk)] = 1;
    for (const std::uint32_t way : out_[arrival.member]) {
      if (gets_[at(ways_.ways[way].to, arrival.chunk)] == 0) ++offers_[way];
    }
  }

  std::uint32_t free_slot(std::uint32_t link) const {
    const std::vector<double>& slots = free_[link];
    return static_cast<std::uint32_t>(std::ranges::min_element(slots) - slots.begin());
  }

  // Hands on one chunk over a way, if the way has a free slot and its receiver lacks any.
  bool hand_on(std::uint32_t number, std::uint32_t round) {
    if (offers_[number] == 0) return false;
    const MemberWays::Way& way = ways_.ways[number];
    double start = round;
    double takes = 0;
    for (const std::uint32_t link : way.links) {
      start = std::max(start, free_[link][free_slot(link)]);
      takes = std::max(takes, takes_[link]);
    }
    if (start >= round + 1 - kRounding) return false;
    const std::uint32_t chunk = rarest(way, round * 7 + number * 13);
    const std::uint32_t from_port = from_port_[way.links.front()] + free_slot(way.links.front());
    const std::uint32_t to_port = to_port_[way.links.back()] + free_slot(way.links.back());
    packed_.sends.push_back({.from = way.from,
                             .to = way.to,
                             .chunk = chunk,
                             .round = round,
                             .from_port = from_port,
                             .to_port = to_port});
    const double end = start + takes;
    for (const std::uint32_t link : way.links) free_[link][free_slot(link)] = end;
    packed_.length = std::max(packed_.length, end);
    packed_.rounds = round + 1;
    const auto there = static_cast<std::size_t>(std::ceil(end - kRounding));
    arrivals_[std::max<std::size_t>(there, round + 1)].push_back({way.to, chunk});
    gets_[at(way.to, chunk)] = 1;
    ++holders_[chunk];
    for (const std::uint32_t other : out_[way.to]) ++near_[at(ways_.ways[other].to, chunk)];
    for (const std::uint32_t other : in_[way.to]) {
      if (has_[at(ways_.ways[other].from, chunk)] != 0) --offers_[other];
    }
    --left_;
    return true;
  }

  // Returns the chunk to hand on: ties are broken at a place that moves on.
  std::uint32_t rarest(const MemberWays::Way& way, std::uint32_t first) const {
    std::pair best{std::numeric_limits<std::uint32_t>::max(), 0U};
    std::uint32_t chosen = 0;
    auto chunk = static_cast<std::uint32_t>(first % chunks_);
    for (std::size_t i = 0; i < chunks_; ++i, chunk = chunk + 1 == chunks_ ? 0 : chunk + 1) {
      if (has_[at(way.from, chunk)] == 0 || gets_[at(way.to, chunk)] != 0) continue;
      const std::pair rank{near_[at(way.to, chunk)], holders_[chunk]};
      if (rank >= best) continue;
      best = rank;
      chosen = chunk;
    }
    return chosen;
  }

  const MemberWays& ways_;
  std::size_t chunks_;
  std::vector<std::uint32_t> holders_;  // by chunk: members that have it or are about to
  std::vector<std::uint8_t> has_;       // by member and chunk
  std::vector<std::uint8_t> gets_;      // likewise: has it, or it is on its way
  std::vector<std::uint32_t> near_;     // likewise: ways to the member from one that gets it
  std::vector<std::vector<std::uint32_t>> out_;  // ways, by member
  std::vector<std::vector<std::uint32_t>> in_;
  std::vector<std::uint32_t> offers_;  // by way: chunks that the sender has and the receiver lacks
  std::vector<std::uint32_t> order_;   // ways
  std::vector<std::uint32_t> slots_;   // by link
  std::vector<double> takes_;          // by link: rounds for a chunk, at least 1
  std::vector<std::vector<double>> free_;  // by link and slot: when it is free
  std::vector<std::uint32_t> from_port_;   // by link
  std::vector<std::uint32_t> to_port_;
  std::vector<std::vector<Arrival>> arrivals_;  // by round
  std::size_t left_ = 0;
  PackedTrees packed_;
};

}  // namespace

PackedTrees pack_trees(const MemberWays& ways, std::uint32_t members, std::uint32_t pieces) {
  return Packing(ways, members, pieces).pack();
}

MemberWays reversed(const MemberWays& ways) {
  MemberWays back = ways;
  for (MemberWays::Way& way : back.ways) {
    std::swap(way.from, way.to);
    std::ranges::reverse(way.links);
  }
  return back;
}

Bandwidth least_ports(const MemberWays& ways, std::uint32_t members) {
  std::vector<double> in(members, 0);
  std::vector<double> out(members, 0);
  std::vector<bool> is_first(ways.links.size(), false);
  std::vector<bool> is_last(ways.links.size(), false);
  for (const MemberWays::Way& way : ways.ways) {
    const std::uint32_t first = way.links.front();
    const std::uint32_t last = way.links.back();
    if (!is_first[first]) out[way.from] += ways.links[first].value();
    if (!is_last[last]) in[way.to] += ways.links[last].value();
    is_first[first] = is_last[last] = true;
  }
  return Bandwidth(std::min(std::ranges::min(in), std::ranges::min(out)));
}

}  // namespace stepsim
