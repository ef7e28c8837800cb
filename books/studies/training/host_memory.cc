// S47: arrays and weights in the memory of hosts that move to the chips over PCIe.
//
// The host links are those of a cluster (sim/hardware/hosts.h): each chip copies over its own link,
// and all chips of a host share the host's memory. Copies take no latency here.

#include "books/formulas/sources.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/training/critical_batch.h"
#include "sim/program/graph_by_hand.h"
#include "topology/small_clusters.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

using namespace literals;

constexpr double kPcieLink = 1.5e10;       // B/s one way, per chip
constexpr double kIci = 4.5e10;            // B/s one way, per v5e link
constexpr double kHbm = 8.1e11;            // B/s, v5e
constexpr double kWideMemory = 2e11;       // B/s per host: 8 chips at 15 GB/s take 120 GB/s
constexpr double kNarrowMemory = 6e10;     // half of the bandwidth of 8 chips' links
constexpr double kHalf = 0.5;              // share of a chip's link that the narrow memory can feed
constexpr std::uint32_t kSliceChips = 16;  // v5e 4x4 without wraparound: two hosts
constexpr std::uint32_t kArrayTiles = 16;  // tiles of a shard, if loads and sends overlap
constexpr Bytes kArray = 16_GiB;           // int8[128 Ki, 128 Ki]

void add_hosts_of_eight(double memory, Cluster& cluster) {
  cluster.hosts = add_hosts({.link_bandwidth = Bandwidth(kPcieLink),
                             .chips = 8,
                             .memory_bandwidth = Bandwidth(memory),
                             .memory_capacity = 450_GiB},
                            cluster.places, cluster.fabric);
}

Cluster v5e_with_hosts(double host_memory) {
  ChipSpec chip = ideal_chip();
  chip.peak = peaks_of_all_types(Throughput(1.97e14));
  chip.memory_bandwidth = Bandwidth(kHbm);
  Cluster cluster = cluster_of(
      TorusSpec{.axes = {{.size = 4}, {.size = 4}}, .link_bandwidth = Bandwidth(kIci)}, chip);
  add_hosts_of_eight(host_memory, cluster);
  return cluster;
}

// ---- an array spread over the hosts of 16 chips moves to the corner chip ----

std::function<double(const Laboratory&)> load_everywhere(double host_memory) {
  return [host_memory](const Laboratory& laboratory) {
    GraphByHand graph(kSliceChips);
    for (std::uint32_t rank = 0; rank < kSliceChips; ++rank) {
      graph.host(rank, graph.stream(rank, "load"),
                 {.action = HostAction::kCopyIn, .bytes = kArray / kSliceChips});
    }
    return laboratory.seconds(graph.build(), v5e_with_hosts(host_memory));
  };
}

Message part_of_array(CommunicatorId all, bool is_send, std::uint32_t peer, std::uint32_t tile) {
  return {.is_send = is_send,
          .communicator = all,
          .peer = peer,
          .microbatch = static_cast<std::int32_t>(tile),
          .bytes = kArray / (kSliceChips * kArrayTiles)};
}

// Every chip sends each tile to chip 0 as soon as it has loaded it.
double load_to_the_corner(const Laboratory& laboratory) {
  GraphByHand graph(kSliceChips);
  const CommunicatorId all = graph.communicator();
  std::vector<StreamId> loads;
  std::vector<StreamId> moves;
  for (std::uint32_t rank = 0; rank < kSliceChips; ++rank) {
    loads.push_back(graph.stream(rank, "load"));
    moves.push_back(graph.stream(rank, "move"));
  }
  for (std::uint32_t tile = 0; tile < kArrayTiles; ++tile) {
    std::vector<Message> receives;
    for (std::uint32_t rank = 0; rank < kSliceChips; ++rank) {
      const OpRef loaded = graph.host(
          rank, loads[rank],
          {.action = HostAction::kCopyIn, .bytes = kArray / (kSliceChips * kArrayTiles)});
      if (rank == 0) continue;
      graph.messages(rank, moves[rank], {part_of_array(all, true, 0, tile)}, {after(loaded)});
      receives.push_back(part_of_array(all, false, rank, tile));
    }
    graph.messages(0, moves[0], receives);
  }
  return laboratory.seconds(graph.build(), v5e_with_hosts(kWideMemory));
}

