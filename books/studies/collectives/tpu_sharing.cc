// S8, S10 and S11: all-to-alls, and collectives that share an axis of a TPU slice.

#include <stdexcept>

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/hops.h"
#include "books/laboratory/row_table.h"
#include "books/laboratory/study_groups.h"
#include "books/laboratory/tpu_links.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

constexpr double kSharedArray = 256 << 20;  // bytes of all chips together: 256 MiB

int product(const std::vector<int>& sizes) {
  int result = 1;
  for (const int size : sizes) result *= size;
  return result;
}

// ---- S8 ----

double all_to_all(const Laboratory& laboratory, const std::vector<int>& sizes,
                  const std::vector<bool>& wraps, AlgorithmChoice algorithm,
                  Granularity granularity = Granularity::kPipelined) {
  const Cluster cluster = torus_of(sizes, Bandwidth(kIciLink), {}, wraps);
  SimulationOptions options;
  options.granularity = granularity;
  return laboratory.seconds(
      collective_graph(
          all_chips(cluster),
          work_of(CollectiveOp::kAllToAll, whole_bytes(kSharedArray / product(sizes)), algorithm)),
      cluster, options);
}

std::vector<StudyRow> torus_all_to_all_rows() {
  const double ring = predict("B6", {{"V", kSharedArray}, {"W", kIciAxis}});
  RowTable rows({.formula = "B6", .predicted = ring});
  const auto torus = [](const std::vector<int>& sizes, const std::vector<bool>& wraps = {}) {
    return [=](const Laboratory& laboratory) {
      return all_to_all(laboratory, sizes, wraps, AlgorithmChoice::kTorusAllToAll);
    };
  };
  // A link carries sum over distances d of d chunks of V / n^2, each way: n^2 / 8 for even n if the
  // opposite chip is reached half each way.
  for (const int n : {4, 8, 16}) {
    rows.add("ring-n" + std::to_string(n), "ring of " + std::to_string(n), around(0, kExact),
             "every link carries n^2/8 chunks each way", torus({n}));
  }
  // Odd n: no opposite chip; (n^2 - 1) / 8 chunks: 24/25 at n = 5.
  rows.add("ring-n5", "ring of 5", around(-0.04, kExact),
           "without an opposite chip (n^2-1)/8 chunks each way", torus({5}));
  // The middle cut of a line carries (n/2)^2 chunks each way: n^2 / 4, twice the ring. Round by
  // round, as packets run, a chip at the end sends n - 1 chunks first, then passes on n - 2, ...:
  // n (n-1) / 2 chunks one after another.
  const auto in_rounds = [](double n) { return n * (n - 1) / 2 / (n * n / 4); };
  rows.add("line-n8", "line of 8", around(1, kExact),
           "without wraparound the middle link carries n^2/4 chunks each way", torus({8}, {false}))
      .expected_packets = around(2 * in_rounds(8) - 1, 0.001);
  // The opposite chip is reached one way only: (n/2)(n/2 + 1)/2 instead of n^2/8 chunks.
  for (const int n : {4, 8, 16}) {
    const double more = n / 2.0 * (n / 2.0 + 1) / 2 / (n * n / 8.0) - 1;
    rows.add("ties-one-way-n" + std::to_string(n),
             "ring of " + std::to_string(n) + ", opposite chips always in the plus direction",
             around(more, kExact), "one direction carries (n/2)(n/2+1)/2 chunks, not n^2/8",
             [n](const Laboratory& laboratory) {
               return all_to_all(laboratory, {n}, {}, AlgorithmChoice::kDirect);
             });
  }
  // Rounds of one distance k, in which all send to i + k. In a round a link carries min(k, 8 - k)
  // chunks in one direction, and the other direction idles: 16 chunks in all instead of 8. Without
  // contention a round takes one chunk, of V / 64, whatever the distance: 7 of 8.
  rows.add("rounds-of-one-distance", "ring of 8, in rounds of one distance",
           {1 - kExact, 1 + 0.001}, "in each round one direction of the axis idles",
           [](const Laboratory& laboratory) {
             return all_to_all(laboratory, {8}, {}, AlgorithmChoice::kPairwise,
                               Granularity::kStepped);
           })
      .expected_unshared = around(7.0 / 8 - 1, 0.001);
  // All send to chip 0 first, then to 1, and so on. The last link into the destination carries 4
  // chunks from one side and 3 from the other. A chip's 7 messages take 3 or 4 chunk times each, 21
  // to 28 in all, of V / 64 / W, instead of 8.
  StudyRow& hot = rows.add("same-order", "ring of 8, everybody to chip 0 first, then to 1, ...",
                           {21.0 / 8 - 1 - kExact, 28.0 / 8 - 1 + kExact},
                           "one destination at a time: its two links are hot, others idle",
                           [](const Laboratory& laboratory) {
                             return laboratory.seconds(
                                 messages_in_order(same_order(8), whole_bytes(kSharedArray / 64)),
                                 torus_of({8}, Bandwidth(kIciLink)));
                           });
  hot.expected_unshared = around(7.0 / 8 - 1, kExact);
  // Queues serve near chips first. Their chunks arrive after 1, 2, 3 and, from the longer side, 4
  // chunk times. The seven destinations take 17 if nobody waits for the chips behind, and 28 if all
  // do.
  hot.expected_packets = DifferenceRange{17.0 / 8 - 1, 28.0 / 8 - 1 + kExact};
  // On a torus each axis carries its part of V: V / N max(n_i) / (8 W one way).
  const auto on_torus = [&rows](double chips, double longest) -> RowTable& {
    return rows.testing(
        "B6.torus",
        predict("B6.torus", {{"V", kSharedArray}, {"N", chips}, {"n", longest}, {"W", kIciLink}}));
  };
  on_torus(64, 8).add("torus-8x8", "8x8 torus", around(0, kExact),
                      "every axis carries a part of its own: eight times as fast as one ring of V",
                      torus({8, 8}));
  // Whole chunks of V / N^2 = 16 B: exact too.
  on_torus(4096, 16).add("torus-16x16x16", "16x16x16 torus", {-kExact, 0.001},
                         "the longest axis decides", torus({16, 16, 16}));
  // 8 (a line) x 16 (wrapped): the line of 8 costs as a ring of 16: V / N 16 / (8 W).
  on_torus(128, 16)
      .add("torus-8x16", "v5e 8x16, which wraps on 16 only", around(0, kExact),
           "a line of 8 is as slow as a ring of 16", torus({8, 16}, {false, true}))
      // Half of the data takes the line first, the other half the ring. The phases of one hide in
      // those of the other or, at worst, each waits for the line's rounds.
      .expected_packets = DifferenceRange{-kExact, in_rounds(8) - 1 + kExact};
  return std::move(rows).take();
}

