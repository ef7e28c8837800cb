#include "sim/collectives/round_ends.h"

#include <algorithm>

namespace stepsim {

namespace {

// Returns the gates of all senders of a lane, by round.
std::vector<std::vector<LaneGate>> gates_of(const CollectiveAlgorithm& algorithm,
                                            std::uint32_t lane) {
  std::vector<std::vector<LaneGate>> gates(algorithm.rounds());
  if (!algorithm.gated()) return gates;
  for (std::uint32_t member = 0; member < algorithm.endpoints(); ++member) {
    const auto [first, last] = algorithm.sending_rounds(lane, member);
    for (std::uint32_t round = first; round < last; ++round) {
      if (!algorithm.message(lane, round, member)) continue;
      algorithm.gates(lane, round, member, gates[round]);
    }
  }
  return gates;
}

// Returns the time of rounds that all lanes go through side by side.
Duration end_in_step(std::uint32_t rounds, const std::vector<std::vector<Duration>>& trips) {
  Duration end{};
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Duration longest{};
    for (const std::vector<Duration>& lane : trips) longest = std::max(longest, lane[round]);
    end += longest;
  }
  return end;
}

}  // namespace

Duration end_of_rounds(const CollectiveAlgorithm& algorithm,
                       const std::vector<std::vector<Duration>>& trips) {
  if (algorithm.in_step()) return end_in_step(algorithm.rounds(), trips);
  std::vector<std::vector<Duration>> end(algorithm.lanes());
  const auto is_open = [&](const LaneGate& gate) { return gate.round < end[gate.lane].size(); };
  Duration last{};
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
      if (end[lane].size() == algorithm.rounds()) continue;
      const std::vector<std::vector<LaneGate>> gates = gates_of(algorithm, lane);
      while (end[lane].size() < algorithm.rounds()) {
        const auto round = static_cast<std::uint32_t>(end[lane].size());
        Duration start = round == 0 ? Duration{} : end[lane].back();
        bool ready = true;
        for (const LaneGate& gate : gates[round]) {
          ready = ready && is_open(gate);
          if (ready) start = std::max(start, end[gate.lane][gate.round]);
        }
        if (!ready) break;
        end[lane].push_back(start + trips[lane][round]);
        last = std::max(last, end[lane].back());
        moved = true;
      }
    }
  }
  return last;
}

Duration end_of_relay(std::uint32_t rounds, const std::vector<std::uint32_t>& next,
                      const std::vector<Duration>& hop) {
  Duration longest{};
  std::vector<bool> is_passed(next.size());
  std::vector<Duration> trips;  // round the cycle of one member, in order
  for (std::uint32_t first = 0; first < next.size(); ++first) {
    if (is_passed[first]) continue;
    trips.clear();
    Duration all{};
    for (std::uint32_t member = first; !is_passed[member]; member = next[member]) {
      is_passed[member] = true;
      trips.push_back(hop[member]);
      all += hop[member];
    }
    // A byte goes all the way round `rounds / n` times, and then `rounds % n` trips.
    const std::size_t rest = rounds % trips.size();
    Duration window{};
    for (std::size_t trip = 0; trip < rest; ++trip) window += trips[trip];
    Duration most = window;
    for (std::size_t start = 0; start + 1 < trips.size(); ++start) {
      window += trips[(start + rest) % trips.size()] - trips[start];
      most = std::max(most, window);
    }
    longest = std::max(longest, static_cast<std::int64_t>(rounds / trips.size()) * all + most);
  }
  return longest;
}

}  // namespace stepsim
