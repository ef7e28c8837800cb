// S29, S41 and S45: the traffic of serving: transfers of caches, decode steps, and caches sharded
// by sequence.

#include "analysis/formulas/sources.h"
#include "analysis/studies/collective_graph.h"
#include "analysis/studies/hops.h"
#include "analysis/studies/study_groups.h"
#include "schedules/plan/axis.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

// ---- S29 ----

constexpr double kHostLink = 25e9;           // B/s one way, per host
constexpr std::uint32_t kHostsOfServer = 2;  // a server of 16 v5e
constexpr double kCache = 163840.0 * 8192;   // int8 Llama-3 70B, 8,192 tokens

// Server s has the hosts 2 s and 2 s + 1; the last server decodes. Each host of a prefill server
// sends half of a cache to the decode host with the same index.
OpGraph cache_transfers(std::uint32_t prefill_servers) {
  const std::uint32_t decoder = prefill_servers * kHostsOfServer;
  GraphByHand graph(decoder + kHostsOfServer);
  const CommunicatorId communicator = graph.communicator();
  const auto half = [&](bool is_send, std::uint32_t peer) {
    Message message;
    message.is_send = is_send;
    message.communicator = communicator;
    message.peer = peer;
    message.bytes = whole_bytes(kCache / kHostsOfServer);
    return message;
  };
  for (std::uint32_t host = 0; host < kHostsOfServer; ++host) {
    std::vector<Message> receives;
    for (std::uint32_t server = 0; server < prefill_servers; ++server) {
      const std::uint32_t source = server * kHostsOfServer + host;
      graph.messages(source, graph.stream(source, "send"), {half(true, decoder + host)});
      receives.push_back(half(false, source));
    }
    graph.messages(decoder + host, graph.stream(decoder + host, "receive"), receives);
  }
  return graph.build();
}

Cluster one_leaf(std::uint32_t hosts) {
  LeafSpineSpec spec;
  spec.leaves = 1;
  spec.hosts_per_leaf = static_cast<int>(hosts);
  spec.host_bandwidth = Bandwidth(kHostLink);
  return cluster_of(spec);
}

double transfers_seconds(const Laboratory& laboratory, std::uint32_t prefill_servers) {
  return laboratory.seconds(cache_transfers(prefill_servers),
                            one_leaf((prefill_servers + 1) * kHostsOfServer));
}

// Returns when the bystander's message arrives. Hosts 0 to 2 send half a cache each to host 4. Host
// 3, the bystander, sends as much to host 5, which nobody else uses. Hosts 0 to 3 are on one leaf,
// 4 and 5 on the other, behind one spine.
double bystander_seconds(const Laboratory& laboratory, bool lossless) {
  LeafSpineSpec spec;
  spec.leaves = 2;
  spec.hosts_per_leaf = 4;
  spec.spines = 1;
  spec.host_bandwidth = Bandwidth(kHostLink);
  const Cluster cluster = cluster_of(spec);
  GraphByHand graph(6);
  const CommunicatorId communicator = graph.communicator();
  const auto add = [&](std::uint32_t from, std::uint32_t to, std::vector<Message>& receives) {
    Message message;
    message.is_send = true;
    message.communicator = communicator;
    message.peer = to;
    message.bytes = whole_bytes(kCache / kHostsOfServer);
    graph.messages(from, graph.stream(from, "send"), {message});
    message.is_send = false;
    message.peer = from;
    receives.push_back(message);
  };
  std::vector<Message> incast;
  std::vector<Message> bystander;
  for (const std::uint32_t host : {0u, 1u, 2u}) add(host, 4, incast);
  add(3, 5, bystander);
  graph.messages(4, graph.stream(4, "receive"), incast);
  const OpRef arrival = graph.messages(5, graph.stream(5, "receive"), bystander);
  graph.compute(5, Flops(0), {after(arrival)});
  SimulationOptions options;
  options.recorded_ranks = {RankId(5)};
  if (lossless) {
    options.packets.buffer_bytes = Bytes(1 << 20);
    options.packets.packet_bytes = Bytes(1 << 16);
  }
  const SimulationResult result = lossless
                                      ? laboratory.simulate_packets(graph.build(), cluster, options)
                                      : laboratory.simulate(graph.build(), cluster, options);
  return to_seconds(result.timelines[0].ops.back().ended.since_start);
}

