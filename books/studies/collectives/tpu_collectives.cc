// S3 to S7: all-gathers and all-reduces on the axes of a TPU slice.
//
// Symbols are those of the books: V is the bytes of the whole array; W is both directions of an
// axis together (W_bidi), unless stated as one way.

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/hops.h"
#include "books/laboratory/study_groups.h"
#include "books/laboratory/tpu_links.h"
#include "sim/program/program_builder.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr Duration kHop = std::chrono::microseconds(1);
constexpr double kHopSeconds = 1e-6;

// One collective of all chips.
double all_chips_seconds(const Laboratory& laboratory, const Cluster& cluster, CollectiveOp op,
                         double bytes, AlgorithmChoice algorithm = AlgorithmChoice::kAuto,
                         Granularity granularity = Granularity::kPipelined) {
  SimulationOptions options;
  options.granularity = granularity;
  return laboratory.seconds(
      collective_graph(all_chips(cluster), work_of(op, whole_bytes(bytes), algorithm)), cluster,
      options);
}

double one_axis(double v) {
  return predict("B1", {{"V", v}, {"W", kIciAxis}});
}

// ---- S3 ----

constexpr double kMeshArray = 64 << 20;  // 64 MiB

double split_ring(const Laboratory& laboratory, int n) {
  return all_chips_seconds(laboratory, ring_of(n, Bandwidth(kIciLink)), CollectiveOp::kAllGather,
                           kMeshArray, AlgorithmChoice::kBidirectionalRing);
}

double whole_shards(const Laboratory& laboratory, int n) {
  return laboratory.seconds(
      whole_shard_all_gather(static_cast<std::uint32_t>(n), whole_bytes(kMeshArray / n), n > 2),
      ring_of(n, Bandwidth(kIciLink), {}, n > 2));
}

std::vector<StudyRow> ring_all_gather_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&](std::string id, std::string regime, double difference, std::string why,
                       std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = "B1",
                    .regime = std::move(regime),
                    .predicted = one_axis(kMeshArray),
                    .expected = {difference - kExact, difference + kExact},
                    .why = std::move(why),
                    .simulate = std::move(simulate)});
  };
  // Half of every shard goes each way, all the way round: n - 1 hops of V / (2 n) at W / 2, which
  // is (n-1)/n of the formula.
  for (const int n : {16, 4}) {
    add("split-n" + std::to_string(n), "axis of " + std::to_string(n) + ", every shard cut in two",
        -1.0 / n, "a chip already has its own shard: (n-1)/n of V moves",
        [n](const Laboratory& laboratory) { return split_ring(laboratory, n); });
  }
  // Whole shards: n / 2 hops of V / n at W / 2 is V / W, although one hop of the last round is
  // idle: the opposite chip's shard needs to come one way only.
  for (const int n : {16, 4}) {
    add("whole-n" + std::to_string(n), "axis of " + std::to_string(n) + ", whole shards hop by hop",
        0, "n/2 hops of whole shards: in the last one only one direction has work",
        [n](const Laboratory& laboratory) { return whole_shards(laboratory, n); });
  }
  // Two chips: each needs V / 2 from the other over one cable, V / 2 / (W / 2). Two cables would
  // halve it.
  add("whole-n2", "two chips and one cable", 0, "V/2 over one direction of one cable takes V/W",
      [](const Laboratory& laboratory) { return whole_shards(laboratory, 2); });
  add("split-n2", "two chips and two cables", -0.5,
      "the cable that closes the ring of two carries half of it", [](const Laboratory& laboratory) {
        return all_chips_seconds(laboratory, ring_of(2, Bandwidth(2 * kIciLink), {}, false),
                                 CollectiveOp::kAllGather, kMeshArray);
      });
  return rows;
}