// The matmul of 8 rows with the array, which is then all in the memory of one chip.
double multiply_at_the_corner(const Laboratory& laboratory) {
  constexpr double kWidth = 131'072;
  GraphByHand graph(kSliceChips);
  graph.compute(0, Flops(2 * 8 * kWidth * kWidth), {}, kArray);
  return laboratory.seconds(graph.build(), v5e_with_hosts(kWideMemory));
}

// ---- a matmul whose weights are streamed from the host ----

constexpr double kStreamedPeak = 9.2e14;             // FLOP/s, bf16
constexpr double kStreamedWidth = 8192;              // D
constexpr double kStreamedMlp = 4 * kStreamedWidth;  // F
constexpr std::uint32_t kWeightTiles = 64;   // tiles of equal size that the weights are cut into
constexpr std::uint32_t kWeightBuffers = 2;  // tile buffers in a chip

// Each of 8 chips of a host multiplies `tokens` rows of its own, which stay on the chip, with
// weights that it copies tile by tile.
double streamed_matmul(const Laboratory& laboratory, double host_memory, double tokens) {
  constexpr std::uint32_t kChips = 8;
  ChipSpec chip = ideal_chip();
  chip.peak = peaks_of_all_types(Throughput(kStreamedPeak));
  Cluster cluster =
      cluster_of(TorusSpec{.axes = {{.size = 4}, {.size = 2}}, .link_bandwidth = 90_GBps}, chip);
  add_hosts_of_eight(host_memory, cluster);
  const Bytes tile_bytes(
      static_cast<std::int64_t>(2 * kStreamedWidth * kStreamedMlp / kWeightTiles));
  GraphByHand graph(kChips);
  for (std::uint32_t rank = 0; rank < kChips; ++rank) {
    const StreamId load = graph.stream(rank, "load");
    std::vector<OpRef> computed;
    for (std::uint32_t tile = 0; tile < kWeightTiles; ++tile) {
      std::vector<Dependency> buffer_is_free;
      if (tile >= kWeightBuffers) buffer_is_free = {after(computed[tile - kWeightBuffers])};
      const OpRef loaded = graph.host(
          rank, load, {.action = HostAction::kCopyIn, .bytes = tile_bytes}, buffer_is_free);
      computed.push_back(graph.compute(
          rank, Flops(2 * tokens * kStreamedWidth * kStreamedMlp / kWeightTiles), {after(loaded)}));
    }
  }
  return laboratory.seconds(graph.build(), cluster);
}

// Returns the number of tokens at which the flat time of few tokens meets the slope of many.
std::function<double(const Laboratory&)> critical_tokens(double host_memory) {
  return [host_memory](const Laboratory& laboratory) {
    const auto time = [&](double tokens) {
      return streamed_matmul(laboratory, host_memory, tokens);
    };
    return critical_batch(time);
  };
}

constexpr const char* kMemoryServesInOrder =
    "packets of a host's memory are served first come, first served, as the load shows";

