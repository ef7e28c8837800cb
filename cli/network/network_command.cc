#include "cli/network/network_command.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/command_line.h"
#include "cli/network/transport_results.h"
#include "cli/outputs.h"
#include "cli/session/out_of_range.h"
#include "cli/session/standard_output.h"
#include "experiment/simulation_fields.h"
#include "proto/network_case/network_case.h"
#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/network/flow_network.h"
#include "sim/network/flow_run.h"
#include "sim/network/latency_bandwidth_network.h"
#include "sim/network/packets/packet_network.h"
#include "sim/network/transport/transport_table.h"
#include "sim/network/transport/transport_text.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kListedFlows = 5;  // flows and links shown in the table

// A packet simulation of more than kMostPacketHops needs --yes. kPacketHopsPerSecond is the speed
// of one core.
constexpr double kMostPacketHops = 1e9;
constexpr double kShortPacketHops = 1e7;
constexpr double kPacketHopsPerSecond = 4e6;

struct NetworkOptions {
  std::string path;
  std::optional<Fidelity> fidelity;  // unset: the one that the format of the case is for
  std::string transport;             // over that of the case; empty: none
  std::string json;                  // file, or "-" for standard output; empty: none
  bool yes = false;                  // runs packets however long it takes
};

struct FinishedCase {
  const NetworkCase& input;
  Fidelity fidelity;
  FlowRun flows;
  Time makespan;
  std::vector<double> carried;  // bytes, by LinkId
  std::unique_ptr<Network> network;
  const TransportNetwork* transport;  // nullptr: there is none
  NetworkStatistics statistics;
  double wall_s;
  double cpu_s;
  std::int64_t peak_rss_bytes;
};

po::options_description network_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("fidelity", text("latency-bandwidth|flow|packet"),
      "network model (default: the one that the format of the case is made for)");
  add("transport", text("NAME[,KEYS]"),
      "transport of packets, in place of the case's; keys alone change that: stepsim help "
      "transport");
  add_json_option(options);
  add("yes", "run even if a packet simulation takes long");
  add_input_option(options);
  return options;
}

NetworkOptions read_network_options(const std::vector<std::string>& arguments,
                                    std::vector<Problem>& problems) {
  const CommandLine line = read_command_line(arguments, network_option_list(), problems);
  NetworkOptions options;
  if (line.words.empty() || line.words.front().empty()) {
    problems.push_back(
        {"CASE", "must be given: a .json or .json.gz file; see stepsim help network"});
  } else {
    options.path = line.words.front();
  }
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one CASE"});
  }
  if (line.options.count("fidelity") != 0) {
    const std::string name = line.value("fidelity");
    options.fidelity = Text<Fidelity>::read(name);
    if (!options.fidelity) {
      problems.push_back(
          {"--fidelity", "must be latency-bandwidth, flow or packet, is \"" + name + "\""});
    }
  }
  if (line.options.count("transport") != 0) options.transport = line.value("transport");
  if (!options.transport.empty() &&
      options.fidelity.value_or(Fidelity::kPacket) != Fidelity::kPacket) {
    problems.push_back({"--transport", "moves packets; leave out --fidelity " +
                                           std::string(name_of(*options.fidelity))});
  }
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  options.yes = line.options.count("yes") != 0;
  return options;
}

// ---- running ----

// A case of the flow format has no packet options, so the defaults apply.
PacketOptions packet_options(const NetworkCase& input) {
  PacketOptions options;
  if (!input.packets) return options;
  options.packet_bytes = input.packets->packet_bytes;
  if (input.packets->header_bytes) {
    options.switching = Switching::kCutThrough;
    options.header_bytes = *input.packets->header_bytes;
  }
  return options;
}

