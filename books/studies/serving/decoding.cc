// S29, S41, S42 and S45: caches that move between servers, decode steps, a layer divided beyond the
// bound of ICI, and caches divided by request. Caches move as `stepsim serve` moves them, steps are
// passes of the catalog's models.

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/study_groups.h"
#include "books/studies/serving/book_serving.h"
#include "proto/load_experiment.h"
#include "serving/passes/network_kv_transport.h"
#include "sim/program/graph_by_hand.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

// ---- S29 ----

constexpr double kHostLink = 25e9;           // B/s one way, per host
constexpr std::uint32_t kHostsOfServer = 2;  // a server of 16 v5e
constexpr std::int64_t kPrompt8k = 8192;
constexpr std::int64_t kBytesOfToken = 163840;  // int8 Llama-3 70B
constexpr double kCache = static_cast<double>(kBytesOfToken * kPrompt8k);

Cluster leaves_of_hosts(int leaves, int hosts_of_leaf) {
  LeafSpineSpec spec;
  spec.leaves = leaves;
  spec.hosts_per_leaf = hosts_of_leaf;
  spec.spines = 1;
  spec.host_bandwidth = Bandwidth(kHostLink);
  return cluster_of(spec);
}

void need_flows(const Laboratory& laboratory) {
  if (laboratory.fidelity == Fidelity::kFlow) return;
  throw StudySkipped("serving carries caches on the flow network");
}

// Serves a prompt on each of so many prefill servers at once; one server decodes. Returns the
// longest transfer. Server s has the hosts 2 s and 2 s + 1, the decode server the last two.
double longest_transfer(const Laboratory& laboratory, std::int64_t prefill_servers) {
  need_flows(laboratory);
  const auto servers = static_cast<std::uint32_t>(prefill_servers) + 1;
  const Cluster cluster = leaves_of_hosts(1, static_cast<int>(servers * kHostsOfServer));
  std::vector<ReplicaPlace> places;
  for (std::uint32_t server = 0; server < servers; ++server) {
    places.push_back({.first = server * kHostsOfServer,
                      .ranks = kHostsOfServer,
                      .token = Bytes(kBytesOfToken / kHostsOfServer)});
  }
  NetworkKvTransport transport(cluster, std::move(places));
  const RequestList list = requests_at_once(prefill_servers, kPrompt8k, 2);
  ServingOptions options;
  options.replicas = {.options = book_engine(1, kPrompt8k), .count = prefill_servers};
  options.decode = ReplicaGroup{.options = book_engine(prefill_servers, kPrompt8k), .count = 1};
  LinearStepTime step({.base = std::chrono::milliseconds(10)});
  const ServingResult result =
      simulate_serving(list, options, {.replicas = step, .decode = &step, .transport = &transport});
  Duration longest;
  for (const RequestRecord& record : result.requests) {
    longest = std::max(longest, record.parts[static_cast<std::size_t>(RequestPart::kTransfer)]);
  }
  return to_seconds(longest);
}

// Hosts 0 to 2 send half a cache each to host 4. Host 3, the bystander, sends as much to host 5,
// which nobody else uses. Hosts 0 to 3 are on one leaf, 4 to 7 on the other, behind one spine.
// Returns when the bystander's arrives.
double bystander_seconds(const Laboratory& laboratory) {
  need_flows(laboratory);
  const Cluster cluster = leaves_of_hosts(2, 4);
  std::vector<ReplicaPlace> places;
  for (std::uint32_t host = 0; host < 6; ++host) {
    places.push_back({.first = host, .token = Bytes(kBytesOfToken / kHostsOfServer)});
  }
  NetworkKvTransport transport(cluster, std::move(places));
  for (std::uint32_t host = 0; host < 4; ++host) {
    transport.start(
        Time{},
        {.request = RequestId(host), .from = host, .to = host < 3 ? 4u : 5u, .tokens = kPrompt8k});
  }
  std::vector<KvTransfer> arrived;
  while (const std::optional<Time> next = transport.next_event()) {
    arrived.clear();
    transport.advance(*next, arrived);
    for (const KvTransfer& transfer : arrived) {
      if (transfer.to == 5) return to_seconds(next->since_start);
    }
  }
  return 0;
}