// ---- S10 ----

constexpr double kSharedMiB = 1 << 20;

// All-gathers of v1 and v2 that start together on 16x4 chips: v1 along the axis of 16, v2 along
// `axis2`.
OpGraph gathers_of_two(const std::vector<int>& sizes, double v1, double v2, std::size_t axis2) {
  const auto gather = [&](double v, std::size_t axis) {
    return GroupedCollective{.work = work_of(CollectiveOp::kAllGather, whole_bytes(v),
                                             AlgorithmChoice::kBidirectionalRing),
                             .groups = axis_groups(sizes, axis)};
  };
  const auto chips = static_cast<std::uint32_t>(product(sizes));
  return collectives_graph(some_chips(0, chips), {gather(v1, 0), gather(v2, axis2)});
}

const std::vector<int> kTwoAxes = {16, 4};

// Returns when the slower one ends, or the first one. REQUIRES: rank 0 was recorded.
Time end_of(const SimulationResult& result, bool first_only) {
  Time end;
  for (const TimelineOp& op : result.timelines[0].ops) {
    if (op.op == 0 || !first_only) end = std::max(end, op.ended);
  }
  return end;
}

double two_gathers(const Laboratory& laboratory, double v1, double v2, std::size_t axis2,
                   bool first_only) {
  SimulationOptions options;
  options.recorded_ranks = {RankId(0)};
  const SimulationResult result = laboratory.simulate(
      gathers_of_two(kTwoAxes, v1, v2, axis2), torus_of(kTwoAxes, Bandwidth(kIciLink)), options);
  return to_seconds(end_of(result, first_only).since_start);
}

Time two_gathers_on_packets(const Laboratory& laboratory, double v1, double v2, bool first_only) {
  SimulationOptions options;
  options.recorded_ranks = {RankId(0)};
  options.packets.packet_bytes = Bytes(1 << 18);
  return end_of(laboratory.simulate_packets(gathers_of_two(kTwoAxes, v1, v2, 0),
                                            torus_of(kTwoAxes, Bandwidth(kIciLink)), options),
                first_only);
}

