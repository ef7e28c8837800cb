// `stepsim sweep merge`: joins the stores of shards.

#pragma once

#include "cli/sweep/sweep_options.h"
#include "cli/sweep/sweep_table.h"

namespace stepsim {

struct MergedSweep {
  SweepTable table;
  SweepCounts counts;
};

// Puts everything of the inputs into the request's store, which may have results already. The table
// is that of the one sweep that they hold. Throws ConfigError if they hold several and a table is
// asked for.
MergedSweep merge_stores(const MergeRequest& request);

}  // namespace stepsim
