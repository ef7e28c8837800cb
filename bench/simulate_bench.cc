// The cost of a run: seconds of simulate() against the amount of work, and the slope of that in
// log-log scale. The slope is 1 if the cost is linear.
//
//   graph      everything before simulate() for Llama-3 405B on 16,384 H100s: the catalog's files,
//              the cluster, and the op graph; alone, so that the process's peak of memory is its
//              own
//   folded     experiments of the catalog as `stepsim run` runs them: one of all ranks that are
//              alike
//   training   Llama-3 70B on DGX H100s, tp 8, pp 4, dp 1 to 32: 32 to 1,024 ranks, one step;
//              every rank is simulated, here and below
//   layers     Llama-3 8B on 8 H100s with 1,000 to 16,000 layers
//   ring       one ring all-reduce of 64 MiB on a ring of 64 to 4,096 chips: stepped, with ranks
//              that start at skewed times, pipelined
//   train      24 layers with an all-reduce of 32 MiB each on a 3-D torus of 1,024 chips
//
//   build/release/bench/simulate_bench

#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "sim/program/graph_by_hand.h"
#include "sim/run/simulate.h"
#include "topology/small_clusters.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

struct Point {
  double work = 0;
  double seconds = 0;
};

void graph(const std::string& experiment_name) {
  const std::clock_t begin = std::clock();
  LoadedExperiment loaded = load_with_topology({.experiment = experiment_name});
  const Cluster cluster = cluster_for_steps(loaded.experiment, std::move(loaded.topology));
  const OpGraph made = lower_experiment(loaded.experiment, cluster);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::size_t ops = 0;
  for (const Program& program : made.programs) ops += program.ops.size();
  std::size_t run = 0;
  for (const RankData& rank : made.ranks) run += made.programs[rank.program.index()].ops.size();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("  {}: {} ranks, {} programs with {} ops, {} ops of all ranks, {:.3f} s, {} MB\n",
             experiment_name, made.ranks.size(), made.programs.size(), ops, run, seconds,
             usage.ru_maxrss / 1000);
}

void folded(const std::string& experiment_name) {
  const std::clock_t begin = std::clock();
  const SimulatedExperiment done =
      simulate_experiment(load_experiment({.experiment = experiment_name}));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  const FoldStatistics& folding = done.runs.front().result.statistics.folding;
  fmt::print("  {:<40} {:>6} ranks {:>5} classes {:>7.3f} s\n", experiment_name, folding.ranks,
             folding.classes, seconds);
}

Point training(int dp) {
  const Experiment experiment =
      load_experiment({.experiment = "llama3-70b-dgx-h100-512",
                       .cluster = "dgx-h100-" + std::to_string(32 * dp),
                       .overrides = {"plan.dp=" + std::to_string(dp),
                                     "plan.global_batch=" + std::to_string(16 * dp)}});
  const SimulatedExperiment done = simulate_experiment(experiment, {.fold = false});
  const SimulatorStatistics& cost = done.runs.front().result.statistics;
  fmt::print("  {:>6} ranks {:>12} ops {:>8.3f} s {:>7.2f} M ops/s\n", done.graph.ranks.size(),
             cost.ops, cost.cpu_s, static_cast<double>(cost.ops) / cost.cpu_s / 1e6);
  return {static_cast<double>(cost.ops), cost.cpu_s};
}

// A model of many layers on one node: programs of millions of ops, and long waits at the end.
Point layers(int count) {
  const Experiment experiment =
      load_experiment({.experiment = "llama3-8b-dgx-h100-8",
                       .overrides = {"model.layers=" + std::to_string(count)}});
  const SimulatorStatistics cost =
      simulate_experiment(experiment, {.fold = false}).runs.front().result.statistics;
  fmt::print("  {:>6} layers {:>11} ops {:>8.3f} s {:>7.2f} M ops/s\n", count, cost.ops, cost.cpu_s,
             static_cast<double>(cost.ops) / cost.cpu_s / 1e6);
  return {static_cast<double>(cost.ops), cost.cpu_s};
}

Point report(std::size_t ranks, const SimulationResult& result) {
  const SimulatorStatistics& cost = result.statistics;
  fmt::print(
      "  {:>6} ranks {:>12} transfers {:>8.3f} s {:>7.2f} M transfers/s, {:>6} MB, simulated "
      "{:.6f} ms\n",
      ranks, cost.transfers, cost.cpu_s, static_cast<double>(cost.transfers) / cost.cpu_s / 1e6,
      cost.peak_rss_bytes / 1'000'000, to_seconds(result.step_time) * 1e3);
  return {static_cast<double>(cost.transfers), cost.cpu_s};
}

