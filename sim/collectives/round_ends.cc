#include "sim/collectives/round_ends.h"

#include <algorithm>

namespace stepsim {

Duration end_of_rounds(const CollectiveAlgorithm& algorithm,
                       const std::vector<std::vector<Duration>>& trips) {
  std::vector<std::vector<Duration>> end(algorithm.lanes());
  const auto is_open = [&](const LaneGate& gate) { return gate.round < end[gate.lane].size(); };
  Duration last{};
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
      while (end[lane].size() < algorithm.rounds()) {
        const auto round = static_cast<std::uint32_t>(end[lane].size());
        Duration start = round == 0 ? Duration{} : end[lane].back();
        bool ready = true;
        for (std::uint32_t member = 0; algorithm.gated() && member < algorithm.endpoints();
             ++member) {
          if (!algorithm.message(lane, round, member)) continue;
          const auto gate = algorithm.gate(lane, round, member);
          if (!gate) continue;
          ready = ready && is_open(*gate);
          if (ready) start = std::max(start, end[gate->lane][gate->round]);
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
  std::vector<Duration> has(next.size());
  std::vector<Duration> gets(next.size());
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t member = 0; member < next.size(); ++member) {
      gets[next[member]] = has[member] + hop[member];
    }
    has.swap(gets);
  }
  return *std::ranges::max_element(has);
}

}  // namespace stepsim