// The same as messages of packets, which no transport of serving knows.
double bystander_of_packets(const Laboratory& laboratory) {
  const Cluster cluster = leaves_of_hosts(2, 4);
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
  options.packets.buffer_bytes = Bytes(1 << 20);
  options.packets.packet_bytes = Bytes(1 << 16);
  const SimulationResult result = laboratory.simulate_packets(graph.build(), cluster, options);
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
  add("alone", "served: one prefill server sends a cache of 1.34 GB", {-kExact, kExact},
      "two hosts at 25 GB/s each",
      [](const Laboratory& laboratory) { return longest_transfer(laboratory, 1); });
  // Three messages share one port of 25 GB/s, a third each.
  add("three-at-once", "served: three prefill servers end at once, one decode server",
      {2 - kExact, 2 + kExact}, "the decoder's ports carry three caches, so all end at 81 ms",
      [](const Laboratory& laboratory) { return longest_transfer(laboratory, 3); });
  add("bystander", "a bystander from the same leaf to a free host of the other leaf",
      {-kExact, kExact}, "fairly shared, the incast takes 25 of the uplink's 100 GB/s",
      bystander_seconds);
  // Queues of 1 MiB fill with packets that wait for the decoder, and the bystander's packets wait
  // among them. Four hosts feed the uplink in turn, so each has a quarter of the throughput. Three
  // quarters go into the decoder's port at 25 GB/s. The bystander's quarter goes at a third of
  // that, 8.33 GB/s, and takes three times its time alone.
  add("bystander-lossless", "the same in a lossless network with queues of 1 MiB (packets)",
      {1.95, 2.05}, "full queues block every packet in them: head-of-line blocking",
      bystander_of_packets);
  return rows;
}

// ---- S41 ----

// LLaMA-2 13B on a v5e 4x2, as in the book's table: 13e9 parameters and 26e9 bytes.
constexpr double kBookParameters = 13e9;
constexpr double kBookWeights = 26e9;
constexpr double kSmallCache =
    1.34e9;  // a sequence of 8,192 tokens, five times fewer heads of keys
constexpr double kFullCache = 6.7e9;
constexpr int kChipsOf13b = 8;  // chips
constexpr double kWidthOf13b = 5120;
constexpr double kBlocksOf13b = 40;

// With 8 key-value heads the projections shrink; wider MLPs keep the number of parameters, as
// Llama 2's ablation of attention does (arXiv 2307.09288, appendix A.2.1).
ModelSpec llama_13b(bool grouped) {
  ModelSpec model = load_model("llama2-13b");
  if (!grouped) return model;
  constexpr std::int64_t kWider = 16'552;
  model.attention.kv_heads = 8;
  model.mlp.width = kWider;
  return model;
}

double decode_pass(const Laboratory& laboratory, int sequences, bool grouped, bool has_links) {
  return pass_seconds(laboratory, llama_13b(grouped),
                      "inference=decode,tp=8,context=8192,batch=" + std::to_string(sequences),
                      book_v5e({.sizes = {4, 2}, .has_links = has_links}));
}

double decode_formula(double sequences, double cache, double weights = kBookWeights) {
  return predict("I1", {{"B", sequences},
                        {"kv", cache},
                        {"V", weights},
                        {"P", kBookParameters},
                        {"Nc", kChipsOf13b},
                        {"W", kSliceMemory},
                        {"C", kSliceFlops}});
}

// What a pass does that the book leaves out, relative to its time without communication. The table
// of embeddings is not read: 13.016e9 - 32,000 x 5,120 parameters are, 25.70e9 bytes. Activations
// are: a token's vectors of the model's width go 12 times through the memory of every chip in a
// layer (two norms read and write one, two additions read two and write one, two projections read
// one), 2 are written behind sums, and those of the chip's heads and of its part of the MLP, with
// 5,120 and 13,824 or 16,552 values on all chips together, 10 and 6 times: 14 + 1.25 + 2 widths.
double activations(double sequences) {
  constexpr double kWidths = 17.3;
  return sequences * kBlocksOf13b * kWidths * 2 * kWidthOf13b / kSliceMemory;
}

double left_out(double sequences, double cache) {
  constexpr double kRead = 25.704e9;
  const double exact = cache == kFullCache ? 6'710'886'400.0 : 1'342'177'280.0;
  const double pass = (sequences * exact + kRead) / (kChipsOf13b * kSliceMemory);
  return (pass + activations(sequences)) / decode_formula(sequences, cache) - 1;
}

