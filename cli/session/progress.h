// Progress shows how far a simulation, or other work of which a share is done, has come: a
// ProgressLine with the share, what is done and the time left. As soon as it is clear that the work
// takes more than 5 s it says how long, also before a line is due.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/session/progress_line.h"
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
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Makes simulate() report to this object, which must outlive the simulation.
  void watch(SimulationOptions& options);
  void watch(ExperimentOptions& options);

  // Shows a share of something else, such as a search, and what it is.
  void show(double share, const std::string& done = "searched");

  // Says at once what takes long and has no share.
  void announce(const std::string& work) { line_.show_at_once(stage_ + work); }

  void wipe() { line_.wipe(); }  // removes the line until it is drawn again

 private:
  void draw(Time now, std::uint64_t ops_done, std::uint64_t ops_total);
  // Returns whether a line has to be drawn for work of which this share is done.
  bool has_news(double share);
  void draw(double share, const std::string& done);

  const std::string stage_;
  ProgressLine line_;
  std::chrono::steady_clock::time_point start_;  // of the watched simulation
  double elapsed_s_ = 0;
  double share_ = 0;
  bool is_announced_ = false;
};

}  // namespace stepsim
