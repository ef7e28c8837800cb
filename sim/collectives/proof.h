// disproof() moves symbolic contributions through the messages of an algorithm and says what is
// wrong with it. It finds
//
//   a member that does not end with exactly what the operation promises, each contribution once
//   a message with data that its sender does not have, or with other bytes than its blocks
//   a count of arrivals that is not that of the messages
//   lanes that wait for each other for ever
//
//   if (const auto wrong = disproof(task, *algorithm)) throw ConfigError({{"steps", *wrong}});
//
// Messages are sent and delivered in orders that the rules of algorithm.h allow: lane by lane from
// the first, lane by lane from the last, and all lanes side by side. In each, all that may be sent
// is sent before any of it arrives, so that no message relies on one that need not be there yet.
//
// Time and memory O(messages + members^2 x blocks / 64), for each order.

#pragma once

#include <optional>
#include <string>

#include "sim/collectives/algorithm.h"

namespace stepsim {

std::optional<std::string> disproof(const CollectiveTask& task,
                                    const CollectiveAlgorithm& algorithm);

}  // namespace stepsim
