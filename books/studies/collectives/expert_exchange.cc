// S25: the all-to-all of expert parallelism, token by token.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "books/formulas/sources.h"
#include "books/laboratory/collective_graph.h"
#include "books/laboratory/h100_nodes.h"
#include "books/laboratory/random_numbers.h"
#include "books/laboratory/study_groups.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

// DeepSeek-V3 at scale: 64-way expert parallelism on 8 nodes of H100.
constexpr std::uint32_t kGpus = 64;
constexpr std::uint32_t kPerNode = 8;
constexpr std::uint32_t kNodes = kGpus / kPerNode;
constexpr std::uint32_t kExperts = 256;
constexpr std::uint32_t kChosen = 8;  // experts per token
constexpr double kTokenBytes = 2 * 7168;
constexpr std::uint32_t kTokensPerGpu = 1024;  // tokens of each GPU
constexpr double kCard = 50e9;

enum class Routing { kUniform, kFourNodes };

std::uint32_t draw(RandomNumbers& random, std::uint32_t below) {
  return std::min(static_cast<std::uint32_t>(random.uniform() * below), below - 1);
}

// Draws the experts of a token, all different, from all nodes or from four of them.
std::array<std::uint32_t, kChosen> choose(RandomNumbers& random, Routing routing) {
  constexpr std::uint32_t kExpertsOfNode = kExperts / kNodes;
  std::array<std::uint32_t, kNodes> nodes{};
  std::iota(nodes.begin(), nodes.end(), 0u);
  const std::uint32_t allowed = routing == Routing::kUniform ? kNodes : 4;
  for (std::uint32_t i = 0; i < allowed; ++i) {
    std::swap(nodes[i], nodes[i + draw(random, kNodes - i)]);
  }
  std::array<std::uint32_t, kChosen> chosen{};
  for (std::uint32_t i = 0; i < kChosen; ++i) {
    do {
      const std::uint32_t expert = draw(random, allowed * kExpertsOfNode);
      chosen[i] = nodes[expert / kExpertsOfNode] * kExpertsOfNode + expert % kExpertsOfNode;
    } while (std::find(chosen.begin(), chosen.begin() + i, chosen[i]) != chosen.begin() + i);
  }
  return chosen;
}

// Sends one copy to each expert. With sharing, it sends one copy to each node, and from there one
// to each of the node's GPUs.
ByteMatrix dispatch(Routing routing, NodeSharing sharing) {
  RandomNumbers random(25);
  const auto token = static_cast<std::int64_t>(kTokenBytes);
  ByteMatrix matrix{.members = kGpus};
  matrix.bytes.resize(kGpus * kGpus);
  matrix.sharing = sharing;
  for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu) matrix.node_of.push_back(gpu / kPerNode);
  matrix.shared.resize(kGpus * kNodes);
  for (std::uint32_t source = 0; source < kGpus; ++source) {
    for (std::uint32_t i = 0; i < kTokensPerGpu; ++i) {
      std::array<bool, kGpus> has_gpu{};
      std::array<bool, kNodes> has_node{};
      for (const std::uint32_t expert : choose(random, routing)) {
        const std::uint32_t gpu = expert / (kExperts / kGpus);
        if (sharing == NodeSharing::kNone || !has_gpu[gpu]) {
          matrix.bytes[source * kGpus + gpu] += Bytes(token);
        }
        if (!has_node[gpu / kPerNode]) {
          matrix.shared[source * kNodes + gpu / kPerNode] += Bytes(token);
        }
        has_gpu[gpu] = true;
        has_node[gpu / kPerNode] = true;
      }
    }
  }
  if (sharing == NodeSharing::kNone) {
    matrix.node_of.clear();
    matrix.shared.clear();
  }
  return matrix;
}

