#include "analysis/accuracy/predict_collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "analysis/accuracy/row_fields.h"
#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/collectives/direct_kernels.h"
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

using Measured = MeasuredCollective;

constexpr std::int64_t kMostGroupRanks = 1 << 20;
constexpr std::int64_t kMostGroupBytes = std::int64_t{1} << 44;

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

// Returns why the row's op is none; "" if it is.
std::string read_op(const CsvTable& table, std::size_t record, Measured& measured) {
  std::string op(table.at(record, "op"));
  std::ranges::replace(op, '-', '_');
  const auto found =
      std::ranges::find(kOps, op, [](const auto& known) { return std::string(known.first); });
  if (found == kOps.end()) return "op \"" + op + "\" is no collective of stepsim";
  measured.op = found->second;
  return {};
}

}  // namespace

std::string read_collective(const CsvTable& table, std::size_t record,
                            MeasuredCollective& measured) {
  if (std::string problem = read_op(table, record, measured); !problem.empty()) return problem;
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

namespace {

// The same of a table of serving.
std::string read_serving_row(const CsvTable& table, std::size_t record, Measured& measured) {
  if (std::string problem = read_op(table, record, measured); !problem.empty()) return problem;
  measured.ranks = table.integer(record, "num_gpus").value_or(0);
  measured.nodes = table.integer(record, "nodes").value_or(1);
  const std::int64_t elements = table.integer(record, "message_elements").value_or(0);
  const std::string type(table.at(record, "dtype"));
  if (!read_data_type(type, measured.type)) return "no such data type: " + type;
  const std::int64_t size = size_of(measured.type).value();
  if (elements <= 0) return no_value(table, record, "message_elements", "above 0");
  if (elements > kMostGroupBytes / size) return "message_elements are more than 16 TiB";
  measured.bytes = elements * size;
  if (measured.ranks < 2 || measured.ranks > kMostGroupRanks) {
    return no_value(table, record, "num_gpus", "2 to " + std::to_string(kMostGroupRanks));
  }
  if (measured.nodes < 1) return no_value(table, record, "nodes", "1 or more");
  return measured.ranks % measured.nodes == 0 ? "" : "num_gpus do not divide into nodes";
}

// Returns the library of the catalog, but for its generation of chips, whose kernels a row of
// serving times; "" for NCCL, nullopt if there is none.
std::optional<std::string> library_of(std::string_view table, std::string_view kernel) {
  if (table == "nccl") return "";
  if (table.starts_with("wideep_deepep_") || kernel.starts_with("SGLang")) return "sglang-0.5-";
  if (kernel.starts_with("vLLM")) return "vllm-0.24-";
  if (kernel.starts_with("TRTLLM")) return "trtllm-1.3-";
  return std::nullopt;
}

}  // namespace

OpGraph graph_of(const MeasuredCollective& measured, std::int64_t chips_per_node) {
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

namespace {

// Returns the time in seconds, or nullopt with the reason in `row`.
std::optional<double> simulate_row(const Measured& measured, const Hardware* entry,
                                   Clusters& clusters, AccuracyRow& row) {
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

// Libraries of serving on the chips of clusters, each loaded once.
class ServingLibraries {
 public:
  // `name`: without the generation of chips, which is the last word of the cluster's own library.
  // Throws ConfigError.
  const ClusterSpec& get(const std::string& cluster, const std::string& name) {
    const auto [found, fresh] = loaded_.try_emplace({cluster, name});
    if (!fresh) return found->second;
    try {
      const std::string own = load_cluster(cluster, "").library.name;
      found->second = load_cluster(cluster, name + own.substr(own.rfind('-') + 1));
    } catch (...) {
      loaded_.erase(found);
      throw;
    }
    return found->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, ClusterSpec> loaded_;
};

// The units that DeepEP's normal kernels of a row run on. Where no column says so, a shape with six
// rows ran on 4, 8, .. 24 of them in this order, as aiconfigurator measures it (their times fall in
// that proportion), and one with a single row on DeepEP's 20.
class BulkUnits {
 public:
  static constexpr std::size_t kSteps = 6;
  static constexpr std::int64_t kOfStep = 4;

  explicit BulkUnits(const CsvTable& table) : table_(table) {
    for (std::size_t record = 0; record < table.records.size(); ++record) {
      if (table.at(record, "table") == "wideep_deepep_normal") {
        rows_[shape_of(record)].push_back(record);
      }
    }
  }

  // Returns nullopt with the reason in `row` if it can't be told.
  std::optional<std::int64_t> get(std::size_t record, AccuracyRow& row) const {
    if (!table_.at(record, "sms").empty()) {
      const std::optional<std::int64_t> units = table_.integer(record, "sms");
      if (units && *units >= 1) return units;
      row.skipped = no_value(table_, record, "sms", "1 or more");
      return std::nullopt;
    }
    const std::vector<std::size_t>& alike = rows_.at(shape_of(record));
    if (alike.size() == kSteps) {
      const auto before = std::ranges::lower_bound(alike, record) - alike.begin();
      return kOfStep * (before + 1);
    }
    if (alike.size() == 1) {
      row.assumed.emplace_back("sms: 20");
      return 20;
    }
    row.skipped = "DeepEP's normal kernels run on a number of units (sms) that is not given";
    return std::nullopt;
  }

 private:
  std::string shape_of(std::size_t record) const {
    std::string shape;
    for (const char* column :
         {"chip", "framework", "version", "nodes", "tokens", "hidden", "topk", "experts"}) {
      shape += table_.at(record, column);
      shape += ',';
    }
    return shape;
  }

  const CsvTable& table_;
  std::map<std::string, std::vector<std::size_t>> rows_;  // by shape, rising
};

// What rows of a table of serving need.
struct ServingTable {
  const CsvTable& table;
  const std::vector<Hardware>& hardware;
  Clusters clusters;
  ServingLibraries libraries{};
  BulkUnits bulk_units{table};
};

std::optional<double> time_in(const CsvTable& table, std::size_t record, std::string_view column,
                              double unit, AccuracyRow& row) {
  const std::optional<double> time = table.number(record, column);
  if (time && *time > 0) return *time * unit;
  row.skipped = "no time was measured";
  return std::nullopt;
}

// Calls predict(); what the catalog lacks is the reason for skipping the row.
template <typename Predict>
void predict_or_skip(AccuracyRow& row, const Predict& predict) {
  try {
    predict();
  } catch (const ConfigError& error) {
    row.skipped = error.problems().front().field + ": " + error.problems().front().message;
  }
}

// Predicts a collective of NCCL or an all-reduce of `library`.
void predict_message(ServingTable& serving, std::size_t record, const std::string& library,
                     AccuracyRow& row) {
  const CsvTable& table = serving.table;
  const std::optional<double> measured_s = time_in(table, record, "latency_ms", 1e-3, row);
  if (!measured_s) return;
  row.measured = *measured_s;
  Measured measured;
  row.skipped = read_serving_row(table, record, measured);
  if (!row.skipped.empty()) return;
  const Hardware* entry = find_hardware(serving.hardware, table.at(record, "chip"));
  const bool direct = !library.empty() && entry != nullptr && !entry->cluster.empty() &&
                      measured.op == CollectiveOp::kAllReduce && measured.nodes == 1;
  if (direct) {
    const ClusterSpec& spec =
        serving.libraries.get(cluster_of(*entry, entry->chips_per_node), library);
    const auto& kernel = spec.library.direct_all_reduce;
    const auto time =
        kernel ? time_of_all_reduce(*kernel, measured.ranks, Bytes(measured.bytes)) : std::nullopt;
    if (time) row.predicted = to_seconds(*time);
  }
  if (!row.predicted) row.predicted = simulate_row(measured, entry, serving.clusters, row);
}

// One half of DeepEP's exchange.
struct DeepEpHalf {
  const char* column;
  const char* metric;
  std::optional<TokenExchange> CommunicationLibrary::*few;  // low latency
  std::optional<BulkExchange> CommunicationLibrary::*bulk;  // normal
  Bytes token_bytes{};                                      // of a copy
};

// `bulk_units`: that a normal kernel runs on; 0: a kernel of low latency.
void predict_half(ServingTable& serving, std::size_t record, const std::string& library,
                  const DeepEpHalf& half, std::int64_t bulk_units, AccuracyRow& row) {
  const CsvTable& table = serving.table;
  const Hardware* entry = find_hardware(serving.hardware, table.at(record, "chip"));
  if (entry == nullptr || entry->cluster.empty()) {
    row.skipped = "the catalog has no cluster for this hardware";
    return;
  }
  if (bulk_units > 0 && table.integer(record, "nodes").value_or(1) > 1) {
    row.skipped = "DeepEP's normal kernels over several nodes have no closed form";
    return;
  }
  const ClusterSpec& spec =
      serving.libraries.get(cluster_of(*entry, entry->chips_per_node), library);
  const ExchangedTokens sent{.tokens = table.integer(record, "tokens").value_or(0),
                             .top_k = table.integer(record, "topk").value_or(0),
                             .experts = table.integer(record, "experts").value_or(0),
                             .token_bytes = half.token_bytes,
                             .units = std::max<std::int64_t>(1, spec.chip.communication.units),
                             .chips = entry->chips_per_node};
  constexpr std::int64_t kMost = 1 << 24;
  const auto within = [](std::int64_t size) { return size >= 1 && size <= kMost; };
  if (!within(sent.tokens) || !within(sent.top_k) || !within(sent.experts) ||
      half.token_bytes <= Bytes(0)) {
    row.skipped = "tokens, topk, experts and hidden must be 1 to 2^24";
    return;
  }
  if (bulk_units > 0 && spec.library.*half.bulk) {
    BulkExchange kernel = *(spec.library.*half.bulk);
    kernel.units = bulk_units;
    row.predicted = to_seconds(time_of_exchange(kernel, sent));
  } else if (bulk_units == 0 && spec.library.*half.few) {
    row.predicted = to_seconds(time_of_exchange(*(spec.library.*half.few), sent));
  } else {
    row.skipped = spec.library.name + " has no such kernel";
  }
}

// Appends the two rows of a record of DeepEP.
void predict_exchange(ServingTable& serving, std::size_t record, const std::string& library,
                      const AccuracyRow& start, std::vector<AccuracyRow>& rows) {
  const std::int64_t hidden = std::clamp<std::int64_t>(
      serving.table.integer(record, "hidden").value_or(0), 0, std::int64_t{1} << 24);
  const std::int64_t scales = hidden > 0 ? hidden / 128 * 4 + 16 : 0;
  using Library = CommunicationLibrary;
  for (const DeepEpHalf& half : {DeepEpHalf{"dispatch_us", "dispatch_s", &Library::dispatch,
                                            &Library::bulk_dispatch, Bytes(hidden + scales)},
                                 DeepEpHalf{"combine_us", "combine_s", &Library::combine,
                                            &Library::bulk_combine, Bytes(2 * hidden)}}) {
    AccuracyRow row = start;
    row.metric = half.metric;
    const auto time = time_in(serving.table, record, half.column, 1e-6, row);
    std::optional<std::int64_t> bulk_units = 0;
    if (time && serving.table.at(record, "table") == "wideep_deepep_normal") {
      bulk_units = serving.bulk_units.get(record, row);
    }
    if (time && bulk_units) {
      row.measured = *time;
      predict_or_skip(row, [&] { predict_half(serving, record, library, half, *bulk_units, row); });
    }
    rows.push_back(std::move(row));
  }
}

// Returns why the record isn't predicted; "" if it is.
std::string left_out(const CsvTable& table, std::size_t record) {
  const std::string_view kind = table.at(record, "table");
  const std::string_view kernel = table.at(record, "kernel");
  if (kernel.ends_with("_eager")) return "an eager call waits for the host";
  if (!library_of(kind, kernel)) return "no library has kernels of " + std::string(kernel);
  return {};
}

void predict_serving_record(ServingTable& serving, std::size_t record,
                            std::vector<AccuracyRow>& rows) {
  const CsvTable& table = serving.table;
  AccuracyRow row = start_row(table, record, serving.hardware, "chip", "time_s");
  const std::string kind(table.at(record, "table"));
  const std::string_view kernel = table.at(record, "kernel");
  row.source_id = kind + " " + std::string(kernel) + " " + row.chip;
  row.skipped = left_out(table, record);
  if (row.skipped.empty() && kind.starts_with("wideep_deepep_")) {
    return predict_exchange(serving, record, *library_of(kind, kernel), row, rows);
  }
  if (row.skipped.empty()) {
    predict_or_skip(row, [&] { predict_message(serving, record, *library_of(kind, kernel), row); });
  }
  rows.push_back(std::move(row));
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
    if (is_ended(options)) {
      row.skipped = kInterrupted;
      rows.push_back(std::move(row));
      continue;
    }
    const std::optional<double> microseconds = table.number(record, "time_us");
    if (!microseconds || *microseconds <= 0) {
      row.skipped = table.at(record, "time_us").empty()
                        ? "no time was measured"
                        : no_value(table, record, "time_us", "above 0");
    } else {
      row.measured = *microseconds * 1e-6;
      Measured measured;
      row.skipped = read_collective(table, record, measured);
      const Hardware* entry = find_hardware(hardware, table.at(record, "hardware"));
      if (row.skipped.empty()) row.predicted = simulate_row(measured, entry, clusters, row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<AccuracyRow> predict_serving_collectives(const CsvTable& table,
                                                     const std::vector<Hardware>& hardware,
                                                     const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  ServingTable serving{.table = table, .hardware = hardware, .clusters = Clusters(options.library)};
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    if (is_ended(options)) {
      rows.push_back(start_row(table, record, hardware, "chip", "time_s"));
      rows.back().skipped = kInterrupted;
    } else {
      predict_serving_record(serving, record, rows);
    }
  }
  return rows;
}

}  // namespace stepsim