std::vector<StudyRow> incast_rows() {
  std::vector<StudyRow> rows;
  const double alone = predict("A1.comms", {{"V", kCache}, {"W", kHostsOfServer * kHostLink}});
  const auto add = [&](std::string id, std::string regime, DifferenceRange expected,
                       std::string why, std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = "A1.comms",
                    .regime = std::move(regime),
                    .predicted = alone,
                    .expected = expected,
                    .why = std::move(why),
                    .simulate = std::move(simulate)});
  };
  // A packet is stored once on the way. There are 2,560 packets of 256 KiB, or more and smaller
  // ones.
  const DifferenceRange packets{-kExact, 0.002};
  add("alone", "one prefill server sends a cache of 1.34 GB", {-kExact, kExact},
      "two hosts at 25 GB/s each",
      [](const Laboratory& laboratory) { return transfers_seconds(laboratory, 1); });
  rows.back().expected_packets = packets;
  // Three messages share one port of 25 GB/s, a third each.
  add("three-at-once", "three prefill servers at once into one decode server",
      {2 - kExact, 2 + kExact}, "the decoder's ports carry three caches, so all end at 81 ms",
      [](const Laboratory& laboratory) { return transfers_seconds(laboratory, 3); });
  rows.back().expected_unshared = DifferenceRange{-kExact, kExact};
  rows.back().expected_packets = DifferenceRange{2 - kExact, 2.002};
  add("bystander", "a bystander from the same leaf to a free host of the other leaf",
      {-kExact, kExact}, "fairly shared, the incast takes 25 of the uplink's 100 GB/s",
      [](const Laboratory& laboratory) { return bystander_seconds(laboratory, false); });
  // With unlimited queues, the bystander's packets alternate with those of the incast on the
  // uplink, which is no bottleneck (100 GB/s for four hosts of 25).
  rows.back().expected_packets = DifferenceRange{-kExact, 0.002};
  // Queues of 1 MiB fill with packets that wait for the decoder, and the bystander's packets wait
  // among them. Four hosts feed the uplink in turn, so each has a quarter of the throughput. Three
  // quarters go into the decoder's port at 25 GB/s. The bystander's quarter goes at a third of
  // that, 8.33 GB/s, and takes three times its time alone.
  add("bystander-lossless", "the same in a lossless network with queues of 1 MiB (packets)",
      {1.95, 2.05}, "full queues block every packet in them: head-of-line blocking",
      [](const Laboratory& laboratory) { return bystander_seconds(laboratory, true); });
  return rows;
}

// ---- S41 ----

// Llama-2 13B on a v5e 4x2, as in the book's table.
constexpr double kLlama13bParameters = 13e9;
constexpr double kWeights = 26e9;       // bytes
constexpr double kSmallCache = 1.34e9;  // bytes per sequence, with five times fewer heads of keys
constexpr double kFullCache = 6.7e9;
constexpr double kDecodingPeak = 1.97e14;
constexpr double kDecodingMemory = 8.2e11;
constexpr double kDecodingLink = 45e9;
constexpr double kModelWidth = 5120;
constexpr int kLayers = 40;
constexpr int kDecodingChips = 8;

enum class Exchange { kNone, kHopByHop, kBothAxes };

