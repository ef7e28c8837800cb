// How a transport is written in one line: --transport.

#pragma once

#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

// Reads "dcqcn" or "dcqcn,rto=1ms,window=100kB": a name, whose defaults hold, and fields over them.
// Fields alone go over `start`. Appends every problem, each under "--transport".
TransportSpec read_transport_text(std::string_view text, const TransportSpec& start,
                                  std::vector<Problem>& problems);

}  // namespace stepsim
