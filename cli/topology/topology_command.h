// `stepsim topology CLUSTER`: describes a cluster in numbers and as a picture.
//
// The JSON has `name`, `chip`, `chips`, `switches`, `hosts`, `nics`, `links` (one way each),
// `diameter_hops` (null above 32,768 chips), `bisection_bandwidth_bytes_per_s`, and the lists
// `levels`, innermost first: {`name`, `members`, `kind` ("switched" or "torus_axis"), `wraps`,
// `chips_per_group`, `groups`, `chip_to_peers_bytes_per_s`, `out_of_group_bytes_per_s`};
// `link_kinds`: {`name`, `links`, `bandwidth_bytes_per_s`, `latency_s`}; and `routes`, from the
// first chip to the middle of each level: {`level`, `from`, `to`, `bandwidth_bytes_per_s`,
// `latency_s`, `links` by name}. topology/graph/level_bandwidth.h says what the bandwidths of
// levels are.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kTopologySubcommand;

}  // namespace stepsim
