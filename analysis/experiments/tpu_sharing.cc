// S8, S10 and S11: all-to-alls, and collectives that share an axis of a TPU slice.

#include <cmath>
#include <stdexcept>

#include "analysis/experiments/collective_graph.h"
#include "analysis/experiments/experiment_groups.h"
#include "analysis/experiments/hops.h"
#include "analysis/experiments/small_clusters.h"

namespace stepsim {
namespace {

constexpr double kLink = 45e9;  // B/s one way: v4, v5e
constexpr double kAxis = 2 * kLink;
constexpr double kArray = 256 << 20;  // bytes of all chips together: 256 MiB
constexpr double kExact = 1e-4;

Bytes whole_bytes(double bytes) {
  return Bytes(std::llround(bytes));
}

int product(const std::vector<int>& sizes) {
  int result = 1;
  for (const int size : sizes) result *= size;
  return result;
}

// ---- S8 ----

double all_to_all(const Laboratory& laboratory, const std::vector<int>& sizes,
                  const std::vector<bool>& wraps, AlgorithmChoice algorithm,
                  Granularity granularity = Granularity::kPipelined) {
  const Cluster cluster = torus_of(sizes, Bandwidth(kLink), {}, wraps);
  SimulationOptions options;
  options.granularity = granularity;
  return laboratory.seconds(
      collective_graph(
          all_chips(cluster),
          work_of(CollectiveOp::kAllToAll, whole_bytes(kArray / product(sizes)), algorithm)),
      cluster, options);
}

std::vector<ExperimentRow> all_to_all_rows() {
  std::vector<ExperimentRow> rows;
  const double ring = predict("B6", {{"V", kArray}, {"W", kAxis}});
  const auto add = [&](std::string id, std::string formula, double predicted, std::string regime,
                       DifferenceRange expected, std::string why,
                       std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = std::move(formula),
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .expected = expected,
                    .why = std::move(why),
                    .simulate = std::move(simulate)});
  };
  const auto torus = [](std::vector<int> sizes, std::vector<bool> wraps = {}) {
    return [=](const Laboratory& laboratory) {
      return all_to_all(laboratory, sizes, wraps, AlgorithmChoice::kTorusAllToAll);
    };
  };
  // A link carries sum over distances d of d chunks of V / n^2, each way: n^2 / 8 for even n if the
  // opposite chip is reached half each way.
  for (const int n : {4, 8, 16}) {
    add("ring-n" + std::to_string(n), "B6", ring, "ring of " + std::to_string(n), {-kExact, kExact},
        "every link carries n^2/8 chunks each way", torus({n}));
  }
  // Odd n: no opposite chip; (n^2 - 1) / 8 chunks: 24/25 at n = 5.
  add("ring-n5", "B6", ring, "ring of 5", {-0.04 - kExact, -0.04 + kExact},
      "without an opposite chip (n^2-1)/8 chunks each way", torus({5}));
  // The middle cut of a line carries (n/2)^2 chunks each way: n^2 / 4, twice the ring.
  add("line-n8", "B6", ring, "line of 8", {1 - kExact, 1 + kExact},
      "without wraparound the middle link carries n^2/4 chunks each way", torus({8}, {false}));
  const std::string drifts =
      "packets run stepped, and on a line the rounds of its lanes drift apart";
  rows.back().not_on_packets = drifts;
  // On a torus each axis carries V in parts: V / N max(n_i) / (8 W one way).
  const auto on_torus = [](double chips, double longest) {
    return predict("B6.torus", {{"V", kArray}, {"N", chips}, {"n", longest}, {"W", kLink}});
  };
  add("torus-8x8", "B6.torus", on_torus(64, 8), "8x8 torus", {-kExact, kExact},
      "every axis carries a part of its own: eight times as fast as one ring of V", torus({8, 8}));
  // Whole chunks of V / N^2 = 16 B: exact too.
  add("torus-16x16x16", "B6.torus", on_torus(4096, 16), "16x16x16 torus", {-kExact, 0.001},
      "the longest axis decides", torus({16, 16, 16}));
  // 8 (a line) x 16 (wrapped): the line of 8 costs as a ring of 16: V / N 16 / (8 W).
  add("torus-8x16", "B6.torus", on_torus(128, 16), "v5e 8x16, which wraps on 16 only",
      {-kExact, kExact}, "a line of 8 is as slow as a ring of 16", torus({8, 16}, {false, true}));
  rows.back().not_on_packets = drifts;
  // The opposite chip is reached one way only: (n/2)(n/2 + 1)/2 instead of n^2/8 chunks.
  for (const int n : {4, 8, 16}) {
    const double more = n / 2.0 * (n / 2.0 + 1) / 2 / (n * n / 8.0) - 1;
    add("ties-one-way-n" + std::to_string(n), "B6", ring,
        "ring of " + std::to_string(n) + ", opposite chips always in the plus direction",
        {more - kExact, more + kExact}, "one direction carries (n/2)(n/2+1)/2 chunks, not n^2/8",
        [n](const Laboratory& laboratory) {
          return all_to_all(laboratory, {n}, {}, AlgorithmChoice::kDirect);
        });
  }
  // Rounds of one distance k, all to i + k: a link carries min(k, 8 - k) chunks in a round, in one
  // direction, the other idles: 16 in all instead of 8.
  add("rounds-of-one-distance", "B6", ring, "ring of 8, in rounds of one distance",
      {1 - kExact, 1 + 0.001}, "in each round one direction of the axis idles",
      [](const Laboratory& laboratory) {
        return all_to_all(laboratory, {8}, {}, AlgorithmChoice::kPairwise, Granularity::kStepped);
      });
  // Without contention a round takes one chunk, of V / 64, whatever the distance: 7 of 8.
  rows.back().expected_unshared = DifferenceRange{7.0 / 8 - 1 - 0.001, 7.0 / 8 - 1 + 0.001};
  // All send to chip 0 first, then to 1, ...: the last link into the destination carries 4 chunks
  // from one side, 3 from the other. A chip's 7 messages take 3 or 4 chunk times each, 21 to 28 in
  // all, of V / 64 / W, instead of 8.
  add("same-order", "B6", ring, "ring of 8, everybody to chip 0 first, then to 1, ...",
      {21.0 / 8 - 1 - kExact, 28.0 / 8 - 1 + kExact},
      "one destination at a time: its two links are hot, others idle",
      [](const Laboratory& laboratory) {
        return laboratory.seconds(messages_in_order(same_order(8), whole_bytes(kArray / 64)),
                                  torus_of({8}, Bandwidth(kLink)));
      });
  rows.back().expected_unshared = DifferenceRange{7.0 / 8 - 1 - kExact, 7.0 / 8 - 1 + kExact};
  rows.back().not_on_packets =
      "queues serve near chips first: messages of a step no longer take equally long";
  return rows;
}

