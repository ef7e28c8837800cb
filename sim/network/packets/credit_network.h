// The packet network with finite buffers and credits, for PacketOptions::buffer_bytes.
// make_packet_network() makes it, and its header has the rules.

#pragma once

#include <memory>

#include "sim/network/packets/packet_network.h"

namespace stepsim {

// REQUIRES: options.buffer_bytes is set and at least packet_bytes.
std::unique_ptr<Network> make_credit_network(const Fabric& fabric, const PacketOptions& options);

}  // namespace stepsim