std::vector<Sweep> ring_all_gather_sweeps() {
  return {{.name = "S3-ring-all-gather",
           .title = "AllGather of 64 MiB on a wrapped axis",
           .subtitle = "45 GB/s one way a link, no latency",
           .x = PlotAxis{.label = "chips of the axis", .ticks = {4, 8, 12, 16, 24, 32}},
           .y = PlotAxis{.label = "time", .unit = "s"},
           .at = {4, 6, 8, 12, 16, 24, 32},
           .only_there = true,
           .curves = {
               {.label = "V / W", .predict = [](double) { return one_axis(kMeshArray); }},
               {.label = "shards cut in two",
                .predict =
                    [](double n) {
                      return predict("B1.exact", {{"V", kMeshArray}, {"W", kIciAxis}, {"n", n}});
                    },
                .simulate = [](const Laboratory& laboratory,
                               double n) { return split_ring(laboratory, static_cast<int>(n)); }},
               {.label = "whole shards", .simulate = [](const Laboratory& laboratory, double n) {
                  return whole_shards(laboratory, static_cast<int>(n));
                }}}}};
}

// ---- S4 ----

constexpr double kWeights = 2.0 * 2048 * 8192;  // bf16[2048, 8192]

std::vector<StudyRow> line_all_gather_rows() {
  const auto row = [](std::string id, std::string regime, double difference,
                      std::function<double(const Laboratory&)> simulate) {
    return StudyRow{.id = std::move(id),
                    .formula = "B1",
                    .regime = std::move(regime),
                    .predicted = one_axis(kWeights),
                    .expected = {difference - kExact, difference + kExact},
                    .why = "without wraparound the end chips have one link: (n-1)/n V over W/2",
                    .simulate = std::move(simulate)};
  };
  std::vector<StudyRow> rows;
  // (n-1)/n V / (W/2) is 2 (n-1)/n times V / W: 3/2 for 4 chips, 31/16 for 32.
  rows.push_back(row("v5e-8x4", "axis of 4 of a v5e 8x4, which does not wrap", 0.5,
                     [](const Laboratory& laboratory) {
                       TpuSliceSpec slice;
                       slice.generation = TpuGeneration::kV5e;
                       slice.shape = {8, 4};
                       const Cluster cluster = cluster_of(slice);
                       return laboratory.seconds(
                           collectives_graph(
                               all_chips(cluster),
                               {{.work = work_of(CollectiveOp::kAllGather, whole_bytes(kWeights)),
                                 .groups = axis_groups(slice.shape, 1)}}),
                           cluster);
                     }));
  rows.push_back(row("n32", "line of 32", 2.0 * 31 / 32 - 1, [](const Laboratory& laboratory) {
    return all_chips_seconds(laboratory, ring_of(32, Bandwidth(kIciLink), {}, false),
                             CollectiveOp::kAllGather, kWeights);
  }));
  // The ring closes over the whole line. Packets (4 KiB) are stored at each chip on that way: n - 2
  // times in each of n - 1 rounds, 0.55 us for 4 chips, 85 us for 32.
  const auto stored = [](double n) {
    return (n - 1) * (n - 2) * 4096 / kIciLink / one_axis(kWeights);
  };
  rows[0].expected_packets = DifferenceRange{0.5 - kExact, 0.5 + stored(4) + kExact};
  const double line = 2.0 * 31 / 32 - 1;
  rows[1].expected_packets = DifferenceRange{line - kExact, line + stored(32) + kExact};
  rows.push_back(
      row("wrapped-16", "axis of 16, which wraps", -1.0 / 16, [](const Laboratory& laboratory) {
        return all_chips_seconds(laboratory, ring_of(16, Bandwidth(kIciLink)),
                                 CollectiveOp::kAllGather, kWeights);
      }));
  rows.back().why = "with wraparound the formula holds but for (n-1)/n";
  return rows;
}

// ---- S5 ----

double line_of_four(const Laboratory& laboratory, double v) {
  return laboratory.seconds(whole_shard_all_gather(4, whole_bytes(v / 4), false),
                            ring_of(4, Bandwidth(kIciLink), kHop, false));
}

double latency_formula(double v) {
  return predict("B7.line", {{"V", v}, {"n", 4}, {"t", kHopSeconds}, {"W", kIciLink}});
}

