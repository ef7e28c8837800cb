// network_of_node() reads what a table says of the network between nodes, in the words of its
// author:
//
//   8x 400 Gb/s NDR InfiniBand per node      8 cards of 400 Gb/s
//   1600 Gbps per node RoCE                  1600 Gb/s together
//   RoCE 400 Gb/s per GPU                    400 Gb/s for each chip
//   4x ConnectX-8 IB XDR 800 Gb/s            4 cards of 800 Gb/s
//   8x ConnectX-7 NDR                        8 cards of 400 Gb/s, what NDR means
//   Compute: 8x ... 400Gb/s, Storage: ...    the compute network
//   3.2 Tb/s EFA, 50 GB/s per GPU            T is 1000 G, B is 8 b
//
// A rate without a count ("400 Gb/s InfiniBand", "100GbE", "HDR") is of a card for each chip if a
// card has it: 200 Gb/s and more, up to 400 or the card of the catalog, or a generation of
// InfiniBand. Else, and on EFA and GPUDirect-TCPX, whose rates are given by machine, it is the
// node's.
//
// A network has one direction: bits that a node can send at a time. Management and storage networks
// and the bandwidth inside a node don't count; of several rates of one card the largest does. Names
// of machines that clouds let ("A3 Mega", "p5.48xlarge") are find_machine()'s.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/units.h"

namespace stepsim {

// What a node sends at a time.
struct NodeNetwork {
  Bandwidth bandwidth{};
  std::string_view assumed{};  // how a rate without a count was taken; empty: there was a count
  friend bool operator==(const NodeNetwork&, const NodeNetwork&) = default;
};

// Of a node with `chips` chips; nullopt if the text gives no rate. `card`: of a chip, in the
// catalog. REQUIRES: chips >= 1.
std::optional<NodeNetwork> network_of_node(std::string_view text, std::int64_t chips,
                                           Bandwidth card);

}  // namespace stepsim
