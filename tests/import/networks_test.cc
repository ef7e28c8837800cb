// Readers of other software's networks: what was read takes the time of the same network of the
// catalog's kinds, facts are those of the file, and what isn't understood is refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "experiment/build_cluster.h"
#include "import/importer.h"
#include "proto/load_experiment.h"
#include "tests/support/idle_collective.h"
#include "tests/support/temporary_folder.h"

namespace stepsim {
namespace {

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = (temporary_folder() / name).string();
  std::ofstream(path) << text;
  return path;
}

Imported network_of(const char* kind, const std::string& text, ImportRequest request = {}) {
  request.files = {file_with("network.txt", text)};
  return find_importer(kind)->read(request);
}

std::string network_problem(const char* kind, const std::string& text, ImportRequest request = {}) {
  try {
    network_of(kind, text, std::move(request));
  } catch (const ConfigError& error) {
    return error.problems()[0].field + ": " + error.problems()[0].message;
  }
  return "";
}

ClusterSpec cluster_spec_of(const std::string& text) {
  return load_cluster(file_with("cluster.textproto", text));
}

double time_on(const std::string& cluster, CollectiveOp op, std::int64_t bytes) {
  return simulated(build_cluster(cluster_spec_of(cluster)),
                   {.communicator = {}, .op = op, .bytes = Bytes(bytes)}, Granularity::kPipelined);
}

Bandwidth link_between(const Imported& imported, const std::string& from, const std::string& to) {
  const ClusterSpec spec = cluster_spec_of(imported.text);
  for (const ExplicitLink& link : std::get<ExplicitGraphSpec>(spec.topology).links) {
    const bool is_it = (link.from == from && link.to == to) || (link.from == to && link.to == from);
    if (is_it) return link.bandwidth;
  }
  return {};
}

constexpr std::int64_t kMegabytes64 = 64 << 20;

// ---- htsim ----

const std::string kFatTree =
    "# k = 4\nNodes 16\nTiers 3\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Up 2\n"
    "Radix_Down 2\nDownlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Up 2\n"
    "Radix_Down 2\nDownlink_Latency_ns 1000\nTier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\n"
    "Downlink_Latency_ns 1000\n";

TEST(HtsimTopologyTest, AFatTreeTakesTheTimeOfTheCatalogsKind) {
  const std::string family =
      "chip { catalog: \"h100-sxm\" } library { catalog: \"ideal\" } fat_tree { switch_ports: 4 "
      "tiers: 3 link_bandwidth: \"12.5GB/s\" link_latency: \"1us\" routing: \"destination\" }";
  ImportRequest request;
  request.library = "ideal";
  const Imported read = network_of("htsim-topology", kFatTree, request);
  for (const CollectiveOp op : {CollectiveOp::kAllToAll, CollectiveOp::kAllReduce}) {
    const double expected = time_on(family, op, kMegabytes64);
    EXPECT_NEAR(time_on(read.text, op, kMegabytes64), expected, 1e-9 * expected);
  }
}

TEST(HtsimTopologyTest, BundlesAreOneLinkAndSwitchesTakeTheirTime) {
  const Imported read = network_of(
      "htsim-topology",
      "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Up 4\nRadix_Down 4\n"
      "Downlink_Latency_ns 1000\nSwitch_Latency_ns 300\nTier 1\nDownlink_speed_Gbps 100\n"
      "Radix_Down 4\nDownlink_Latency_ns 500\nBundle 2\n");
  EXPECT_EQ(link_between(read, "leaf0", "spine1"), Bandwidth(25e9));
  EXPECT_NE(read.text.find("from: \"host0\" to: \"leaf0\" bandwidth: \"12500000000B/s\" latency: "
                           "\"1300000ps\" one_way: true"),
            std::string::npos);
}

TEST(HtsimTopologyTest, WhatHtsimAssertsIsChecked) {
  std::string wrong = kFatTree;
  wrong.replace(wrong.find("Radix_Up 2"), 10, "Radix_Up 4");
  EXPECT_EQ(network_problem("htsim-topology", wrong),
            "network.txt: oversubscribed of tier 0 must be radix_down / radix_up, 0, is 1");
  EXPECT_EQ(network_problem("htsim-topology", "Nodes 16\nTiers 3\n"),
            "network.txt: Podsize must be given");
  const Imported skipped = network_of("htsim-topology", "Colour 3\n" + kFatTree);
  EXPECT_EQ(skipped.notes.back(), "no counterpart: colour: htsim skips it too");
}

// ---- ns-3 ----

// Two servers of two GPUs: an NVSwitch each, and a switch for each rail.
const std::string kSimAi =
    "8 2 2 2 8 H100\n4 5 6 7\n0 4 3600Gbps 0.000025ms 0\n1 4 3600Gbps 0.000025ms 0\n"
    "2 5 3600Gbps 0.000025ms 0\n3 5 3600Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n"
    "1 7 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 7 400Gbps 0.0005ms 0\n";

TEST(Ns3TopologyTest, ServersOfSimAiAreNodes) {
  const Imported read = network_of("ns3-topology", kSimAi);
  EXPECT_EQ(read.facts["chip"], "h100-sxm");
  EXPECT_EQ(link_between(read, "gpu1", "nvswitch4"), Bandwidth(450e9));
  EXPECT_EQ(link_between(read, "gpu1.nic", "switch7"), Bandwidth(50e9));
  const ClusterSpec spec = cluster_spec_of(read.text);
  EXPECT_EQ(std::get<ExplicitGraphSpec>(spec.topology).levels[0].size, 2);
}

TEST(Ns3TopologyTest, AStarTakesTheTimeOfASwitch) {
  std::string text = "9 1 8\n8\n";
  for (int host = 0; host < 8; ++host) text += std::to_string(host) + " 8 400Gbps 1000ns 0\n";
  const std::string family =
      "chip { catalog: \"h100-sxm\" } library { catalog: \"ideal\" } leaf_spine { leaves: 1 "
      "hosts_per_leaf: 8 spines: 0 host_bandwidth: \"50GB/s\" link_latency: \"1us\" }";
  ImportRequest request;
  request.library = "ideal";
  const Imported read = network_of("ns3-topology", text, request);
  const double expected = time_on(family, CollectiveOp::kAllToAll, kMegabytes64);
  EXPECT_NEAR(time_on(read.text, CollectiveOp::kAllToAll, kMegabytes64), expected, 1e-9 * expected);
}

TEST(Ns3TopologyTest, EveryWordCounts) {
  EXPECT_EQ(network_problem("ns3-topology", "3 1 2\n2\n0 2 400Gb 1us 0\n1 2 400Gbps 1us 0\n"),
            "network.txt:3: rate must be as in 400Gbps, is 400Gb");
  EXPECT_EQ(network_problem("ns3-topology", "3 1 3\n2\n0 2 400Gbps 1us 0\n1 2 400Gbps 1us 0\n"),
            "network.txt:1: must have the number of links, 2, is 3");
  const Imported more =
      network_of("ns3-topology", "3 1 2\n2\n0 2 400Gbps 1us 0\n1 2 400Gbps 1us 0\nand so on\n");
  EXPECT_EQ(more.notes[0].substr(0, 7), "assumed");
  EXPECT_EQ(more.notes.back(),
            "no counterpart: 1 lines behind the links that the header counts: ns-3 skips them too");
  std::string unknown = kSimAi;
  unknown.replace(unknown.find("H100"), 4, "Z100");
  EXPECT_EQ(network_problem("ns3-topology", unknown),
            "network.txt:1: gpu_type must be a chip of the catalog, is Z100; --chip C says which "
            "stands for it");
  const Imported lossy =
      network_of("ns3-topology", "3 1 2\n2\n0 2 400Gbps 1us 0.1\n1 2 400Gbps 1us 0\n");
  EXPECT_EQ(lossy.notes.back(),
            "no counterpart: error rates of 1 links: packets are not lost here");
}

// ---- Slurm ----

TEST(SlurmTopologyTest, NodesAreThoseOfACluster) {
  const Imported read = network_of("slurm-topology",
                                   "SwitchName=leaf1 Nodes=gpu[001-002] LinkSpeed=400\n"
                                   "switchname=leaf2 nodes=gpu[003-004]\n"
                                   "SwitchName=spine[1-2] Switches=leaf[1-2]\n");
  EXPECT_EQ(read.facts["chips"], 32);
  EXPECT_EQ(link_between(read, "gpu003.gpu7", "gpu003.nvswitch"), Bandwidth(450e9));
  EXPECT_EQ(link_between(read, "gpu003.gpu7.nic", "leaf2"), Bandwidth(50e9));
  // 16 cards of 50 GB/s, over two spines.
  EXPECT_EQ(link_between(read, "leaf2", "spine2"), Bandwidth(400e9));
  // Within a node it is a DGX H100.
  const double inside =
      simulated(build_cluster(load_cluster("dgx-h100-8")),
                {.communicator = {}, .op = CollectiveOp::kAllGather, .bytes = Bytes(kMegabytes64)},
                Granularity::kPipelined);
  const Imported one = network_of("slurm-topology", "SwitchName=leaf Nodes=a\n");
  EXPECT_NEAR(time_on(one.text, CollectiveOp::kAllGather, kMegabytes64), inside, 0.01 * inside);
}

TEST(SlurmTopologyTest, ABlockIsAnNvlinkDomain) {
  const Imported read = network_of(
      "slurm-topology", "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\nBlockSizes=2\n");
  EXPECT_EQ(read.facts["chips"], 16);
  EXPECT_EQ(link_between(read, "n4.gpu3", "b.nvswitch"), Bandwidth(900e9));
}

TEST(SlurmTopologyTest, NamesThatAreNotThereAreRefused) {
  EXPECT_EQ(network_problem("slurm-topology", "SwitchName=a Nodes=x\nSwitchName=b Switches=a,c\n"),
            "network.txt:2: there is no switch c");
  EXPECT_EQ(network_problem("slurm-topology", "SwitchNames=a Nodes=x\n"),
            "network.txt:1: must be one of SwitchName, Switches, Nodes, LinkSpeed, BlockName, "
            "BlockSizes, is SwitchNames; did you mean SwitchName?");
  EXPECT_EQ(network_problem("slurm-topology", "SwitchName=a Nodes=x[1-\n"),
            "network.txt:1: Nodes must be names such as gpu[001-004],gpu9, is x[1-");
  EXPECT_EQ(network_problem("slurm-topology", "SwitchName=a Nodes=x\nSwitchName=b Nodes=x\n"),
            "network.txt:2: node x is in network.txt:1 too: in one place, please");
  EXPECT_NE(network_problem("slurm-topology", "SwitchName=a Nodes=x\nSwitchName=b Nodes=y\n")
                .find("must join all chips"),
            std::string::npos);
}

// ---- NCCL ----

// A machine of two sockets, each with a PCIe switch below which are two GPUs and a card.
std::string machine(const std::string& gpu_inside) {
  std::string text = "<system version=\"1\">\n";
  int gpu = 0;
  for (int socket = 0; socket < 2; ++socket) {
    const std::string s = std::to_string(socket);
    text += "<cpu numaid=\"" + s +
            "\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">\n"
            "<pci busid=\"0000:" +
            s +
            "0:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
            "link_width=\"16\">\n";
    for (int i = 0; i < 2; ++i, ++gpu) {
      const std::string g = std::to_string(gpu);
      text += "<pci busid=\"0000:a" + g +
              ":00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"32.0 "
              "GT/s PCIe\" link_width=\"16\"><gpu dev=\"" +
              g + "\" sm=\"90\" rank=\"" + g + "\" gdr=\"1\">" + gpu_inside + "</gpu></pci>\n";
    }
    text += "<pci busid=\"0000:b" + s +
            ":00.0\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"8\"><nic><net "
            "name=\"mlx5_" +
            s + "\" dev=\"" + s +
            "\" speed=\"200000\" port=\"1\"/></nic></pci>\n"
            "</pci></cpu>\n";
  }
  return text + "</system>\n";
}
const std::string kEighteenLinks =
    "<nvlink target=\"0000:c0:00.0\" count=\"9\" tclass=\"0x068000\"/>"
    "<nvlink target=\"0000:c1:00.0\" count=\"9\" tclass=\"0x068000\"/>";

TEST(NcclTopologyTest, LinksAreThoseOfTheFile) {
  const Imported read = network_of("nccl-topology", machine(kEighteenLinks));
  EXPECT_EQ(read.facts["chip"], "h100-sxm");
  EXPECT_EQ(link_between(read, "gpu2", "nvswitch"), Bandwidth(450e9));
  EXPECT_NEAR(link_between(read, "gpu2", "pcie1").value(), 32e9 / 8 * 16 * 128 / 130, 1);
  EXPECT_NEAR(link_between(read, "nic1", "pcie1").value(), 16e9 / 8 * 8 * 128 / 130, 1);
  EXPECT_EQ(link_between(read, "socket0", "socket1"), Bandwidth(22e9));
  const std::string domain =
      "chip { catalog: \"h100-sxm\" } nvlink_domain { gpus: 4 gpu_bandwidth: \"450GB/s\" "
      "link_latency: \"0.25us\" }";
  const double expected = time_on(domain, CollectiveOp::kAllGather, kMegabytes64);
  EXPECT_NEAR(time_on(read.text, CollectiveOp::kAllGather, kMegabytes64), expected,
              0.01 * expected);
}

TEST(NcclTopologyTest, CostsAskTheLinksOfTheFile) {
  const double whole = time_on(network_of("nccl-topology", machine(kEighteenLinks)).text,
                               CollectiveOp::kAllGather, kMegabytes64);
  std::string half = machine(kEighteenLinks);
  for (std::size_t at = 0; (at = half.find("count=\"9\"", at)) != std::string::npos; ++at) {
    half.replace(at, 9, "count=\"4\"");
  }
  EXPECT_GT(time_on(network_of("nccl-topology", half).text, CollectiveOp::kAllGather, kMegabytes64),
            1.8 * whole);
  // Without NVLinks the PCIe trees and the sockets carry it.
  EXPECT_GT(time_on(network_of("nccl-topology", machine("")).text, CollectiveOp::kAllGather,
                    kMegabytes64),
            5 * whole);
}

TEST(NcclTopologyTest, MachinesMeetAtTheirCards) {
  ImportRequest request;
  request.ranks = 8;
  const Imported read = network_of("nccl-topology", machine(kEighteenLinks), request);
  EXPECT_EQ(read.facts["chips"], 8);
  EXPECT_EQ(link_between(read, "node1.nic1", "network1"), Bandwidth(25e9));
  // Four GPUs share two cards whose slots give 15.75 GB/s each: an all-to-all of 4 MiB a pair sends
  // 4 x 4 of them out.
  const double time = time_on(read.text, CollectiveOp::kAllToAll, 8 * (4 << 20));
  EXPECT_GT(time, 16.0 * (4 << 20) / (2 * 15.76e9));
}

TEST(NcclTopologyTest, WhatIsNotKnownIsRefusedOrAssumed) {
  std::string other = machine(kEighteenLinks);
  for (std::size_t at = 0; (at = other.find("0x2330\"", at)) != std::string::npos; ++at) {
    other.replace(at, 6, "0x9999");
  }
  const Imported assumed = network_of("nccl-topology", other);
  EXPECT_EQ(
      assumed.notes[0],
      "assumed: chip h100-sxm for 10de:9999 sm 90, which other chips have too; --chip C gives "
      "another");
  for (std::size_t at = 0; (at = other.find("sm=\"90\"", at)) != std::string::npos; ++at) {
    other.replace(at, 7, "sm=\"33\"");
  }
  EXPECT_EQ(network_problem("nccl-topology", other),
            "network.txt:4: must be a GPU of the catalog, is 10de:9999 sm 33; --chip C says which "
            "stands for it");
  std::string speed = machine(kEighteenLinks);
  speed.replace(speed.find("32.0 GT/s PCIe"), 14, "33.0 GT/s PCIe");
  EXPECT_EQ(
      network_problem("nccl-topology", speed),
      "network.txt:3: link_speed must be 2.5, 5, 8, 16, 32 or 64 GT/s, is \"33.0 GT/s PCIe\"");
  EXPECT_EQ(network_problem("nccl-topology", machine("<copper/>")),
            "network.txt:4: must be <nvlink>, <xgmi> or <c2c> in <gpu>, is <copper>");
  EXPECT_EQ(network_problem("nccl-topology", "<system version=\"1\">"),
            "network.txt:1: must be XML: Start-end tags mismatch");
}

// Entities of a file's own stay as they are.
TEST(NcclTopologyTest, EntitiesAreNotExpanded) {
  const std::string text =
      "<!DOCTYPE system [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<system version=\"&b;\"/>";
  EXPECT_EQ(network_problem("nccl-topology", text),
            "network.txt:2: version of system must be a whole number, 1 to 2, is \"&b;\"");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<pci>";
  for (int i = 0; i < 1000; ++i) deep += "</pci>";
  EXPECT_EQ(network_problem("nccl-topology", deep),
            "network.txt: nests elements more than 64 deep");
}

// Direct links: two GPUs with four links each way.
TEST(NcclTopologyTest, LinksBetweenChipsGoEachWay) {
  std::string text = machine("");
  for (int gpu = 0; gpu < 4; ++gpu) {
    const std::string inside = "<nvlink target=\"0000:A" + std::to_string(gpu ^ 1) +
                               ":00.0\" count=\"4\" tclass=\"0x030200\"/>";
    text.insert(text.find("</gpu>", text.find("rank=\"" + std::to_string(gpu) + "\"")), inside);
  }
  EXPECT_EQ(link_between(network_of("nccl-topology", text), "gpu0", "gpu1"), Bandwidth(100e9));
}

// ---- nothing is skipped in silence ----

// What comes of a text: the file, or the first problem.
std::string outcome_of(const char* kind, const std::string& text) {
  try {
    return network_of(kind, text).text;
  } catch (const ConfigError& error) {
    return error.problems()[0].field + ": " + error.problems()[0].message;
  }
}

// Each word of a file counts: another one in its place is seen in what comes out.
void expect_each_word_counts(const char* kind, const std::string& text) {
  const std::string usual = outcome_of(kind, text);
  ASSERT_NE(usual.find("explicit_graph"), std::string::npos) << usual;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" =\n", at), text.size());
    if (end > at && text[at] != '#') {
      std::string changed = text;
      changed.replace(at, end - at, "zz" + text.substr(at, end - at));
      EXPECT_NE(outcome_of(kind, changed), usual) << changed;
    }
    at = end + 1;
  }
}

