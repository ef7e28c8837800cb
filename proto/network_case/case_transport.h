// The transport of a packet case, in either of two forms:
//
//   {"name": "dcqcn", "window": "100kB", ..}    fields of transport_fields(), texts or numbers
//   {"protocol": "dcqcn", "simulator": "HPCC/SimAI ns-3 ..", "parameters": {..}}
//
// The second is that of the reference runs of htsim and ns-3: `parameters` say all that the
// simulator was told, by names with units ("queue_bytes", "min_rto_s", "ai_mbps"); null is "there
// is none". The same variant is made of them. What the file says beside them is for people.

#pragma once

#include "proto/messages/json_value.h"
#include "proto/network_case/case_fields.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

// Reports problems under "transport.".
TransportSpec read_case_transport(const Json& transport, CaseProblems& problems);

// Adds the "switches" of a case with a transport of the first form.
void read_case_switches(const Json& switches, TransportSpec& spec, CaseProblems& problems);

}  // namespace stepsim