// Says how long a packet simulation will take, unless it is very short. Throws ConfigError if it is
// too long to begin without --yes.
void announce_packet_hops(const NetworkCase& input, bool yes) {
  const Bytes packet_bytes = packet_options(input).packet_bytes;
  double hops = 0;
  for (const FlowList::Flow& flow : input.flows.flows) {
    hops += static_cast<double>(packet_hops(flow.bytes, flow.route_size, packet_bytes));
  }
  if (yes || hops <= kMostPacketHops) {
    if (hops > kShortPacketHops) {
      print_error(
          fmt::format("{:.2g} packet-hops, about {:.0f} s\n", hops, hops / kPacketHopsPerSecond));
    }
    return;
  }
  throw ConfigError(
      {{"--fidelity", fmt::format("packet: {:.2g} packet-hops, about {:.0f} minutes; give --yes to "
                                  "go on, or use flow",
                                  hops, hops / kPacketHopsPerSecond / 60)}});
}

std::unique_ptr<Network> make_case_network(const NetworkCase& input, Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::kLatencyBandwidth:
      return make_latency_bandwidth_network(input.fabric);
    case Fidelity::kFlow:
      return make_flow_network(input.fabric);
    case Fidelity::kPacket:
      break;
  }
  if (input.transport) return make_transport_network(input.fabric, *input.transport);
  return make_packet_network(input.fabric, packet_options(input));
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

FinishedCase run_case(const NetworkCase& input, Fidelity fidelity) {
  const auto wall = std::chrono::steady_clock::now();
  const double cpu = cpu_seconds();
  std::unique_ptr<Network> network = make_case_network(input, fidelity);
  FinishedCase result{
      .input = input,
      .fidelity = fidelity,
      .flows = run_in_range([&] { return run_flows(input.flows, input.fabric, *network); },
                            [&] { return named(input.fabric); }),
      .makespan = {},
      .carried = {},
      .network = {},
      .transport = dynamic_cast<const TransportNetwork*>(network.get()),
      .statistics = network->statistics(),
      .wall_s = 0,
      .cpu_s = cpu_seconds() - cpu,
      .peak_rss_bytes = 0};
  result.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
  for (const Time finish : result.flows.finish) {
    if (finish != FlowRun::kNotEnded) result.makespan = std::max(result.makespan, finish);
  }
  for (std::uint32_t link = 0; link < input.fabric.links().size(); ++link) {
    result.carried.push_back(network->carried(LinkId(link), result.makespan));
  }
  result.network = std::move(network);
  return result;
}

// ---- results ----

struct CaseFlow {
  const FinishedCase* run;
  std::uint32_t flow = 0;
};

std::vector<CaseFlow> flows_of(const FinishedCase& run) {
  std::vector<CaseFlow> flows;
  flows.reserve(run.flows.finish.size());
  for (std::uint32_t flow = 0; flow < run.flows.finish.size(); ++flow)
    flows.push_back({&run, flow});
  return flows;
}

const ResultTable<CaseFlow>& flow_results() {
  static const ResultTable<CaseFlow> kTable = [] {
    ResultTable<CaseFlow> table;
    table.add("id",
              [](const CaseFlow& one) { return RawJson{one.run->input.flow_ids.name(one.flow)}; },
              {"as in the file"});
    table.add("finish_s",
              [](const CaseFlow& one) {
                const Time finish = one.run->flows.finish[one.flow];
                return OrNull{finish == FlowRun::kNotEnded ? std::nullopt
                                                           : std::optional(finish.since_start)};
              },
              {"when its last byte is at the receiver; null: it never ends", "s"});
    table.include(message_results(), [](const CaseFlow& one) -> std::optional<MessageCounters> {
      if (one.run->transport == nullptr) return std::nullopt;
      return one.run->transport->message(TransferId(one.flow));
    });
    return table;
  }();
  return kTable;
}

const ResultTable<FinishedCase>& cost_of_case_results() {
  static const ResultTable<FinishedCase> kTable = [] {
    const auto of_network = [](auto member) {
      return [member](const FinishedCase& run) { return run.statistics.*member; };
    };
    ResultTable<FinishedCase> table;
    table.add("events", [](const FinishedCase& run) { return run.flows.events; },
              {"starts of flows and instants at which the network changed"});
    table.add("rate_updates", of_network(&NetworkStatistics::rate_updates),
              {"changes of a flow's rate"});
    table.add("packet_hops", of_network(&NetworkStatistics::packet_hops), {"packets times links"});
    table.add("wall_s", &FinishedCase::wall_s, {"wall clock, without reading the file", "s"});
    table.add("cpu_s", &FinishedCase::cpu_s, {"CPU clock", "s"});
    table.add("peak_rss_bytes", &FinishedCase::peak_rss_bytes, {"peak memory", "bytes"});
    return table;
  }();
  return kTable;
}