TEST(NetworkMutationTest, EachWordOfATextCounts) {
  expect_each_word_counts("ns3-topology", kSimAi);
  expect_each_word_counts("htsim-topology", kFatTree.substr(kFatTree.find("Nodes")));
  expect_each_word_counts("slurm-topology",
                          "SwitchName=leaf1 Nodes=gpu[001-002]\nSwitchName=leaf2 "
                          "Nodes=gpu[003-004]\nSwitchName=spine Switches=leaf[1-2]\n");
  expect_each_word_counts("slurm-topology", "BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\n");
}

// Attributes that change no link: names and numbers of NUMA nodes, buses and NVSwitches (which are
// one), what NCCL asks of drivers, the class of what its children tell, and `dev` where ranks
// number the GPUs.
bool changes_no_link(const std::string& attribute) {
  for (const char* const known :
       {"numaid", "familyid", "gdr", "name", "dev", "port", "class", "busid", "target"}) {
    if (attribute == known) return true;
  }
  return false;
}

TEST(NetworkMutationTest, EachAttributeOfATopologyCounts) {
  const std::string text = machine(kEighteenLinks);
  const std::string usual = outcome_of("nccl-topology", text);
  std::size_t counted = 0;
  for (std::size_t at = 0; (at = text.find("=\"", at)) != std::string::npos; ++at) {
    const std::size_t begin = text.rfind(' ', at) + 1;
    const std::string attribute = text.substr(begin, at - begin);
    std::string renamed = text;
    renamed.insert(begin, "z");
    std::string changed = text;
    changed.insert(at + 2, "77");
    const bool counts = !changes_no_link(attribute);
    counted += counts ? 1U : 0U;
    if (!counts || attribute == "rank") continue;  // numbers in another order are as good
    EXPECT_NE(outcome_of("nccl-topology", changed), usual) << attribute;
    EXPECT_NE(outcome_of("nccl-topology", renamed), usual) << attribute;
  }
  EXPECT_GT(counted, 50U);
}

}  // namespace
}  // namespace stepsim
