#include "cli/collective/collective_options.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "cli/collective/routing_text.h"
#include "cli/command_line.h"
#include "cli/rank_list.h"
#include "experiment/build_cluster.h"
#include "measured/nccl_log.h"
#include "proto/collective_files.h"
#include "proto/load_experiment.h"
#include "proto/messages/message_file.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"
#include "sim/collectives/algorithm_table.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_shape.h"
#include "sim/network/transport/transport_network.h"
#include "sim/network/transport/transport_table.h"
#include "sim/network/transport/transport_text.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

// Makes All-Reduce, all_reduce and allreduce the same name.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '-' && c != '_') result += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return result;
}

template <typename Choice, typename Choices>
std::optional<Choice> find_name(const std::string& field, const std::string& text,
                                const Choices& choices, std::vector<Problem>& problems) {
  std::vector<std::string> names;
  for (const Choice choice : choices) {
    if (plain(name_of(choice)) == plain(text)) return choice;
    names.emplace_back(name_of(choice));
  }
  problems.push_back({field, "must be one of " + comma_separated(names) + "; is \"" + text + "\"" +
                                 did_you_mean(text, names)});
  return std::nullopt;
}

std::optional<Bytes> read_size(const std::string& field, const std::string& text,
                               std::vector<Problem>& problems) {
  const std::optional<Bytes> bytes = parse_bytes(text);
  if (!bytes || *bytes <= Bytes(0) || *bytes > kMostCollectiveBytes) {
    problems.push_back({field, "must be " + std::string(accepted_bytes()) +
                                   ", more than 0 and at most 16 TiB; is \"" + text + "\""});
    return std::nullopt;
  }
  return bytes;
}

void read_sizes(const CommandLine& line, CollectiveRequest& request,
                std::vector<Problem>& problems) {
  const bool has_bytes = line.options.count("bytes") != 0;
  request.sweep = line.options.count("sweep") != 0;
  if (request.op == CollectiveOp::kBarrier) {
    for (const char* option : {"bytes", "sweep"}) {
      if (line.options.count(option) != 0) {
        problems.push_back({std::string("--") + option, "a barrier has no data"});
      }
    }
    request.sizes = {Bytes(0)};
    return;
  }
  const bool by_matrix = line.options.count("matrix") != 0 || line.options.count("routing") != 0;
  if (by_matrix) {
    for (const char* option : {"bytes", "sweep"}) {
      if (line.options.count(option) != 0) {
        problems.push_back(
            {std::string("--") + option, "can't be given together with --matrix or --routing"});
      }
    }
    request.sweep = false;
    return;
  }
  if (has_bytes == request.sweep) {
    problems.push_back({"--bytes", has_bytes ? "can't be given together with --sweep"
                                             : "must be given, or --sweep FROM:TO"});
    if (!has_bytes) return;
  }
  const std::int64_t element = size_of(request.type).value();
  if (has_bytes) {
    if (const auto bytes = read_size("--bytes", line.value("bytes"), problems)) {
      request.sizes.push_back(*bytes);
    }
  }
  if (request.sweep) {
    const std::string text = line.value("sweep");
    const std::size_t colon = text.find(':');
    const auto from = read_size("--sweep", text.substr(0, colon), problems);
    const auto to =
        colon == std::string::npos ? from : read_size("--sweep", text.substr(colon + 1), problems);
    if (from && to && *to < *from) {
      problems.push_back({"--sweep", "must go from the smaller to the larger size, is " + text});
    }
    if (from && to) {
      for (Bytes size = *from; size <= *to; size = 2 * size) request.sizes.push_back(size);
    }
  }
  if (!request.sizes.empty() && request.sizes.front().value() % element != 0) {
    problems.push_back({request.sweep ? "--sweep" : "--bytes",
                        "must be whole elements of " + std::string(name_of(request.type)) + " (" +
                            std::to_string(element) + " bytes), is " +
                            std::to_string(request.sizes.front().value())});
  }
}

// Reads the options that only the cluster can judge.
void read_group(const CommandLine& line, CollectiveRequest& request,
                std::vector<Problem>& problems) {
  const auto chips = static_cast<std::uint32_t>(request.cluster.places.chips.size());
  if (line.options.count("ranks") == 0) {
    request.chips.resize(chips);
    std::iota(request.chips.begin(), request.chips.end(), 0U);
  } else {
    request.chips = read_rank_list(
        line.value("ranks"), {.option = "--ranks", .what = "chips of the cluster", .count = chips},
        problems);
  }
  if (line.options.count("root") != 0) {
    const auto rank = number_in<std::uint32_t>(line.value("root"));
    const auto place = std::ranges::find(request.chips, rank.value_or(UINT32_MAX));
    if (place == request.chips.end()) {
      problems.push_back({"--root", "must be one of the ranks, is \"" + line.value("root") + "\""});
    } else {
      request.root = static_cast<std::uint32_t>(place - request.chips.begin());
    }
  }
}