const ResultTable<FinishedCase>& network_results() {
  static const ResultTable<FinishedCase> kTable = [] {
    ResultTable<FinishedCase> table;
    table.add("name", [](const FinishedCase& run) { return run.input.name; }, {"of the case"});
    table.add("fidelity", [](const FinishedCase& run) { return name_of(run.fidelity); },
              {"flow, packet or latency-bandwidth"});
    table.add("makespan_s", [](const FinishedCase& run) { return run.makespan.since_start; },
              {"the end of the last flow", "s"});
    table.list("flows", flow_results(), flows_of, {"in the order of the file"});
    table.list("queues", queue_results(),
               [](const FinishedCase& run) -> std::optional<std::vector<CaseQueue>> {
                 if (run.transport == nullptr) return std::nullopt;
                 return queues_of(*run.transport, run.input);
               },
               {"links that had a queue, a pause, a mark or a loss", "", "with a transport"});
    table.object("simulator", cost_of_case_results(), std::identity{}, {"the simulation alone"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> network_command_results() {
  return {{"", &network_results()}};
}

// Returns the indices from 0 to count - 1 with the largest values, largest first, equal ones in
// order.
template <typename Value>
std::vector<std::uint32_t> largest(std::size_t count, Value value) {
  std::vector<std::uint32_t> numbers(count);
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] = i;
  const std::size_t listed = std::min(count, kListedFlows);
  std::partial_sort(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(listed),
                    numbers.end(), [&](std::uint32_t a, std::uint32_t b) {
                      return value(a) != value(b) ? value(a) > value(b) : a < b;
                    });
  numbers.resize(listed);
  return numbers;
}

std::string flows_table(const FinishedCase& run) {
  std::string text = fmt::format("\n  {:<40} {:>12} {:>12}\n", "last flows", "bytes", "ends");
  const auto finish = [&run](std::uint32_t flow) { return run.flows.finish[flow]; };
  for (const std::uint32_t flow : largest(run.flows.finish.size(), finish)) {
    text += fmt::format(
        "  {:<40} {:>12} {:>12}\n", plain_id(run.input.flow_ids.name(flow)),
        to_text(run.input.flows.flows[flow].bytes),
        finish(flow) == FlowRun::kNotEnded ? "never" : to_text(finish(flow).since_start));
  }
  return text;
}

std::string links_table(const FinishedCase& run) {
  const double makespan_s = to_seconds(run.makespan.since_start);
  const auto use = [&](std::uint32_t link) {
    return run.carried[link] / run.input.fabric.link(LinkId(link)).bandwidth.value();
  };
  std::string text = fmt::format("\n  {:<40} {:>12} {:>12}\n", "busiest links", "bytes", "used");
  for (const std::uint32_t link : largest(run.carried.size(), use)) {
    const Bytes carried(std::llround(run.carried[link]));
    text += fmt::format("  {:<40} {:>12} {:>10.1f} %\n", plain_id(run.input.link_ids.name(link)),
                        to_text(carried), makespan_s > 0 ? 100 * use(link) / makespan_s : 0.0);
  }
  return text;
}

std::string expected_text(const FinishedCase& run) {
  double worst = -1;
  std::uint32_t worst_flow = 0;
  for (const ExpectedFinish& expected : run.input.expected) {
    const auto finish_ps = static_cast<double>(run.flows.finish[expected.flow].since_start.count());
    const double difference = std::abs(finish_ps - expected.finish_ps);
    if (difference == 0) worst = std::max(worst, 0.0);
    const double relative = difference / std::max(std::abs(expected.finish_ps), 1.0);
    if (difference == 0 || relative <= worst) continue;
    worst = relative;
    worst_flow = expected.flow;
  }
  if (worst < 0) return "";
  return fmt::format(
      "\n  {} flows have an expected finish in the file; worst relative difference {:.1e}{}\n",
      run.input.expected.size(), worst,
      worst > 0 ? fmt::format(", of flow {}", plain_id(run.input.flow_ids.name(worst_flow))) : "");
}

std::string table(const FinishedCase& run) {
  return fmt::format("{}: {} flows over {} links, model {}\n\n  makespan {}  ({} s)\n",
                     run.input.name, run.flows.finish.size(), run.input.fabric.links().size(),
                     name_of(run.fidelity), to_text(run.makespan.since_start),
                     exact_seconds(run.makespan.since_start)) +
         flows_table(run) + links_table(run) +
         (run.transport != nullptr ? transport_text(*run.transport, run.input, run.flows.finish)
                                   : "") +
         expected_text(run) +
         fmt::format("\n  simulated in {:.3g} s CPU: {} events, {}, {} at the peak\n", run.cpu_s,
                     run.flows.events,
                     run.fidelity == Fidelity::kPacket
                         ? fmt::format("{} packet-hops", run.statistics.packet_hops)
                         : fmt::format("{} rate updates", run.statistics.rate_updates),
                     to_text(Bytes(run.peak_rss_bytes)));
}

// Says what of the case a transport can't carry.
void check_case_transport(const NetworkCase& input, std::vector<Problem>& problems) {
  std::vector<bool> is_checked(input.fabric.links().size(), false);
  for (const LinkId link : input.flows.route_links) {
    if (is_checked[link.index()]) continue;
    is_checked[link.index()] = true;
    if (has_way_back(input.fabric, link)) continue;
    const Link& there = input.fabric.link(link);
    problems.push_back(
        {"links", fmt::format("{} has no link back, which answers of a transport need: add one "
                              "from {} to {}",
                              input.link_ids.name(link.index()), input.fabric.node(there.to).name,
                              input.fabric.node(there.from).name)});
  }
}

ExitStatus run_network_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const NetworkOptions options = read_network_options(arguments, problems);
  NetworkCase input;
  if (!options.path.empty()) {
    try {
      input = load_network_case(options.path);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!options.transport.empty()) {
    TransportSpec start = input.transport.value_or(default_transport(TransportKind::kGoBackN));
    input.transport = read_transport_text(options.transport, start, problems);
    const bool has_payload = options.transport.find("payload=") != std::string::npos;
    if (input.packets && !has_payload) input.transport->payload = input.packets->packet_bytes;
  }
  if (input.transport && problems.empty()) check_case_transport(input, problems);
  throw_if_any(std::move(problems));
  const Fidelity fidelity =
      !options.transport.empty()
          ? Fidelity::kPacket
          : options.fidelity.value_or(input.packets ? Fidelity::kPacket : Fidelity::kFlow);
  if (fidelity == Fidelity::kPacket) announce_packet_hops(input, options.yes);
  const FinishedCase run = run_case(input, fidelity);
  Outputs outputs;
  const std::string json = options.json.empty() ? "" : network_results().json(run) + '\n';
  outputs.write(options.json, json);
  outputs.commit();
  outputs.print(options.json == "-" ? json : table(run));
  if (!run.flows.blocked.empty()) print_error("stepsim: " + run.flows.blocked);
  return outputs.end(run.flows.blocked.empty() ? ExitStatus::kDone : ExitStatus::kNo);
}

}  // namespace

constinit const Subcommand kNetworkSubcommand = {
    .name = "network",
    .arguments = "CASE [options]",
    .summary = "run raw transfers over explicit links",
    .description =
        R"(stepsim network runs raw transfers over explicit links and says when each one ends.

Usage:
  stepsim network CASE [options]

CASE is a .json or .json.gz file with links and flows. docs/network-cases.md describes the format.
)",
    .options = network_option_list,
    .run = run_network_command,
    .results = network_command_results,
};

}  // namespace stepsim
