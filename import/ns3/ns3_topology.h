// The row `ns3-topology` of stepsim import: the topology text of the ns-3 simulators of RDMA
// networks, HPCC (alibaba-edu/High-Precision-Congestion-Control), astra-sim's and SimAI's backends.
//
//   nodes switches links                                        HPCC, astra-sim
//   nodes gpus_per_server nvswitches switches links GPU_TYPE    SimAI
//   ids of all switches (SimAI: its NVSwitches first)
//   source destination rate delay error_rate                    a line a link
//
// Nodes that are no switches are hosts, here chips, in the order of their ids. A link has its rate
// and delay each way; several between two nodes are one of their sum. Switches choose among equal
// paths by a hash of the flow, as there (routing: ecmp; paths past hosts first). SimAI's servers
// are nodes of gpus_per_server chips, each with a card between it and the network. The type of GPU
// is found among the names of catalog/hardware/aliases.textproto.
//
// Not modelled: error rates; queues, PFC and ECN, which other files of these simulators set.

#pragma once

#include "import/importer.h"

namespace stepsim {

Imported import_ns3_topology(const ImportRequest& request);

}  // namespace stepsim