// "all_reduce" and "AllReduce" are "allreduce".
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != '_' && c != '-')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return letters;
}

void read_measured(const CommandLine& line, CollectiveRequest& request,
                   std::vector<Problem>& problems) {
  const std::string path = line.value("measured");
  if (path.empty()) return;
  const TextOrProblem text = read_input(path, InputKind::kTable);
  if (!text.text) {
    problems.push_back({"--measured " + path, text.problem});
    return;
  }
  const NcclLog log = read_nccl_log(*text.text);
  for (const Problem& problem : log.problems) {
    problems.push_back(
        {path + (problem.field.empty() ? "" : ":" + problem.field), problem.message});
  }
  const std::string op = letters_of(name_of(request.op));
  const auto ranks = static_cast<std::int64_t>(request.chips.size());
  std::set<std::string> others;
  for (const NcclRow& row : log.rows) {
    const std::string measured =
        letters_of(row.op) == "sendrecv" ? "sendreceive" : letters_of(row.op);
    if ((measured.empty() || measured == op) && row.ranks.value_or(ranks) == ranks) {
      request.measured.push_back({Bytes(row.bytes), row.time_us() * 1e-6});
    } else {
      others.insert(row.op + (row.ranks ? " of " + std::to_string(*row.ranks) + " ranks" : ""));
    }
  }
  if (!request.measured.empty() || !log.problems.empty()) return;
  std::string has;
  for (const std::string& other : others) has += (has.empty() ? "" : ", ") + other;
  problems.push_back({"--measured " + path, "has no " + std::string(name_of(request.op)) + " of " +
                                                std::to_string(ranks) + " ranks; it has " + has});
}

// Returns the number of consecutive ranks that share a node; 0 if ranks are not ordered by node.
std::uint32_t ranks_of_node(const CollectiveRequest& request) {
  const std::vector<Level>& levels = request.cluster.places.levels;
  if (levels.size() < 2) return 0;
  const std::uint32_t in_node = levels.front().size;
  const auto node = [&](std::size_t rank) { return request.chips[rank] / in_node; };
  std::size_t row = 1;
  while (row < request.chips.size() && node(row) == node(0)) ++row;
  std::vector<bool> seen(request.cluster.places.chips.size() / in_node, false);
  for (std::size_t rank = 0; rank < request.chips.size(); rank += row) {
    if (request.chips.size() - rank < row || seen[node(rank)]) return 0;
    seen[node(rank)] = true;
    for (std::size_t i = rank; i < rank + row; ++i) {
      if (node(i) != node(rank)) return 0;
    }
  }
  return static_cast<std::uint32_t>(row);
}

// Reads --matrix, --routing and --targets. Each is for one operation only.
void read_traffic(const CommandLine& line, CollectiveRequest& request,
                  std::vector<Problem>& problems) {
  const auto ranks = static_cast<std::uint32_t>(request.chips.size());
  for (const char* option : {"matrix", "routing"}) {
    if (line.options.count(option) != 0 && request.op != CollectiveOp::kAllToAll) {
      problems.push_back({std::string("--") + option, "is only for all-to-all"});
      return;
    }
  }
  if (line.options.count("matrix") != 0 && line.options.count("routing") != 0) {
    problems.push_back({"--matrix", "can't be given together with --routing"});
    return;
  }
  if (line.options.count("matrix") != 0) {
    request.matrix = load_byte_matrix(line.value("matrix"));
    if (request.matrix->members != ranks) {
      problems.push_back({"--matrix", "must have a row for each of the " + std::to_string(ranks) +
                                          " ranks, has " +
                                          std::to_string(request.matrix->members)});
    }
  }
  if (line.options.count("routing") != 0) {
    const std::size_t before = problems.size();
    const ExpertRouting routing =
        read_routing(line.value("routing"), ranks, ranks_of_node(request), problems);
    if (problems.size() == before) request.matrix = route_tokens(routing).dispatch;
  }
  if (request.matrix) request.sizes = {largest_buffer(*request.matrix)};
  if (line.options.count("targets") == 0) return;
  if (request.op != CollectiveOp::kPermute) {
    problems.push_back({"--targets", "is only for permute"});
    return;
  }
  const std::vector<std::uint32_t> targets =
      read_rank_list(line.value("targets"),
                     {.option = "--targets",
                      .what = "chips of the cluster",
                      .count = static_cast<std::uint32_t>(request.cluster.places.chips.size())},
                     problems);
  for (const std::uint32_t target : targets) {
    const auto place = std::ranges::find(request.chips, target);
    if (place == request.chips.end()) {
      problems.push_back(
          {"--targets", "must be ranks that take part, has " + std::to_string(target)});
      continue;
    }
    request.permutation.push_back(static_cast<std::uint32_t>(place - request.chips.begin()));
  }
  if (targets.size() != ranks) {
    problems.push_back({"--targets", "must name where each of the " + std::to_string(ranks) +
                                         " ranks sends, names " + std::to_string(targets.size())});
  }
}

