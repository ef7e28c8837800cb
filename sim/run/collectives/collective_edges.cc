#include "sim/run/collectives/collective_edges.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sim/collectives/round_ends.h"

namespace stepsim {
namespace {

struct EdgeHash {
  std::size_t operator()(const CollectiveEdge& edge) const {
    std::uint64_t hash = std::uint64_t{edge.from} << 32 | edge.to;
    if (edge.link) hash ^= (*edge.link).index() * 0x2545f4914f6cdd1dU;
    hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15U;
    return hash ^ (hash >> 32) ^ (edge.adds ? 1 : 0) ^ (edge.in_node ? 2 : 0);
  }
};

class Summing {
 public:
  Summing(const CollectiveAlgorithm& algorithm,
          const std::function<Duration(const CollectiveEdge&)>& hop)
      : algorithm_(algorithm), hop_(hop) {}

  EdgeSums sum_up() {
    sums_.latency = algorithm_.relays() ? add_relays() : add_rounds();
    return std::move(sums_);
  }

 private:
  // Both return the time of a trip through all rounds.
  Duration add_relays() {
    next_.resize(algorithm_.members());
    hop_to_next_.resize(algorithm_.members());
    Duration longest{};
    for (std::uint32_t lane = 0; lane < algorithm_.lanes(); ++lane) {
      for (std::uint32_t member = 0; member < algorithm_.members(); ++member) {
        const LaneSum sum = algorithm_.lane_sum(lane, member);
        const std::uint32_t number = number_of({.from = member, .to = sum.to});
        sums_.bytes[number] += sum.bytes;
        sums_.sent += sum.bytes;
        next_[member] = sum.to;
        hop_to_next_[member] = hops_[number];
      }
      longest = std::max(longest, end_of_relay(algorithm_.rounds(), next_, hop_to_next_));
    }
    return longest;
  }
  Duration add_rounds() {
    trips_.assign(algorithm_.lanes(), std::vector<Duration>(algorithm_.rounds()));
    for (std::uint32_t lane = 0; lane < algorithm_.lanes(); ++lane) {
      for (std::uint32_t member = 0; member < algorithm_.endpoints(); ++member) add(lane, member);
    }
    return end_of_rounds(algorithm_, trips_);
  }

  // A member sends to few others, and many rounds in a row over the same edge.
  void add(std::uint32_t lane, std::uint32_t member) {
    std::optional<CollectiveEdge> edge;
    std::uint32_t number = 0;
    const auto [first, last] = algorithm_.sending_rounds(lane, member);
    for (std::uint32_t round = first; round < last; ++round) {
      const auto message = algorithm_.message(lane, round, member);
      if (!message) continue;
      CollectiveEdge now{.from = member, .to = message->to};
      if (message->link) {
        now.link = *message->link;
        now.in_node = message->in_node;
        now.adds = message->reduce;
      }
      if (edge != now) {
        edge = now;
        number = number_of(now);
      }
      sums_.bytes[number] += message->bytes;
      if (member < algorithm_.members()) sums_.sent += message->bytes;
      Duration& trip = trips_[lane][round];
      trip = std::max(trip, hops_[number]);
    }
  }

  std::uint32_t number_of(const CollectiveEdge& edge) {
    const auto [place, is_new] =
        numbers_.try_emplace(edge, static_cast<std::uint32_t>(sums_.edges.size()));
    if (is_new) {
      sums_.edges.push_back(edge);
      sums_.bytes.emplace_back();
      hops_.push_back(hop_(edge));
    }
    return place->second;
  }

  const CollectiveAlgorithm& algorithm_;
  const std::function<Duration(const CollectiveEdge&)>& hop_;
  EdgeSums sums_;
  std::vector<Duration> hops_;                                           // by edge
  std::unordered_map<CollectiveEdge, std::uint32_t, EdgeHash> numbers_;  // never iterated
  std::vector<std::vector<Duration>> trips_;                             // by lane and round
  std::vector<std::uint32_t> next_;                                      // by member, in a relay
  std::vector<Duration> hop_to_next_;
};

}  // namespace

EdgeSums sum_edges(const CollectiveAlgorithm& algorithm,
                   const std::function<Duration(const CollectiveEdge&)>& hop) {
  return Summing(algorithm, hop).sum_up();
}

}  // namespace stepsim
