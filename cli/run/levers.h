// Levers are what one could buy or change of the hardware: each scales fields of an experiment.
//
//   flops, memory_bandwidth, memory_capacity     of the chip
//   nvlink_bandwidth, nic_bandwidth, ...         of the network, by the names of its fields
//   latency                                      of all links
//   library_latency                              starts and hops of the communication library
//   host_bandwidth                               of hosts, their links and their memory
//   launch_overhead                              of kernels, and launches by the host

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace stepsim {

enum class LeverKind : std::uint8_t { kThroughput, kBandwidth, kBytes, kTime };

struct LeverField {
  std::string path;   // as for --set
  std::string value;  // now
};

struct Lever {
  std::string name;
  LeverKind kind = LeverKind::kBandwidth;
  std::vector<LeverField> fields;

  // Returns "path=value" for --set, with the value of each field times `factor`.
  std::vector<std::string> scaled(double factor) const;
  // Returns the value of the fields times `factor`: "50.0 GB/s"; "x 1.1" if they differ.
  std::string text(double factor) const;
};

// Returns the levers of an experiment, given as the fields of its record (a JSON object).
std::vector<Lever> levers_of(const std::string& record_fields);

// Returns the lever of that name, or of the field of that path or name. Adds a problem under
// `option` and returns an empty one if there is none.
Lever lever_named(const std::vector<Lever>& levers, const std::string& name,
                  const std::string& option, std::vector<Problem>& problems);

}  // namespace stepsim
