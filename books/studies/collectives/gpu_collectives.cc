// S20, S21 and S27: collectives of GPUs in a node and across nodes.
//
// Bandwidths are one way; V is the whole array.

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/h100_nodes.h"
#include "books/laboratory/row_table.h"
#include "books/laboratory/study_groups.h"
#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

constexpr double kMiB = 1 << 20;

Duration seconds_of(double seconds) {
  return duration_from_seconds(seconds);
}

// ---- S20 ----

constexpr double kGradients70b = 140e9;  // 70B parameters in bf16

double a100_all_reduce(const Laboratory& laboratory, AlgorithmChoice algorithm,
                       Granularity granularity) {
  DgxSuperPodSpec spec;
  spec.nodes = 4;
  spec.nvlink_bandwidth = Bandwidth(300e9);
  spec.nic_bandwidth = Bandwidth(25e9);
  return collective_seconds(
      laboratory, cluster_of(spec),
      work_of(CollectiveOp::kAllReduce, whole_bytes(kGradients70b), algorithm), granularity);
}

std::vector<StudyRow> flat_ring_rows() {
  // A packet of 4 MiB is stored at three links of 25 GB/s on its way to another node: 0.5 ms. The
  // rounds of a ring follow each other without a gap, so this time is paid only where a round
  // begins on an idle link: a few times in all.
  RowTable rows({}, {0, 0.0005});
  rows.testing("C1", predict("C1", {{"n", 32}, {"V", kGradients70b}, {"W", 25e9}}));
  const auto reduce = [](AlgorithmChoice algorithm, Granularity granularity) {
    return [=](const Laboratory& laboratory) {
      return a100_all_reduce(laboratory, algorithm, granularity);
    };
  };
  // Between nodes each rail carries only V / 8: 2 x 3/4 x V / (8 x 25e9) = 1.05 s of 10.85 s. With
  // levels one after another, 2 x 7/8 x V / 300e9 = 0.8167 s more.
  const double between = 2 * 0.75 * kGradients70b / 200e9;
  const double inside = 2 * 0.875 * kGradients70b / 300e9;
  const double flat = 2 * 31.0 / 32 * kGradients70b / 25e9;
  const double overlapped = between / flat - 1;
  const double in_turn = (between + inside) / flat - 1;
  rows.add("flat-ring", "4 DGX A100, one ring through all 32 GPUs", around(0, kExact),
           "one ring crosses each node boundary on one card of 25 GB/s",
           reduce(AlgorithmChoice::kRing, Granularity::kPipelined));
  // Packets run in whole messages, so one level follows the other.
  rows.add("hierarchical", "in the node, then on all 8 rails, overlapped",
           around(overlapped, kExact),
           "all 8 cards of a node carry an eighth each: ten times as fast",
           reduce(AlgorithmChoice::kHierarchical, Granularity::kPipelined))
      .expected_packets = {in_turn - kExact, in_turn + 0.0005};
  // Each ring carries an eighth of the flat ring's bytes over its own card.
  rows.add("rotated-rings", "eight rings, each over a card of its own", around(-0.875, kExact),
           "all 8 cards of a node carry an eighth each of 31/32 of the data",
           reduce(AlgorithmChoice::kRotatedRings, Granularity::kPipelined));
  rows.add("hierarchical-in-turn", "the same, one level after the other", around(in_turn, kExact),
           "NVLink phases that don't overlap with the cards add their time, 0.82 s",
           reduce(AlgorithmChoice::kHierarchical, Granularity::kStepped));
  return std::move(rows).take();
}

// ---- S21 ----

double node_all_gather(const Laboratory& laboratory, double v, double hop_s,
                       AlgorithmChoice algorithm) {
  const Cluster cluster = one_node(8, Bandwidth(kNvlink), seconds_of(hop_s / 2));  // 2 links a hop
  return collective_seconds(laboratory, cluster,
                            work_of(CollectiveOp::kAllGather, whole_bytes(v), algorithm));
}

double in_node(double v) {
  return predict("C5", {{"V", v}, {"d", 8}, {"W", kNvlink}});
}

