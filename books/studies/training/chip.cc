// S1 and S2: a matmul cut into tiles that are loaded, multiplied and stored.
//
// The graph has a core and a memory. The core's program has the streams load, mxu and store; a tile
// is loaded into one of two buffers while the tile before it is multiplied, so the load of tile
// i + 2 waits for the arithmetic of tile i. Every tile has an equal part of all bytes and FLOPs.

#include <cmath>

#include "books/formulas/sources.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/training/critical_batch.h"
#include "sim/program/graph_by_hand.h"
#include "topology/kinds/explicit_graph.h"
#include "topology/small_clusters.h"
#include "workload/parts/kernels.h"

namespace stepsim {
namespace {

constexpr double kV5ePeak = 1.97e14;   // FLOP/s, bf16
constexpr double kV5eMemory = 8.1e11;  // B/s
constexpr double kV6ePeak = 9.2e14;    // FLOP/s, bf16
constexpr double kPcie = 1.5e10;       // B/s each way, per chip
constexpr std::uint32_t kBuffers = 2;  // tile buffers in the core
constexpr double kNoLimit = 1e18;      // B/s, for links that must not be a bottleneck

struct TiledMatmul {
  double b = 0;  // tokens
  double d = 0;  // inner width
  double f = 0;  // outer width
  double peak = kV5ePeak;
  double bandwidth = kV5eMemory;
  std::uint32_t tiles = 64;
  bool shared = true;       // loads and stores share the bandwidth, as in HBM
  bool overlapped = true;   // otherwise a tile is loaded, multiplied and stored before the next one
  bool activations = true;  // inputs and outputs also cross, not only weights
};

// The core is chip 0, the memory chip 1. Loads and stores that share bandwidth share one bus.
Cluster core_and_memory(const TiledMatmul& matmul) {
  ExplicitGraphSpec spec;
  const Bandwidth memory(matmul.bandwidth);
  spec.nodes = {{.name = "core"}, {.name = "memory"}};
  if (matmul.shared) {
    spec.nodes.push_back({.name = "bus_in", .kind = NodeKind::kSwitch});
    spec.nodes.push_back({.name = "bus_out", .kind = NodeKind::kSwitch});
    spec.links = {{.from = "bus_in", .to = "bus_out", .bandwidth = memory, .one_way = true}};
    for (const char* end : {"core", "memory"}) {
      spec.links.push_back(
          {.from = end, .to = "bus_in", .bandwidth = Bandwidth(kNoLimit), .one_way = true});
      spec.links.push_back(
          {.from = "bus_out", .to = end, .bandwidth = Bandwidth(kNoLimit), .one_way = true});
    }
  } else {
    spec.links = {{.from = "core", .to = "memory", .bandwidth = memory}};
  }
  ChipSpec chip = ideal_chip();
  chip.peak = peaks_of_all_types(Throughput(matmul.peak));
  return cluster_of(spec, chip);
}

Message message(CommunicatorId communicator, bool is_send, std::uint32_t tile, double bytes) {
  Message message;
  message.is_send = is_send;
  message.communicator = communicator;
  message.peer = is_send ? 1 : 0;
  message.microbatch = static_cast<std::int32_t>(tile);
  message.bytes = Bytes(std::llround(bytes));
  return message;
}

OpGraph graph_of(const TiledMatmul& matmul) {
  GraphByHand graph(2);
  const CommunicatorId loads = graph.communicator({1, 0});  // member 0 sends to member 1
  const CommunicatorId stores = graph.communicator({0, 1});
  const StreamId load = graph.stream(0, "load");
  const StreamId store = graph.stream(0, "store");
  const StreamId reads = graph.stream(1, "reads");
  const StreamId writes = graph.stream(1, "writes");
  const auto tiles = static_cast<double>(matmul.tiles);
  const double activations = matmul.activations ? 1 : 0;
  const double in = 2 * (matmul.d * matmul.f + activations * matmul.b * matmul.d) / tiles;
  const double out = activations * 2 * matmul.b * matmul.f / tiles;
  const Flops flops(2 * matmul.b * matmul.d * matmul.f / tiles);
  std::vector<OpRef> computed;
  std::vector<OpRef> stored;
  for (std::uint32_t tile = 0; tile < matmul.tiles; ++tile) {
    std::vector<Dependency> buffer_is_free;
    if (!matmul.overlapped && tile > 0) {
      buffer_is_free = {after(stored.back())};
    } else if (tile >= kBuffers) {
      buffer_is_free = {after(computed[tile - kBuffers])};
    }
    const OpRef loaded = graph.messages(0, load, {message(loads, false, tile, in)}, buffer_is_free);
    graph.messages(1, reads, {message(loads, true, tile, in)});
    computed.push_back(graph.compute(0, flops, {after(loaded)}));
    stored.push_back(
        graph.messages(0, store, {message(stores, true, tile, out)}, {after(computed.back())}));
    graph.messages(1, writes, {message(stores, false, tile, out)});
  }
  return graph.build();
}

double seconds_of(const Laboratory& laboratory, const TiledMatmul& matmul) {
  return laboratory.seconds(graph_of(matmul), core_and_memory(matmul));
}

std::function<double(const Laboratory&)> tiled(TiledMatmul matmul) {
  return [matmul](const Laboratory& laboratory) { return seconds_of(laboratory, matmul); };
}

double roofline(const TiledMatmul& matmul) {
  return predict("A2.matmul", {{"B", matmul.b},
                               {"D", matmul.d},
                               {"F", matmul.f},
                               {"W", matmul.bandwidth},
                               {"C", matmul.peak}});
}

double math_time(double b, double d, double f, double peak) {
  return predict("A1.matmul", {{"B", b}, {"D", d}, {"F", f}, {"C", peak}});
}

// ---- S1 ----

constexpr double kSquareWidth = 8192;  // D and F
// Tokens at which loading and computing take equally long: B = D / (D W / C - 2).
constexpr double kKnee = 259;

// One matmul kernel whose operands are so close that only arithmetic counts.
std::function<double(const Laboratory&)> padded_matmul(double f, std::int64_t tile) {
  return [=](const Laboratory& laboratory) {
    ChipSpec chip = ideal_chip();
    chip.peak = peaks_of_all_types(Throughput(kV5ePeak));
    chip.memory_bandwidth = Bandwidth(22 * kV5eMemory);  // VMEM
    chip.efficiency.matmul.tile_n = tile;
    const Kernel kernel =
        matmul("matmul", {}, {.m = 4096, .n = std::llround(f), .k = std::llround(kSquareWidth)});
    GraphByHand graph(1);
    graph.compute(0, Flops(1));
    graph.graph().compute_works[0].kernels = {kernel};
    TorusSpec one;
    one.axes = {{.size = 1}};
    one.link_bandwidth = Bandwidth(1e9);
    return laboratory.seconds(graph.build(), cluster_of(one, chip));
  };
}

std::vector<StudyRow> roofline_rows() {
  const auto row = [](std::string id, std::string regime, const TiledMatmul& matmul,
                      DifferenceRange expected, double tolerance, std::string why) {
    return StudyRow{.id = std::move(id),
                    .formula = "A2.matmul",
                    .regime = std::move(regime),
                    .predicted = roofline(matmul),
                    .expected = expected,
                    .tolerance = tolerance,
                    .why = std::move(why),
                    .simulate = tiled(matmul)};
  };
  const auto of = [](double b, std::uint32_t tiles, bool overlapped) {
    return TiledMatmul{
        .b = b, .d = kSquareWidth, .f = kSquareWidth, .tiles = tiles, .overlapped = overlapped};
  };
  std::vector<StudyRow> rows;
  // B = 64: the bus is busy all the time except while the last tile is multiplied, c = T_math / 64.
  // T_mem is 2 (2 B D + D^2) / W = 168.3 us and T_math 43.6 us: at most c / T_mem = 0.405 % above.
  rows.push_back(row("memory-bound", "B = 64, 64 tiles", of(64, 64, true), {0, 0.0041}, 0.02,
                     "loads hide all arithmetic except that of the last tile"));
  // Without sharing, stores don't slow loads: 2 (B D + D^2) / W = 167.0 us, then c and s.
  rows.back().expected_unshared = DifferenceRange{-0.0040, -0.0030};
  // B = 1024: T = 64 c + l + s, with l + s the load and store of one tile: (l + s) / 64 c is
  // T_mem / T_math / 64, and T_mem / T_math = 2 (2 B D + D^2) / W / T_math = 0.304. 0.47 %.
  rows.push_back(row("compute-bound", "B = 1024, 64 tiles", of(1024, 64, true), {0.0046, 0.0049},
                     0.02, "the first load and the last store are exposed"));
  // At the knee l + s = c: T = l + 64 c + s is 1/64 above. Loads and stores that meet on the bus
  // may delay a tile by up to one store more (s = B D / (2 B D + D^2) of c = 3 %).
  rows.push_back(row("knee-64-tiles", "B = 259, loads as long as arithmetic, 64 tiles",
                     of(kKnee, 64, true), {1.0 / 64 - 0.001, 1.0 / 64 + 0.002}, 0.02,
                     "one load and one store beside the larger of the two"));
  rows.push_back(row("knee-16-tiles", "the same in 16 tiles", of(kKnee, 16, true),
                     {1.0 / 16 - 0.001, 1.0 / 16 + 0.004}, 0.02,
                     "fewer tiles: the first load and the last store are larger"));
  // Nothing overlaps: T_mem + T_math, equal to 0.2 % at B = 259.
  rows.push_back(row("not-overlapped", "the same, a tile at a time without overlap",
                     of(kKnee, 64, false), {0.997, 1.0}, 0.02,
                     "without overlap the times add up: twice the larger at the knee"));
  // Widths are computed in whole tiles of the matrix unit: 2 x 128 for 130, 2 x 256 for 300.
  rows.push_back({.id = "padding-128",
                  .formula = "A1.matmul",
                  .regime = "F = 130 on a matrix unit of 128",
                  .predicted = math_time(4096, kSquareWidth, 130, kV5ePeak),
                  .expected = {256.0 / 130 - 1.0001, 256.0 / 130 - 0.9999},
                  .why = "F = 130 costs as much as 256: whole tiles are computed (A16)",
                  .simulate = padded_matmul(130, 128)});
  rows.push_back({.id = "padding-256",
                  .formula = "A1.matmul",
                  .regime = "F = 300 on a matrix unit of 256 (v6e)",
                  .predicted = math_time(4096, kSquareWidth, 300, kV5ePeak),
                  .expected = {512.0 / 300 - 1.0001, 512.0 / 300 - 0.9999},
                  .why = "F = 300 costs as much as 512: whole tiles are computed (A16)",
                  .simulate = padded_matmul(300, 256)});
  rows.push_back({.id = "whole-tiles",
                  .formula = "A1.matmul",
                  .regime = "F = 384 on a matrix unit of 128",
                  .predicted = math_time(4096, kSquareWidth, 384, kV5ePeak),
                  .expected = {-0.0001, 0.0001},
                  .why = "a whole number of tiles loses nothing",
                  .simulate = padded_matmul(384, 128)});
  return rows;
}

std::vector<Sweep> roofline_sweeps() {
  const auto of = [](double b) {
    return TiledMatmul{.b = b, .d = kSquareWidth, .f = kSquareWidth};
  };
  Sweep sweep{.name = "S1-matmul-roofline",
              .title = "Matmul of B tokens with 8192 x 8192 weights on a TPU v5e",
              .subtitle = "simulated in 64 tiles: load, multiply, store",
              .x = PlotAxis{.label = "tokens B", .log = true},
              .y = PlotAxis{.label = "time", .unit = "s", .log = true},
              .at = {1, 4, 16, 64, 120, 200, 259, 320, 500, 1024, 2048, 4096},
              .curves = {{.label = "overlapped",
                          .predict = [of](double b) { return roofline(of(b)); },
                          .simulate = [of](const Laboratory& laboratory,
                                           double b) { return seconds_of(laboratory, of(b)); }},
                         {.label = "not overlapped",
                          .simulate = [of](const Laboratory& laboratory, double b) {
                            TiledMatmul matmul = of(b);
                            matmul.overlapped = false;
                            return seconds_of(laboratory, matmul);
                          }}}};
  return {sweep};
}

// ---- S2 ----

TiledMatmul over_pcie(double b, double d, bool activations, bool shared) {
  return {.b = b,
          .d = d,
          .f = 4 * d,
          .peak = kV6ePeak,
          .bandwidth = kPcie,
          .shared = shared,
          .activations = activations};
}

// Returns the batch at which the flat time of few tokens meets the slope of many tokens. This is
// the critical batch that a measurement would find.
double measured_critical_batch(const Laboratory& laboratory) {
  const auto time = [&](double b) {
    return seconds_of(laboratory, over_pcie(b, kSquareWidth, false, false));
  };
  return critical_batch(time);
}

std::vector<StudyRow> pcie_rows() {
  const auto row = [](std::string id, std::string regime, const TiledMatmul& matmul,
                      DifferenceRange expected, std::string why) {
    return StudyRow{.id = std::move(id),
                    .formula = "A10",
                    .regime = std::move(regime),
                    .predicted = math_time(matmul.b, matmul.d, matmul.f, matmul.peak),
                    .expected = expected,
                    .tolerance = 0.02,
                    .why = std::move(why),
                    .simulate = tiled(matmul)};
  };
  std::vector<StudyRow> rows;
  // For one token, the arithmetic takes 1/61,333 of the load time. Both times are otherwise exact.
  rows.push_back({.id = "weights-only",
                  .formula = "A10",
                  .regime = "activations stay in HBM: critical batch as measured",
                  .predicted = predict("A10", {{"C", kV6ePeak}, {"W", kPcie}}),
                  .unit = "tokens",
                  .expected = {-0.001, 0.001},
                  .tolerance = 0.02,
                  .why = "only weights cross PCIe, so the threshold equals the formula's",
                  .simulate = measured_critical_batch});
  // The output alone takes 2 B F / W = C / (D W) = 7.487 times T_math. Before it the first tile is
  // loaded and multiplied, which adds (D / F + D / B + 1 / 7.487) / 64 = 0.6 % of that.
  rows.push_back(row("activations", "B = 1e6, D = 8192: activations cross PCIe, full duplex",
                     over_pcie(1e6, kSquareWidth, true, false), {6.487, 6.56},
                     "never compute-bound: the output B F grows with B as the FLOPs do; 13 % of "
                     "peak at any B, not 100 % above 61,333"));
  // Half duplex, F = 4 D: (5 B D + 4 D^2) 2 / W over 8 B D^2 / C = (5/4 + D / B) C / (D W). D =
  // 38,336: 1.2883 x 61,333 / 38,336 = 2.0612, and one tile's arithmetic, 1 / 64 of T_math.
  rows.push_back(row("half-of-critical-width", "B = 1e6, D = 38,336: activations too, half duplex",
                     over_pcie(1e6, 38'336, true, true), {1.061, 1.08},
                     "below D = 5 C / (4 W) = 76,667 (A10.activations) PCIe binds at any B"));
  // Without sharing only the output binds: 61,333 / 38,336 = 1.6; the first tile adds 0.0228.
  rows.back().expected_unshared = DifferenceRange{0.62, 0.625};
  // D = 153,344: traffic takes (1.25 + 0.1533) x 61,333 / 153,344 = 0.5613 of T_math and is hidden.
  // One tile's load and store are not: 0.88 %.
  rows.push_back(row("twice-the-critical-width",
                     "B = 1e6, D = 153,344: activations too, half duplex",
                     over_pcie(1e6, 153'344, true, true), {0.0085, 0.0095},
                     "above that width arithmetic hides PCIe"));
  return rows;
}

}  // namespace

std::vector<Study> chip_studies() {
  return {{.id = "S1",
           .source = kBookRoofline,
           .title = "Roofline of a matmul",
           .claim = "a matmul takes the longer of its arithmetic and its memory traffic",
           .rows = roofline_rows,
           .sweeps = roofline_sweeps},
          {.id = "S2",
           .source = kBookTpus,
           .title = "Matmul over PCIe",
           .claim = "with weights in host memory a v6e is compute-bound above 61,000 tokens",
           .rows = pcie_rows}};
}

}  // namespace stepsim