std::vector<StudyRow> latency_rows() {
  std::vector<StudyRow> rows;
  // Every hop pays both: 3 (t + shard / W) against 3 max(t, shard / W). Let r be the shard over
  // 45,000 B (t W): the difference is (1 + r) / max(1, r) - 1.
  const auto add = [&](std::string id, std::string regime, double v) {
    const double ratio = v / 4 / (kIciLink * kHopSeconds);
    const double more = (1 + ratio) / std::max(1.0, ratio) - 1;
    rows.push_back(
        {.id = std::move(id),
         .formula = "B7.line",
         .regime = std::move(regime),
         .predicted = latency_formula(v),
         .expected = {more - kExact, more + kExact},
         .tolerance = 0.02,
         .why = "a hop takes latency and then its bytes, not the larger of the two",
         .simulate = [v](const Laboratory& laboratory) { return line_of_four(laboratory, v); }});
  };
  add("tiny", "line of 4, V = 256 B", 256);
  add("book", "line of 4, bf16[256, 256]: 5.2 us, not 3 us", 2.0 * 256 * 256);
  add("knee", "line of 4, shard of 45 kB", 4 * 45e3);
  add("large", "line of 4, shard of 4.5 MB", 4 * 4.5e6);
  // A round takes as long as its hop, but at least a microsecond: max(t, shard / W).
  for (const auto& [id, regime, v] :
       {std::tuple{"floor-book", "the book's array, rounds of at least 1 us, hops without latency",
                   2.0 * 256 * 256},
        {"floor-knee", "shard of 45 kB, rounds of at least 1 us, hops without latency",
         4 * 45e3}}) {
    rows.push_back(
        {.id = id,
         .formula = "B7.line",
         .regime = regime,
         .predicted = latency_formula(v),
         .expected = {-kExact, kExact},
         .tolerance = 0.02,
         .why =
             "the formula is right if latency is a lower limit of a round, not an addition to it",
         .simulate = [v = v](const Laboratory& laboratory) {
           return laboratory.seconds(all_gather_in_rounds(4, whole_bytes(v / 4), kHop),
                                     ring_of(4, Bandwidth(kIciLink), {}, false));
         }});
  }
  return rows;
}

std::vector<Sweep> latency_sweeps() {
  Sweep sweep{
      .name = "S5-latency",
      .title = "AllGather on a line of 4 v5e chips",
      .subtitle = "45 GB/s one way and 1 us a hop",
      .x = PlotAxis{.label = "bytes of the whole array V", .unit = "B", .log = true},
      .y = PlotAxis{.label = "time", .unit = "s", .log = true},
      .curves = {
          {.label = "latency and bytes", .predict = latency_formula, .simulate = line_of_four}}};
  for (double v = 256; v <= 64 << 20; v *= 4) sweep.at.push_back(v);
  return {sweep};
}

// ---- S6 ----

constexpr double kLarge = 512 << 20;  // 512 MiB
const std::vector<int> kCubeShape = {4, 4, 4};

// Half of the data goes along x, y, z and the other half along y, z, x, so in every phase the two
// are on different axes.
OpGraph two_colour_all_gather(double v) {
  OpGraph graph;
  graph.path_labels = {"compute"};
  graph.names = {"all-gather"};
  ProgramBuilder builder("rank");
  builder.add_stream("compute", true);
  for (std::size_t colour = 0; colour < 2; ++colour) {
    const StreamId stream = builder.add_stream("colour " + std::to_string(colour));
    double gathered = v / 2 / 64;
    for (std::size_t phase = 0; phase < 3; ++phase) {
      gathered *= 4;
      CollectiveWork work = work_of(CollectiveOp::kAllGather, whole_bytes(gathered),
                                    AlgorithmChoice::kBidirectionalRing);
      work.communicator = CommunicatorId(static_cast<std::uint32_t>(graph.communicators.size()));
      graph.communicators.push_back(
          communicator_of("axis", axis_groups(kCubeShape, (colour + phase) % 3), 64));
      OpDraft op{.stream = stream};
      op.kind = OpKind::kCollective;
      op.work = static_cast<std::uint32_t>(graph.collective_works.size());
      graph.collective_works.push_back(work);
      builder.add(std::move(op));
    }
  }
  graph.programs.push_back(std::move(builder).build());
  for (std::uint32_t chip = 0; chip < 64; ++chip) {
    RankData rank;
    rank.chip = chip;
    graph.ranks.push_back(rank);
  }
  return graph;
}

