// Repeats finds out that a run repeats itself: that it does again, one period later, what it has
// done in the period before. Periods that would only repeat that once more are not simulated
// (docs/folding.md, "Time").
//
//   before     the run starts up      period   the same period      simulated again
//   ---------|---------------------|--------|--------|- - - - - - -|-----------------
//                                  t0       t1       t2   skipped
//
// The run is cut into intervals by the ends of one op of one rank, which comes once in a
// micro-batch. The signature of an interval sums up, for each op that ended in it and each that
// runs at its end, its stream, its work and its times, counted from the start of the interval. If
// the signatures of a whole period are those of the period before, all ops have taken the same time
// at the same moments, so rates, shares of chips and collectives under way are the same, too: they
// follow from what has happened since the oldest op that still runs has started, and that one
// started within the period. What happens next follows from the programs, whose next ops are
// compared one by one.
//
// A signature has 64 bits, and takes a few nanoseconds an op.

#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/streams.h"
#include "sim/run/simulation_options.h"

namespace stepsim {

class Repeats {
 public:
  // Returns nothing if the run can't repeat itself, or is watched op by op.
  static std::optional<Repeats> watch(const Job& job, const Streams& streams,
                                      const SimulationOptions& options);

  // The running op of `stream` ends. REQUIRES: called before Streams::end().
  void ends(RankStreamId stream, Time now);

  // Whether an interval ends at this instant. close() ends it, once all ops of the instant have
  // started.
  bool is_due() const { return is_due_; }
  enum class Found : std::uint8_t {
    kNothing,
    kBegin,  // a period may begin
    kAgain,  // the period that began has ended as the one before
  };
  Found close(Time now);

  // A period begins: its state is that of now. After kBegin, or instead of a skip.
  void begin(Time now);

  // Skip says how often the period that has just ended repeats itself.
  struct Skip {
    std::uint64_t times = 0;  // 0: it doesn't
    Duration period{};
    std::int32_t microbatches = 0;     // of a period
    std::vector<std::uint32_t> moved;  // by stream: ops of a period
  };
  Skip find_skip(Time now) const;

  // What came before says nothing about what comes next.
  void forget(Time now);

 private:
  struct Begun {
    std::size_t number = 0;  // of signatures
    std::size_t period = 0;  // likewise
    Time at;
    std::vector<std::uint64_t> ended;  // by stream: ops that had ended
    std::vector<std::uint32_t> steps;
  };

  Repeats(const Job& job, const Streams& streams);

  std::uint64_t times_of_waiting(RankStreamId stream,
                                 const std::vector<std::uint32_t>& moved) const;
  std::uint64_t times_of_moving(RankStreamId stream, const Skip& skip, std::uint64_t most,
                                std::optional<std::int32_t>& microbatches) const;
  bool is_like(RankStreamId stream, OpId op, OpId later, const std::vector<std::uint32_t>& moved,
               std::optional<std::int32_t>& microbatches) const;
  bool is_marker(RankStreamId stream) const;

  const Job& job_;
  const Streams& streams_;
  RankStreamId of_marker_;
  OpId marker_;
  bool is_due_ = false;
  Time since_;                   // start of the interval
  std::uint64_t signature_ = 0;  // of the interval so far
  std::vector<std::uint64_t> signatures_;
  std::unordered_map<std::uint64_t, std::size_t> last_;  // by signature; looked up only
  std::optional<Begun> begun_;
};

}  // namespace stepsim