// ---- S10 ----

constexpr double kMiB = 1 << 20;

// All-gathers of v1 and v2 that start together on 16x16 chips, along the given axes; when the
// slower, or the first of them, ends.
double two_gathers(const Laboratory& laboratory, double v1, double v2, std::size_t axis2,
                   bool first_only) {
  const std::vector<int> sizes = {16, 4};
  const Cluster cluster = torus_of(sizes, Bandwidth(kLink));
  const auto gather = [&](double v, std::size_t axis) {
    return GroupedCollective{.work = work_of(CollectiveOp::kAllGather, whole_bytes(v),
                                             AlgorithmChoice::kBidirectionalRing),
                             .groups = axis_groups(sizes, axis)};
  };
  SimulationOptions options;
  options.recorded_ranks = {RankId(0)};
  const SimulationResult result = laboratory.simulate(
      collectives_graph(all_chips(cluster), {gather(v1, 0), gather(v2, axis2)}), cluster, options);
  Time end;
  for (const TimelineOp& op : result.timelines[0].ops) {
    if (op.op == 0 || !first_only) end = std::max(end, op.ended);
  }
  return to_seconds(end.since_start);
}

std::vector<ExperimentRow> sharing_rows() {
  std::vector<ExperimentRow> rows;
  const auto alone = [](double v) {
    return predict("B1.exact", {{"V", v}, {"W", kAxis}, {"n", 16}});
  };
  const auto add = [&](std::string id, std::string regime, double predicted, double difference,
                       std::string why, std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = "B1.exact",
                    .regime = std::move(regime),
                    .predicted = predicted,
                    .expected = {difference - kExact, difference + kExact},
                    .why = std::move(why),
                    .simulate = std::move(simulate),
                    .expected_unshared = DifferenceRange{-kExact, kExact}});
  };
  // Both want all of the axis: each has half of it until the smaller is done.
  add("equal", "64 MiB and 64 MiB on the same axis of 16", alone(64 * kMiB), 1,
      "each has half of the axis: both end at T1 + T2", [](const Laboratory& laboratory) {
        return two_gathers(laboratory, 64 * kMiB, 64 * kMiB, 0, false);
      });
  add("smaller", "64 MiB beside 256 MiB on the same axis: the smaller", alone(64 * kMiB), 1,
      "with half of the axis it takes twice its time", [](const Laboratory& laboratory) {
        return two_gathers(laboratory, 64 * kMiB, 256 * kMiB, 0, true);
      });
  add("larger", "the same: both, against the larger alone", alone(256 * kMiB), 0.25,
      "the axis is busy all the time: T1 + T2", [](const Laboratory& laboratory) {
        return two_gathers(laboratory, 64 * kMiB, 256 * kMiB, 0, false);
      });
  // First in, first out: in each of 15 rounds the smaller waits for the message of the larger, four
  // times its own, but in the first one where it may be the earlier: 14 x 5 + 1 to 15 x 5
  // fifteenths of T1.
  rows[1].expected_packets = DifferenceRange{71.0 / 15 - 1 - 0.005, 5 - 1 + 0.005};
  // On the axis of 4 the other one takes 3/4 instead of 15/16 of V / W: it ends earlier.
  add("other-axis", "64 MiB and 64 MiB on different axes", alone(64 * kMiB), 0,
      "axes share nothing: max(T1, T2) holds", [](const Laboratory& laboratory) {
        return two_gathers(laboratory, 64 * kMiB, 64 * kMiB, 1, false);
      });
  // Packets of two messages take turns on a link only where both have packets waiting.
  for (ExperimentRow& row : rows) {
    if (row.expected_packets) continue;
    row.expected_packets = DifferenceRange{row.expected.low - 0.005, row.expected.high + 0.005};
  }
  return rows;
}

