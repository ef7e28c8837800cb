// S23: all-reduces in which switches add.

#include <cmath>

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/h100_nodes.h"
#include "books/laboratory/study_groups.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

constexpr double kNodeCard = 50e9;
constexpr double kSummedArray = 1 << 30;

CollectiveWork all_reduce(AlgorithmChoice algorithm) {
  return work_of(CollectiveOp::kAllReduce, Bytes(std::llround(kSummedArray)), algorithm);
}

double in_node(const Laboratory& laboratory, AlgorithmChoice algorithm) {
  const Cluster cluster = one_node(8, Bandwidth(kNvlink));
  return laboratory.seconds(collective_graph(all_chips(cluster), all_reduce(algorithm)), cluster);
}

// Two all-reduces of all GPUs at once.
double two_in_node(const Laboratory& laboratory) {
  const Cluster cluster = one_node(8, Bandwidth(kNvlink));
  std::vector<RankId> all;
  for (std::uint32_t rank = 0; rank < 8; ++rank) all.emplace_back(rank);
  const GroupedCollective one{.work = all_reduce(AlgorithmChoice::kNvls), .groups = {all}};
  return laboratory.seconds(collectives_graph(all_chips(cluster), {one, one}), cluster);
}

// The rate at which a switch's adders take in operands from 8 GPUs, such that an all-reduce is 1.3
// times as fast as a ring, as measured, and not 2 (n-1)/n times.
constexpr double kMeasuredGain = 1.3;
constexpr double kAdders = 8 * kNvlink * kMeasuredGain / 1.75;

// Runs all-reduces at once in `groups` groups of `size` of the 8 GPUs, over a switch with such
// adders.
double with_adders(const Laboratory& laboratory, std::uint32_t groups, std::uint32_t size) {
  Cluster cluster = one_node(8, Bandwidth(kNvlink));
  cluster.adders = add_adders(Bandwidth(kAdders), cluster.fabric);
  std::vector<std::vector<RankId>> members(groups);
  std::vector<std::uint32_t> chips;
  for (std::uint32_t chip = 0; chip < groups * size; ++chip) {
    chips.push_back(chip);
    members[chip / size].emplace_back(chip);
  }
  const GroupedCollective all{.work = all_reduce(AlgorithmChoice::kNvls), .groups = members};
  return laboratory.seconds(collectives_graph(chips, {all}), cluster);
}

// 32 hosts on 4 leaves under one spine.
double over_leaves(const Laboratory& laboratory, AlgorithmChoice algorithm) {
  LeafSpineSpec spec;
  spec.leaves = 4;
  spec.hosts_per_leaf = 8;
  spec.spines = 1;
  spec.host_bandwidth = Bandwidth(kNodeCard);
  const Cluster cluster = cluster_of(spec);
  return laboratory.seconds(collective_graph(all_chips(cluster), all_reduce(algorithm)), cluster);
}

std::vector<StudyRow> switch_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&](std::string id, std::string formula, std::string regime, double predicted,
                       std::string unit, double difference, std::string why,
                       std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = std::move(formula),
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .unit = std::move(unit),
                    .expected = {difference - kExact, difference + kExact},
                    .why = std::move(why),
                    .simulate = std::move(simulate),
                    // Chunks are stored at the switch on their way.
                    .expected_packets = DifferenceRange{difference - 0.12, difference + 0.12}});
  };
  const double in_switch = predict("C12", {{"V", kSummedArray}, {"W", kNvlink}});
  const auto gain = [](double n) { return predict("C12.gain", {{"n", n}}); };
  // Every GPU's link carries V up and V down at once.
  add("nvls-8", "C12", "8 H100, the NVSwitch adds and copies", in_switch, "s", 0,
      "every GPU sends V and receives V, at the same time",
      [](const Laboratory& laboratory) { return in_node(laboratory, AlgorithmChoice::kNvls); });
  // A ring moves 2 x 7/8 V, so it takes 1.75 times as long.
  add("gain-8", "C12.gain", "the same against a ring", gain(8), "x", 0,
      "a ring sends 2 (n-1)/n V, the switch only V", [](const Laboratory& laboratory) {
        return in_node(laboratory, AlgorithmChoice::kRing) /
               in_node(laboratory, AlgorithmChoice::kNvls);
      });
  add("gain-32", "C12.gain", "SHARP over 4 leaves and a spine, 32 hosts, against a ring", gain(32),
      "x", 0, "the larger the group, the closer to 2", [](const Laboratory& laboratory) {
        return over_leaves(laboratory, AlgorithmChoice::kRing) /
               over_leaves(laboratory, AlgorithmChoice::kSharp);
      });
  // Two trees share the same links, half for each.
  add("two-at-once", "C12", "two all-reduces in the switch at once", in_switch, "s", 1,
      "both use all of the links", two_in_node);
  rows.back().expected_unshared = DifferenceRange{-kExact, kExact};
  rows.back().expected_packets = DifferenceRange{0.8, 1.2};
  // Adders take in 8 x 334 GB/s of operands, so it takes 450 / 334 times as long.
  const double slower = 8 * kNvlink / kAdders - 1;
  const char* const adders = "the adders of the switch are slower than its links";
  const DifferenceRange packets{-0.12, 0.12};  // packets do not model adders
  add("adders", "C12", "8 H100, adders of 2.67 TB/s", in_switch, "s", slower, adders,
      [](const Laboratory& laboratory) { return with_adders(laboratory, 1, 8); });
  rows.back().expected_packets = packets;
  add("adders-gain", "C12.gain", "the same against a ring", gain(8), "x",
      kMeasuredGain / gain(8) - 1, adders, [](const Laboratory& laboratory) {
        return in_node(laboratory, AlgorithmChoice::kRing) / with_adders(laboratory, 1, 8);
      });
  rows.back().expected_packets = packets;
  add("adders-half", "C12", "4 of the 8 alone", in_switch, "s", 0,
      "half of the operands, so the links are slower than the adders",
      [](const Laboratory& laboratory) { return with_adders(laboratory, 1, 4); });
  add("adders-shared", "C12", "4 and 4 of them at once", in_switch, "s", slower,
      "concurrent trees share the adders, but no link",
      [](const Laboratory& laboratory) { return with_adders(laboratory, 2, 4); });
  rows.back().expected_unshared = DifferenceRange{-kExact, kExact};
  rows.back().expected_packets = packets;
  return rows;
}

}  // namespace

std::vector<Study> in_switch_studies() {
  return {
      {.id = "S23",
       .source = kBookGpus,
       .title = "AllReduce in the switches",
       .claim = "with in-network reduction an AllReduce takes V / W: 1.75 times as fast in a node",
       .rows = switch_rows,
       .finding =
           "1.3 times is what the book measured on H100 (480 over 370 GB/s): the adders of the "
           "switch are slower than its links. stepsim's switches add at any rate unless the "
           "cluster "
           "says how fast (switch_adders); what a real one loses is in the constants of the "
           "communication library (efficiency of NVLS)."}};
}

}  // namespace stepsim