// Reads --algorithm FILE: steps for this operation and number of ranks.
void read_steps(const std::string& path, CollectiveRequest& request,
                std::vector<Problem>& problems) {
  request.steps = load_step_list(path);
  request.algorithm = AlgorithmChoice::kCustom;
  if (request.steps->op != request.op) {
    problems.push_back({"--algorithm", path + " is for " + std::string(name_of(request.steps->op)) +
                                           ", not " + std::string(name_of(request.op))});
  }
  if (request.steps->members != request.chips.size()) {
    problems.push_back({"--algorithm", path + " is for " + std::to_string(request.steps->members) +
                                           " ranks, there are " +
                                           std::to_string(request.chips.size())});
  }
}

}  // namespace

po::options_description collective_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("cluster", text("NAME|FILE"), "catalog name or a cluster file");
  add("ranks", text("LIST"),
      "chips that take part, in this order, which is also a ring's: 0,8-15 (default: all)");
  add("bytes", text("N"), "size of the larger of a rank's send and receive buffer: 64MiB");
  add("sweep", text("FROM:TO"),
      "run every size from FROM to TO, doubling: 1KiB:8GiB; instead of --bytes");
  add("dtype", text("TYPE"), "type of the elements (default: bf16)");
  add("algorithm", text("NAME|FILE|auto|all"),
      "an algorithm of docs/collectives.md, a file with steps of your own, or all: a table of "
      "sizes "
      "and algorithms (default: auto)");
  add("chip", text("NAME|FILE"), "chip (default: the cluster's)");
  add("library", text("NAME|FILE"), "communication library (default: the chip's); ideal for none");
  add("root", text("RANK"),
      "root of a broadcast, reduce, gather or scatter (default: the first rank)");
  add("shift", text("K"), "permute: each rank sends to the rank K places on in LIST (default: 1)");
  add("targets", text("LIST"),
      "permute: the rank that each rank of LIST sends to, in order; instead of --shift");
  add("matrix", text("FILE"),
      "all-to-all: bytes from each rank to each rank, as JSON; instead of --bytes");
  add("routing", text("KEYS"),
      "all-to-all: send tokens to experts; instead of --bytes: experts=256,top-k=8,tokens=4096,"
      "token-bytes=14336[,copies=expert|member|node][,node-limit=4][,load=3:1:...]");
  add("fidelity", text("latency-bandwidth|flow|packet"), "network model (default: flow)");
  add("granularity", text("pipelined|stepped"),
      "simulate one transfer, or every message (default: pipelined; with packets always stepped)");
  add("transport", text("NAME[,KEYS]"),
      "packets only: what moves them, such as dcqcn,rto=1ms: stepsim help transport");
  add("yes", "packets only: run even if there are more than 10^9 packet-hops");
  add("measured", text("LOG"),
      "with --sweep: put what nccl-tests measured (a log of it) beside the simulation");
  add("plot", text("FILE.svg"), "with --sweep: draw bus bandwidth over size");
  add("export", text("KIND PATH"),
      "msccl FILE.xml: write the algorithm that runs at the first size for MSCCL and RCCL");
  add("csv", text("FILE"), "write a row a size and algorithm");
  add_json_option(options);
  add_input_option(options);
  return options;
}

