// A bench does points of a sweep, one after the other: it reads one, and runs it if it is asked to.
// A bench of another process does so there.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/processes/process_group.h"
#include "cli/sweep/sweep_options.h"
#include "experiment/uncertainty.h"

namespace stepsim {

// What a point is: the key of its experiment, or why it can't run.
struct PointState {
  std::string key{};
  std::string problem{};
};

// What it gives: JSON as `stepsim run --json` writes it, or why there is none.
struct PointResult {
  std::string json{};
  std::string problem{};
};

class PointBench {
 public:
  PointBench() = default;
  virtual ~PointBench() = default;
  PointBench(const PointBench&) = delete;
  PointBench& operator=(const PointBench&) = delete;

  virtual PointState read(std::uint64_t number) = 0;
  // Runs the point that was read last. REQUIRES: it has no problem.
  virtual PointResult run() = 0;
};

// Both arguments must outlive it.
std::unique_ptr<PointBench> make_bench(const SweepRequest& request,
                                       const std::vector<IntervalEntry>& intervals);

// A bench of place `place` of the others.
std::unique_ptr<PointBench> make_remote_bench(ProcessGroup& group, std::size_t place);

// Does points for another process until that one ends.
void do_points_for(ProcessGroup& group, const std::vector<std::string>& arguments);
// What all processes of a sweep must agree in.
std::string job_of(const SweepRequest& request);

}  // namespace stepsim
