// Shows progress on a terminal and handles interrupts. A line on standard error says how far a
// simulation is, and Ctrl-C ends it.
//
// The line is drawn only on a terminal, and only after 2 s. Ctrl-C (or SIGTERM) sets a flag. The
// simulation ends at its next call of progress(), and incomplete files are removed on the way out.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "experiment/simulate_experiment.h"
#include "sim/base/units.h"
#include "sim/run/simulate.h"

namespace stepsim {

// From now on an interrupt does not end the process; interrupt_signal() reports it.
void catch_interrupts();

// Returns SIGINT or SIGTERM if it arrived, otherwise 0.
int interrupt_signal();

// Throws SimulationInterrupted if an interrupt arrived.
void stop_if_interrupted();

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

  // Shows the progress of a search. Returns false if an interrupt arrived.
  bool show(double share);

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
