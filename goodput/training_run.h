// simulate_training() runs a whole training once, with failures, and says where the time went.
//
//   train --stop--> detect --> restart --> train        lost: work since the checkpoint that is
//   left
//     |                 \--> wait for repair --^         where too few nodes are left
//     |--slow node found, maintenance, larger again--> save --> (maintain) --> restart
//     |--corruption found--> restart from a checkpoint of before it
//     |--a slow unit that loses nothing recovers by itself (thermal throttling)
//
// Failures come while the job trains, detects and restarts; nodes that stand idle don't fail (cold
// spares, and all nodes while the job waits). A failure while another is detected is found with it;
// one during a restart begins anew. With detection 0 and enough spares this is the process whose
// mean is formula K3.
//
// It is a discrete-event simulation on EventQueue. A run costs O(failures x log(failures)).

#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "goodput/failure_clock.h"
#include "goodput/run_setup.h"

namespace stepsim {

enum class RunPart : std::uint8_t {
  kProductive,  // work that is not done again, at full pace
  kCheckpoint,  // training stands still for one
  kLost,        // work that is done again
  kRestart,     // from a failure to its detection, and from there until training goes on
  kRepair,      // waiting for nodes, and planned maintenance
  kDegraded,    // what slow nodes and missing replicas cost
};
inline constexpr std::size_t kRunParts = 6;
std::string_view name_of(RunPart part);  // "productive"

enum class RunPhase : std::uint8_t {
  kTraining,
  kDetecting,
  kRestarting,
  kWaiting,
  kSaving,
  kMaintaining
};
inline constexpr std::size_t kRunPhases = 6;
std::string_view name_of(RunPhase phase);  // "training"

struct RunSpan {
  RunPhase phase = RunPhase::kTraining;
  Ticks begin = 0;
  Ticks end = 0;
  std::int64_t replicas = 0;
  std::optional<std::uint32_t> failure{};  // class that ended it
};

struct TrainingResult {
  Ticks length = 0;
  std::array<Ticks, kRunParts> parts{};  // add up to length
  std::vector<std::int64_t> failures{};  // by class
  std::int64_t restarts = 0;
  std::int64_t undetected = 0;  // corruptions that nobody found before the end
  std::uint64_t events = 0;
  std::vector<RunSpan> spans{};  // if asked for
};

// A run that makes no progress: failures come faster than restarts.
struct RunStuck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws RunStuck.
TrainingResult simulate_training(const RunSetup& setup, RunSeed seed, bool keeps_spans = false);

}  // namespace stepsim
