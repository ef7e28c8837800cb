#include "books/collective_forms/phase_schedule.h"

#include <algorithm>
#include <limits>

namespace stepsim {
namespace {

enum class Stage : std::uint8_t { kWaiting, kTrip, kWork, kDone };

struct LaneState {
  std::size_t round = 0;
  Stage stage = Stage::kWaiting;
  double left = 0;  // seconds left of the trip, or of the work if alone
};

}  // namespace

double phase_schedule(const std::vector<std::vector<LaneRound>>& lanes) {
  std::vector<LaneState> states(lanes.size());
  std::uint32_t machines = 0;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].empty()) states[lane].stage = Stage::kDone;
    for (const LaneRound& round : lanes[lane]) machines = std::max(machines, round.machine + 1);
  }
  std::vector<double> sharers(machines);
  double now = 0;
  for (;;) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        LaneState& state = states[lane];
        if (state.stage != Stage::kWaiting) continue;
        const LaneRound& round = lanes[lane][state.round];
        if (round.after && states[round.after->lane].round <= round.after->round) continue;
        state.stage = Stage::kTrip;
        state.left = round.trip;
        moved = true;
      }
    }
    std::ranges::fill(sharers, 0.0);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      if (states[lane].stage == Stage::kWork) ++sharers[lanes[lane][states[lane].round].machine];
    }
    const auto pace = [&](std::size_t lane) {
      return states[lane].stage == Stage::kWork
                 ? 1 / sharers[lanes[lane][states[lane].round].machine]
                 : 1;
    };
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      const Stage stage = states[lane].stage;
      if (stage != Stage::kTrip && stage != Stage::kWork) continue;
      next = std::min(next, states[lane].left / pace(lane));
    }
    if (next == std::numeric_limits<double>::infinity()) return now;
    now += next;
    std::vector<double> paces(lanes.size());
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) paces[lane] = pace(lane);
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      LaneState& state = states[lane];
      if (state.stage != Stage::kTrip && state.stage != Stage::kWork) continue;
      const LaneRound& round = lanes[lane][state.round];
      state.left -= next * paces[lane];
      // Equal lanes must end at the same instant despite rounding.
      if (state.left > 1e-12 * (round.trip + round.work)) continue;
      if (state.stage == Stage::kTrip) {
        state.stage = Stage::kWork;
        state.left = round.work;
        continue;
      }
      ++state.round;
      state.stage = state.round == lanes[lane].size() ? Stage::kDone : Stage::kWaiting;
    }
  }
}

}  // namespace stepsim