std::vector<StudyRow> decode_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&](std::string id, std::string regime, int b, double cache, bool has_links,
                       DifferenceRange expected, std::string why) {
    rows.push_back({.id = std::move(id),
                    .formula = "I1",
                    .regime = std::move(regime),
                    .predicted = decode_formula(b, cache),
                    .expected = expected,
                    .tolerance = 0.01,
                    .why = std::move(why),
                    .simulate = [=](const Laboratory& laboratory) {
                      return decode_pass(laboratory, b, cache == kSmallCache, has_links);
                    }});
  };
  for (const auto& [name, cache] :
       {std::pair{"kv-6.7g", kFullCache}, std::pair{"kv-1.34g", kSmallCache}}) {
    for (const int b : {1, 8, 16, 32, 64, 240}) {
      const double expected = left_out(b, cache);
      // A tenth of the activations is the margin.
      const double margin = 0.0005 + 0.1 * activations(b) / decode_formula(b, cache);
      add(std::string(name) + "-b" + std::to_string(b),
          "a pass of B = " + std::to_string(b) + ", collectives take no time", b, cache, false,
          {expected - margin, expected + margin},
          b < 32 ? "caches, then weights, less the table of embeddings, which no step reads"
                 : "and activations, which go through the memory, too");
    }
  }
  return rows;
}

void add_memory_rows(std::vector<StudyRow>& rows) {
  // (128 GiB - 26 GB) / 6.7 GB = 16.6. A step's buffers take a part of what is left over: 16 whole
  // caches fit until a chip's buffers are larger than 0.6 x 6.7 / 8 = 0.5 GB.
  const double gib = 16.0 * (1 << 30);
  for (const bool binary : {true, false}) {
    const double capacity = binary ? gib : kSliceCapacity;
    const double sequences = binary ? 16 : 15;
    rows.push_back(
        {.id = binary ? "fits-gib" : "fits-gb",
         .formula = "I3",
         .regime = binary
                       ? "caches that an engine finds room for beside weights and buffers, chips "
                         "of 16 GiB"
                       : "the same, chips of 16 GB",
         .predicted = predict(
             "I3", {{"Nc", kChipsOf13b}, {"Q", gib}, {"V", kBookWeights}, {"kv", kFullCache}}),
         .unit = "sequences",
         .expected = {sequences / 16 - 1 - 1e-9, sequences / 16 - 1 + 1e-9},
         .why =
             binary ? "16.6: 16 sequences" : "15.2 fit: it depends on whether G means 10^9 or 2^30",
         .simulate = [capacity](const Laboratory&) {
           return static_cast<double>(
               caches_that_fit(llama_13b(false), "inference=decode,tp=8,context=2,batch=1",
                               book_v5e({.sizes = {4, 2}, .capacity = capacity}), kPrompt8k, 64));
         }});
  }
}

void add_collective_rows(std::vector<StudyRow>& rows) {
  for (const int b : {1, 64}) {
    const double formula = decode_formula(b, kFullCache);
    // 81 all-reduces (two a layer and that of the embeddings) and a gather of the logits over 4x2
    // without wraparound. Small ones double the distance: 1 + 2 + 1 hops, and the links of a line
    // of four carry the array twice. Large ones go along both axes: 3 + 1 hops each way, both axes
    // are busy at once, so that each line carries 7/10 of the array: 4/10 and half of the rest.
    const bool small = b == 1;
    const double latency = (81 * (small ? 4 : 8) + 4) * 1e-6;
    const double array = 2 * b * kWidthOf13b / kSliceLink;
    const double all_reduces = 81 * (small ? 2 : 0.7) * array;
    // The logits of 32,000 words, of which a line carries less than half.
    const double logits = 0.45 * 2 * b * 32'000 / kSliceLink;
    const double expected = left_out(b, kFullCache) + (latency + all_reduces + logits) / formula;
    rows.push_back({.id = "with-tp-b" + std::to_string(b),
                    .formula = "I1",
                    .regime = "a pass of B = " + std::to_string(b) + " with its collectives",
                    .predicted = formula,
                    .expected = {expected - 0.001, expected + 0.001},
                    .tolerance = 0.01,
                    .why = b == 1 ? "81 all-reduces of 4 hops: 0.32 ms of latency"
                                  : "81 all-reduces: 0.65 ms of latency, and bytes",
                    .simulate = [b](const Laboratory& laboratory) {
                      return decode_pass(laboratory, b, false, true);
                    }});
    // Stepped, the phases of an all-reduce follow each other, and both lines wait for the longer
    // one.
    rows.back().expected_packets =
        DifferenceRange{expected - 0.001, expected + all_reduces / formula + 0.002};
  }
}

