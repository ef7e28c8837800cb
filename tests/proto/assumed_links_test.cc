// What a cluster file leaves out, and what it then gets. Values are those of docs/topologies.md.

#include "proto/assumed_links.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "proto/load_experiment.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

using namespace literals;

std::string cluster_file(const std::string& topology) {
  const std::string path =
      fmt::format("{}/{}.textproto", testing::TempDir(),
                  testing::UnitTest::GetInstance()->current_test_info()->name());
  std::ofstream(path) << R"(name: "mine" chip { catalog: "h100-sxm" } )" << topology;
  return path;
}

// The latencies of all links, without their number.
std::set<std::int64_t> latencies_of(const std::string& topology) {
  const ClusterSpec cluster = load_cluster(cluster_file(topology));
  std::set<std::int64_t> latencies;
  const BuiltTopology built = build_topology(cluster.topology);
  for (const Link& link : built.fabric.links()) {
    latencies.insert(link.latency.count());
  }
  return latencies;
}

using Latencies = std::set<std::int64_t>;  // picoseconds

TEST(AssumedLinksTest, EveryKindOfLinkHasALatency) {
  EXPECT_EQ(latencies_of("dgx_superpod { nodes: 2 }"), (Latencies{250'000, 500'000}));
  EXPECT_EQ(latencies_of(R"(nvlink_domain { gpus: 8 gpu_bandwidth: "450GB/s" })"),
            (Latencies{250'000}));
  EXPECT_EQ(latencies_of("pcie_box { gpus: 8 }"), (Latencies{500'000}));
  EXPECT_EQ(latencies_of(R"(torus { axes { size: 4 wraps: true } link_bandwidth: "90GB/s" })"),
            (Latencies{1'000'000}));
  EXPECT_EQ(latencies_of(
                R"(leaf_spine { leaves: 2 hosts_per_leaf: 4 spines: 2 host_bandwidth: "50GB/s" })"),
            (Latencies{500'000}));
  EXPECT_EQ(latencies_of(R"(composed {
      domain { nvlink_domain { gpus: 4 gpu_bandwidth: "450GB/s" } }
      tiers { name: "node" count: 2 chips_per_host: 4 host_bandwidth: "32GB/s"
              fabric { leaf_spine { hosts_per_leaf: 2 spines: 1 host_bandwidth: "50GB/s"
                                    link_latency: "3us" } } } })"),
            (Latencies{250'000, 500'000, 3'000'000}));
}

TEST(AssumedLinksTest, WhoeverWritesZeroGetsZero) {
  EXPECT_EQ(
      latencies_of(R"(dgx_superpod { nodes: 2 nvlink_latency: "0" network_link_latency: "0us" })"),
      (Latencies{0}));
}

TEST(AssumedLinksTest, SaysWhatItAssumed) {
  EXPECT_EQ(assumed_links_of(cluster_file(R"(dgx_superpod { nodes: 2 nvlink_latency: "1us" })")),
            (std::vector<std::string>{
                "assumed cluster.dgx_superpod.network_link_latency=0.5us (a cable with its switch "
                "or card)",
                "assumed cluster.dgx_superpod.routing=adaptive (InfiniBand of a SuperPOD)"}));
  const LoadedExperiment loaded =
      load_with_topology({.model = "llama3-8b",
                          .cluster = cluster_file("dgx_superpod { nodes: 2 }"),
                          .plan = "tp=8,dp=2,global-batch=2,sequence=2048"});
  const auto said = std::ranges::count_if(loaded.record.overrides, [](const std::string& line) {
    return line.starts_with("assumed cluster.dgx_superpod.");
  });
  EXPECT_EQ(said, 3);
  EXPECT_EQ(std::get<DgxSuperPodSpec>(loaded.experiment.cluster.topology).routing.rule,
            PathRule::kAdaptive);
}

// A cluster file of a SuperPOD without latencies is the catalog's.
TEST(AssumedLinksTest, ASuperPodIsTheCatalogs) {
  const auto file =
      std::get<DgxSuperPodSpec>(load_cluster(cluster_file("dgx_superpod { nodes: 128 }")).topology);
  const auto catalog = std::get<DgxSuperPodSpec>(load_cluster("dgx-h100-1024").topology);
  EXPECT_EQ(file.nvlink_latency, catalog.nvlink_latency);
  EXPECT_EQ(file.network_link_latency, catalog.network_link_latency);
  EXPECT_EQ(file.routing.rule, catalog.routing.rule);
}

TEST(AssumedLinksTest, TheCatalogsClustersLeaveNothingOut) {
  for (const char* name :
       {"dgx-h100-8", "dgx-a100-64", "pcie-a100-64", "v5p-4x4x4", "v5e-4x4", "gb200-nvl72-72",
        "multipod-h100-512", "multislice-v5p-2x4x4x4", "xgmi-mi300x-16", "trn1-32",
        "dual-plane-h100-64", "dragonfly-h100-64"}) {
    EXPECT_EQ(assumed_links_of(name), std::vector<std::string>{}) << name;
  }
}

}  // namespace
}  // namespace stepsim