// Sends each GPU as many bytes as uniform routing does on average; GPUs of node 0 get `hot` times
// that.
ByteMatrix even(double hot) {
  ByteMatrix matrix{.members = kGpus};
  const double mean = kTokensPerGpu * kChosen * kTokenBytes / kGpus;
  const double others = (kNodes - hot) / (kNodes - 1);
  for (std::uint32_t source = 0; source < kGpus; ++source) {
    for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu) {
      matrix.bytes.push_back(Bytes(std::llround(mean * (gpu < kPerNode ? hot : others))));
    }
  }
  return matrix;
}

double exchange(const Laboratory& laboratory, const Cluster& cluster, ByteMatrix matrix,
                AlgorithmChoice algorithm, Granularity granularity) {
  CollectiveWork work = work_of(CollectiveOp::kAllToAll, largest_buffer(matrix), algorithm);
  work.byte_matrix = 0;
  OpGraph graph = collective_graph(all_chips(cluster), work);
  graph.byte_matrices = {std::move(matrix)};
  SimulationOptions options;
  options.granularity = granularity;
  return laboratory.seconds(graph, cluster, options);
}

DgxSuperPodSpec nodes_spec() {
  DgxSuperPodSpec spec;
  spec.nodes = static_cast<int>(kNodes);
  spec.nvlink_bandwidth = Bandwidth(kNvlink);
  spec.nic_bandwidth = Bandwidth(kCard);
  return spec;
}

double over_nodes(const Laboratory& laboratory, ByteMatrix matrix, AlgorithmChoice algorithm) {
  return exchange(laboratory, cluster_of(nodes_spec()), std::move(matrix), algorithm,
                  Granularity::kPipelined);
}

