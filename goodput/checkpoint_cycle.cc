#include "goodput/checkpoint_cycle.h"

#include <algorithm>
#include <cmath>

namespace stepsim {

namespace {

__extension__ typedef __int128 WideTicks;

}  // namespace

bool Pace::slower_than(const Pace& other) const {
  return WideTicks{work} * other.time < WideTicks{other.work} * time;
}

Pace Pace::slower_by(double factor) {
  constexpr Ticks kMillion = 1'000'000;
  return {kMillion, std::max(kMillion, static_cast<Ticks>(std::llround(1e6 * factor)))};
}

Pace Pace::times(const Pace& other) const {
  return {work * other.work, time * other.time};
}

Ticks Pace::work_in(Ticks elapsed) const {
  return static_cast<Ticks>(WideTicks{elapsed} * work / time);
}

Ticks Pace::time_for(Ticks amount) const {
  return static_cast<Ticks>((WideTicks{amount} * time + work - 1) / work);
}

std::optional<Ticks> mean_time_between_stops(const RunSetup& setup) {
  double per_day = 0;
  for (const ClassSetup& each : setup.classes) {
    if (each.effect != FailureEffect::kStop) continue;
    per_day += each.failures_per_day * static_cast<double>(each.units);
  }
  const double ticks = static_cast<double>(kTicksPerDay) / per_day;
  if (!(ticks < 1e18)) return std::nullopt;
  return std::max<Ticks>(1, std::llround(ticks));
}

CheckpointCycle::CheckpointCycle(const CheckpointCosts& costs, Pace pace, Ticks work)
    : costs_(costs),
      pace_(pace),
      gap_(pace.time_for(costs.interval)),
      cycle_(gap_ + costs.copy_stall),
      super_(costs.per_storage * cycle_ + costs.storage_stall),
      pieces_(std::max<std::int64_t>(1, (work + costs.interval - 1) / costs.interval)),
      last_(work - (pieces_ - 1) * costs.interval) {}

Ticks CheckpointCycle::last_piece_begins() const {
  const std::int64_t before = pieces_ - 1;
  return before * cycle_ + before / costs_.per_storage * costs_.storage_stall;
}

CyclePoint CheckpointCycle::at(Ticks elapsed) const {
  CyclePoint point;
  const Ticks begins = last_piece_begins();
  if (elapsed >= begins) {
    const Ticks inside = elapsed - begins;
    const Ticks ends = pace_.time_for(last_);
    point.saves = pieces_ - 1;
    point.partial = inside >= ends ? last_ : std::min(last_, pace_.work_in(inside));
    point.in_stall = std::max<Ticks>(0, inside - ends);
  } else {
    const std::int64_t supers = elapsed / super_;
    Ticks rest = elapsed % super_;
    const std::int64_t cycles = std::min<std::int64_t>(rest / cycle_, costs_.per_storage - 1);
    rest -= cycles * cycle_;
    point.saves = supers * costs_.per_storage + cycles;
    point.partial = rest >= gap_ ? costs_.interval : std::min(costs_.interval, pace_.work_in(rest));
    point.in_stall = std::max<Ticks>(0, rest - gap_);
  }
  point.stalled = point.saves * costs_.copy_stall +
                  point.saves / costs_.per_storage * costs_.storage_stall + point.in_stall;
  return point;
}

Ticks CheckpointCycle::elapsed_at(const CyclePoint& point) const {
  const Ticks piece = pace_.time_for(point.partial) + point.in_stall;
  return point.saves * cycle_ + point.saves / costs_.per_storage * costs_.storage_stall + piece;
}

Ticks CheckpointCycle::work_at(const CyclePoint& point) const {
  return point.saves * costs_.interval + point.partial;
}

Ticks CheckpointCycle::length() const {
  return last_piece_begins() + pace_.time_for(last_) + costs_.copy_stall + costs_.storage_stall +
         std::max(costs_.copy_flush, costs_.storage_flush);
}

Ticks CheckpointCycle::copied_at(Ticks elapsed) const {
  const Ticks then = elapsed - costs_.copy_flush;
  return then < 0 ? 0 : at(then).saves * costs_.interval;
}

Ticks CheckpointCycle::stored_at(Ticks elapsed) const {
  const Ticks then = elapsed - costs_.storage_flush;
  if (then < 0) return 0;
  return at(then).saves / costs_.per_storage * costs_.per_storage * costs_.interval;
}

}  // namespace stepsim