std::vector<StudyRow> three_axes_rows() {
  const auto row = [](std::string id, std::string regime, double factor, std::string why,
                      std::function<double(const Laboratory&)> simulate) {
    const double difference = factor * 63 / 64 - 1;
    return StudyRow{.id = std::move(id),
                    .formula = "B4",
                    .regime = std::move(regime),
                    .predicted = predict("B4", {{"V", kLarge}, {"M", 3}, {"W", kIciAxis}}),
                    .expected = {difference - kExact, difference + kExact},
                    .tolerance = 0.02,
                    .why = std::move(why),
                    .simulate = std::move(simulate)};
  };
  const auto with = [](AlgorithmChoice algorithm, Granularity granularity) {
    return [=](const Laboratory& laboratory) {
      return all_chips_seconds(laboratory, torus_of(kCubeShape, Bandwidth(kIciLink)),
                               CollectiveOp::kAllGather, kLarge, algorithm, granularity);
    };
  };
  // A chip gets 63/64 of V. Over 6 links at once this is the formula. One axis at a time: a phase
  // over one axis moves 3/4 of its result, V (3/4 + 3/16 + 3/64) over W. If the phases overlap,
  // only the last one counts: 3/4 V over W. Two of three axes at a time: each half of the data
  // takes half the time of one axis: 3/2 of the formula.
  StudyRow overlapped =
      row("axes-overlapped", "the same, pieces go on before the phase ends", 3 * 48.0 / 63,
          "the last axis carries 48 of 63 shards and hides the others",
          with(AlgorithmChoice::kAxisAfterAxis, Granularity::kPipelined));
  // Packets run stepped: a chip waits only for data that it passes on, so the result is in between.
  overlapped.expected_packets = DifferenceRange{3 * 48.0 / 64 - 1, 3 * 63.0 / 64 - 1 + 0.01};
  return {row("three-colours", "4x4x4, thirds of the data in rotated orders of axes", 1,
              "all six links of a chip are busy; only (N-1)/N of V moves",
              with(AlgorithmChoice::kMultiAxis, Granularity::kPipelined)),
          row("axis-after-axis", "4x4x4, all data along x, then y, then z", 3,
              "two of three axes idle: more axes bring nothing",
              with(AlgorithmChoice::kAxisAfterAxis, Granularity::kStepped)),
          overlapped,
          row("two-colours", "4x4x4, halves of the data in two orders of axes", 1.5,
              "one of three axes idles", [](const Laboratory& laboratory) {
                return laboratory.seconds(two_colour_all_gather(kLarge),
                                          torus_of(kCubeShape, Bandwidth(kIciLink)));
              })};
}

// ---- S7 ----

constexpr double kSharedGradients = 256 << 20;  // 256 MiB

// Adding bf16 reads both operands and writes the sum: three times the shard through HBM.
double with_adds(const Laboratory& laboratory, double memory_bandwidth) {
  const Bytes shard = whole_bytes(kSharedGradients / 16);
  Cluster cluster = ring_of(16, Bandwidth(kIciLink));
  cluster.chip.memory_bandwidth = Bandwidth(memory_bandwidth);
  return laboratory.seconds(reduce_scatter_with_adds(16, shard, 3 * shard), cluster);
}