// Each of the four switches is a crossbar of its own: 8 GPUs with 5, 4, 4 and 5 links of 25 GB/s,
// and a quarter of the data. The ranks are the 32 pairs of GPU and switch.
double four_switches(const Laboratory& laboratory, double v) {
  double slowest = 0;
  for (const int links : {5, 4, 4, 5}) {
    const Cluster cluster = one_node(8, Bandwidth(links * 25e9));
    const double seconds = collective_seconds(
        laboratory, cluster,
        work_of(CollectiveOp::kAllGather, whole_bytes(v / 4), AlgorithmChoice::kDirect));
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

double nccl_all_reduce(const Laboratory& laboratory, double v, AlgorithmChoice algorithm) {
  const ClusterSpec spec = load_cluster("dgx-h100-8");
  Cluster cluster = cluster_of(spec.topology, spec.chip);
  cluster.library = spec.library;
  return collective_seconds(laboratory, cluster,
                            work_of(CollectiveOp::kAllReduce, whole_bytes(v), algorithm));
}

std::vector<StudyRow> node_all_gather_rows() {
  // Packets of 256 KiB at most cross the switch one after another: a few more.
  RowTable rows({}, {0, 0.04});
  const auto gather = [](double v, double hop_s, AlgorithmChoice algorithm) {
    return [=](const Laboratory& laboratory) {
      return node_all_gather(laboratory, v, hop_s, algorithm);
    };
  };
  rows.testing("C5", in_node(1024 * kMiB))
      .add("ring-1g", "8 H100, ring, 1 GiB", around(0, kExact),
           "each GPU receives 7/8 of V at 450 GB/s",
           gather(1024 * kMiB, 0, AlgorithmChoice::kRing));
  rows.testing("C5", in_node(128 * kMiB))
      .add("direct-128m", "everybody to everybody, 128 MiB", around(0, kExact),
           "the same bytes through the same ports",
           gather(128 * kMiB, 0, AlgorithmChoice::kDirect));
  // 32 MiB take 65.2 us; a ring adds 7 hops of latency, a direct exchange one.
  const double small = in_node(32 * kMiB);
  rows.testing("C5", small);
  rows.add("ring-1us", "ring, 32 MiB, 1 us a hop", around(7e-6 / small, kExact),
           "7 hops of latency", gather(32 * kMiB, 1e-6, AlgorithmChoice::kRing));
  rows.add("ring-2us", "ring, 32 MiB, 2 us a hop", around(14e-6 / small, kExact),
           "7 hops of latency", gather(32 * kMiB, 2e-6, AlgorithmChoice::kRing));
  rows.add("direct-2us", "everybody to everybody, 32 MiB, 2 us a hop", around(2e-6 / small, kExact),
           "one hop of latency", gather(32 * kMiB, 2e-6, AlgorithmChoice::kDirect));
  // A quarter of the data on 4 of 18 links: 18 / 16 of the time on all.
  rows.testing("C5", in_node(1024 * kMiB))
      .add("four-switches", "1 GiB in quarters over switches of 5, 4, 4 and 5 links",
           around(0.125, kExact),
           "equal parts over unequal switches: those with 4 of 18 links finish last",
           [](const Laboratory& laboratory) { return four_switches(laboratory, 1024 * kMiB); });
  // NCCL's own start, hops and protocols (catalog/libraries, fitted to nccl-tests, not to the
  // book). The book measured 370 of 450 GB/s for all-reduces of 10 GB: 21.6 % more time. NCCL's
  // versions differ by a few percent.
  const auto with_nccl = [&rows](std::string id, std::string regime, double v,
                                 AlgorithmChoice algorithm, double measured, double margin,
                                 std::string why) {
    rows.testing("C1", predict("C1", {{"n", 8}, {"V", v}, {"W", kNvlink}}))
        .add(
            std::move(id), std::move(regime), around(kNvlink / measured - 1, margin),
            std::move(why),
            [=](const Laboratory& laboratory) { return nccl_all_reduce(laboratory, v, algorithm); })
        .not_on_packets = "the constants of the library are fitted to whole transfers";
  };
  with_nccl("nccl-ring-10g", "AllReduce of 10 GB in a ring with what NCCL adds", 10e9,
            AlgorithmChoice::kRing, 370e9, 0.03,
            "protocols and copies cost a fifth of the links: 370 of 450 GB/s (A17)");
  // For 58 MB the book measured 150 GB/s (A17), three times the formula's time. nccl-tests of NCCL
  // 2.29.2 on the same GPUs (tests/reference/measured/collectives.csv) give 294 GB/s at 32 MiB and
  // 362 at 64 MiB. That is 351 at 58 MB, linearly in time: + 28 %. At such sizes a fit is good to
  // 15 %.
  with_nccl("nccl-58m", "AllReduce of 58 MB as NCCL does it", 58e6, AlgorithmChoice::kAuto, 351e9,
            0.15,
            "start and switches cost a quarter at 58 MB; the book measured three times the formula "
            "with an older NCCL");
  return std::move(rows).take();
}

std::vector<Sweep> node_all_gather_sweeps() {
  Sweep sweep{.name = "S21-nvswitch-all-gather",
              .title = "AllGather of 8 H100 behind NVSwitches",
              .subtitle = "450 GB/s a GPU, 1 us a hop",
              .x = PlotAxis{.label = "bytes of the whole array V", .unit = "B", .log = true},
              .y = PlotAxis{.label = "time", .unit = "s", .log = true}};
  for (double v = 64 * 1024; v <= 8192 * kMiB; v *= 4) sweep.at.push_back(v);
  sweep.curves.push_back({.label = "7/8 V / W", .predict = in_node});
  for (const AlgorithmChoice algorithm : {AlgorithmChoice::kRing, AlgorithmChoice::kDirect}) {
    sweep.curves.push_back({.label = std::string(name_of(algorithm)),
                            .simulate = [algorithm](const Laboratory& laboratory, double v) {
                              return node_all_gather(laboratory, v, 1e-6, algorithm);
                            }});
  }
  return {sweep};
}

// ---- S27 ----

constexpr double kTwoNodes = 1e9;  // bytes gathered

std::vector<StudyRow> two_nodes_rows() {
  RowTable rows({});
  rows.testing(
      "C20",
      predict("C20", {{"V", kTwoNodes}, {"d", 8}, {"W", kNvlink}, {"M", 2}, {"Wn", kNodeLinks}}));
  const auto gather = [](Granularity granularity) {
    return [granularity](const Laboratory& laboratory) {
      return collective_seconds(
          laboratory, cluster_of(h100_nodes(2)),
          work_of(CollectiveOp::kAllGather, whole_bytes(kTwoNodes), AlgorithmChoice::kHierarchical),
          granularity);
    };
  };
  // V / 800e9 between the nodes is 514.3 / 800 of V / 514.3e9 inside them.
  const double added = kNvlink * 8 / 7 / (2 * kNodeLinks);
  // Packets run stepped, one level after the other, and are stored at each switch.
  const DifferenceRange packets = {added - kExact, added + 0.002};
  rows.add("overlapped", "AllGather over 2 nodes, levels overlapped", around(0, kExact),
           "the cards take less time than NVLink, so two nodes cost no more than one",
           gather(Granularity::kPipelined))
      .expected_packets = packets;
  rows.add("in-turn", "the same, one level after the other", around(added, kExact),
           "without overlap the levels add up", gather(Granularity::kStepped))
      .expected_packets = packets;
  return std::move(rows).take();
}

}  // namespace

std::vector<Study> gpu_collective_studies() {
  return {
      {.id = "S20",
       .source = kLecture7,
       .title = "Flat ring and hierarchical AllReduce",
       .claim = "all-reducing 140 GB of gradients over 32 A100s takes 10.85 s",
       .rows = flat_ring_rows},
      {.id = "S21",
       .source = kBookGpus,
       .title = "AllGather behind NVSwitches",
       .claim = "an AllGather in a node takes 7/8 V over 450 GB/s",
       .rows = node_all_gather_rows,
       .sweeps = node_all_gather_sweeps,
       .finding = "With NCCL's fitted constants a ring of 8 H100 reaches 367 GB/s at 10 GB; "
                  "the book measured 370. Its 150 GB/s at 58 MB, three times the formula, is not "
                  "what NCCL 2.29 does any more: nccl-tests has 362 GB/s at 64 MiB on the same "
                  "GPUs."},
      {.id = "S27",
       .source = kBookGpus,
       .title = "Collectives over two nodes",
       .claim = "over two nodes the NVLink of a node is the bound, not the network",
       .rows = two_nodes_rows}};
}

}  // namespace stepsim
