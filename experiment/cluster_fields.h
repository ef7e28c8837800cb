// The fields of a cluster, as files give them: its chip, its topology and what goes with them.

#pragma once

#include "experiment/experiment.h"
#include "sim/base/field.h"

namespace stepsim {

const FieldTable<ClusterSpec>& cluster_fields();

}  // namespace stepsim
