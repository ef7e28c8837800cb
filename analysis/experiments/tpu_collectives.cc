// S3 to S11: collectives on the axes of a TPU slice.

#include <cmath>

#include "analysis/experiments/collective_graph.h"
#include "analysis/experiments/experiment_groups.h"
#include "analysis/experiments/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr double kV5eLink = 45e9;  // B/s one way

double bytes_of(Bytes size) {
  return static_cast<double>(size.value());
}

// ---- S3 ----

std::function<double(const Laboratory&)> ring_all_gather(int chips, Bytes size,
                                                         AlgorithmChoice algorithm) {
  return [=](const Laboratory& laboratory) {
    const Cluster cluster = ring_of(chips, Bandwidth(kV5eLink));
    return laboratory.seconds(
        collective_graph(all_chips(cluster), work_of(CollectiveOp::kAllGather, size, algorithm)),
        cluster);
  };
}

std::vector<ExperimentRow> ring_all_gather_rows() {
  const double headline = predict("B1", {{"V", bytes_of(64_MiB)}, {"W", 2 * kV5eLink}});
  std::vector<ExperimentRow> rows;
  // Each of the two directions carries half of every shard n - 1 times: (n-1)/n of the formula's
  // bytes, so 1/n less time. Whole bytes and picoseconds change nothing at this size.
  for (const int n : {16, 4}) {
    const double less = -1.0 / n;
    rows.push_back({.id = "split-n" + std::to_string(n),
                    .formula = "B1",
                    .regime = "axis of " + std::to_string(n) + ", every shard cut in two",
                    .predicted = headline,
                    .expected = {less - 1e-4, less + 1e-4},
                    .why = "a chip has its own shard already: (n-1)/n of V moves",
                    .simulate = ring_all_gather(n, 64_MiB, AlgorithmChoice::kBidirectionalRing)});
  }
  return rows;
}

std::vector<Sweep> ring_all_gather_sweeps() {
  Sweep sweep{.name = "S3-ring-all-gather",
              .title = "AllGather on a wrapped axis: 64 MiB",
              .subtitle = "45 GB/s one way a link; both directions at once",
              .x = {.label = "chips of the axis"},
              .y = {.label = "time", .unit = "s"},
              .at = {4, 8, 16, 32},
              .only_there = true,
              .curves = {}};
  sweep.curves.push_back(
      {.label = "shards cut in two",
       .predict =
           [](double) {
             return predict("B1", {{"V", bytes_of(64_MiB)}, {"W", 2 * kV5eLink}});
           },
       .simulate =
           [](const Laboratory& laboratory, double n) {
             return ring_all_gather(static_cast<int>(n), 64_MiB,
                                    AlgorithmChoice::kBidirectionalRing)(laboratory);
           }});
  return {sweep};
}

}  // namespace

std::vector<FormulaExperiment> tpu_collective_experiments() {
  return {{.id = "S3",
           .title = "Ring AllGather on a wrapped axis",
           .claim = "an AllGather over a wrapped axis takes V / W, however many chips share it",
           .rows = ring_all_gather_rows,
           .sweeps = ring_all_gather_sweeps}};
}

}  // namespace stepsim