// Each layer reads its part of all caches and then multiplies with its weights. Tensor parallelism
// adds two all-reduces of the activations, each after half of the arithmetic.
double decode_seconds(const Laboratory& laboratory, double sequences, double cache,
                      Exchange exchange) {
  Cluster cluster =
      torus_of({4, 2}, Bandwidth(kDecodingLink), std::chrono::microseconds(1), {false, false});
  cluster.chip.peak = peaks_of_all_types(Throughput(kDecodingPeak));
  cluster.chip.memory_bandwidth = Bandwidth(kDecodingMemory);
  constexpr double kParts = 2.0 * kLayers * kDecodingChips;
  Kernel attention;
  attention.name = "attention";
  attention.read = whole_bytes(sequences * cache / kParts);
  Kernel matmuls;
  matmuls.name = "matmuls";
  matmuls.flops = Flops(2 * sequences * kLlama13bParameters / kParts);
  matmuls.read = whole_bytes(kWeights / kParts);
  const Bytes activations = whole_bytes(2 * sequences * kModelWidth);

  GraphByHand graph(kDecodingChips);
  const CommunicatorId all = graph.communicator({}, Axis::kTensor);
  std::vector<StreamId> streams;
  for (std::uint32_t chip = 0; chip < kDecodingChips; ++chip) {
    streams.push_back(graph.stream(chip, "tp"));
  }
  MeshAllReduce mesh(graph, 4, 2);
  std::vector<std::vector<Dependency>> reduced(kDecodingChips);
  for (int half = 0; half < 2 * kLayers; ++half) {
    std::vector<std::vector<Dependency>> computed(kDecodingChips);
    for (std::uint32_t chip = 0; chip < kDecodingChips; ++chip) {
      computed[chip] = {after(graph.compute(chip, Flops(0), reduced[chip]))};
      graph.graph().compute_works.back().kernels = {attention, matmuls};
      if (exchange == Exchange::kBothAxes) {
        CollectiveWork work = work_of(CollectiveOp::kAllReduce, activations);
        work.algorithm = AlgorithmChoice::kMultiAxis;
        work.communicator = all;
        reduced[chip] = {after(graph.collective(chip, streams[chip], work, computed[chip]))};
      }
    }
    if (exchange == Exchange::kHopByHop) reduced = mesh.add(activations, computed);
  }
  return laboratory.seconds(graph.build(), cluster);
}

// Returns the most sequences whose caches fit beside the weights, given the memory that a chip
// holds in a run.
double most_sequences(const Laboratory& laboratory, double capacity) {
  Cluster cluster = torus_of({1}, Bandwidth(kDecodingLink), {}, {false});
  for (int sequences = 1;; ++sequences) {
    GraphByHand graph(1);
    graph.program(0).hold(MemoryCategory::kParameters, whole_bytes(kWeights / kDecodingChips));
    graph.program(0).hold(MemoryCategory::kActivations,
                          whole_bytes(sequences * kFullCache / kDecodingChips));
    graph.compute(0, Flops(1));
    const SimulationResult result = laboratory.simulate(graph.build(), cluster);
    if (static_cast<double>(result.memory_peaks[0].bytes.value()) > capacity) return sequences - 1;
  }
}

double decode_formula(double sequences, double cache) {
  return predict("I1", {{"B", sequences},
                        {"kv", cache},
                        {"V", kWeights},
                        {"P", kLlama13bParameters},
                        {"Nc", kDecodingChips},
                        {"W", kDecodingMemory},
                        {"C", kDecodingPeak}});
}