double formula(double tokens_of_gpu) {
  return predict("E13", {{"B", tokens_of_gpu * kGpus},
                         {"D", kTokenBytes / 2},
                         {"Z", kGpus},
                         {"Wn", kPerNode * kCard},
                         {"k", kChosen}});
}

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<StudyRow> expert_rows() {
  std::vector<StudyRow> rows;
  const auto add = [&](std::string id, std::string regime, DifferenceRange expected,
                       std::string why, std::function<double(const Laboratory&)> simulate) {
    rows.push_back({.id = std::move(id),
                    .formula = "E13",
                    .regime = std::move(regime),
                    .predicted = formula(kTokensPerGpu),
                    .expected = expected,
                    .tolerance = 0.03,
                    .why = std::move(why),
                    .simulate = std::move(simulate)});
    rows.back().not_on_packets =
        "packets run stepped, message by message, but the rows are about bytes";
  };
  // min(8 k / Z, 1) = 1: a copy to each of 8 nodes, 7 of them over the network. Uniform routing
  // sends 8 copies, of which 7/8 leave the node: 7 as well. A card sends or receives 1024 x 8 x 7/8
  // = 7168 tokens on average. By chance the busiest of 64 cards has 2.5 deviations more: 2.5 /
  // sqrt(7168) = 3 % at most (draws of one token are not independent, which reduces it).
  add("uniform", "every copy sent by itself, uniform routing", {-0.005, 0.04},
      "8 copies of a token over 8 nodes are what the formula counts; the busiest card decides",
      [](const Laboratory& laboratory) {
        return over_nodes(laboratory, dispatch(Routing::kUniform, NodeSharing::kNone),
                          AlgorithmChoice::kDirect);
      });
  // 8 of 256 experts without repetition miss a given node with probability (224 x ... x 217) / (256
  // x ... x 249) = 0.3382: 0.6618 copies instead of 1. Chance adds 3 % as before.
  add("shared-in-node", "one copy a node, handed on inside it",
      {0.6618 - 1 - 0.005, 0.6618 * 1.04 - 1}, "8 experts are on 5.3 different nodes, not on 8",
      [](const Laboratory& laboratory) {
        return over_nodes(laboratory, dispatch(Routing::kUniform, NodeSharing::kToNode),
                          AlgorithmChoice::kNodeForwarding);
      });
  // 8 experts on four nodes: one of the four nodes is missed with probability (96 x ... x 89) /
  // (128 x ... x 121) = 0.0927. 4 x 0.9073 of 8 nodes: 0.4536.
  add("four-nodes", "the same with the experts of a token on at most four nodes",
      {0.4536 - 1 - 0.005, 0.4536 * 1.05 - 1},
      "routing limited to four nodes: at most half of the copies leave",
      [](const Laboratory& laboratory) {
        return over_nodes(laboratory, dispatch(Routing::kFourNodes, NodeSharing::kToNode),
                          AlgorithmChoice::kNodeForwarding);
      });
  // The cards of node 0 receive 1.3 times the mean.
  add("hot-node", "even but for one node that gets 1.3 times its share", {0.3 - 0.001, 0.3 + 0.001},
      "the hottest node decides", [](const Laboratory& laboratory) {
        return over_nodes(laboratory, even(1.3), AlgorithmChoice::kDirect);
      });
  // 64 tokens per GPU: messages of 8 tokens, 115 kB, in 63 rounds of 2.294 us each. Latency is 2 us
  // in the 7 rounds on a GPU's own rail and 3 us in the others. Together 326 us instead of 56 x
  // 2.294 = 128 us: 2.54 times. Rounds that drift apart (S24) add up to 14 messages: 2.79.
  rows.push_back({.id = "small-messages",
                  .formula = "E13",
                  .regime = "64 tokens a GPU, in rounds of one partner, 2 to 3 us a trip",
                  .predicted = formula(64),
                  .expected = {1.53, 1.80},
                  .tolerance = 0.03,
                  .why = "messages of 115 kB: latency weighs more than bytes",
                  .simulate = [](const Laboratory& laboratory) {
                    DgxSuperPodSpec spec = nodes_spec();
                    spec.nvlink_latency = std::chrono::nanoseconds(500);
                    spec.network_link_latency = std::chrono::microseconds(1);
                    const Cluster cluster = cluster_of(spec);
                    SimulationOptions options;
                    options.granularity = Granularity::kStepped;
                    const double bytes = 64 * kChosen * kTokenBytes;
                    return laboratory.seconds(
                        collective_graph(all_chips(cluster), work_of(CollectiveOp::kAllToAll,
                                                                     Bytes(std::llround(bytes)),
                                                                     AlgorithmChoice::kPairwise)),
                        cluster, options);
                  }});
  rows.back().expected_unshared = DifferenceRange{1.30, 1.56};
  // Inside a node, with 4 experts per token: 1 - (7/8)^4 = 0.4138 of the tokens go to a GPU, not
  // 4/8. 7 of the 8 GPUs are others: 0.4138 x 7 / 4 = 0.7241.
  rows.push_back(
      {.id = "in-node",
       .formula = "C8",
       .regime = "one node, 4 experts a token, one copy a GPU",
       .predicted = predict(
           "C8", {{"V", 64.0 * kTokensPerGpu * kTokenBytes}, {"n", 8}, {"k", 4}, {"W", kNvlink}}),
       .expected = {0.7241 - 1 - 0.001, 0.7241 - 1 + 0.001},
       .tolerance = 0.03,
       .why = "4 draws hit 3.3 different GPUs of 8 (C8.distinct), and 1/8 stays at home",
       .simulate = [](const Laboratory& laboratory) {
         ByteMatrix matrix{.members = 8};
         const double part = kTokensPerGpu * kTokenBytes * (1 - std::pow(7.0 / 8, 4));
         matrix.bytes.assign(64, Bytes(std::llround(part)));
         return exchange(laboratory, one_node(8, Bandwidth(kNvlink)), std::move(matrix),
                         AlgorithmChoice::kDirect, Granularity::kPipelined);
       }});
  return rows;
}

}  // namespace

std::vector<Study> expert_exchange_studies() {
  return {{.id = "S25",
           .source = kBookGpus,
           .title = "AllToAll of experts",
           .claim = "with 8 experts a token on 8 nodes an AllToAll sends every token to every node",
           .rows = expert_rows}};
}

}  // namespace stepsim
