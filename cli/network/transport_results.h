// What a run of `stepsim network` with a transport says beside the finishes of its flows.

#pragma once

#include <span>
#include <string>

#include "proto/network_case/network_case.h"
#include "sim/network/transport/transport_network.h"

namespace stepsim {

// Returns the members of a flow in the JSON, each after a comma.
std::string transport_json_of_flow(const TransportNetwork& network, std::uint32_t flow);

// Returns the member "queues": the links that had a queue, a pause, a mark or a loss.
std::string transport_json_of_queues(const TransportNetwork& network, const NetworkCase& input);

// Returns lines for people: completions, packets, and the ports with the longest queues.
std::string transport_text(const TransportNetwork& network, const NetworkCase& input,
                           std::span<const Time> finish);

}  // namespace stepsim