// ---- S11 ----

constexpr double kV5pLink = 90e9;
constexpr double kV5pAxis = 2 * kV5pLink;
constexpr double kV5pPeak = 4.59e14;
constexpr double kWidthF = 28672;  // MLP of Llama-3 70B
constexpr double kActivations = 64 * kMiB;

double gather_of_eight(const Laboratory& laboratory, int axis) {
  const Cluster cluster = ring_of(axis, Bandwidth(kV5pLink));
  return laboratory.seconds(collective_graph(some_chips(0, 8), work_of(CollectiveOp::kAllGather,
                                                                       whole_bytes(kActivations))),
                            cluster);
}

// Arithmetic of a layer, 4 B D F / (Y C), takes as long as its two collectives of 2 B D bytes.
double ways_limit(double gather_s) {
  return kActivations * kWidthF / (kV5pPeak * gather_s);
}

std::vector<ExperimentRow> short_group_rows() {
  const double gather = predict("B1", {{"V", kActivations}, {"W", kV5pAxis}});
  const double ways = predict("E4", {{"F", kWidthF}, {"M", 1}, {"W", kV5pAxis}, {"C", kV5pPeak}});
  // 8 neighbours of 16 are a line: 7/8 V over W/2, 1.75 V / W. With 8 on an axis of their own that
  // wraps, 7/8 V / W.
  // Packets of 4 KiB are stored on the long way back: 6 in each of 7 rounds, 1.9 us of 652.
  return {
      {.id = "line-of-8",
       .formula = "B1",
       .regime = "8 neighbours on a v5p axis of 16",
       .predicted = gather,
       .expected = {0.75 - kExact, 0.75 + kExact},
       .why = "part of an axis does not wrap: the group is a line",
       .simulate = [](const Laboratory& laboratory) { return gather_of_eight(laboratory, 16); },
       .expected_packets = DifferenceRange{0.75 - kExact, 0.7552 + kExact}},
      {.id = "wrapped-8",
       .formula = "B1",
       .regime = "8 chips that the optical switches close to a ring",
       .predicted = gather,
       .expected = {-0.125 - kExact, -0.125 + kExact},
       .why = "with wraparound the formula holds but for (n-1)/n",
       .simulate = [](const Laboratory& laboratory) { return gather_of_eight(laboratory, 8); }},
      {.id = "ways-line",
       .formula = "E4",
       .regime = "most ways of TP for F = 28,672 with the line's bandwidth",
       .predicted = ways,
       .unit = "ways",
       .expected = {1 / 1.75 - 1 - kExact, 1 / 1.75 - 1 + kExact},
       .why = "the collectives are 1.75 times as long: 6.4 ways instead of 11.2",
       .simulate =
           [](const Laboratory& laboratory) { return ways_limit(gather_of_eight(laboratory, 16)); },
       .expected_packets = DifferenceRange{1 / 1.7552 - 1 - kExact, 1 / 1.75 - 1 + kExact}},
      {.id = "ways-wrapped",
       .formula = "E4",
       .regime = "the same with the ring's bandwidth",
       .predicted = ways,
       .unit = "ways",
       .expected = {8.0 / 7 - 1 - kExact, 8.0 / 7 - 1 + kExact},
       .why = "(n-1)/n of the bytes move: 12.8 ways",
       .simulate = [](const Laboratory& laboratory) {
         return ways_limit(gather_of_eight(laboratory, 8));
       }}};
}

}  // namespace

std::vector<FormulaExperiment> tpu_sharing_experiments() {
  return {{.id = "S8",
           .title = "AllToAll on rings, lines and tori",
           .claim = "an AllToAll costs a quarter of an AllGather: V / (4 W)",
           .rows = all_to_all_rows,
           .finding =
               "Sending to one destination after another costs 2.6 to 3.5 times the balanced time, "
               "not 10 to 60 % more as one would guess from queues alone: all but the two links "
               "into one chip idle, and fair sharing lets all senders of a step end together."},
          {.id = "S10",
           .title = "Two collectives on one axis",
           .claim = "communications on different axes overlap: the longer one counts",
           .rows = sharing_rows},
          {.id = "S11",
           .title = "TP group shorter than its axis",
           .claim = "TP over one axis of a v5p is compute-bound up to F / 2550 ways",
           .rows = short_group_rows,
           .finding = "With 4.59e14 FLOP/s and 180 GB/s the limit of Llama-3 70B is 11.2 ways, and "
                      "6.4 on a line; 11.8 and 6.7, which are also quoted, come from a rounded "
                      "FLOPs-to-bandwidth ratio of 2,430."}};
}

}  // namespace stepsim
