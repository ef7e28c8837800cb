#include "topology/kinds/switched/nvlink_domain.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/routes.h"
#include "topology/graph/bisection.h"

namespace stepsim {
namespace {

using namespace literals;
using Names = std::vector<std::string>;

const NvlinkDomainSpec kH100Ports = {.links_per_switch = {5, 4, 4, 5}, .switch_ports = 64};

TEST(NvlinkDomainTest, ACrossbarIsOneSwitch) {
  const BuiltTopology node = build(NvlinkDomainSpec{.link_latency = 1us});
  EXPECT_EQ(node.fabric.nodes().size(), 8U + 1);
  EXPECT_EQ(route_names(node, 7, 0), (Names{"gpu7>nvswitch", "nvswitch>gpu0"}));
  EXPECT_EQ(route_names(node, 3, 3), Names{});
  for (const Link& link : node.fabric.links()) {
    EXPECT_EQ(link.bandwidth, 450_GBps);
    EXPECT_EQ(link.latency, Duration(1us));
  }
}

TEST(NvlinkDomainTest, SwitchesHaveTheBandwidthOfTheirLinks) {
  const BuiltTopology node = build(kH100Ports);
  EXPECT_EQ(node.fabric.nodes().size(), 8U + 4);
  EXPECT_EQ(node.fabric.links().size(), 2U * 8 * 4);
  std::map<std::string, double> bandwidth;
  for (std::uint32_t l = 0; l < node.fabric.links().size(); ++l) {
    bandwidth[node.fabric.link_name(LinkId(l))] = node.fabric.link(LinkId(l)).bandwidth.value();
  }
  // 450 GB/s over 18 links: 25 GB/s each.
  EXPECT_DOUBLE_EQ(bandwidth["gpu2>nvswitch0"], 125e9);
  EXPECT_DOUBLE_EQ(bandwidth["gpu2>nvswitch1"], 100e9);
  EXPECT_DOUBLE_EQ(bandwidth["nvswitch2>gpu2"], 100e9);
  EXPECT_DOUBLE_EQ(bandwidth["gpu2>nvswitch3"], 125e9);
}

TEST(NvlinkDomainTest, BisectionIsHalfOfTheGpusEitherWay) {
  // 4 GPUs * 450 GB/s; counting both directions 3.6 TB/s, as published for 8 H100.
  EXPECT_EQ(bisection_bandwidth(build(NvlinkDomainSpec{}).fabric), 1800_GBps);
  EXPECT_EQ(bisection_bandwidth(build(kH100Ports).fabric), 1800_GBps);
  // 36 GPUs * 900 GB/s.
  NvlinkDomainSpec rack = {.gpus = 72, .gpu_bandwidth = 900_GBps};
  EXPECT_EQ(bisection_bandwidth(build(rack).fabric), 32400_GBps);
  rack.links_per_switch.assign(18, 1);
  rack.switch_ports = 72;
  EXPECT_TRUE(check(rack).empty());
  EXPECT_EQ(bisection_bandwidth(build(rack).fabric), 32400_GBps);
}

TEST(NvlinkDomainTest, TheDestinationPicksTheSwitch) {
  const BuiltTopology node = build(kH100Ports);
  // Links 0-4 lead to switch 0, 5-8 to switch 1.
  EXPECT_EQ(route_names(node, 0, 4), (Names{"gpu0>nvswitch0", "nvswitch0>gpu4"}));
  EXPECT_EQ(route_names(node, 0, 5), (Names{"gpu0>nvswitch1", "nvswitch1>gpu5"}));
  EXPECT_EQ(route(node, 0, 5, 1), route(node, 0, 5, 2));
}

TEST(NvlinkDomainTest, SprayedPacketsUseSwitchesByTheirLinks) {
  NvlinkDomainSpec spec = kH100Ports;
  spec.routing = {.rule = PathRule::kEcmp, .seed = 7};
  const BuiltTopology node = build(spec);
  std::map<std::string, int> packets;
  constexpr int kPackets = 18'000;
  for (std::uint64_t packet = 0; packet < kPackets; ++packet) {
    const LinkId first = route(node, 0, 5, packet).front();
    ++packets[node.fabric.link_name(first)];
  }
  // 5, 4, 4 and 5 of 18: 5000, 4000; a standard deviation is about 60.
  EXPECT_NEAR(packets["gpu0>nvswitch0"], 5000, 300);
  EXPECT_NEAR(packets["gpu0>nvswitch1"], 4000, 300);
  EXPECT_NEAR(packets["gpu0>nvswitch2"], 4000, 300);
  EXPECT_NEAR(packets["gpu0>nvswitch3"], 5000, 300);
}

TEST(NvlinkDomainTest, EveryRouteIsAPath) {
  const BuiltTopology node = build(kH100Ports);
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 0; to < 8; ++to) expect_path(node, from, to);
  }
}

TEST(NvlinkDomainTest, RefusesMoreLinksThanASwitchHasPorts) {
  NvlinkDomainSpec spec = {.gpus = 12, .links_per_switch = {5, 6}, .switch_ports = 60};
  EXPECT_EQ(check(spec),
            (std::vector<Problem>{{"links_per_switch[1]",
                                   "12 GPUs with 6 links each need 72 ports, a switch has 60"}}));
  spec.switch_ports = 72;
  EXPECT_TRUE(check(spec).empty());
}

TEST(NvlinkDomainTest, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(check(NvlinkDomainSpec{.gpus = 0,
                                   .gpu_bandwidth = Bandwidth(0),
                                   .link_latency = -1ns,
                                   .links_per_switch = {0, 2},
                                   .switch_ports = 0})
                .size(),
            5U);
}

}  // namespace
}  // namespace stepsim
