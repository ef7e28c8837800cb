// RequestRecord is what became of one request. Its parts are disjoint and add up to the time from
// arrival to last token, in whole picoseconds: serving/serve.cc asserts it for every request.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "serving/requests/request.h"
#include "sim/base/units.h"

namespace stepsim {

enum class RequestPart {
  kQueue,      // waits to be scheduled for the first time, or for room on a decode replica
  kPrefill,    // from the step that it is taken into to the token that follows: also when it is
               // computed again
  kPreempted,  // waits to be taken in again
  kTransfer,   // its KV cache moves: from a prefill to a decode replica, or from the host's memory
  kDecode,     // from token to token
};
inline constexpr std::size_t kRequestParts = 5;
std::string_view name_of(RequestPart part);

struct RequestRecord {
  Time arrival{};
  Time first_token{};
  Time last_token{};
  Duration longest_gap{};
  std::array<Duration, kRequestParts> parts{};
  std::int32_t preemptions = 0;
  std::int32_t tokens = 0;    // emitted
  std::uint32_t replica = 0;  // that emitted the last token

  Duration time_to_first_token() const { return first_token - arrival; }
  Duration end_to_end() const { return last_token - arrival; }
  // Rounds down. REQUIRES: tokens > 1.
  Duration time_per_output_token() const { return (last_token - first_token) / (tokens - 1); }
};

}  // namespace stepsim
