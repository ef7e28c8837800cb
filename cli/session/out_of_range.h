// Names the fields behind a time of more than 106 days, which whole picoseconds of 64 bits can't
// count, and behind a size of more than 9.2 EB. Such figures come of an unlikely link or number, so
// a message says those that are largest or slowest.
//
//   run_in_range([&] { return simulate(graph, cluster); }, [&] { return named(cluster.fabric); });
//
// What a person asked for in options and keys is checked where it is read; this is for what only a
// simulation finds.

#pragma once

#include <stdexcept>
#include <utility>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/base/error.h"
#include "sim/chips/chip_spec.h"
#include "sim/network/fabric.h"

namespace stepsim {

// Returns the fields of links, or of a chip and a plan, with what they are.
std::vector<Problem> named(const Fabric& fabric);
std::vector<Problem> named(const ParallelPlan& plan, const Fabric& fabric, const ChipSpec& chip);

// Returns the problems with `what` before what each of them says.
ConfigError out_of_range(const std::string& what, std::vector<Problem> fields);

// Calls work(). If it throws std::range_error, throws ConfigError with the fields of name()
// instead.
template <class Work, class Name>
auto run_in_range(const Work& work, const Name& name) {
  try {
    return work();
  } catch (const std::range_error& error) {
    throw out_of_range(error.what(), name());
  }
}

}  // namespace stepsim
