// What a run costs: seconds of simulate() against the work in it, and the slope of that in log-log
// scale, which is 1 where cost is linear.
//
//   training   Llama-3 70B on DGX H100s, tp 8, pp 4, dp 1 to 32: 32 to 1,024 ranks, one step
//   ring       one stepped ring all-reduce of 64 MiB on a ring of 64 to 4,096 chips
//
//   build/release/bench/simulate_bench

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/experiments/graph_by_hand.h"
#include "analysis/experiments/small_clusters.h"
#include "proto/experiment.h"
#include "schedules/lowering/lower.h"
#include "sim/simulate.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

struct Point {
  double work = 0;
  double seconds = 0;
};

Point training(int dp) {
  const Experiment experiment =
      load_experiment({.experiment = "llama3-70b-dgx-h100-512",
                       .model = "",
                       .cluster = "dgx-h100-" + std::to_string(32 * dp),
                       .plan = "",
                       .overrides = {"plan.dp=" + std::to_string(dp),
                                     "plan.global_batch=" + std::to_string(16 * dp)}});
  const Cluster cluster = cluster_of(experiment.cluster.topology, experiment.cluster.chip);
  const OpGraph graph =
      lower(experiment.model, experiment.plan, cluster.places, experiment.cluster.chip);
  const SimulatorStatistics cost = simulate(graph, cluster, {}).statistics;
  fmt::print("  {:>6} ranks {:>12} ops {:>8.3f} s {:>7.2f} M ops/s\n", graph.ranks.size(), cost.ops,
             cost.cpu_s, static_cast<double>(cost.ops) / cost.cpu_s / 1e6);
  return {static_cast<double>(cost.ops), cost.cpu_s};
}

Point ring(int chips) {
  const Cluster cluster = ring_of(chips, Bandwidth(50e9), Duration(500'000));
  GraphByHand hand(static_cast<std::uint32_t>(chips));
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(chips); ++rank) {
    hand.collective(rank, hand.stream(rank, "ring"),
                    {.communicator = all,
                     .op = CollectiveOp::kAllReduce,
                     .bytes = Bytes(64 << 20),
                     .algorithm = AlgorithmChoice::kRing});
  }
  const OpGraph graph = hand.build();
  SimulationOptions options;
  options.granularity = Granularity::kStepped;
  const SimulationResult result = simulate(graph, cluster, options);
  const SimulatorStatistics& cost = result.statistics;
  fmt::print(
      "  {:>6} ranks {:>12} messages {:>8.3f} s {:>7.2f} M messages/s, simulated {:.6f} ms\n",
      chips, cost.transfers, cost.cpu_s, static_cast<double>(cost.transfers) / cost.cpu_s / 1e6,
      to_seconds(result.step_time) * 1e3);
  return {static_cast<double>(cost.transfers), cost.cpu_s};
}

void sweep(const std::string& name, const std::vector<int>& sizes,
           const std::function<Point(int)>& run) {
  fmt::print("{}\n", name);
  std::vector<Point> points;
  for (const int size : sizes) points.push_back(run(size));
  const Point& first = points.front();
  const Point& last = points.back();
  fmt::print("  slope {:.2f}\n",
             std::log(last.seconds / first.seconds) / std::log(last.work / first.work));
}

}  // namespace
}  // namespace stepsim

int main() {
  stepsim::sweep("training", {1, 2, 4, 8, 16, 32}, stepsim::training);
  stepsim::sweep("ring", {64, 256, 1024, 4096}, stepsim::ring);
}