std::vector<StudyRow> decode_step_rows() {
  std::vector<StudyRow> rows = decode_rows();
  add_memory_rows(rows);
  add_collective_rows(rows);
  return rows;
}

// ---- S42 ----

// Llama-3 70B in bf16 on a v5e 4x8, B = 64: F = 28,672 is divided by 32.
constexpr double kDecodeBatch = 64;
constexpr double kHiddenOf70b = 8192;
constexpr double kInnerOf70b = 28672;
constexpr double kDecodeWays = 32;
constexpr double kLayersOf70b = 80;
constexpr double kMemory810 = 8.1e11;  // B/s, as that chapter counts
constexpr double kEndlessMemory = 1e18;

double layer_pass(const Laboratory& laboratory, std::int64_t inner, const BookSlice& slice) {
  ModelSpec model = load_model("llama3-70b");
  model.mlp.width = inner;
  return pass_seconds(laboratory, model, "inference=decode,tp=32,context=2,batch=64",
                      book_v5e(slice));
}

// Returns the time of one matrix of the MLP: three matrices of half the width make the difference
// of two passes.
double matrix_seconds(const Laboratory& laboratory, const BookSlice& slice) {
  const auto inner = static_cast<std::int64_t>(kInnerOf70b);
  const double whole = layer_pass(laboratory, inner, slice);
  return (whole - layer_pass(laboratory, inner / 2, slice)) / (3 * kLayersOf70b) * 2;
}

// Returns the time of one all-reduce: there are two a layer. The one of the embeddings and the
// gather of logits are in a pass of one layer, too, and are taken off.
double all_reduce_seconds(const Laboratory& laboratory) {
  const auto exposed = [&](std::int64_t layers) {
    ModelSpec model = load_model("llama3-70b");
    model.layers = layers;
    const char* const plan = "inference=decode,tp=32,context=2,batch=64";
    BookSlice slice{.sizes = {4, 8}, .memory = kMemory810};
    const double with = pass_seconds(laboratory, model, plan, book_v5e(slice));
    slice.has_links = false;
    return with - pass_seconds(laboratory, model, plan, book_v5e(slice));
  };
  return (exposed(2) - exposed(1)) / 2;
}

std::vector<StudyRow> ici_bound_rows() {
  std::vector<StudyRow> rows;
  // A matrix is read, and a chip's part of the activations goes through the memory six times in
  // three matrices: 2 x 64 x 896 x 2 bytes a matrix, 1.6 % of its 14.7 MB.
  rows.push_back(
      {.id = "memory",
       .formula = "I4.memory",
       .regime = "a matrix of the MLP, B = 64 on 32 chips, from passes of two widths",
       .predicted = predict(
           "I4.memory",
           {{"D", kHiddenOf70b}, {"F", kInnerOf70b}, {"Y", kDecodeWays}, {"W", kMemory810}}),
       .expected = {0.011, 0.021},
       .tolerance = 0.02,
       .why = "the weights, and 1.6 % for activations of the MLP",
       .simulate = [](const Laboratory& laboratory) {
         return matrix_seconds(laboratory,
                               {.sizes = {4, 8}, .memory = kMemory810, .has_links = false});
       }});
  rows.push_back({.id = "arithmetic",
                  .formula = "I4.math",
                  .regime = "the same where memory takes no time",
                  .predicted = predict("I4.math", {{"B", kDecodeBatch},
                                                   {"D", kHiddenOf70b},
                                                   {"F", kInnerOf70b},
                                                   {"Y", kDecodeWays},
                                                   {"C", kSliceFlops}}),
                  .expected = {-kExact, 0.002},
                  .why = "2 B D F / Y FLOPs",
                  .simulate = [](const Laboratory& laboratory) {
                    return matrix_seconds(
                        laboratory,
                        {.sizes = {4, 8}, .memory = kEndlessMemory, .has_links = false});
                  }});
  // An all-reduce scatters and gathers: twice 3 + 7 hops. No axis wraps. With 7/13 of the array
  // begun on the lines of 4 and the rest on those of 8, each line carries 31/52 of the array: 13.9
  // us.
  const double ici =
      predict("I4.ici", {{"B", kDecodeBatch}, {"D", kHiddenOf70b}, {"Wi", 2 * kSliceLink}});
  const double all_reduce = 20e-6 + 31.0 / 52 * 2 * kDecodeBatch * kHiddenOf70b / kSliceLink;
  rows.push_back({.id = "ici",
                  .formula = "I4.ici",
                  .regime = "an all-reduce of the activations on the slice, which does not wrap",
                  .predicted = ici,
                  .expected = {all_reduce / ici - 1 - 0.01, all_reduce / ici - 1 + 0.01},
                  .why = "20 hops of 1 us; the book counts one gather on a ring, without hops",
                  .simulate = all_reduce_seconds,
                  .not_on_packets =
                      "passes of one and two layers are compared, whose packets differ in size"});
  return rows;
}

