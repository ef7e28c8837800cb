// A network case is a file of raw transfers over explicit links: `stepsim network` runs it. It is
// JSON, or JSON compressed with gzip, with everything written out: no routing and no topology is
// left to the reader.
//
//   { "format": "stepsim-oracle-flow/1", "name": ...,
//     "links": [{"id", "from", "to", "capacity_Bps", "latency_s"}],     one direction each
//     "flows": [{"id", "src", "dst", "route": [link ids], "bytes", "start_s", "after": [flow
//     ids]}], "expect": [{"flow", "finish_s"}] }                                optional
//
// The format "stepsim-oracle-packet/1" adds "packet_bytes", "switching" (store_and_forward, or
// cut_through with "header_bytes"), and exact times in whole picoseconds: "latency_ps", "start_ps",
// "finish_ps" stand for the same in seconds where they are there. "src" and "dst" may be left out.
// A packet case may have a "transport" and then "switches" and "seed" (case_transport.h).
// Ids are strings or whole numbers; 1 and "1" are two ids. Other fields are for people.
//
// A case is read as a stream. Its memory depends on its content (about 70 bytes per flow and 4 per
// link of its route), not on the length of the text. Times in seconds are rounded to the nearest
// picosecond.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/network_case/name_table.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"
#include "sim/network/flow_run.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

struct PacketRules {
  Bytes packet_bytes;
  std::optional<Bytes> header_bytes;  // for cut-through switching; unset: store and forward
};

struct ExpectedFinish {
  std::uint32_t flow;
  double finish_ps;
};

struct NetworkCase {
  std::string name;
  Fabric fabric;
  FlowList flows;
  NameTable link_ids;                  // as JSON texts: "A>B" with its quotes, or 7
  NameTable flow_ids;                  // the same
  std::optional<PacketRules> packets;  // set in the packet format
  std::optional<TransportSpec> transport;
  std::vector<ExpectedFinish> expected;
};

// Returns an id as a person reads it: without the quotes.
std::string_view plain_id(std::string_view json_text);

// Throws ConfigError with all problems of the file: unreadable, truncated or not JSON; missing
// fields and wrong types; unknown or repeated ids; capacities that are not above 0; negative sizes,
// times and latencies; routes that are not connected or use a link twice; flows that wait for each
// other in a circle.
NetworkCase load_network_case(const std::string& path);

}  // namespace stepsim
