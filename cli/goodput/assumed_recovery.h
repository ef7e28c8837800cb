// What a run of failures takes from its table without having been asked: a table of the catalog
// describes one cluster, with its storage and how its operators restart jobs.

#pragma once

#include <string>
#include <vector>

#include "cli/goodput/goodput_options.h"
#include "traces/results/goodput_report.h"

namespace stepsim {

// Returns what the table says of checkpoints, restarts and spares that no option has set, and the
// bandwidths that neither has. Nothing where the table is a file of the user's, or the run's
// cluster is the one of the table's published figure. `cluster`: the run's; empty: only a step is
// given.
std::vector<AssumedField> assumed_recovery(const GoodputRequest& request,
                                           const std::string& cluster);

}  // namespace stepsim