CollectiveRequest read_collective_request(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, collective_option_list(), problems);
  CollectiveRequest request;
  std::optional<CollectiveOp> op;
  if (line.words.empty()) {
    problems.push_back({"OP", "must be given: all-reduce, ...; see stepsim help collective"});
  } else {
    const std::string& word = line.words.front();
    op = find_name<CollectiveOp>("OP", plain(word) == "sendrecv" ? "send-receive" : word,
                                 kCollectiveOps, problems);
    request.op = op.value_or(CollectiveOp::kAllReduce);
  }
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one OP"});
  }
  const auto choose = [&](const std::string& option, const auto& choices, auto& result) {
    using Choice = std::remove_reference_t<decltype(result)>;
    if (line.options.count(option) == 0) return true;
    const auto found = find_name<Choice>("--" + option, line.value(option), choices, problems);
    result = found.value_or(result);
    return found.has_value();
  };
  const std::string algorithm = line.value("algorithm");
  const bool has_steps = looks_like_file(algorithm);
  request.every = algorithm == "all";
  const bool algorithm_known =
      has_steps || request.every || choose("algorithm", named_algorithms(), request.algorithm);
  // Formats with scales of their own are not sent by themselves.
  choose("dtype",
         std::array{DataType::kFp32, DataType::kBf16, DataType::kFp16, DataType::kFp8,
                    DataType::kInt8},
         request.type);
  choose("fidelity", std::array{Fidelity::kLatencyBandwidth, Fidelity::kFlow, Fidelity::kPacket},
         request.fidelity);
  choose("granularity", std::array{Granularity::kPipelined, Granularity::kStepped},
         request.granularity);
  if (request.fidelity == Fidelity::kPacket) {
    if (line.value("granularity") == "pipelined") {
      problems.push_back({"--granularity", "must be stepped with --fidelity packet"});
    }
    request.granularity = Granularity::kStepped;
  }
  if (line.options.count("transport") != 0) {
    if (request.fidelity != Fidelity::kPacket) {
      problems.push_back({"--transport", "needs --fidelity packet"});
    }
    request.transport = read_transport_text(line.value("transport"),
                                            default_transport(TransportKind::kGoBackN), problems);
  }
  request.yes = line.options.count("yes") != 0;
  if (line.options.count("shift") != 0) {
    const auto shift = number_in<std::uint32_t>(line.value("shift"));
    if (!shift) {
      problems.push_back(
          {"--shift", "must be a whole number, is \"" + shortened(line.value("shift")) + "\""});
    }
    if (op && request.op != CollectiveOp::kPermute) {
      problems.push_back(
          {"--shift", "goes with permute only, is given with " + std::string(name_of(request.op))});
    }
    request.shift = shift.value_or(1);
  }
  read_sizes(line, request, problems);
  request.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  request.plot = read_output_path(line, "plot", OutputFormat::kSvg, problems);
  request.csv = read_output_path(line, "csv", OutputFormat::kCsv, problems);
  for (const auto& [one, other] : {std::pair("json", "plot"), {"json", "csv"}, {"csv", "plot"}}) {
    refuse_same_output(line, one, other, problems);
  }
  if (!line.value("measured").empty() && !request.sweep) {
    problems.push_back({"--measured", "needs --sweep FROM:TO"});
  }
  if (request.every && line.options.count("measured") != 0) {
    problems.push_back({"--measured", "goes with one algorithm, is given with --algorithm all"});
  }
  if (!request.plot.empty() && !request.sweep) {
    problems.push_back({"--plot", "needs --sweep FROM:TO: one size is no curve"});
  }
  request.cluster_name = line.value("cluster");
  if (request.cluster_name.empty()) {
    problems.push_back({"--cluster", "must be given: a name of the catalog or a cluster file"});
    throw ConfigError(std::move(problems));
  }
  try {
    const ClusterSpec spec =
        load_cluster(request.cluster_name, line.value("library"), line.value("chip"));
    request.cluster = build_cluster(spec);
    read_group(line, request, problems);
    read_traffic(line, request, problems);
    read_measured(line, request, problems);
    if (has_steps) read_steps(algorithm, request, problems);
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  if (problems.empty() && request.transport) {
    for (Problem& problem : check_transport(*request.transport, request.cluster.fabric)) {
      problems.push_back({"--transport", problem.field + " " + problem.message});
    }
  }
  if (problems.empty() && op && algorithm_known && !request.every && request.chips.size() > 1) {
    const std::string reason =
        refusal(request.op, request.algorithm, describe(request.cluster, request.chips));
    if (!reason.empty()) {
      problems.push_back({"--algorithm", std::string(name_of(request.algorithm)) + " " + reason});
    }
  }
  throw_if_any(std::move(problems));
  return request;
}

}  // namespace stepsim
