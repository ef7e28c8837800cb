// How a transport is written in one line: --transport.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

// The parts of such a line.
struct TransportParts {
  std::optional<TransportKind> kind{};  // unset: fields alone
  // Names of transport_fields() and their texts, in order.
  std::vector<std::pair<std::string, std::string_view>> fields{};
};

// Splits "dcqcn,rto=1ms". Appends a problem for each part that is neither a name nor a field, under
// "--transport", and leaves the part out. The texts are parts of `text`.
TransportParts split_transport_text(std::string_view text, std::vector<Problem>& problems);

// Reads "dcqcn" or "dcqcn,rto=1ms,window=100kB": a name, whose defaults hold, and fields over them.
// Fields alone go over `start`. Appends every problem, each under "--transport".
TransportSpec read_transport_text(std::string_view text, const TransportSpec& start,
                                  std::vector<Problem>& problems);

}  // namespace stepsim
