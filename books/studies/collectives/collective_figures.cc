// Figures of collectives: ring times by number of ranks, and the bandwidth that GPUs reach by size.

#include <string>
#include <utility>

#include "books/laboratory/collective_graph.h"
#include "books/laboratory/figures.h"
#include "books/laboratory/h100_nodes.h"
#include "books/laboratory/study.h"
#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

double bytes_of(Bytes size) {
  return static_cast<double>(size.value());
}

Plot ring_all_reduce(const Laboratory& laboratory) {
  constexpr double kLink = 45e9;
  constexpr Duration kHop = std::chrono::microseconds(1);
  Plot plot{.title = "All-reduce over a wrapped axis of v5e against its chips",
            .subtitle = "45 GB/s one way a link, 1 us a hop; both directions",
            .x = PlotAxis{.label = "chips of the axis", .log = true, .ticks = {4, 8, 16, 32, 64}},
            .y = PlotAxis{.label = "time", .unit = "s", .log = true},
            .curves = {}};
  for (const auto& [label, size] :
       {std::pair{"64 MiB", 64_MiB}, {"1 MiB", 1_MiB}, {"64 KiB", 64_KiB}}) {
    PlotCurve line{.label = std::string(label) + ": formula", .points = {}};
    PlotCurve points{
        .label = std::string(label) + ": simulated", .mark = PlotMark::kPoints, .points = {}};
    for (const int chips : {4, 8, 16, 32, 64}) {
      line.points.push_back(
          {static_cast<double>(chips), predict("B5", {{"V", bytes_of(size)}, {"W", 2 * kLink}})});
      const Cluster cluster = ring_of(chips, Bandwidth(kLink), kHop);
      points.points.push_back(
          {static_cast<double>(chips),
           laboratory.seconds(collective_graph(all_chips(cluster),
                                               {.communicator = CommunicatorId(0),
                                                .op = CollectiveOp::kAllReduce,
                                                .bytes = size,
                                                .algorithm = AlgorithmChoice::kBidirectionalRing}),
                              cluster)});
    }
    plot.curves.push_back(std::move(line));
    plot.curves.push_back(std::move(points));
  }
  return plot;
}

Cluster cluster_named(const std::string& name, const std::string& library) {
  ClusterSpec spec = load_cluster(name, library);
  Cluster cluster = cluster_of(spec.topology, spec.chip);
  cluster.library = spec.library;
  return cluster;
}

// The formula's bandwidth, and bytes over simulated time (algorithm bandwidth).
Plot by_size(const Laboratory& laboratory, CollectiveOp op, const char* title,
             double (*formula)(double bytes, double gpus, double nodes)) {
  Plot plot{.title = title,
            .subtitle = "DGX H100; points: links alone, and with NCCL as measured",
            .x = PlotAxis{.label = "larger buffer of a GPU", .unit = "B", .log = true},
            .y = PlotAxis{.label = "bytes / time", .unit = "B/s", .log = true},
            .curves = {}};
  for (const auto& [gpus, name] : {std::pair{8, "dgx-h100-8"}, {64, "dgx-h100-64"}}) {
    const std::string label = gpus == 8 ? "one node" : "eight nodes";
    PlotCurve line{.label = label + ": formula", .points = {}};
    PlotCurve ideal{.label = label + ": links alone", .mark = PlotMark::kPoints, .points = {}};
    PlotCurve nccl{
        .label = label + ", NCCL: simulated", .mark = PlotMark::kLineAndPoints, .points = {}};
    for (std::int64_t size = 64 << 10; size <= std::int64_t{4} << 30; size *= 4) {
      const auto x = static_cast<double>(size);
      line.points.push_back({x, x / formula(x, gpus, gpus / 8.0)});
      for (const bool with_library : {false, true}) {
        const Cluster cluster = cluster_named(name, with_library ? "" : "ideal");
        const double time = laboratory.seconds(
            collective_graph(all_chips(cluster),
                             {.communicator = CommunicatorId(0), .op = op, .bytes = Bytes(size)}),
            cluster);
        (with_library ? nccl : ideal).points.push_back({x, x / time});
      }
    }
    plot.curves.push_back(std::move(line));
    plot.curves.push_back(std::move(ideal));
    plot.curves.push_back(std::move(nccl));
  }
  return plot;
}

Plot gather_by_size(const Laboratory& laboratory) {
  return by_size(laboratory, CollectiveOp::kAllGather, "All-gather on H100 against the size",
                 [](double bytes, double, double nodes) {
                   return bytes / (nodes > 1 ? kNodeLinks : kNvlink);
                 });
}

Plot exchange_by_size(const Laboratory& laboratory) {
  // Traffic from a GPU to another node goes over the GPU's own port.
  return by_size(laboratory, CollectiveOp::kAllToAll, "All-to-all on H100 against the size",
                 [](double bytes, double gpus, double nodes) {
                   if (nodes == 1) return bytes * (gpus - 1) / gpus / kNvlink;
                   return bytes * (nodes - 1) / nodes / kNic;
                 });
}

}  // namespace

std::vector<Figure> collective_figures() {
  return {{"ring-all-reduce", "Ring all-reduce against the chips of the ring", ring_all_reduce},
          {"all-gather-h100", "All-gather on H100 against message size", gather_by_size},
          {"all-to-all-h100", "All-to-all on H100 against message size", exchange_by_size}};
}

}  // namespace stepsim
