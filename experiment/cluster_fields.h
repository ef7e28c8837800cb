// The fields of a cluster in files: its chip, its topology, its library, its hosts and its faults.

#pragma once

#include "experiment/experiment.h"
#include "sim/fields/field.h"

namespace stepsim {

const FieldTable<ClusterSpec>& cluster_fields();

}  // namespace stepsim
