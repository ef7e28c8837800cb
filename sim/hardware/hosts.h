// Hosts are the machines that chips are attached to, by PCIe or a link such as NVLink-C2C. They
// hold offloaded state. Copies to a host and work on its memory share the links below.
//
//   chip 0 --link--+
//                  +-- uplink --- host: memory
//   chip 1 --link--+
//
// A copy takes the link of its chip, the uplink (a PCIe switch that several chips may share), and
// the memory of the host. The two directions of a link and of an uplink are independent; reads and
// writes of the memory share its bandwidth. Work of the host on its memory (an optimizer step)
// takes the memory alone.
//
// These links belong to the fabric, but no route takes them: traffic of network cards does not
// disturb copies. Chips are dealt to hosts in order of their numbers. Not modelled: pinning and
// staging buffers, sockets of a host and the way between them, the host's arithmetic.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"
#include "sim/network/places.h"

namespace stepsim {

struct HostSpec {
  std::optional<Bandwidth> link_bandwidth{};  // one way, from a chip to its uplink. Unset: no host
  Duration link_latency{};        // from the start of a copy until its first byte arrives
  std::int64_t chips = 8;         // attached to a host
  std::int64_t uplink_chips = 1;  // chips that share an uplink
  std::optional<Bandwidth> uplink_bandwidth{};  // one way. Unset: the same as a link's
  Bandwidth memory_bandwidth{};                 // shared by copies and by work on the host
  Bytes memory_capacity{};

  bool given() const { return link_bandwidth.has_value(); }
};

// Returns every problem of the spec; none if the spec has no host.
std::vector<Problem> check(const HostSpec& spec);

struct HostPath {
  HostId host;
  std::vector<LinkId> out{};  // chip to memory
  std::vector<LinkId> in{};   // memory to chip
  LinkId memory;
};

struct Hosts {
  HostSpec spec{};
  std::vector<HostPath> of_chip{};  // indexed by chip number; empty: no hosts
  std::uint32_t count = 0;          // number of hosts
};

// Adds the hosts of all chips to the fabric. REQUIRES: check(spec) is empty.
Hosts add_hosts(const HostSpec& spec, const Places& places, Fabric& fabric);

}  // namespace stepsim
