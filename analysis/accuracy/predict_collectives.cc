#include "analysis/accuracy/predict_collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "analysis/accuracy/row_fields.h"
#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_shape.h"
#include "sim/program/program_builder.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

// Clusters builds each cluster of whole nodes once, for all rows that run on it.
class Clusters {
 public:
  explicit Clusters(std::string library) : library_(std::move(library)) {}

  // Throws ConfigError.
  const Cluster& get(const std::string& name) {
    std::unique_ptr<Cluster>& cluster = built_[name];
    if (!cluster) {
      cluster = std::make_unique<Cluster>(build_cluster(load_cluster(name, library_)));
    }
    return *cluster;
  }

 private:
  std::string library_;
  std::map<std::string, std::unique_ptr<Cluster>> built_;
};

constexpr std::int64_t kMostGroupRanks = 1 << 20;
constexpr std::int64_t kMostGroupBytes = std::int64_t{1} << 44;

struct Measured {
  CollectiveOp op = CollectiveOp::kAllReduce;
  DataType type = DataType::kBf16;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  std::int64_t bytes = 0;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
};

const std::vector<std::pair<std::string_view, CollectiveOp>> kOps = {
    {"all_reduce", CollectiveOp::kAllReduce},
    {"all_gather", CollectiveOp::kAllGather},
    {"reduce_scatter", CollectiveOp::kReduceScatter},
    {"alltoall", CollectiveOp::kAllToAll},
    {"all_to_all", CollectiveOp::kAllToAll},
    {"broadcast", CollectiveOp::kBroadcast},
    {"reduce", CollectiveOp::kReduce},
    {"gather", CollectiveOp::kGather},
    {"scatter", CollectiveOp::kScatter},
    {"send_receive", CollectiveOp::kSendReceive},
    {"send_recv", CollectiveOp::kSendReceive},
    {"sendrecv", CollectiveOp::kSendReceive}};

// Reads a size with or without a unit; nullopt if the field is neither.
std::optional<std::int64_t> read_bytes(const CsvTable& table, std::size_t record) {
  const std::optional<Bytes> bytes = parse_bytes(table.at(record, "bytes"));
  if (!bytes) return std::nullopt;
  return bytes->value();
}

// Returns why the row cannot run; "" if it can.
std::string read_row(const CsvTable& table, std::size_t record, Measured& measured) {
  std::string op(table.at(record, "op"));
  std::ranges::replace(op, '-', '_');
  const auto found =
      std::ranges::find(kOps, op, [](const auto& known) { return std::string(known.first); });
  if (found == kOps.end()) return "op \"" + op + "\" is no collective of stepsim";
  measured.op = found->second;
  measured.bytes = read_bytes(table, record).value_or(0);
  measured.ranks = table.integer(record, "ranks").value_or(0);
  measured.nodes = table.integer(record, "nodes").value_or(1);
  if (measured.bytes <= 0) return no_value(table, record, "bytes", "a size above 0");
  if (measured.ranks < 2) return no_value(table, record, "ranks", "2 or more");
  if (measured.bytes > kMostGroupBytes) return "bytes must be at most 16 TiB";
  if (measured.ranks > kMostGroupRanks) {
    return "ranks must be at most " + std::to_string(kMostGroupRanks);
  }
  if (measured.nodes < 1) return no_value(table, record, "nodes", "1 or more");
  if (measured.ranks % measured.nodes != 0) return "ranks do not divide into nodes";
  const std::string type(table.at(record, "dtype"));
  if (!read_data_type(type, measured.type)) return "no such data type: " + type;
  measured.bytes -= measured.bytes % size_of(measured.type).value();
  const std::string_view algorithm = table.at(record, "algo");
  // Tables name the algorithm within a remark: "NVLS off (Ring)", "Ring at 4 nodes".
  if (algorithm.find("Ring") != std::string_view::npos && measured.nodes == 1) {
    measured.algorithm = AlgorithmChoice::kRing;
  }
  return {};
}

// Returns a graph in which every rank runs one op of one communicator. The ranks are the first
// chips of each node, equally many in each.
OpGraph graph_of(const Measured& measured, std::int64_t chips_per_node) {
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
  for (std::int64_t rank = 0; rank < measured.ranks; ++rank) {
    const std::int64_t chip = rank / of_node * chips_per_node + rank % of_node;
    graph.ranks.push_back({.program = ProgramId(0), .chip = static_cast<std::uint32_t>(chip)});
    all.groups[0].emplace_back(static_cast<std::uint32_t>(rank));
    all.seat_of.push_back({0, static_cast<std::uint32_t>(rank)});
  }
  graph.communicators.push_back(std::move(all));
  return graph;
}

// Returns the time in seconds, or nullopt with the reason in `row`.
std::optional<double> simulate_row(const CsvTable& table, std::size_t record,
                                   const std::vector<Hardware>& hardware, Clusters& clusters,
                                   AccuracyRow& row) {
  Measured measured;
  row.skipped = read_row(table, record, measured);
  if (!row.skipped.empty()) return std::nullopt;
  const Hardware* entry = find_hardware(hardware, table.at(record, "hardware"));
  if (entry == nullptr || entry->cluster.empty()) {
    row.skipped = "the catalog has no cluster for this hardware";
    return std::nullopt;
  }
  if (measured.ranks / measured.nodes > entry->chips_per_node) {
    row.skipped = "more ranks a node than " + entry->cluster + " has chips";
    return std::nullopt;
  }
  try {
    const Cluster& cluster =
        clusters.get(cluster_of(*entry, measured.nodes * entry->chips_per_node));
    const OpGraph graph = graph_of(measured, entry->chips_per_node);
    return to_seconds(simulate(graph, cluster, {}).end.since_start);
  } catch (const ConfigError& error) {
    row.skipped = error.problems().front().field + ": " + error.problems().front().message;
  }
  return std::nullopt;
}

}  // namespace

std::vector<AccuracyRow> predict_collectives(const CsvTable& table,
                                             const std::vector<Hardware>& hardware,
                                             const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  Clusters clusters(options.library);
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    AccuracyRow row = start_row(table, record, hardware, "hardware", "time_s");
    const std::optional<double> microseconds = table.number(record, "time_us");
    if (!microseconds || *microseconds <= 0) {
      row.skipped = table.at(record, "time_us").empty()
                        ? "no time was measured"
                        : no_value(table, record, "time_us", "above 0");
    } else {
      row.measured = *microseconds * 1e-6;
      row.predicted = simulate_row(table, record, hardware, clusters, row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepsim
