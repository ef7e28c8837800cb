// FailureClock gives the failures of one run, in order of time. Its time is that of the machines at
// work: the owner stops it while they stand idle.
//
//   FailureClock clock(setup.classes, {.seed = 1, .run = 7});
//   while (!clock.empty()) { clock.next(); const Failure failure = clock.pop(); ... }
//
// exponential: all units of a class together fail at one rate, and a failure is of any of them.
// weibull: units fail and are new again. Those that have not failed yet are all of one age, so one
//   event stands for the next of them: the hazard of n units is n times that of one. Each that has
//   failed has an event of its own from then on. So a run costs O(failures), however many units.
// lemons: sound units and lemons at two constant rates; a lemon that has failed `lemon_limit` times
//   is taken out.
//
// Failures are a function of the seed, the run and the class, whatever other classes do: what one
// rate changes can be compared run by run.

#pragma once

#include <cstdint>
#include <vector>

#include "goodput/run_setup.h"
#include "sim/base/random.h"
#include "sim/engine/event_queue.h"

namespace stepsim {

struct Failure {
  std::uint32_t of = 0;   // index of the class
  std::int64_t unit = 0;  // 0 to units - 1
};

struct RunSeed {
  std::uint64_t seed = 1;
  std::uint64_t run = 0;
};

class FailureClock {
 public:
  FailureClock(const std::vector<ClassSetup>& classes, RunSeed seed);

  bool empty() const { return queue_.empty(); }
  Ticks next() const { return queue_.next_time().since_start.count(); }  // REQUIRES: !empty()
  Failure pop();                                                         // REQUIRES: !empty()

 private:
  struct Source {
    const ClassSetup* setup;
    RandomStream stream;
    std::uint64_t drawn = 0;
    std::int64_t untouched = 0;          // weibull: units that have not failed yet
    double scale = 0;                    // weibull, in ticks
    std::vector<std::int64_t> lemons{};  // failures of each that is left

    std::uint64_t draw() { return stream.at(drawn++); }
  };
  struct Renewed {
    std::uint32_t of;
    std::int64_t unit;
  };

  Ticks now() const { return queue_.now().since_start.count(); }
  void schedule(double wait, Event event);  // in ticks from now; beyond 10^18 it never comes
  void schedule_next(std::uint32_t of);
  void schedule_untouched(std::uint32_t of);
  std::int64_t take_weibull(std::uint32_t of);
  std::int64_t take_lemons(std::uint32_t of);
  double lemon_rate(const Source& source) const;  // of those that are left, a day
  double sound_rate(const Source& source) const;

  EventQueue queue_;
  std::vector<Source> sources_;
  std::vector<Renewed> renewed_;
};

}  // namespace stepsim