CollectiveWork all_reduce(CommunicatorId group, Bytes bytes, AlgorithmChoice algorithm) {
  return {.communicator = group,
          .op = CollectiveOp::kAllReduce,
          .bytes = bytes,
          .algorithm = algorithm};
}

// A ring all-reduce of 64 MiB. `skewed`: rank r first computes (7919 r mod 1000) + 1 us.
Point ring(int chips, Granularity granularity, bool skewed) {
  const Cluster cluster = ring_of(chips, Bandwidth(50e9), Duration(500'000));
  const auto ranks = static_cast<std::uint32_t>(chips);
  GraphByHand hand(ranks);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Dependency> waits;
    if (skewed) {
      waits = {after(hand.compute_for(rank, Duration(1'000'000) * (rank * 7919 % 1000 + 1)))};
    }
    hand.collective(rank, hand.stream(rank, "ring"),
                    all_reduce(all, Bytes(64 << 20), AlgorithmChoice::kRing), std::move(waits));
  }
  const OpGraph graph = hand.build();
  return report(ranks, simulate(graph, cluster, {.granularity = granularity}));
}

// 24 layers: the forward takes 200 us each, the backward 400 us each with an all-reduce of 32 MiB
// behind it, then 100 us when everything has arrived. All-reduces go axis after axis in one
// direction on a 3-D torus, like ASTRA-sim's rings.
Point train(std::vector<int> sizes, Granularity granularity) {
  constexpr int kLayers = 24;
  TorusSpec spec;
  for (const int size : sizes) spec.axes.push_back({.size = size, .wraps = true});
  spec.link_bandwidth = Bandwidth(50.0 * (1 << 30));
  spec.link_latency = Duration(500'000);
  const Cluster cluster = cluster_of(spec);
  const auto ranks = static_cast<std::uint32_t>(cluster.places.chips.size());
  GraphByHand hand(ranks);
  const CommunicatorId all = hand.communicator();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const StreamId stream = hand.stream(rank, "gradients");
    for (int layer = 0; layer < kLayers; ++layer) hand.compute_for(rank, Duration(200'000'000));
    std::vector<Dependency> reduced;
    for (int layer = 0; layer < kLayers; ++layer) {
      const OpRef backward = hand.compute_for(rank, Duration(400'000'000));
      reduced.push_back(after(hand.collective(
          rank, stream, all_reduce(all, Bytes(32 << 20), AlgorithmChoice::kHierarchical),
          {after(backward)})));
    }
    hand.compute_for(rank, Duration(100'000'000), std::move(reduced));
  }
  const OpGraph graph = hand.build();
  return report(ranks, simulate(graph, cluster, {.granularity = granularity}));
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
  using stepsim::Granularity;
  fmt::print("graph\n");
  stepsim::graph("llama3-405b-dgx-h100-16384");
  stepsim::graph("llama3-405b-128k-dgx-h100-16384");
  fmt::print("folded\n");
  for (const char* experiment :
       {"llama3-70b-dgx-h100-512", "llama3-405b-dgx-h100-16384", "deepseek-v3-dgx-h800-2048",
        "palm-540b-v4-12x16x16", "llama3-70b-v5p-16x16x16"}) {
    stepsim::folded(experiment);
  }
  stepsim::sweep("training", {1, 2, 4, 8, 16, 32}, stepsim::training);
  stepsim::sweep("layers", {1'000, 4'000, 16'000}, stepsim::layers);
  const auto ring = [](Granularity granularity, bool skewed) {
    return [granularity, skewed](int chips) { return stepsim::ring(chips, granularity, skewed); };
  };
  stepsim::sweep("ring", {64, 256, 1024, 4096}, ring(Granularity::kStepped, false));
  stepsim::sweep("ring, skewed starts", {64, 256, 1024}, ring(Granularity::kStepped, true));
  fmt::print("ring, pipelined\n");
  for (const int chips : {64, 256, 1024, 4096}) ring(Granularity::kPipelined, false)(chips);
  fmt::print("train, 8x8x4 and 16x8x8 torus, stepped\n");
  stepsim::train({8, 8, 4}, Granularity::kStepped);
  stepsim::train({16, 8, 8}, Granularity::kStepped);
  fmt::print("train, 16x8x8 torus, pipelined\n");
  stepsim::train({16, 8, 8}, Granularity::kPipelined);
}