// ---- S45 ----

constexpr double kHeads = 64;
constexpr double kHeadWidth = 128;
constexpr double kMeshChips = 16;

double queries_formula(double b) {
  return predict("I11",
                 {{"B", b}, {"N", kHeads}, {"H", kHeadWidth}, {"b", 2}, {"Wi", 2 * kSliceLink}});
}

// Returns the mean time of the all-to-alls in a pass of Llama-3 70B on 16 chips whose arithmetic
// and memory take no time: two a layer, by which passes with caches by request and by head differ.
double exchange_seconds(const Laboratory& laboratory, std::int64_t b, const std::vector<int>& sizes,
                        bool wraps) {
  ModelSpec model = load_model("llama3-70b");
  model.layers = 4;
  const Cluster cluster = book_v5e({.sizes = sizes,
                                    .flops = kEndlessMemory,
                                    .memory = kEndlessMemory,
                                    .capacity = 1e15,
                                    .wraps = wraps});
  const auto pass = [&](const std::string& split) {
    return pass_seconds(
        laboratory, model,
        "inference=decode,tp=16,context=1,batch=" + std::to_string(b) + ",cache_split=" + split,
        cluster);
  };
  return (pass("requests") - pass("heads")) / (2.0 * static_cast<double>(model.layers));
}

std::vector<StudyRow> cache_sharding_rows() {
  std::vector<StudyRow> rows;
  // New keys and values travel with the queries: 8 of 64 heads, twice, a quarter more bytes on one
  // of two ways.
  constexpr double kWithKeys = 1.125;
  const auto add = [&](std::string id, std::string regime, std::int64_t b, double factor,
                       double hops, std::string why, const std::vector<int>& sizes, bool wraps) {
    const double formula = queries_formula(static_cast<double>(b));
    const double difference = kWithKeys * factor + hops * 1e-6 / formula - 1;
    rows.push_back(
        {.id = std::move(id),
         .formula = "I11",
         .regime = std::move(regime),
         .predicted = formula,
         .expected = {difference - 0.002 * (1 + difference), difference + 0.002 * (1 + difference)},
         .why = std::move(why),
         .simulate =
             [=](const Laboratory& laboratory) {
               return exchange_seconds(laboratory, b, sizes, wraps);
             },
         .not_on_packets = "two passes are compared, whose packets differ in size"});
  };
  // V / (4 W) plus the hops of the way: 8 on a ring of 16. At B = 65,536 V is 1.07 GB: 2.98 ms.
  add("large-ring", "B = 65,536 on a ring of 16", 65536, 1, 8,
      "bytes dominate: an AllToAll on one ring, and new keys besides queries", {16}, true);
  // 4x4, wrapped: V max(n_i) / (N 8 W one way) = V / 16 / W_bidi: a quarter of one ring's.
  add("large-torus", "B = 65,536 on a wrapped 4x4", 65536, 0.25, 4,
      "two short axes carry four times what one long one does (B6.torus)", {4, 4}, true);
  // A v5e 4x4 does not wrap: twice that, 3 + 3 hops.
  add("large-mesh", "B = 65,536 on a v5e 4x4, which does not wrap", 65536, 0.5, 6,
      "lines are half as fast as rings", {4, 4}, false);
  // B = 16: 262 kB, messages of 1 kB: 0.73 us of bytes.
  add("small-ring", "B = 16 on a ring of 16", 16, 1, 8,
      "8 hops of 1 us against 0.8 us of bytes: latency the formula does not have", {16}, true);
  add("small-mesh", "B = 16 on a v5e 4x4", 16, 0.5, 6, "6 hops of 1 us against 0.4 us of bytes",
      {4, 4}, false);
  // What it is good for: 8 key-value heads on 16 chips are on two chips each, and both read them.
  // 32 caches of 8,192 tokens, 2 x 8 x 128 x 2 bytes a layer and token, instead of twice as many.
  // A pass reads 141.1 GB - 2.1 GB (the table) of weights and 85.9 or 171.8 GB of caches.
  const double read = 139.0e9;
  const double caches = 32 * 8192.0 * 327680;
  // Besides, key and value projections are on two chips each, 2.7 GB, and activations of 32
  // requests go through the memory of every chip, 14 vectors of 8,192 values a layer: 0.9 ms
  // of 17.1 ms.
  const double left = (2.7e9 / 16 + 32 * 80 * 14 * 8192 * 2.0) * 16 / (caches + read);
  rows.push_back(
      {.id = "read-once",
       .formula = "I2",
       .regime = "a pass of 32 caches of 8,192 tokens by head: 16 chips read 8 heads twice",
       .predicted = predict("I2", {{"B", 32},
                                   {"kv", 8192.0 * 327680},
                                   {"V", read},
                                   {"Nc", kMeshChips},
                                   {"W", kSliceMemory}}),
       .expected = {caches / (caches + read) + left - 0.01, caches / (caches + read) + left + 0.02},
       .why = "more chips than key-value heads: each head is on two chips, which both read it",
       .simulate = [](const Laboratory& laboratory) {
         return pass_seconds(laboratory, load_model("llama3-70b"),
                             "inference=decode,tp=16,batch=32,context=8192",
                             book_v5e({.sizes = {4, 4}, .has_links = false}));
       }});
  rows.push_back({.id = "by-request",
                  .formula = "I2",
                  .regime = "the same with caches by request (cache_split=requests)",
                  .predicted = rows.back().predicted,
                  .expected = {left - 0.005, left + 0.02},
                  .tolerance = 0.02,
                  .why = "each chip reads two whole caches, once",
                  .simulate = [](const Laboratory& laboratory) {
                    return pass_seconds(
                        laboratory, load_model("llama3-70b"),
                        "inference=decode,tp=16,batch=32,context=8192,cache_split=requests",
                        book_v5e({.sizes = {4, 4}, .has_links = false}));
                  }});
  return rows;
}

}  // namespace

