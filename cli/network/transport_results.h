// What a run of `stepsim network` with a transport says beside the finishes of its flows.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "proto/network_case/network_case.h"
#include "sim/network/transport/transport_network.h"
#include "traces/results/result_table.h"

namespace stepsim {

// The members of a flow.
const ResultTable<MessageCounters>& message_results();

struct CaseQueue {
  std::string link;  // its id as in the file: a JSON value
  PortCounters port{};
};
// Returns the links that had a queue, a pause, a mark or a loss.
std::vector<CaseQueue> queues_of(const TransportNetwork& network, const NetworkCase& input);
const ResultTable<CaseQueue>& queue_results();

// Returns lines for people: completions, packets, and the ports with the longest queues.
std::string transport_text(const TransportNetwork& network, const NetworkCase& input,
                           std::span<const Time> finish);

}  // namespace stepsim
