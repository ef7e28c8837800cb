// RunSetup is a whole training run as the simulation of failures sees it: work, nodes, a pace for
// each number of replicas, checkpoints, and failures. It knows no model and no network; those are
// in the times, which goodput/steps simulates.
//
// Time is counted in ticks of a microsecond: 2^63 of them are 292,000 years, where Duration ends
// after 106 days. Work is counted in ticks too: those that it takes without failures, checkpoints
// and slow nodes.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "goodput/failure_table.h"

namespace stepsim {

using Ticks = std::int64_t;
inline constexpr Ticks kTicksPerSecond = 1'000'000;
inline constexpr Ticks kTicksPerDay = 86'400 * kTicksPerSecond;

inline Ticks ticks_of(Duration time) {
  return (time.count() + 999'999) / 1'000'000;
}
inline double days_of(Ticks ticks) {
  return static_cast<double>(ticks) / static_cast<double>(kTicksPerDay);
}

// Pace is how fast work is done: `work` ticks of it in `time` ticks. Both are at most some
// millions, so that two paces can be multiplied.
struct Pace {
  Ticks work = 1;
  Ticks time = 1;

  static Pace slower_by(double factor);  // to a millionth
  bool slower_than(const Pace& other) const;
  Pace times(const Pace& other) const;
  Ticks work_in(Ticks elapsed) const;  // rounded down
  Ticks time_for(Ticks amount) const;  // rounded up
};

struct ClassSetup {
  FailureEffect effect = FailureEffect::kStop;
  FailureScope loses = FailureScope::kNode;
  FailureTimes times = FailureTimes::kExponential;
  std::int64_t units = 1;
  double failures_per_day = 0;  // of a unit
  double shape = 1;
  double lemon_share = 0;
  double lemon_failures = 0;
  std::int64_t lemon_limit = 1;
  Ticks detection = 0;
  Ticks repair = 0;
  std::int64_t nodes_lost = 0;
  Pace slowed{};  // kSlow
};

// CheckpointCosts: copies to host and peer are made together, every `interval` of work, those to
// storage with every `per_storage`-th of them. Without host and peer, per_storage is 1 and
// copy_stall 0.
struct CheckpointCosts {
  Ticks interval = 1;
  std::int64_t per_storage = 1;
  Ticks copy_stall = 0;
  Ticks copy_flush = 0;  // until a copy at a peer is safe
  Ticks storage_stall = 0;
  Ticks storage_flush = 0;
  std::array<bool, kCheckpointPlaces> has{false, false, true};
  std::array<Ticks, kCheckpointPlaces> load{};
};

struct RunSetup {
  Ticks work = 0;
  std::int64_t nodes = 1;  // that the whole plan needs
  std::int64_t spares = 0;
  std::int64_t groups = 1;  // over which nodes and spares are spread evenly, in order
  Pace far{};               // while a spare of another group stands in
  std::int64_t replicas = 1;
  std::int64_t least_replicas = 1;  // with fewer the job waits
  std::vector<Pace> paces{Pace{}};  // by replicas that are missing
  std::vector<ClassSetup> classes{};
  CheckpointCosts checkpoint{};
  Ticks restart = 0;  // without loading
  std::optional<Ticks> maintenance_every{};
  Ticks maintenance_time = 0;
};

// Returns the mean time between failures that stop a run of all nodes; nullopt: none ever does.
std::optional<Ticks> mean_time_between_stops(const RunSetup& setup);

}  // namespace stepsim