std::vector<StudyRow> host_memory_rows() {
  const double array = static_cast<double>(kArray.value());
  const double load = predict("A1.comms", {{"V", array}, {"n", kSliceChips}, {"W", kPcieLink}});
  const double corner =
      predict("B11", {{"V", array}, {"N", kSliceChips}, {"ports", 2}, {"W", kIci}});
  const double critical = predict("A10", {{"C", kStreamedPeak}, {"W", kPcieLink}});
  std::vector<StudyRow> rows;
  rows.push_back({.id = "load",
                  .formula = "A1.comms",
                  .regime = "16 GiB from the hosts to 16 chips",
                  .predicted = load,
                  .expected = around(0),
                  .why = "every chip loads a 16th over its own PCIe link",
                  .simulate = load_everywhere(kWideMemory),
                  // Packets are served first come, first served. The last chip waits until the
                  // shards of 7 others have left the memory: 7 / 8 of 120 / 200 of the load.
                  .expected_packets = around(7 * kPcieLink / kWideMemory, 1e-3)});
  // 8 chips share 60 GB/s: 7.5 GB/s each instead of 15.
  rows.push_back({.id = "load-narrow-memory",
                  .formula = "A1.comms",
                  .regime = "the same, hosts whose memory gives 60 GB/s to 8 chips",
                  .predicted = load,
                  .expected = around(1 / kHalf - 1),
                  .why = "the memory of the host binds, not the links: 7.5 GB/s a chip",
                  .simulate = load_everywhere(kNarrowMemory),
                  .expected_unshared = around(0),
                  .expected_packets = around(7 * kPcieLink / kNarrowMemory, 1e-3)});
  // Routes go along x first, so 12 of 15 shards come in over the corner's y link: 12/16 V / W,
  // where the bound has 15/32: 1.6. Before that the first tile is loaded, which takes load / 16 =
  // 4.47 ms, 0.025 of the bound.
  rows.push_back(
      {.id = "to-the-corner",
       .formula = "B11",
       .regime = "tiles go on to one corner as they are loaded",
       .predicted = corner,
       .expected = around(0.6 + load / kArrayTiles / corner, 2e-3),
       .why = "only the load of the first tile is not hidden by the network, where routes in axis "
              "order bring 12 of 15 shards over one of the two ports",
       .simulate = load_to_the_corner,
       // Without link sharing: a chip's load, 71.58 ms, then its last tile at 45 GB/s, 1.49 ms.
       .expected_unshared =
           around((load + array / kSliceChips / kArrayTiles / kIci) / corner - 1, 1e-3)});
  rows.push_back({.id = "multiply",
                  .formula = "A1.comms",
                  .regime = "8 rows times the array, at the corner",
                  .predicted = predict("A1.comms", {{"V", array}, {"n", 1}, {"W", kHbm}}),
                  .expected = around(0),
                  .why = "bound by HBM: the FLOPs take 1.4 ms",
                  .simulate = multiply_at_the_corner});
  // For one token, the arithmetic takes 1/61,333 of the load time. Both times are otherwise exact.
  rows.push_back({.id = "critical-batch",
                  .formula = "A10",
                  .regime = "weights stream from the hosts to 8 chips: critical batch as measured",
                  .predicted = critical,
                  .unit = "tokens",
                  .expected = {-0.001, 0.001},
                  .why = "each chip has its own PCIe link, and activations stay on the chip",
                  .simulate = critical_tokens(kWideMemory),
                  .not_on_packets = kMemoryServesInOrder});
  // Half the bandwidth needs twice the tokens.
  rows.push_back(
      {.id = "critical-batch-narrow-memory",
       .formula = "A10",
       .regime = "the same, hosts whose memory gives 60 GB/s to 8 chips",
       .predicted = critical,
       .unit = "tokens",
       .expected = {1 / kHalf - 1.001, 1 / kHalf - 0.999},
       .why = "each chip gets only 7.5 GB/s of the host's memory, and that is the formula's W",
       .simulate = critical_tokens(kNarrowMemory),
       .expected_unshared = DifferenceRange{-0.001, 0.001},
       .not_on_packets = kMemoryServesInOrder});
  return rows;
}

}  // namespace

std::vector<Study> host_memory_studies() {
  return {{.id = "S47",
           .source = kBookTpus,
           .title = "Arrays and weights in host memory",
           .claim = "16 GB in the hosts of a v5e 4x4 take 66 ms to its chips and 167 ms to one "
                    "corner; with weights there a v6e is compute-bound above 61,000 tokens",
           .rows = host_memory_rows}};
}

}  // namespace stepsim