std::vector<StudyRow> sharing_rows() {
  const auto alone = [](double v) {
    return predict("B1.exact", {{"V", v}, {"W", kIciAxis}, {"n", 16}});
  };
  // Packets of two messages alternate on a link only while both have packets waiting.
  RowTable rows({.expected_unshared = around(0, kExact)}, {-0.005, 0.005});
  const auto gathers = [](double v1, double v2, std::size_t axis2, bool first_only) {
    return [=](const Laboratory& laboratory) {
      return two_gathers(laboratory, v1, v2, axis2, first_only);
    };
  };
  // First in, first out: in each of 15 rounds the smaller waits for the message of the larger,
  // which is four times its own. In the first round it may be the earlier one: 14 x 5 + 1 to 15 x 5
  // fifteenths of T1.
  const DifferenceRange in_queues = {71.0 / 15 - 1 - 0.005, 5 - 1 + 0.005};
  // Both want the whole axis, so each has half of it until the smaller is done.
  rows.testing("B1.exact", alone(64 * kSharedMiB));
  rows.add("equal", "64 MiB and 64 MiB on the same axis of 16", around(1, kExact),
           "each has half of the axis: both end at T1 + T2",
           gathers(64 * kSharedMiB, 64 * kSharedMiB, 0, false));
  rows.add("smaller", "64 MiB beside 256 MiB on the same axis: the smaller", around(1, kExact),
           "with half of the axis it takes twice its time",
           gathers(64 * kSharedMiB, 256 * kSharedMiB, 0, true))
      .expected_packets = in_queues;
  // On the axis of 4 the other one takes 3/4 instead of 15/16 of V / W: it ends earlier.
  rows.add("other-axis", "64 MiB and 64 MiB on different axes", around(0, kExact),
           "axes share nothing: max(T1, T2) holds",
           gathers(64 * kSharedMiB, 64 * kSharedMiB, 1, false));
  rows.testing("B1.exact", alone(256 * kSharedMiB))
      .add("larger", "the same axis again: both, against the larger alone", around(0.25, kExact),
           "the axis is busy all the time, so both take T1 + T2",
           gathers(64 * kSharedMiB, 256 * kSharedMiB, 0, false));
  // Links serve whole messages in order, whatever network model was chosen. The order decides which
  // one is late; both are through at T1 + T2.
  const auto in_order = [](bool first_only) {
    return [first_only](const Laboratory& laboratory) {
      return to_seconds(
          two_gathers_on_packets(laboratory, 64 * kSharedMiB, 256 * kSharedMiB, first_only)
              .since_start);
    };
  };
  StudyRow& both =
      rows.add("larger-fifo", "the same on links first in, first out (packets)",
               around(0.25, 0.005), "no link ever idles: T1 + T2 again", in_order(false));
  both.expected_unshared = both.expected;
  rows.testing("B1.exact", alone(64 * kSharedMiB));
  StudyRow& late = rows.add(
      "smaller-fifo", "the smaller on links first in, first out (packets)", in_queues,
      "each of its messages waits for one of the larger, four times as long: it ends with it",
      in_order(true));
  late.expected_unshared = late.expected;
  late.expected_packets = late.expected;
  return std::move(rows).take();
}

// ---- S11 ----

constexpr double kV5pLink = 90e9;
constexpr double kV5pBothWays = 2 * kV5pLink;
constexpr double kV5pPeak = 4.59e14;
constexpr double kWidthF = 28672;  // MLP of Llama-3 70B
constexpr double kActivations = 64 * kSharedMiB;

double gather_of_eight(const Laboratory& laboratory, int axis) {
  const Cluster cluster = ring_of(axis, Bandwidth(kV5pLink));
  return laboratory.seconds(collective_graph(some_chips(0, 8), work_of(CollectiveOp::kAllGather,
                                                                       whole_bytes(kActivations))),
                            cluster);
}

// The arithmetic of a layer, 4 B D F / (Y C), takes as long as its two collectives of 2 B D bytes.
double ways_limit(double gather_s) {
  return kActivations * kWidthF / (kV5pPeak * gather_s);
}

std::vector<StudyRow> short_group_rows() {
  const double gather = predict("B1", {{"V", kActivations}, {"W", kV5pBothWays}});
  const double ways = predict("E4", {{"F", kWidthF}, {"M", 1}, {"W", kV5pBothWays}, {"C", kV5pPeak}});
  // 8 neighbours of 16 form a line: 7/8 V over W/2, 1.75 V / W. If the 8 have a wrapped axis of
  // their own: 7/8 V / W. Packets of 4 KiB are stored on the long way back: 6 in each of 7 rounds,
  // 1.9 us of 652.
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

std::vector<Study> tpu_sharing_studies() {
  return {{.id = "S8",
           .source = kBookSharding,
           .title = "AllToAll on rings, lines and tori",
           .claim = "an AllToAll costs a quarter of an AllGather: V / (4 W)",
           .rows = torus_all_to_all_rows,
           .finding =
               "Sending to one destination after another costs 2.6 to 3.5 times the balanced time, "
               "not 10 to 60 % more as one would guess from queues alone: all but the two links "
               "into one chip idle, and fair sharing lets all senders of a step end together."},
          {.id = "S10",
           .source = kBookTraining,
           .title = "Two collectives on one axis",
           .claim = "communications on different axes overlap: the longer one counts",
           .rows = sharing_rows},
          {.id = "S11",
           .source = kBookTraining,
           .title = "TP group shorter than its axis",
           .claim = "TP over one axis of a v5p is compute-bound up to F / 2550 ways",
           .rows = short_group_rows,
           .finding = "With 4.59e14 FLOP/s and 180 GB/s the limit of Llama-3 70B is 11.2 ways, and "
                      "6.4 on a line; 11.8 and 6.7, which are also quoted, come from a rounded "
                      "FLOPs-to-bandwidth ratio of 2,430."}};
}

}  // namespace stepsim
