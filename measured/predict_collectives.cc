#include "measured/predict_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "experiment/build_cluster.h"
#include "measured/row_fields.h"
#include "measured/timed_rows.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"
#include "sim/collectives/algorithm_table.h"
#include "sim/collectives/direct_kernels.h"
#include "sim/program/program_builder.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostGroupRanks = 1 << 20;
constexpr std::int64_t kMostGroupBytes = std::int64_t{1} << 44;

constexpr std::pair<std::string_view, CollectiveOp> kGroupOps[] = {
    {"all_reduce", CollectiveOp::kAllReduce},
    {"all_gather", CollectiveOp::kAllGather},
    {"reduce_scatter", CollectiveOp::kReduceScatter},
    {"all_to_all", CollectiveOp::kAllToAll},
    {"broadcast", CollectiveOp::kBroadcast},
    {"reduce", CollectiveOp::kReduce},
    {"gather", CollectiveOp::kGather},
    {"scatter", CollectiveOp::kScatter},
    {"send_receive", CollectiveOp::kSendReceive}};

// Half of an exchange of tokens with experts.
struct ExchangeOp {
  std::string_view name;
  const char* metric;
  std::optional<TokenExchange> CommunicationLibrary::*few;
  std::optional<BulkExchange> CommunicationLibrary::*bulk;  // instead
};
constexpr ExchangeOp kExchangeOps[] = {
    {"dispatch", "dispatch_s", &CommunicationLibrary::dispatch, nullptr},
    {"combine", "combine_s", &CommunicationLibrary::combine, nullptr},
    {"bulk_dispatch", "dispatch_s", nullptr, &CommunicationLibrary::bulk_dispatch},
    {"bulk_combine", "combine_s", nullptr, &CommunicationLibrary::bulk_combine}};

const ExchangeOp* exchange_of(std::string_view op) {
  const auto* const found = std::ranges::find(kExchangeOps, op, &ExchangeOp::name);
  return found == std::end(kExchangeOps) ? nullptr : found;
}

std::string no_such_collective(std::string_view op) {
  std::vector<std::string> names;
  for (const auto& known : kGroupOps) names.emplace_back(known.first);
  for (const ExchangeOp& known : kExchangeOps) names.emplace_back(known.name);
  return fmt::format("op: must be {}, is \"{}\"{}", either_of(names), shortened(op),
                     did_you_mean(std::string(op), names));
}

std::string read_group_op(std::string_view op, CollectiveOp& read) {
  const auto* const found =
      std::ranges::find(kGroupOps, op, &std::pair<std::string_view, CollectiveOp>::first);
  if (found == std::end(kGroupOps)) return no_such_collective(op);
  read = found->second;
  return {};
}

std::string read_algorithm(std::string_view name, AlgorithmChoice& algorithm) {
  if (name.empty() || name == "auto") return {};
  const auto found = std::ranges::find(algorithm_table(), name, &AlgorithmRow::name);
  if (found == algorithm_table().end()) {
    return "algorithm: there is none called " + shortened(name);
  }
  algorithm = found->choice;
  return {};
}

// The tokens of an exchange, and on how many units a kernel for many of them runs.
struct Exchange {
  ExchangedTokens sent{};
  std::int64_t units = 20;  // DeepEP's
  std::string problem{};
};

Exchange read_exchange(const CsvTable& table, std::size_t record, const ExchangeOp& op) {
  constexpr std::int64_t kMost = 1 << 24;
  Exchange exchange;
  for (const char* const column : {"nodes", "bytes", "dtype", "algorithm"}) {
    if (table.at(record, column).empty()) continue;
    exchange.problem = fmt::format("{}: must be empty, shape says what is sent in a node", column);
    return exchange;
  }
  std::vector<std::string> keys = {"tokens", "hidden", "top_k", "experts"};
  if (op.bulk != nullptr) keys.emplace_back("units");
  Shape shape(table.at(record, "shape"), keys);
  const std::int64_t hidden = shape.count("hidden");
  exchange.sent = {.tokens = shape.count("tokens"),
                   .top_k = shape.count("top_k"),
                   .experts = shape.count("experts"),
                   .chips = table.integer(record, "ranks").value_or(0)};
  exchange.units = shape.count("units", exchange.units);
  for (const std::int64_t size :
       {hidden, exchange.sent.tokens, exchange.sent.top_k, exchange.sent.experts, exchange.units}) {
    if (size > kMost) shape.fail("sizes must be at most 2^24");
  }
  const bool combines =
      op.few == &CommunicationLibrary::combine || op.bulk == &CommunicationLibrary::bulk_combine;
  exchange.sent.token_bytes = Bytes(combines ? 2 * hidden : hidden + hidden / 128 * 4 + 16);
  exchange.problem = shape.problem();
  if (exchange.sent.chips < 2 || exchange.sent.chips > kMostGroupRanks) {
    exchange.problem = "ranks: must be 2 to 1048576";
  }
  return exchange;
}