std::vector<StudyRow> all_reduce_rows() {
  std::vector<StudyRow> rows;
  const auto ring = [](double v, Duration latency) {
    return [=](const Laboratory& laboratory) {
      return all_chips_seconds(laboratory, ring_of(16, Bandwidth(kIciLink), latency),
                               CollectiveOp::kAllReduce, v, AlgorithmChoice::kBidirectionalRing);
    };
  };
  // Reduce-scatter and all-gather move (n-1)/n of V each: 15/16.
  rows.push_back({.id = "large",
                  .formula = "B5",
                  .regime = "ring of 16, 256 MiB",
                  .predicted = predict("B5", {{"V", kSharedGradients}, {"W", kIciAxis}}),
                  .expected = {-1.0 / 16 - kExact, -1.0 / 16 + kExact},
                  .why = "(n-1)/n of V moves in each half",
                  .simulate = ring(kSharedGradients, {})});
  // Shards of 4.5 kB: whole shards take 2 (n/2) hops of t + 0.1 us: +10 %.
  const double small = 16 * 4.5e3;
  const double two_halves =
      2 * predict("B7", {{"V", small}, {"n", 16}, {"t", kHopSeconds}, {"W", kIciAxis}});
  rows.push_back({.id = "small-whole-shards",
                  .formula = "B7",
                  .regime = "ring of 16, shards of 4.5 kB, whole shards hop by hop",
                  .predicted = two_halves,
                  .expected = {0.1 - 0.001, 0.1 + 0.001},
                  .tolerance = 0.02,
                  .why = "2 n/2 hops, each latency and its bytes (a tenth of it)",
                  // The reduce-scatter is the all-gather backwards: the same hops.
                  .simulate = [small](const Laboratory& laboratory) {
                    return 2 * laboratory.seconds(
                                   whole_shard_all_gather(16, whole_bytes(small / 16), true),
                                   ring_of(16, Bandwidth(kIciLink), kHop));
                  }});
  // Shards cut in two go all the way round: 2 (n-1) = 30 hops instead of 16; each has 0.05 us of
  // bytes: 31.5 us over 16 us.
  rows.push_back(
      {.id = "small-split-shards",
       .formula = "B7",
       .regime = "the same, shards cut in two",
       .predicted = two_halves,
       .expected = {31.5 / 16 - 1 - 0.002, 31.5 / 16 - 1 + 0.002},
       .tolerance = 0.02,
       .why = "the best order for bytes is not the best for latency: n-1 hops each way, not n/2",
       .simulate = ring(small, kHop)});
  // In one direction V / W is 2 V / (2 W). A hop takes shard / W and then its addition 3 shard /
  // W_hbm: 3 x 45 / 810 = 1/6 more.
  const double one_way = predict("B2", {{"V", kSharedGradients}, {"n", 16}, {"W", kIciLink}});
  rows.push_back(
      {.id = "adds-in-turn",
       .formula = "B2",
       .regime = "ReduceScatter in one direction, additions after each hop (HBM 810 GB/s)",
       .predicted = one_way,
       .expected = {1.0 / 6 - 0.001, 1.0 / 6 + 0.001},
       .why = "additions that are not pipelined with the hops take 3 bytes of memory "
              "traffic a byte",
       .simulate = [](const Laboratory& laboratory) { return with_adds(laboratory, 8.1e11); }});
  rows.push_back(
      {.id = "adds-free",
       .formula = "B2",
       .regime = "the same with additions at 1e15 B/s",
       .predicted = one_way,
       .expected = {-kExact, 3 * kExact},
       .why = "without the additions the formula is exact",
       .simulate = [](const Laboratory& laboratory) { return with_adds(laboratory, 1e15); }});
  return rows;
}

}  // namespace

std::vector<Study> tpu_collective_studies() {
  return {{.id = "S3",
           .source = kBookSharding,
           .title = "Ring AllGather on a wrapped axis",
           .claim = "an AllGather over a wrapped axis takes V / W, however many chips share it",
           .rows = ring_all_gather_rows,
           .sweeps = ring_all_gather_sweeps},
          {.id = "S4",
           .source = kBookSharding,
           .title = "AllGather on a line",
           .claim = "bf16[2048, 8192] over 4 chips of a v5e 8x4 takes V / W = 373 us",
           .rows = line_all_gather_rows},
          {.id = "S5",
           .source = kBookSharding,
           .title = "AllGather that latency binds",
           .claim = "a collective takes the larger of its latency and its bytes over bandwidth",
           .rows = latency_rows,
           .sweeps = latency_sweeps,
           .finding = "The sum of both terms is what measurements show too: the book itself "
                      "measured 8 us where its formula says 3."},
          {.id = "S6",
           .source = kBookSharding,
           .title = "AllGather over three axes",
           .claim = "over M axes an AllGather is M times as fast",
           .rows = three_axes_rows,
           .finding = "Axis after axis costs three times the formula only where a phase waits for "
                      "the one before it. Where pieces go on at once it costs 2.25 times: the last "
                      "axis carries 48 of the 63 shards that a chip receives."},
          {.id = "S7",
           .source = kBookSharding,
           .title = "AllReduce on a ring",
           .claim = "an AllReduce is a ReduceScatter and an AllGather: 2 V / W",
           .rows = all_reduce_rows,
           .finding = "The latency bound 2 (n/2) t is that of whole shards. The ring that is best "
                      "for bytes, shards cut in two, has 2 (n-1) hops and is nearly twice as late "
                      "for small arrays: no single algorithm has both of the formula's terms."}};
}

}  // namespace stepsim