std::vector<StudyRow> decode_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&](std::string id, std::string regime, double b, double cache,
                       Exchange exchange, DifferenceRange expected, std::string why) {
    rows.push_back({.id = std::move(id),
                    .formula = "I1",
                    .regime = std::move(regime),
                    .predicted = decode_formula(b, cache),
                    .expected = expected,
                    .tolerance = 0.005,
                    .why = std::move(why),
                    .simulate = [=](const Laboratory& laboratory) {
                      return decode_seconds(laboratory, b, cache, exchange);
                    }});
  };
  // Kernel times add up as in the formula; rounding adds at most a picosecond for each of 80
  // kernels.
  for (const auto& [name, cache] :
       {std::pair{"kv-6.7g", kFullCache}, std::pair{"kv-1.34g", kSmallCache}}) {
    for (const int b : {1, 8, 16, 32, 64, 240}) {
      add(std::string(name) + "-b" + std::to_string(b),
          "B = " + std::to_string(b) + ", collectives take no time", b, cache, Exchange::kNone,
          {-1e-6, 1e-6}, "caches, then weights or arithmetic, as the formula says");
    }
  }
  // 16 GiB a chip: (128 GiB - 26 GB) / 6.7 GB = 16.6; 16 GB: 15.2. Whole sequences.
  for (const bool binary : {true, false}) {
    const double capacity = binary ? 16.0 * (1 << 30) : 16e9;
    const double sequences = binary ? 16 : 15;
    rows.push_back({.id = binary ? "fits-gib" : "fits-gb",
                    .formula = "I3",
                    .regime = binary ? "caches beside the weights, chips of 16 GiB"
                                     : "the same, chips of 16 GB",
                    .predicted = predict("I3", {{"Nc", kDecodingChips},
                                                {"Q", 16.0 * (1 << 30)},
                                                {"V", kWeights},
                                                {"kv", kFullCache}}),
                    .unit = "sequences",
                    .expected = {sequences / 16 - 1 - 1e-9, sequences / 16 - 1 + 1e-9},
                    .why = binary ? "16.6: 16 sequences"
                                  : "15.2 fit: it depends on whether G means 10^9 or 2^30",
                    .simulate = [capacity](const Laboratory& laboratory) {
                      return most_sequences(laboratory, capacity);
                    }});
  }
  // 80 all-reduces over 4x2 without wraparound: 3 + 1 hops each way, 8 us, and the bytes of the
  // hops: 6 of a quarter of 2 B D, 2 of an eighth.
  const auto more = [](int b, double hops, double arrays) {
    return 80 * (hops * 1e-6 + arrays * 2 * b * kModelWidth / kDecodingLink) /
           decode_formula(b, kFullCache);
  };
  for (const int b : {1, 64}) {
    const double hop_by_hop = more(b, 8, 6.0 / 4 + 2.0 / 8);
    add("with-tp-b" + std::to_string(b),
        "B = " + std::to_string(b) + ", with TP's all-reduces from neighbour to neighbour", b,
        kFullCache, Exchange::kHopByHop, {hop_by_hop - 1e-4, hop_by_hop + 1e-4},
        b == 1 ? "80 all-reduces of 8 hops: 0.64 ms of latency"
               : "80 all-reduces: 0.64 ms of latency, 2 ms of bytes");
  }
  // Both axes at once. A line of n carries n shards of the data that reach it, scattered and
  // gathered. Give 4/10 of the array to the order that begins with the line of 4: then both lines
  // carry 7/10 of the array. The line of 4 carries 4/10 and half of 6/10; the line of 2 carries
  // 6/10 and a quarter of 4/10. There are 2 (3 + 1) hops.
  const double both = more(1, 8, 7.0 / 10);
  add("with-tp-both-axes-b1", "B = 1, with all-reduces on both axes at once", 1, kFullCache,
      Exchange::kBothAxes, {both - 1e-4, both + 1e-4},
      "80 all-reduces of 8 hops: 0.64 ms of latency");
  // Messages of 1 kB are single packets, stored at up to three links each.
  rows.back().expected_packets = DifferenceRange{both - 1e-4, more(1, 8, 3 * 7.0 / 8) + 1e-4};
  return rows;
}

// ---- S45 ----

constexpr double kHeads = 64;
constexpr double kHeadWidth = 128;

double queries_formula(double b) {
  return predict("I11",
                 {{"B", b}, {"N", kHeads}, {"H", kHeadWidth}, {"b", 2}, {"Wi", 2 * kDecodingLink}});
}

double exchange_queries(const Laboratory& laboratory, double b, const std::vector<int>& sizes,
                        const std::vector<bool>& wraps) {
  const Cluster cluster =
      torus_of(sizes, Bandwidth(kDecodingLink), std::chrono::microseconds(1), wraps);
  const double bytes = b * kHeads * kHeadWidth * 2;  // of all chips together
  return laboratory.seconds(
      collective_graph(all_chips(cluster), work_of(CollectiveOp::kAllToAll, whole_bytes(bytes / 16),
                                                   AlgorithmChoice::kTorusAllToAll)),
      cluster);
}

