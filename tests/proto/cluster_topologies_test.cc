// Topologies in files: builds and routes every cluster of the catalog.
#include <gtest/gtest.h>

#include <set>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_reference.h"
#include "proto/to_spec.h"
#include "tests/support/experiment_case.h"
#include "tests/support/routes.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"
#include "topology/topology_table.h"

namespace stepsim {
namespace {

ClusterSpec cluster_named(const std::string& name) {
  file::Cluster message;
  message.set_catalog(name);
  ProblemList problems;
  EXPECT_TRUE(resolve(message, problems)) << name;
  ClusterSpec spec = to_cluster(message, problems);
  EXPECT_EQ(problems.all(), std::vector<Problem>{}) << name;
  return spec;
}

BuiltTopology built(const std::string& name) {
  return build_topology(cluster_named(name).topology);
}

// Checks as many pairs as there are chips, spread over all distances.
void expect_paths(const BuiltTopology& cluster) {
  const auto chips = static_cast<std::uint32_t>(cluster.places.chips.size());
  for (std::uint32_t i = 0; i < chips; ++i) {
    expect_path(cluster, i, (i * 7 + i / 3 + 1) % chips, i);
  }
}

// Returns the names of the messages that a oneof holds, except those that stand for no row of the
// table.
std::set<std::string> held_by(const google::protobuf::Descriptor& holder) {
  std::set<std::string> names;
  const google::protobuf::OneofDescriptor& topologies = *holder.FindOneofByName("topology");
  for (int i = 0; i < topologies.field_count(); ++i) names.insert(topologies.field(i)->name());
  return names;
}

TEST(ClusterTopologiesTest, FilesHoldTheKindsOfTheTable) {
  std::set<std::string> kinds;
  std::apply([&](const auto&... rows) { (kinds.emplace(rows.name), ...); }, kTopologyKinds);
  EXPECT_EQ(held_by(*file::Block::descriptor()), kinds);
  kinds.insert("composed");
  EXPECT_EQ(held_by(*file::Cluster::descriptor()), kinds);
}

TEST(ClusterTopologiesTest, TheSizeOfAFamilyIsAFieldOfItsTopology) {
  const google::protobuf::Descriptor& cluster = *file::Cluster::descriptor();
  const auto expect_field = [&](std::string_view kind, std::string_view field) {
    const auto& message = *cluster.FindFieldByName(std::string(kind))->message_type();
    EXPECT_NE(message.FindFieldByName(std::string(field)), nullptr) << kind << "." << field;
  };
  std::apply(
      [&](const auto&... rows) {
        ((rows.count_field.empty() ? void() : expect_field(rows.name, rows.count_field)), ...);
      },
      kTopologyKinds);
}

TEST(ClusterTopologiesTest, EveryClusterOfTheCatalogIsBuiltAndRouted) {
  for (const std::string& name : list(CatalogKind::kCluster)) {
    SCOPED_TRACE(name);
    const BuiltTopology cluster = built(name);
    EXPECT_TRUE(connected(cluster.fabric));
    std::uint32_t box = 1;
    std::set<std::string> names;
    for (const Level& level : cluster.places.levels) {
      box *= level.size;
      EXPECT_TRUE(names.insert(level.name).second) << level.name << " twice";
    }
    EXPECT_EQ(cluster.places.chips.size(), box) << "a full box of its levels";
    std::set<std::string> nodes;
    for (const Node& node : cluster.fabric.nodes()) {
      EXPECT_TRUE(nodes.insert(node.name).second) << node.name << " twice";
    }
    expect_paths(cluster);
  }
}

TEST(ClusterTopologiesTest, NumbersInNamesCountChips) {
  for (const char* name :
       {"dgx-a100-1120", "dgx-b200-4096", "dgx-h800-2048", "gb200-nvl72-576", "fat-tree-h100-1024",
        "leaf-spine-h100-256", "dragonfly-h100-1056", "dual-plane-h100-64", "multipod-h100-2560"}) {
    const std::string text(name);
    EXPECT_EQ(std::to_string(built(name).places.chips.size()), text.substr(text.rfind('-') + 1));
  }
  EXPECT_EQ(built("multislice-v5p-2x4x4x4").places.chips.size(), 128U);
}

TEST(ClusterTopologiesTest, Gb200ClustersHaveTheChipOfTheirName) {
  for (const char* name :
       {"gb200-nvl72-72", "gb200-nvl72-1152", "gb200-nvl576", "nvl72-switch-ports"}) {
    EXPECT_EQ(cluster_named(name).chip.name, "gb200") << name;
  }
}

TEST(ClusterTopologiesTest, BisectionsAreThePublishedOnes) {
  using namespace literals;
  EXPECT_EQ(bisection_bandwidth(built("dgx-h100-8").fabric), 1800_GBps);
  EXPECT_EQ(bisection_bandwidth(built("dgx-h100-1024").fabric), 25600_GBps);
  // Half of the chips at their NVLink bandwidth: 4 * 300, 4 * 200, 4 * 900, 36 * 900 GB/s.
  EXPECT_EQ(bisection_bandwidth(built("dgx-a100-8").fabric), 1200_GBps);
  EXPECT_EQ(bisection_bandwidth(built("dgx-h800-8").fabric), 800_GBps);
  EXPECT_EQ(bisection_bandwidth(built("dgx-b200-8").fabric), 3600_GBps);
  EXPECT_EQ(bisection_bandwidth(built("nvl72-switch-ports").fabric), 32400_GBps);
  // 6.25 GB/s a chip (Scaling Book), 64 chips on either side.
  EXPECT_EQ(bisection_bandwidth(built("multislice-v5p-2x4x4x4").fabric), 400_GBps);
}

TEST(ClusterTopologiesTest, SizesThatAreNotThereSayWhichAre) {
  const auto problem_of = [](const char* name) {
    return find(CatalogKind::kCluster, name).problem;
  };
  EXPECT_EQ(problem_of("gb200-nvl72-100"),
            "the size of gb200-nvl72-<size> must be a multiple of 72 chips, up to 18432; is "
            "\"100\"");
  const std::string slices =
      "the size of multislice-v5p-<size> must be a number of slices, up to 10, and the axes of a "
      "torus that fits into 16x20x28, as in 2x4x4x4, or its number of chips";
  EXPECT_EQ(problem_of("multislice-v5p-4x4x4"), slices + "; is \"4x4x4\"");
  EXPECT_EQ(problem_of("multislice-v5p-11x4x4x4"), slices + "; is \"11x4x4x4\"");
  EXPECT_EQ(problem_of("multislice-v5p-2x16x20x32"), slices + "; is \"2x16x20x32\"");
  EXPECT_EQ(problem_of("multislice-v5p"), slices + "; is \"\"");
}

TEST(ClusterTopologiesTest, SlicesKeepTheRuleOfTheirTorus) {
  const auto axes_of = [](const char* name) {
    const auto composed = std::get<ComposedSpec>(cluster_named(name).topology);
    return std::get<TorusSpec>(composed.domain).axes;
  };
  for (const TorusAxis& axis : axes_of("multislice-v5p-2x4x4x8")) EXPECT_TRUE(axis.wraps);
  for (const TorusAxis& axis : axes_of("multislice-v5p-2x2x2x4")) EXPECT_FALSE(axis.wraps);
}

std::vector<std::string> fields_with_problems(const char* text) {
  file::Cluster message;
  ProblemList problems;
  EXPECT_TRUE(read_message({.name = "x", .extension = ".textproto", .text = text}, "cluster.",
                           message, problems));
  to_cluster(message, problems);
  std::vector<std::string> fields;
  for (const Problem& problem : problems.all()) fields.push_back(problem.field);
  return fields;
}

constexpr const char* kChip =
    "chip { peak { type: 'bf16' throughput: '1TFLOPS' } peak { type: 'fp32' throughput: '1TFLOPS' "
    "} memory_bandwidth: '1TB/s' memory_capacity: '1GiB' } ";

TEST(ClusterTopologiesTest, EveryProblemIsReportedUnderItsPath) {
  const std::string text = std::string(kChip) +
                           "composed { domain { nvlink_domain { gpus: 0 gpu_bandwidth: 'fast' "
                           "routing: 'best' } } tiers { fabric { fat_tree { switch_ports: 3 } } } "
                           "tiers { name: 'pod' count: 2 fabric { } cross_rail: 'none' } }";
  EXPECT_EQ(fields_with_problems(text.c_str()),
            (std::vector<std::string>{
                "cluster.composed.domain.nvlink_domain.gpus",
                "cluster.composed.domain.nvlink_domain.gpu_bandwidth",
                "cluster.composed.domain.nvlink_domain.routing", "cluster.composed.tiers[0].count",
                "cluster.composed.tiers[0].fabric.fat_tree.link_bandwidth",
                "cluster.composed.tiers[1].fabric", "cluster.composed.tiers[1].cross_rail",
                "cluster.composed.tiers[0].fabric.fat_tree.switch_ports"}));
}

TEST(ClusterTopologiesTest, EveryTopologyIsReadFromItsFields) {
  const auto read = [](const std::string& topology) {
    file::Cluster message;
    ProblemList problems;
    EXPECT_TRUE(read_message(
        {.name = "x", .extension = ".textproto", .text = std::string(kChip) + topology}, "cluster.",
        message, problems));
    TopologySpec spec = to_cluster(message, problems).topology;
    EXPECT_EQ(problems.all(), std::vector<Problem>{}) << topology;
    return spec;
  };
  const auto ports = std::get<NvlinkDomainSpec>(
      read("nvlink_domain { links_per_switch: [5, 4, 4, 5] switch_ports: 64 routing: 'ecmp' "
           "routing_seed: 3 }"));
  EXPECT_EQ(ports.links_per_switch, (std::vector<int>{5, 4, 4, 5}));
  EXPECT_EQ(ports.routing.rule, PathRule::kEcmp);
  EXPECT_EQ(ports.routing.seed, 3U);
  EXPECT_EQ(std::get<PcieBoxSpec>(read("pcie_box { gpus: 4 sockets: 1 }")).gpus, 4);
  const auto tree = std::get<FatTreeSpec>(
      read("fat_tree { switch_ports: 8 tiers: 2 taper: 1.5 link_bandwidth: '400Gbps' routing: "
           "'adaptive' }"));
  EXPECT_EQ(tree.routing.rule, PathRule::kAdaptive);
  EXPECT_EQ(tree.tiers, 2);
  EXPECT_EQ(tree.taper, 1.5);
  EXPECT_EQ(tree.link_bandwidth, Bandwidth(50e9));
  const auto leaves = std::get<LeafSpineSpec>(
      read("leaf_spine { leaves: 4 hosts_per_leaf: 8 spines: 2 host_bandwidth: '50GB/s' "
           "oversubscription: 2 link_latency: '1us' }"));
  EXPECT_EQ(leaves.spines, 2);
  EXPECT_EQ(leaves.oversubscription, 2);
  const auto rails = std::get<RailFabricSpec>(read("rail_fabric { nodes: 8 rails: 4 }"));
  EXPECT_EQ(rails.nodes, 8);
  EXPECT_EQ(rails.rails, 4);
  const auto slice = std::get<TpuSliceSpec>(read(
      "tpu_slice { generation: 'v5e' shape: [8, 16] wraps: [false, true] hosts { latency: '1us' } "
      "}"));
  EXPECT_EQ(slice.generation, TpuGeneration::kV5e);
  EXPECT_EQ(slice.wraps, (std::vector<bool>{false, true}));
  EXPECT_EQ(slice.hosts->latency, Duration(1'000'000));
  const auto dragonfly = std::get<DragonflySpec>(read(
      "dragonfly { groups: 3 host_bandwidth: '1GB/s' local_bandwidth: '2GB/s' global_bandwidth: "
      "'3GB/s' routing: 'valiant' }"));
  EXPECT_EQ(dragonfly.routing, DragonflyRouting::kValiant);
  EXPECT_EQ(dragonfly.global_bandwidth, Bandwidth(3e9));
}

TEST(ClusterTopologiesTest, TwistedSlicesNeedWholeCubes) {
  const auto twisted = std::get<TwistedTorusSpec>(cluster_named("v4-4x4x8_twisted").topology);
  EXPECT_EQ(twisted.shape, (std::vector<int>{4, 4, 8}));
  EXPECT_EQ(twisted.link_bandwidth, Bandwidth(45e9));
  EXPECT_EQ(find(CatalogKind::kCluster, "v4-2x2x4_twisted").problem,
            "the size of v4-<size> must have axes that wrap, to end in _twisted; is "
            "\"2x2x4_twisted\"");
  EXPECT_FALSE(find(CatalogKind::kCluster, "v5e-16x16_twisted").found.has_value());
}

TEST(ClusterTopologiesTest, GraphsAreListedInFiles) {
  const std::string text = std::string(kChip) +
                           "explicit_graph { nodes { name: 'a' } nodes { name: 'b' kind: 'chip' } "
                           "nodes { name: 'hub' kind: 'switch' } "
                           "links { from: 'a' to: 'hub' bandwidth: '10GB/s' latency: '1us' } "
                           "links { from: 'hub' to: 'b' bandwidth: '10GB/s' } "
                           "links { from: 'b' to: 'a' bandwidth: '1GB/s' one_way: true } "
                           "routes { nodes: ['b', 'hub', 'a'] } metric: 'latency' "
                           "levels { name: 'gpu' size: 2 } }";
  file::Cluster message;
  ProblemList problems;
  EXPECT_TRUE(read_message({.name = "x", .extension = ".textproto", .text = text}, "cluster.",
                           message, problems));
  EXPECT_EQ(problems.all(), std::vector<Problem>{});
  const BuiltTopology built = build_topology(to_cluster(message, problems).topology);
  EXPECT_EQ(problems.all(), std::vector<Problem>{});
  EXPECT_EQ(route_names(built, 1, 0), (std::vector<std::string>{"b>hub", "hub>a"}));
  EXPECT_EQ(built.places.levels[0].name, "gpu");
}

TEST(ClusterTopologiesTest, FaultsAreDataOfTheCluster) {
  file::Cluster message;
  message.set_catalog("dgx-h100-64");
  ProblemList problems;
  ASSERT_TRUE(resolve(message, problems));
  file::Faults::Link& slow = *message.mutable_faults()->add_links();
  slow.set_link("node0.gpu3-su0.leaf3");
  slow.set_capacity(0.5);
  const ClusterSpec spec = to_cluster(message, problems);
  EXPECT_EQ(problems.all(), std::vector<Problem>{});
  const BuiltTopology built = build_topology(spec.topology, spec.faults);
  EXPECT_EQ(built.fabric.link(route(built, 3, 11).front()).bandwidth, Bandwidth(25e9));

  slow.set_link("node0.gpu3-su9.leaf3");
  to_cluster(message, problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems.all().front().field, "cluster.faults.links[0].link");
}

}  // namespace
}  // namespace stepsim
