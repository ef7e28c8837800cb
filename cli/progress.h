// Shows how far a simulation is: a line on standard error, on a terminal only, and only after 2 s.
// In a session (cli/session.h) it shows nothing, and ends the work when the caller asks for it.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "experiment/simulate_experiment.h"
#include "sim/base/units.h"
#include "sim/run/simulate.h"

namespace stepsim {

// Returns whether a person sees colours on this stream: it is a terminal, and NO_COLOR is not set.
bool shows_color(int file_descriptor);

class Progress {
 public:
  Progress() : Progress("") {}
  explicit Progress(std::string stage);  // stands before the rest of the line
  ~Progress();                           // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Makes simulate() report to this object, which must outlive the simulation.
  void watch(SimulationOptions& options);
  void watch(ExperimentOptions& options);

  // Shows a share of something else, such as a search, and what it is.
  void show(double share, const std::string& done = "searched");

  void wipe();  // removes the line until it is drawn again

 private:
  void draw(Time now, std::uint64_t ops_done, std::uint64_t ops_total);
  void draw(double share, const std::string& done);

  const std::string stage_;
  const bool on_terminal_;
  std::chrono::steady_clock::time_point start_;  // start of the watched simulation
  std::chrono::steady_clock::time_point next_line_;
  double share_ = 0;
  bool drawn_ = false;
};

}  // namespace stepsim
