// A drawing of the cluster: its nodes in rows, chips at the bottom, each with the load of its
// busiest link.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"columns": N, "rows": [{"kind": "node*.gpu*", "chips": true, "nodes": nodes in a cell, "cells":
//  [[column, line, first node, utilization of its busiest link 0..1]...], "lines": N}...], "joins":
//  [[row, cell, row, cell, utilization]...], "faults": [[row, cell, row, cell, "a to b", remaining
//  share of the bandwidth]...], "slow": [[row, cell, rank, slowdown]...]}
// A row is a kind of node; those farthest from the chips come first. Chips of a torus stand as in
// it: x along the columns, y along the lines, planes of z beside each other. Otherwise the chips of
// a node or rack share a column. `joins` are links between rows of at most 128 cells each.
Json cluster_drawing(const FinishedRun& run);

}  // namespace stepsim
