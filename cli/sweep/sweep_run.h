// Runs the points of a sweep in threads and other processes, each once, and keeps what they give.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/processes/process_group.h"
#include "cli/sweep/sweep_options.h"
#include "cli/sweep/sweep_table.h"
#include "store/result_store.h"

namespace stepsim {

// SweepWatch is what the caller is told while the points run. Both may be empty, and are called by
// one thread at a time, of any thread.
struct SweepWatch {
  std::function<void(const SweepCounts&)> progress{};
  // Each row once, in order of its number, as soon as it and those before it are done.
  std::function<void(const std::vector<std::string>& paths, const SweepRow&)> row{};
};

struct SweepResult {
  SweepTable table;  // of the request's shard
  SweepCounts counts;
};

// `group` may be nullptr; otherwise this is the first of its processes, and the others run points,
// too. `store` may be nullptr; otherwise what it has is not run again, and what is run is in it
// before `watch` hears of it. Two points with the same experiment are run once. Throws ConfigError
// if no point of a whole sweep can run, and OutputError if the store can't be written; the store
// keeps what was put in before.
SweepResult run_points(const SweepRequest& request, ResultStore* store, ProcessGroup* group,
                       const SweepWatch& watch);

}  // namespace stepsim
