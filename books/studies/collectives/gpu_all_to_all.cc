// S24: all-to-alls of GPUs in a node and across nodes.
//
// Bandwidths are one way; V is the bytes of all GPUs together.

#include <utility>

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/h100_nodes.h"
#include "books/laboratory/hops.h"
#include "books/laboratory/row_table.h"
#include "books/laboratory/study_groups.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

// Nodes with latencies of 1 us for a network link and 0.5 us for NVLink.
DgxSuperPodSpec distant_h100_nodes(int nodes) {
  DgxSuperPodSpec spec = h100_nodes(nodes);
  spec.nvlink_latency = std::chrono::nanoseconds(500);
  spec.network_link_latency = std::chrono::microseconds(1);
  return spec;
}

constexpr double kAllTokens = 1e9;  // bytes of all GPUs together

double all_to_all(const Laboratory& laboratory, const DgxSuperPodSpec& spec,
                  AlgorithmChoice algorithm, Granularity granularity) {
  return collective_seconds(
      laboratory, cluster_of(spec),
      work_of(CollectiveOp::kAllToAll, whole_bytes(kAllTokens / (spec.nodes * spec.gpus_per_node)),
              algorithm),
      granularity);
}

double direct_all_to_all(const Laboratory& laboratory, int nodes) {
  return all_to_all(laboratory, h100_nodes(nodes), AlgorithmChoice::kDirect,
                    Granularity::kPipelined);
}

double one_node_formula() {
  return predict("C7", {{"V", kAllTokens}, {"n", 8}, {"W", kNvlink}});
}

double nodes_formula(double nodes) {
  return predict("C11", {{"V", kAllTokens}, {"M", nodes}, {"Wn", kNodeLinks}});
}

constexpr double kChunk = kAllTokens / 64;  // from one GPU to another, in one node

double in_order(const Laboratory& laboratory,
                const std::vector<std::vector<std::uint32_t>>& destinations) {
  return laboratory.seconds(messages_in_order(destinations, whole_bytes(kChunk)),
                            one_node(8, Bandwidth(kNvlink)));
}

// Runs with packets of 64 KiB. Without `buffer`, queues are unlimited.
double on_packets(const Laboratory& laboratory, const OpGraph& graph, std::optional<Bytes> buffer) {
  SimulationOptions options;
  options.packets.packet_bytes = Bytes(1 << 16);
  options.packets.buffer_bytes = buffer;
  return to_seconds(
      laboratory.simulate_packets(graph, one_node(8, Bandwidth(kNvlink)), options).step_time);
}

// Every GPU sends to GPU 0 first, then to 1, ...
void add_orders(RowTable& rows) {
  rows.testing("C7", one_node_formula());
  // All send to GPU 0 first, then to 1, ... The 7 senders share GPU 0's port: 7 chunk times.
  // Meanwhile GPU 0 sends to all others. Then 6 share GPU 1's port, and so on: 7 + 6 + ... + 1 =
  // 28 chunk times instead of 7. Without sharing each message takes one: 7.
  StudyRow& incast =
      rows.add("incast", "one node, everybody to GPU 0 first, then to 1, ...", around(3, kExact),
               "only one destination's port works at a time: 28 chunk times, not 7",
               [](const Laboratory& laboratory) { return in_order(laboratory, same_order(8)); });
  incast.expected_unshared = around(0, kExact);
  incast.expected_packets = {2.8, 3.05};
  // Random orders: a sender waits when others send to the same port. In a closed queueing network
  // whose ports serve all their senders at once, n senders keep n / (2 n - 1) of the ports busy
  // (product form): 8/15, + 88 %. With first-come-first-served ports and messages of equal length,
  // 0.62 of 8 ports are busy (Karol, Hluchyj, Morgan 1987), + 62 %. That is the mean sender. The
  // last of 8 is 1.4 deviations later: the sum of 7 messages of 15/8 +- 0.8 chunk times deviates by
  // 2, so up to 2.9 of 7 more. (A first version of the range left out the last sender and was
  // missed.)
  StudyRow& random = rows.add(
      "random-order", "one node, in orders drawn by lot (mean of 16)", {0.88, 0.88 + 0.42},
      "two senders meet at a port while another one idles", [](const Laboratory& laboratory) {
        double sum = 0;
        for (std::uint64_t seed = 0; seed < 16; ++seed) {
          sum += in_order(laboratory, random_order(8, seed)) / 16;
        }
        return sum;
      });
  random.expected_unshared = around(0, kExact);
  random.expected_packets = {0.62, 0.62 + 0.42};
}

// All messages are in the network's hands from the start, so the network decides the order, not the
// senders.
void add_queues(RowTable& rows) {
  rows.testing("C7", one_node_formula());
  // Senders go on as their links allow: port d gets d messages in chunk time d - 1 and the other 7
  // - d in the next, and has work from d - 1 on: it ends after d + 6, the last one after 13 of 7.
  rows.add("queues", "one node, all posted at once, to GPU 0 first, then to 1, ... (packets)",
           {13.0 / 7 - 1 - kExact, 13.0 / 7 - 1 + 0.005},
           "endless queues take what comes too early; the last port begins 6 of 7 chunk times late",
           [](const Laboratory& laboratory) {
             return on_packets(laboratory, messages_at_once(same_order(8), whole_bytes(kChunk)),
                               {});
           });
  // Queues of 1 MiB, a fifteenth of a message, fill at once and block their senders, whose other
  // messages wait behind: 28 chunk times, as with one message at a time, less what the queue
  // absorbs at each of the 7 steps (7 x 0.067 chunks).
  rows.add("queues-lossless", "the same in a lossless network with queues of 1 MiB (packets)",
           {(28 - 7 * 0.068) / 7 - 1, 3.01},
           "head-of-line blocking: full queues block messages to free ports, as if each rank sent "
           "one message at a time",
           [](const Laboratory& laboratory) {
             return on_packets(laboratory, messages_at_once(same_order(8), whole_bytes(kChunk)),
                               Bytes(1 << 20));
           });
  // Each rank's destinations are rotated, so no port ever has two senders and no queue fills. A
  // packet is stored once: 64 KiB of 109 MB.
  rows.add("rotated-lossless", "rotated orders in the same lossless network (packets)",
           {-kExact, 0.002},
           "destinations are taken in turn, so no queue fills and the formula holds",
           [](const Laboratory& laboratory) {
             return on_packets(laboratory, messages_at_once(rotated_order(8), whole_bytes(kChunk)),
                               Bytes(1 << 20));
           });
}

