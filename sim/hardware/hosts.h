// Hosts are the machines that chips hang on, by PCIe or a link of their own: where offloaded state
// lives, and what copies to it and work on it share.
//
//   chip 0 --link--+
//                  +-- uplink --- host: memory
//   chip 1 --link--+
//
// A copy takes the link of its chip, the uplink that several chips may share (a PCIe switch), and
// the memory of the host, all in one direction; the two directions of a link don't disturb each
// other, reads and writes of the memory do. Work of the host on its memory (an optimizer step)
// takes the memory alone: it is bound by it.
//
// These links belong to the fabric, but no route takes them: traffic of network cards does not
// disturb copies. Chips are dealt to hosts in order of their numbers. Not modelled: pinning and
// staging buffers, sockets of a host and the way between them, the host's arithmetic.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"
#include "sim/network/places.h"

namespace stepsim {

struct HostSpec {
  Bandwidth link_bandwidth{};     // one way, between a chip and its uplink; 0: there is no host
  Duration link_latency{};        // of a copy: to start it, and until the first byte is there
  std::int64_t chips = 8;         // on a host
  std::int64_t uplink_chips = 1;  // that share an uplink
  Bandwidth uplink_bandwidth{};   // one way; 0: that of a link
  Bandwidth memory_bandwidth{};   // that copies and work reach together
  Bytes memory_capacity{};

  bool given() const { return link_bandwidth.value() > 0; }
};

// Empty when there is no host, or all of its sizes make sense.
std::vector<Problem> check(const HostSpec& spec);

struct HostPath {
  std::uint32_t host = 0;
  std::vector<LinkId> out{};  // chip to memory
  std::vector<LinkId> in{};   // memory to chip
  LinkId memory;
};

struct Hosts {
  HostSpec spec{};
  std::vector<HostPath> of_chip{};  // by chip number; empty: none
  std::uint32_t count = 0;
};

// Adds the hosts of all chips to the fabric. REQUIRES: check(spec) is empty.
Hosts add_hosts(const HostSpec& spec, const Places& places, Fabric& fabric);

}  // namespace stepsim