std::string read_group_sizes(const CsvTable& table, std::size_t record,
                             MeasuredCollective& measured) {
  const std::string_view bytes = table.at(record, "bytes");
  const std::string_view nodes = table.at(record, "nodes");
  measured.bytes = parse_bytes(bytes).value_or(Bytes(0)).value();
  measured.ranks = table.integer(record, "ranks").value_or(0);
  if (!nodes.empty()) measured.nodes = table.integer(record, "nodes").value_or(0);
  if (measured.bytes <= 0 || measured.bytes > kMostGroupBytes) {
    return fmt::format("bytes: must be a size above 0, at most 16 TiB, is \"{}\"",
                       shortened(bytes));
  }
  if (measured.ranks < 2 || measured.ranks > kMostGroupRanks) {
    return fmt::format("ranks: must be 2 to {}, is \"{}\"", kMostGroupRanks,
                       shortened(table.at(record, "ranks")));
  }
  if (measured.nodes < 1 || measured.ranks % measured.nodes != 0) {
    return fmt::format("nodes: must divide the ranks, is \"{}\"", shortened(nodes));
  }
  if (!table.at(record, "shape").empty()) return "shape: is of dispatch and combine alone";
  return {};
}

// A cluster that rows name, with a library.
struct LibraryOnCluster {
  ClusterSpec spec;
  Cluster cluster;
};

// Builds each cluster once, for all rows that run on it.
class ClustersOfRows {
 public:
  // Throws ConfigError.
  const LibraryOnCluster& get(const std::string& name, const std::string& library) {
    const auto found = built_.find({name, library});
    if (found != built_.end()) return found->second;
    ClusterSpec spec = load_cluster(name, library);
    Cluster cluster = build_cluster(spec);
    return built_
        .emplace(std::pair(name, library), LibraryOnCluster{std::move(spec), std::move(cluster)})
        .first->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, LibraryOnCluster> built_;
};

void predict_message(const MeasuredCollective& measured, const LibraryOnCluster& on,
                     AccuracyRow& row) {
  row.skipped = misfit_of(measured, on.cluster.places);
  if (!row.skipped.empty()) return;
  const auto& kernel = on.spec.library.direct_all_reduce;
  if (kernel && measured.op == CollectiveOp::kAllReduce && measured.nodes == 1 &&
      measured.algorithm == AlgorithmChoice::kAuto) {
    const auto time = time_of_all_reduce(*kernel, measured.ranks, Bytes(measured.bytes));
    if (time) row.predicted = to_seconds(*time);
  }
  if (row.predicted) return;
  const OpGraph graph = graph_of(measured, on.cluster.places);
  row.predicted = to_seconds(simulate(graph, on.cluster, {}).end.since_start);
}

void predict_exchange(const ExchangeOp& op, Exchange exchange, const LibraryOnCluster& on,
                      AccuracyRow& row) {
  const CommunicationLibrary& library = on.spec.library;
  if (exchange.sent.chips > std::int64_t{chips_per_node(on.cluster.places)}) {
    row.skipped = "ranks: are more than the chips of a node, in which these kernels run";
    return;
  }
  exchange.sent.units = std::max<std::int64_t>(1, on.spec.chip.communication.units);
  if (op.bulk != nullptr && library.*op.bulk) {
    BulkExchange kernel = *(library.*op.bulk);
    kernel.units = exchange.units;
    row.predicted = to_seconds(time_of_exchange(kernel, exchange.sent));
  } else if (op.few != nullptr && library.*op.few) {
    row.predicted = to_seconds(time_of_exchange(*(library.*op.few), exchange.sent));
  } else {
    row.skipped = library.name + " has no such kernel";
  }
}

void predict_collective(const CsvTable& table, std::size_t record, const std::string& library,
                        ClustersOfRows& clusters, AccuracyRow& row) {
  const ExchangeOp* const op = exchange_of(table.at(record, "op"));
  MeasuredCollective measured;
  Exchange exchange;
  if (op != nullptr) {
    row.metric = op->metric;
    exchange = read_exchange(table, record, *op);
    row.skipped = exchange.problem;
  } else {
    row.skipped = read_collective(table, record, measured);
  }
  if (!row.skipped.empty()) return;
  try {
    const LibraryOnCluster& on = clusters.get(row.chip, library);
    row.chip = on.spec.chip.name;
    if (op != nullptr) {
      predict_exchange(*op, exchange, on, row);
    } else {
      predict_message(measured, on, row);
    }
  } catch (const ConfigError& error) {
    row.skipped = first_line(error.problems());
  }
}

}  // namespace

