#include "analysis/accuracy/network_words.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace stepsim {
namespace {

constexpr Bandwidth kCard(400e9 / 8);

// Returns Gb/s of a node with 8 chips, of which the text gives the count; nullopt: it does not.
std::optional<double> gigabits(std::string_view text, std::int64_t chips = 8) {
  const auto node = network_of_node(text, chips, kCard);
  if (!node || !node->assumed.empty()) return std::nullopt;
  return node->bandwidth.value() * 8 / 1e9;
}

// Likewise of a text without a count.
std::optional<double> taken(std::string_view text, Bandwidth card = kCard) {
  const auto node = network_of_node(text, 8, card);
  if (!node || node->assumed.empty()) return std::nullopt;
  return node->bandwidth.value() * 8 / 1e9;
}

TEST(NetworkWordsTest, CardsTimesTheirRate) {
  EXPECT_EQ(gigabits("8x 400 Gb/s NDR InfiniBand per node"), 3200);
  EXPECT_EQ(gigabits("8 x 200 Gbps"), 1600);
  EXPECT_EQ(gigabits("8 \u00d7 400 Gbps"), 3200);
  EXPECT_EQ(gigabits("400 Gb/s x 8"), 3200);
  EXPECT_EQ(gigabits("4x ConnectX-7 IB NDR 400 Gb/s"), 1600);
  EXPECT_EQ(gigabits("8 HCAs of 400 Gb/s"), 3200);
  EXPECT_EQ(gigabits("InfiniBand HDR (8 HCAs, 200 Gb/s each)"), 1600);
  EXPECT_EQ(gigabits("4x 100GbE"), 400);
}

TEST(NetworkWordsTest, ANodeOrAChip) {
  EXPECT_EQ(gigabits("1600 Gbps per node RoCE"), 1600);
  EXPECT_EQ(gigabits("800 Gb/s per node EFA (trn1.32xlarge) or 1600 (trn1n)"), 800);
  EXPECT_EQ(gigabits("RoCE 400 Gb/s per GPU, 3-layer Clos, 1:7 oversubscribed"), 3200);
  EXPECT_EQ(gigabits("RDMA 400 Gb/s per GPU", 4), 1600);
  EXPECT_EQ(gigabits("2x 200 Gb/s per GPU"), 3200);
}

TEST(NetworkWordsTest, BitsBytesAndPrefixes) {
  EXPECT_EQ(gigabits("400 GB/s per node"), 3200);
  EXPECT_EQ(gigabits("50 GBps per GPU"), 3200);
  EXPECT_EQ(gigabits("400 gb/s per node"), 400);
  EXPECT_EQ(gigabits("3.2 Tb/s EFA per instance"), 3200);
  EXPECT_EQ(gigabits("1.6 Tbps per host"), 1600);
}

TEST(NetworkWordsTest, InfiniBandIsKnownByItsGeneration) {
  EXPECT_EQ(gigabits("8x ConnectX-7 NDR"), 3200);
  EXPECT_EQ(gigabits("8xNDR400"), 3200);
  EXPECT_EQ(gigabits("NDR400 x8"), 3200);
  EXPECT_EQ(gigabits("HDR per GPU"), 1600);
  EXPECT_EQ(gigabits("8x XDR"), 6400);
}

TEST(NetworkWordsTest, OtherNetworksDoNotCount) {
  EXPECT_EQ(gigabits("Storage: 2x BF3 ConnectX-7 400Gb/s, Compute: 8x BF3 ConnectX-7 400Gb/s, "
                     "Management: 100Gb/s Ethernet NIC"),
            3200);
  EXPECT_EQ(gigabits("8x ConnectX-7 IB NDR 400Gb/s + 200Gb/s Ethernet NIC"), 3200);
  EXPECT_EQ(gigabits("1x Ethernet 100Gb/Sec, 8x NVIDIA Quantum-2 CX7 InfiniBand (400Gb/s)"), 3200);
  EXPECT_EQ(gigabits("InfiniBand; Data bandwidth for GPU-PCIe: 504 GB/s; PCIe-NIC: 500 GB/s"),
            std::nullopt);
  EXPECT_EQ(gigabits("6 x BCM57508 NetXtreme-E 10Gb/25Gb/100Gb/200Gb Ethernet"), 1200);
}

// Without a count, a card's rate is that of a card for each chip, any other the node's.
TEST(NetworkWordsTest, ARateWithoutACount) {
  EXPECT_EQ(taken("400 Gb/s InfiniBand"), 3200);
  EXPECT_EQ(taken("HDR InfiniBand (200 Gb/s)"), 1600);
  EXPECT_EQ(taken("NDR400"), 3200);
  EXPECT_EQ(taken("IB EDR"), 800);
  EXPECT_EQ(taken("HDR100"), 100) << "two of four lanes";
  EXPECT_EQ(taken("RoCEv2 200GbE"), 1600);
  EXPECT_EQ(taken("100 Gbps Ethernet"), 100);
  EXPECT_EQ(taken("25GbE"), 25);
  EXPECT_EQ(taken("1600 Gb/s RoCE"), 1600);
  EXPECT_EQ(taken("3.2 Tbps EFAv2"), 3200);
  EXPECT_EQ(taken("400 Gbps EFA"), 400);
  EXPECT_EQ(taken("GPUDirect-TCPX, 800 Gbps"), 800);
  EXPECT_EQ(taken("800 Gb/s"), 800);
  EXPECT_EQ(taken("800 Gb/s", Bandwidth(100e9)), 6400) << "cards of a GB300 have as much";
}

TEST(NetworkWordsTest, WhatIsNotSaidIsNotGuessed) {
  for (const char* text :
       {"", "n/a (one node)", "not stated (InfiniBand NDR/XDR)", "unknown, maybe 400 Gb/s",
        "Giga Ethernet", "DCN between 16 slices (data parallel)", "0 Gb/s per node", "8x",
        "per node", "1600", "Infiniband, Ethernet"}) {
    EXPECT_EQ(network_of_node(text, 8, kCard), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace stepsim
