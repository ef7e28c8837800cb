// What became of the packets of a transport, all links and messages together.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

// TransportTotals is what became of all packets of a run.
struct TransportTotals {
  std::uint64_t packets = 0;  // data packets sent, with repetitions
  std::uint64_t marked = 0;   // once a switch that marks them
  std::uint64_t trimmed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t repeated = 0;
  std::uint64_t pauses = 0;
  Duration paused{};                  // of all links together
  std::uint64_t peak_queue = 0;       // bytes of data in the longest queue
  std::optional<LinkId> peak_link{};  // where that was; unset: no packet ever waited
};

}  // namespace stepsim