std::vector<StudyRow> cache_sharding_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&](std::string id, std::string regime, double b, double factor, double hops,
                       std::string why, const std::vector<int>& sizes,
                       const std::vector<bool>& wraps) {
    const double formula = queries_formula(b);
    const double difference = factor + hops * 1e-6 / formula - 1;
    rows.push_back(
        {.id = std::move(id),
         .formula = "I11",
         .regime = std::move(regime),
         .predicted = formula,
         .expected = {difference - 0.002 * (1 + difference), difference + 0.002 * (1 + difference)},
         .why = std::move(why),
         .simulate = [=](const Laboratory& laboratory) {
           return exchange_queries(laboratory, b, sizes, wraps);
         }});
    // Stepped, a chip waits only for data that it passes on, so hops of one phase may hide in
    // another.
    const double bytes_only = factor + (b > 1000 ? 0 : 0.9 * hops * 1e-6 / formula) - 1;
    rows.back().expected_packets = DifferenceRange{bytes_only - 0.001, rows.back().expected.high};
    // On lines of 4 the rounds are 3 + 2 + 1 chunks one after another, though the middle link
    // carries only 4. That takes half as long again, unless phases of one half of the data hide in
    // those of the other.
    if (!wraps[0]) rows.back().expected_packets->high += 0.5 * factor;
  };
  // V / (4 W) plus the hops of the way: 8 on a ring of 16. At B = 65,536 V is 1.07 GB: 2.98 ms.
  add("large-ring", "B = 65,536 on a ring of 16", 65536, 1, 8,
      "bytes dominate: an AllToAll on one ring", {16}, {true});
  // 4x4, wrapped: V max(n_i) / (N 8 W one way) = V / 16 / W_bidi: a quarter of one ring's.
  add("large-torus", "B = 65,536 on a wrapped 4x4", 65536, 0.25, 4,
      "two short axes carry four times what one long one does (B6.torus)", {4, 4}, {true, true});
  // A v5e 4x4 does not wrap: twice that, 3 + 3 hops.
  add("large-mesh", "B = 65,536 on a v5e 4x4, which does not wrap", 65536, 0.5, 6,
      "lines are half as fast as rings", {4, 4}, {false, false});
  // B = 16: 262 kB, messages of 1 kB: 0.73 us of bytes.
  add("small-ring", "B = 16 on a ring of 16", 16, 1, 8,
      "8 hops of 1 us against 0.7 us of bytes: latency the formula does not have", {16}, {true});
  add("small-mesh", "B = 16 on a v5e 4x4", 16, 0.5, 6, "6 hops of 1 us against 0.4 us of bytes",
      {4, 4}, {false, false});
  return rows;
}

}  // namespace

std::vector<Study> decoding_studies() {
  return {{.id = "S29",
           .source = kBookAppliedInference,
           .title = "KV caches into one decode server",
           .claim = "moving a cache of 1.34 GB to the decode server takes 27 ms",
           .rows = incast_rows},
          {.id = "S41",
           .source = kBookInference,
           .title = "Decode steps of LLaMA-2 13B",
           .claim = "a decode step reads all caches and all weights; ICI does not count",
           .rows = decode_rows,
           .finding = "At B = 64 the all-reduces cost 3.9 % hop by hop. 2.4 % holds only if both "
                      "axes of the mesh are busy all the time, which takes two halves of the data "
                      "in opposite orders of axes, as stepsim's own all-reduce has them."},
          {.id = "S45",
           .source = kBookInference,
           .title = "KV cache sharded by sequences",
           .claim = "the two AllToAlls of a layer are cheap: B N H bytes over 4 W",
           .rows = cache_sharding_rows,
           .finding = "The formula is that of one ring of all chips. On a torus the same exchange "
                      "is cheaper in bytes (B6.torus) and at the batches of decoding it is all "
                      "latency: 9 to 12 times the formula."}};
}

}  // namespace stepsim