std::string read_collective(const CsvTable& table, std::size_t record,
                            MeasuredCollective& measured) {
  std::string problem = read_group_op(table.at(record, "op"), measured.op);
  if (problem.empty()) problem = read_group_sizes(table, record, measured);
  if (problem.empty()) problem = read_type("dtype", table.at(record, "dtype"), measured.type);
  if (problem.empty()) problem = read_algorithm(table.at(record, "algorithm"), measured.algorithm);
  measured.bytes -= measured.bytes % size_of(measured.type).value();
  return problem;
}

bool is_exchange(std::string_view op) {
  return exchange_of(op) != nullptr;
}

std::string misfit_of(const MeasuredCollective& measured, const Places& places) {
  const auto chips = static_cast<std::int64_t>(places.chips.size());
  if (measured.nodes == 1) return measured.ranks <= chips ? "" : "ranks: are more than the chips";
  const std::int64_t of_node = chips_per_node(places);
  if (measured.ranks / measured.nodes > of_node || measured.nodes * of_node > chips) {
    return fmt::format("nodes: {} ranks in {} nodes are more than {} chips, {} a node, hold",
                       measured.ranks, measured.nodes, chips, of_node);
  }
  return {};
}

OpGraph graph_of(const MeasuredCollective& measured, const Places& places) {
  OpGraph graph;
  graph.path_labels = {"compute"};
  graph.collective_works.push_back({.communicator = CommunicatorId(0),
                                    .op = measured.op,
                                    .bytes = Bytes(measured.bytes),
                                    .type = measured.type,
                                    .algorithm = measured.algorithm});
  ProgramBuilder builder("rank");
  builder.add_stream("compute", true);
  OpDraft op{.stream = builder.add_stream("collective"), .kind = OpKind::kCollective};
  graph.names = {std::string(name_of(measured.op))};
  builder.add(std::move(op));
  graph.programs.push_back(std::move(builder).build());
  Communicator all{.name = "group", .groups = {{}}, .seat_of = {}};
  const std::int64_t of_node = measured.ranks / measured.nodes;
  const std::int64_t stride = measured.nodes == 1 ? of_node : chips_per_node(places);
  for (std::int64_t rank = 0; rank < measured.ranks; ++rank) {
    const std::int64_t chip = rank / of_node * stride + rank % of_node;
    graph.ranks.push_back({.program = ProgramId(0), .chip = static_cast<std::uint32_t>(chip)});
    all.groups[0].emplace_back(static_cast<std::uint32_t>(rank));
    all.seat_of.push_back({0, static_cast<std::uint32_t>(rank)});
  }
  graph.communicators.push_back(std::move(all));
  return graph;
}

AccuracyRow begin_collective_row(const CsvTable& table, std::size_t record) {
  return begin_timed_row(
      table, record, std::string(table.at(record, "cluster")),
      {"cluster", "library", "op", "ranks", "nodes", "bytes", "dtype", "algorithm", "shape"});
}

std::vector<AccuracyRow> predict_collectives(const CsvTable& table, const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  ClustersOfRows clusters;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    rows.push_back(begin_collective_row(table, record));
    if (is_ended(options)) {
      rows.back().skipped = kInterrupted;
    } else if (rows.back().skipped.empty()) {
      const std::string own(table.at(record, "library"));
      predict_collective(table, record, options.library.empty() ? own : options.library, clusters,
                         rows.back());
    }
  }
  return rows;
}

}  // namespace stepsim
