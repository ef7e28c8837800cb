// Compares routes, link by link, and capacities with those in the fat-tree, leaf-spine and DGX
// cases of tests/reference/network (the README there gives their sources). All but one of the cases
// where rails meet in the spine are left out: they pick the spine by GPU, rail_fabric.h by node.
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/reference_folder.h"
#include "tests/support/routes.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

using namespace literals;

// gzopen reads plain files too.
nlohmann::json read_case(const std::string& name) {
  const std::string folder = (reference_folder() / "network/cases/").string();
  gzFile file = gzopen((folder + name).c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + folder + name);
  std::string text;
  std::vector<char> block(1 << 16);
  int size = 0;
  while ((size = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  gzclose(file);
  return nlohmann::json::parse(text);
}

using Renames = std::vector<std::pair<std::string, std::string>>;  // prefixes, first match wins

// "a3.1" -> "pod3.spine1" by {"a%.%", "pod%.spine%"}: each % stands for a number.
std::string renamed(const std::string& name, const Renames& renames) {
  for (const auto& [from, to] : renames) {
    std::vector<std::string> numbers;
    std::size_t at = 0;
    bool matches = true;
    for (const char letter : from) {
      if (letter != '%') {
        matches = matches && at < name.size() && name[at] == letter;
        ++at;
        continue;
      }
      std::string& number = numbers.emplace_back();
      while (at < name.size() && name[at] >= '0' && name[at] <= '9') number += name[at++];
      matches = matches && !number.empty();
    }
    if (!matches || at != name.size()) continue;
    std::string result;
    std::size_t next = 0;
    for (const char letter : to) {
      result += letter == '%' ? numbers[next++] : std::string(1, letter);
    }
    return result;
  }
  throw std::runtime_error("no rule for " + name);
}

void expect_routes_of(const std::string& case_name, const BuiltTopology& built,
                      const Renames& renames) {
  SCOPED_TRACE(case_name);
  const nlohmann::json reference = read_case(case_name);
  std::map<std::string, std::uint32_t> chips;
  for (std::uint32_t chip = 0; chip < built.places.chips.size(); ++chip) {
    chips[built.fabric.node(NodeId(chip)).name] = chip;
  }
  std::map<std::string, double> capacity;
  for (const Link& link : built.fabric.links()) {
    capacity[built.fabric.node(link.from).name + ">" + built.fabric.node(link.to).name] =
        link.bandwidth.value();
  }
  std::map<std::string, std::string> link_names;
  for (const auto& link : reference.at("links")) {
    const std::string name =
        renamed(link.at("from"), renames) + ">" + renamed(link.at("to"), renames);
    link_names[link.at("id")] = name;
    ASSERT_TRUE(capacity.contains(name)) << name;
    EXPECT_DOUBLE_EQ(capacity[name], link.at("capacity_Bps").get<double>()) << name;
  }
  EXPECT_EQ(capacity.size(), link_names.size()) << "links that the case doesn't have";
  ASSERT_FALSE(reference.at("flows").empty());
  for (const auto& flow : reference.at("flows")) {
    std::vector<std::string> expected;
    for (const auto& link : flow.at("route")) expected.push_back(link_names.at(link));
    const std::uint32_t from = chips.at(renamed(flow.at("src"), renames));
    const std::uint32_t to = chips.at(renamed(flow.at("dst"), renames));
    ASSERT_EQ(route_names(built, from, to), expected) << flow.at("id");
  }
}

const Renames kFatTree = {
    {"h%", "chip%"}, {"e%.%", "pod%.leaf%"}, {"a%.%", "pod%.spine%"}, {"c%.%", "core%.%"}};
const Renames kLeafSpine = {{"h%", "chip%"}, {"L%", "leaf%"}, {"S%", "spine%"}};
const Renames kDgx = {{"g%.%", "node%.gpu%"},
                      {"nvs%", "node%.nvswitch"},
                      {"leaf%.%", "su%.leaf%"},
                      {"sp%", "spine%"}};

BuiltTopology fat_tree(int ports, double taper) {
  return build(FatTreeSpec{.switch_ports = ports, .taper = taper, .link_bandwidth = 50_GBps});
}

TEST(ReferenceRoutesTest, FatTrees) {
  for (const char* name : {"c01_ft4_perm.json", "c08_ft4_alltoall.json", "c12_ft4_incast.json",
                           "e11_ft4_ring16.json", "e15_ft4_halving_doubling16.json"}) {
    expect_routes_of(name, fat_tree(4, 1), kFatTree);
  }
  for (const char* name : {"c02_ft8_perm.json", "c10_ft8_alltoall.json.gz"}) {
    expect_routes_of(name, fat_tree(8, 1), kFatTree);
  }
  for (const char* name : {"c06_ft16_perm_sizes.json.gz", "c14_ft16_incast.json.gz",
                           "c18_ft16_poisson_10000.json.gz"}) {
    expect_routes_of(name, fat_tree(16, 1), kFatTree);
  }
}

TEST(ReferenceRoutesTest, TaperedFatTrees) {
  expect_routes_of("c04_ft8_2to1_perm_sizes.json", fat_tree(8, 2), kFatTree);
  expect_routes_of("c17_ft8_2to1_poisson_2000.json.gz", fat_tree(8, 2), kFatTree);
  expect_routes_of("e13_ft8_4to1_ring64_random.json.gz", fat_tree(8, 4), kFatTree);
}

TEST(ReferenceRoutesTest, LeafSpines) {
  expect_routes_of("c15_ls_2to1_perm_sizes.json",
                   build(LeafSpineSpec{.leaves = 8,
                                       .hosts_per_leaf = 16,
                                       .spines = 8,
                                       .host_bandwidth = 50_GBps,
                                       .oversubscription = 2}),
                   kLeafSpine);
  expect_routes_of("c19_ls_latency_incast.json",
                   build(LeafSpineSpec{
                       .leaves = 4, .hosts_per_leaf = 8, .spines = 8, .host_bandwidth = 50_GBps}),
                   kLeafSpine);
  expect_routes_of("e17_ls_pairwise_a2a32.json",
                   build(LeafSpineSpec{.leaves = 4,
                                       .hosts_per_leaf = 8,
                                       .spines = 4,
                                       .host_bandwidth = 50_GBps,
                                       .oversubscription = 2}),
                   kLeafSpine);
}

// The cases have leaves of 8 nodes (4 where there are only 2), and 4 spines with one cable of
// 50 GB/s to each.
BuiltTopology dgx(int nodes, CrossRail cross_rail) {
  const int unit = nodes < 8 ? 4 : 8;
  return build(DgxSuperPodSpec{.nodes = nodes,
                               .nodes_per_scalable_unit = unit,
                               .spines = 4,
                               .oversubscription = unit / 4.0,
                               .cross_rail = cross_rail});
}

TEST(ReferenceRoutesTest, DgxNodesWithPxn) {
  for (const char* name : {"d02_dgx2_a2a_pxn.json", "e19_dgx2_hier_allreduce.json"}) {
    expect_routes_of(name, dgx(2, CrossRail::kPxn), kDgx);
  }
  for (const char* name : {"d06_dgx8_a2a_pxn.json.gz", "d07_dgx8_a2a_pxn_sizes.json.gz",
                           "e19_dgx8_hier_allreduce.json.gz"}) {
    expect_routes_of(name, dgx(8, CrossRail::kPxn), kDgx);
  }
}

TEST(ReferenceRoutesTest, DgxNodesOverTheSpineWhereAllWriteToGpu0) {
  expect_routes_of("d13_dgx8_incast_storage.json", dgx(8, CrossRail::kSpine), kDgx);
}

}  // namespace
}  // namespace stepsim