std::vector<Study> decoding_studies() {
  return {{.id = "S29",
           .source = kBookAppliedInference,
           .title = "KV caches into one decode server",
           .claim = "moving a cache of 1.34 GB to the decode server takes 27 ms",
           .rows = incast_rows,
           .finding = "The caches move as stepsim serve --transfer network moves them, but for the "
                      "last row: serving knows no packets."},
          {.id = "S41",
           .source = kBookInference,
           .title = "Decode steps of LLaMA-2 13B",
           .claim = "a decode step reads all caches and all weights; ICI does not count",
           .rows = decode_step_rows,
           .finding = "Passes of the catalog's model, not of a kernel of 26 GB: they read 25.7 GB, "
                      "because no step reads the table of embeddings, and activations go through "
                      "the memory as well. Eight of the twelve points are within 1 % of the "
                      "book's; the four with small caches and 16 requests or more are 1.4 to 4 % "
                      "above. What does not hold is that ICI does not count."},
          {.id = "S42",
           .source = kBookAppliedInference,
           .title = "A decode layer divided beyond the bound of ICI",
           .claim = "on 32 v5e a matrix takes 18 us from memory, 11.7 us over ICI, 4.8 us of "
                    "arithmetic, so decoding is still bound by memory",
           .rows = ici_bound_rows,
           .finding = "Memory and arithmetic are as the book says. Its 11.7 us of ICI are those of "
                      "a ring without hops; a 4x8 v5e has no ring, and 10 hops of 1 us each way "
                      "make an all-reduce longer than the matrix it follows: bound by ICI."},
          {.id = "S45",
           .source = kBookInference,
           .title = "KV cache sharded by sequences",
           .claim = "the two AllToAlls of a layer are cheap: B N H bytes over 4 W",
           .rows = cache_sharding_rows,
           .finding = "The formula is that of one ring of all chips, and leaves out the new keys "
                      "and values. On a torus the same exchange is cheaper in bytes (B6.torus) and "
                      "at the batches of decoding it is all latency: 9 to 12 times the formula."}};
}

}  // namespace stepsim