std::vector<StudyRow> all_to_all_rows() {
  // A packet is stored at each switch once.
  RowTable rows({.tolerance = 0.02}, {0, 0.005});
  rows.testing("C7", one_node_formula())
      .add("n8", "one node, all to all at once", around(0, kExact),
           "every port carries 7/8 of a GPU's bytes",
           [](const Laboratory& laboratory) { return direct_all_to_all(laboratory, 1); });
  for (const int nodes : {2, 8, 32}) {
    rows.testing("C11", nodes_formula(nodes))
        .add(
            "n" + std::to_string(8 * nodes), std::to_string(nodes) + " nodes, all to all at once",
            around(0, kExact),
            "the cards carry (M-1)/M of a GPU's bytes; NVLink relays between rails beside it",
            [nodes](const Laboratory& laboratory) { return direct_all_to_all(laboratory, nodes); });
  }
  // The rules of thumb, V / (n W) and V / (M Wn), drop (M-1)/M: their ratio is 8 x 450 / 800 = 4.5.
  // With the factor it is (1/4 / 400e9) / (7/64 / 450e9) = 18/7: 4/7 of 4.5.
  rows.testing("C11.slowdown", 8 * kNvlink / (2 * kNodeLinks), "x")
      .add(
          "two-nodes-over-one", "2 nodes over 1: \"more than four times worse\"",
          around(4.0 / 7 - 1, kExact),
          "half of the bytes stay in the node at M = 2, an eighth stays in the GPU at n = 8: 2.57x",
          [](const Laboratory& laboratory) {
            return direct_all_to_all(laboratory, 2) / direct_all_to_all(laboratory, 1);
          });
  add_orders(rows);
  add_queues(rows);
  rows.testing("C11", nodes_formula(8));
  // 64 GPUs in 63 rounds of one partner. In every round some GPU's partner is in another node, so a
  // round takes 244 kB over 50 GB/s, 4.883 us: 307.6 us instead of 56 of them, 273.4 us. Latency is
  // 1 us for a network link and 0.5 us for NVLink. That is 2 us in the 7 rounds with a partner on
  // the same rail and 3 us in the others, which NVLink relays: 182 us. In all 489.6 us: +79 %. In
  // 14 rounds some partners are in the node and finish early. Their next messages meet those of
  // others on a card, each for at most one message more: up to 14 x 4.9 us, +104 %.
  rows.add("rounds-of-one-partner", "8 nodes, in rounds of one partner, 2 to 3 us a trip",
           {0.79, 1.04},
           "244 kB take 4.9 us, a trip 2 to 3: latency of 63 rounds, and rounds that drift apart",
           [](const Laboratory& laboratory) {
             return all_to_all(laboratory, distant_h100_nodes(8), AlgorithmChoice::kPairwise,
                               Granularity::kStepped);
           })
      .expected_unshared = DifferenceRange{0.70, 0.80};  // meeting costs nothing
  // Each rail carries what 8 GPUs send to a GPU: 7 rounds of 1.95 MB, 39.1 us each, instead of 56
  // of 244 kB; the bytes are the same. Latency: 7 trips of 2 us over a rail and 7 of 1 us inside,
  // 21 us. Also the part of the first leg inside that is not hidden, up to 7 x 1.95 MB / 450 GB/s =
  // 30 us: + 5 to + 19 %.
  rows.add("pxn", "8 nodes, inside the node to the right rail first (PXN), 1 to 2 us a trip",
           {0.05, 0.19}, "fewer and larger messages: latency weighs little again",
           [](const Laboratory& laboratory) {
             return all_to_all(laboratory, distant_h100_nodes(8), AlgorithmChoice::kPxn,
                               Granularity::kStepped);
           });
  return std::move(rows).take();
}

}  // namespace

std::vector<Study> gpu_all_to_all_studies() {
  return {{.id = "S24",
           .source = kBookGpus,
           .title = "AllToAll in a node and across nodes",
           .claim = "an AllToAll across M nodes takes V (M-1) / (M^2 W) of the nodes' egress",
           .rows = all_to_all_rows,
           .finding =
               "Rounds of one partner over 8 nodes come out 87 % above the formula, more than "
               "their latency (79 %): messages inside a node end early, their senders run ahead "
               "and meet others on a card. Without sharing (latency-bandwidth) that part is gone. "
               "Unpaced, the same order for all costs 4 times the formula where senders or full "
               "queues let one message go at a time, and 1.86 times with queues that never fill: "
               "the 1.3 to 2 times that are usually quoted for lossless networks are those of "
               "queues about as large as the messages."}};
}

}  // namespace stepsim
