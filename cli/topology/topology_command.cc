#include "cli/topology/topology_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "cli/command_line.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "experiment/experiment.h"
#include "proto/assumed_links.h"
#include "proto/load_experiment.h"
#include "sim/base/quantity_text.h"
#include "topology/dot.h"
#include "topology/graph/bisection.h"
#include "topology/graph/graph_measures.h"
#include "topology/graph/level_bandwidth.h"
#include "topology/topology.h"
#include "traces/formats/link_kinds.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

// Above this size the diameter would take minutes, because it searches from every chip.
constexpr std::size_t kMostChipsForDiameter = 32'768;
constexpr std::size_t kListedKinds = 20;

struct TopologyOptions {
  std::string cluster;
  std::string dot;   // file; empty: none
  std::string json;  // file, or "-" for standard output; empty: none
};

po::options_description topology_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("dot", text("FILE"),
      "write a drawing for Graphviz (dot -Tsvg FILE); equal parts of large clusters are drawn "
      "once");
  add_json_option(options);
  add_input_option(options);
  return options;
}

TopologyOptions read_topology_options(const std::vector<std::string>& arguments,
                                      std::vector<Problem>& problems) {
  const CommandLine line = read_command_line(arguments, topology_option_list(), problems);
  TopologyOptions options;
  if (line.words.empty()) {
    problems.push_back({"CLUSTER", "must be given: a name of the catalog or a cluster file"});
  } else {
    options.cluster = line.words.front();
  }
  for (std::size_t i = 1; i < line.words.size(); ++i) {
    problems.push_back({line.words[i], "there can be only one CLUSTER"});
  }
  options.dot = read_output_path(line, "dot", OutputFormat::kDot, problems);
  options.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  refuse_same_output(line, "dot", "json", problems);
  return options;
}

// ---- measuring ----

struct LinksOfAKind {
  std::string name;
  Bandwidth bandwidth;
  Duration latency;
  std::int64_t links = 0;
};

struct RouteSample {
  std::string level;  // the level along which its ends differ
  NodeId from;
  NodeId to;
  std::vector<LinkId> links;
  Bandwidth narrowest{};
  Duration latency{};
  std::uint64_t paths = 1;  // number of paths over which adaptive switches spread a message
};

struct Measures {
  std::array<std::int64_t, 4> nodes{};  // by NodeKind
  std::vector<LinksOfAKind> kinds;
  std::optional<std::uint32_t> diameter;  // unset: not computed
  Bandwidth bisection{};
  std::vector<std::string> assumed{};  // of links that the file says nothing of
  std::vector<LevelBandwidth> levels;
  std::vector<RouteSample> routes;
};

// Kinds of one name are listed separately if their links differ, as they do with faults.
std::vector<LinksOfAKind> kinds_of(const BuiltTopology& built) {
  const LinkKinds names = link_kinds(built.fabric, built.places);
  std::map<std::tuple<std::string, Bandwidth, Duration>, std::size_t> by_key;
  std::vector<LinksOfAKind> kinds;
  for (std::size_t id = 0; id < names.of_link.size(); ++id) {
    const Link& link = built.fabric.links()[id];
    const std::string& name = names.names[names.of_link[id]];
    const auto [slot, is_new] =
        by_key.emplace(std::tuple(name, link.bandwidth, link.latency), kinds.size());
    if (is_new) kinds.push_back({name, link.bandwidth, link.latency});
    ++kinds[slot->second].links;
  }
  return kinds;
}

RouteSample sample(const BuiltTopology& built, std::string level, std::uint32_t to) {
  RouteSample route{.level = std::move(level),
                    .from = built.places.chips.front(),
                    .to = built.places.chips[to],
                    .links = {}};
  built.router->route(route.from, route.to, 0, route.links);
  for (const LinkId id : route.links) {
    const Link& link = built.fabric.link(id);
    const Bandwidth width = built.fabric.width(built.fabric.spread(id));
    const bool first = route.narrowest == Bandwidth(0);
    route.narrowest = first ? width : std::min(route.narrowest, width);
    route.latency += link.latency;
    if (const auto group = built.fabric.group_of(id)) {
      route.paths *= built.fabric.alternatives(*group, link.from).size();
    }
  }
  return route;
}

// Returns routes from the first chip to the middle member of each level, which is the furthest
// member of a ring, and to the chip in the middle of all.
std::vector<RouteSample> samples_of(const BuiltTopology& built) {
  std::vector<RouteSample> routes;
  std::uint32_t stride = 1;
  std::uint32_t far = 0;
  std::size_t parted = 0;
  for (const Level& level : built.places.levels) {
    const std::uint32_t to = level.size / 2 * stride;
    if (to > 0) {
      routes.push_back(sample(built, level.name, to));
      ++parted;
    }
    far += to;
    stride *= level.size;
  }
  if (parted > 1) routes.push_back(sample(built, "all", far));
  return routes;
}

Measures measure(const BuiltTopology& built) {
  Measures measures;
  for (const Node& node : built.fabric.nodes()) {
    ++measures.nodes[static_cast<std::size_t>(node.kind)];
  }
  measures.kinds = kinds_of(built);
  if (built.places.chips.size() <= kMostChipsForDiameter) {
    measures.diameter = diameter_in_hops(built.fabric);
  }
  measures.bisection = bisection_bandwidth(built.fabric);
  measures.levels = bandwidth_by_level(built);
  measures.routes = samples_of(built);
  return measures;
}

// ---- results ----

std::int64_t count(const Measures& measures, NodeKind kind) {
  return measures.nodes[static_cast<std::size_t>(kind)];
}

std::int64_t signed_size(std::size_t size) {
  return static_cast<std::int64_t>(size);
}

std::string levels_text(const std::vector<Level>& levels) {
  std::string text;
  for (const Level& level : levels) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : " x ", level.name,
                        grouped(std::int64_t{level.size}), level.wraps ? " (ring)" : "");
  }
  return text;
}

std::string levels_text(const Places& places) {
  if (!places.grid) return levels_text(places.levels);
  return levels_text(places.levels) + ", linked as " + levels_text(places.grid->axes);
}

// Adds the route as "a > b > c", in lines that fit.
void add_path(const BuiltTopology& built, const RouteSample& route, ReportText& report) {
  std::string current = "    " + built.fabric.node(route.from).name;
  for (const LinkId id : route.links) {
    const std::string part = " > " + built.fabric.node(built.fabric.link(id).to).name;
    if (current.size() + part.size() > kReportWidth) {
      report.line("{}", current);
      current = "     ";
    }
    current += part;
  }
  report.line("{}", current);
}

void add_counts(const ClusterSpec& cluster, const BuiltTopology& built, const Measures& measures,
                ReportText& report) {
  const auto row = [&](std::string_view name, const std::string& value, std::string_view remark) {
    report.line("  {:<{}}{}  {}", name, kReportLabel,
                report.paint(fmt::format("{:>12}", value), Paint::kBold), remark);
  };
  report.line("{}", report.paint(cluster.name, Paint::kBold));
  report.line("  {} x {}: {}", grouped(count(measures, NodeKind::kChip)), cluster.chip.name,
              levels_text(built.places));
  report.blank();
  row("chips", grouped(count(measures, NodeKind::kChip)), "");
  constexpr std::array<std::pair<NodeKind, std::string_view>, 3> kOthers = {
      {{NodeKind::kSwitch, "switches"},
       {NodeKind::kHost, "hosts"},
       {NodeKind::kNic, "network cards"}}};
  for (const auto& [kind, name] : kOthers) {
    if (count(measures, kind) > 0) row(name, grouped(count(measures, kind)), "");
  }
  row("links", grouped(signed_size(built.fabric.links().size())), "one way each");
  if (measures.diameter) {
    row("diameter", fmt::format("{} hops", *measures.diameter),
        "by shortest paths between chips; routes may be longer");
  } else {
    row("diameter", "-",
        fmt::format("not computed above {} chips", grouped(signed_size(kMostChipsForDiameter))));
  }
  const double each =
      measures.bisection.value() / static_cast<double>(built.places.chips.size()) * 2;
  row("bisection", to_text(measures.bisection),
      fmt::format("one way, across the least cut into halves; {} a chip",
                  to_text(Bandwidth(each))));
}

std::string report_of(const ClusterSpec& cluster, const BuiltTopology& built,
                      const Measures& measures, const TopologyOptions& options) {
  ReportText report(shows_color(STDOUT_FILENO));
  add_counts(cluster, built, measures, report);
  report.section("Links", "one way each");
  for (std::size_t i = 0; i < std::min(measures.kinds.size(), kListedKinds); ++i) {
    const LinksOfAKind& kind = measures.kinds[i];
    report.line("  {:<50.50} {:>9} x {:>12} {:>12}", kind.name, grouped(kind.links),
                to_text(kind.bandwidth), kind.latency > Duration(0) ? to_text(kind.latency) : "-");
  }
  if (measures.kinds.size() > kListedKinds) {
    report.line("  and {} kinds more", measures.kinds.size() - kListedKinds);
  }
  for (const std::string& line : measures.assumed) report.wrapped(2, line);
  report.section("Bandwidth by level", "one way, by maximum flow; the first chip and group");
  report.line("  {:<{}}{:>8} {:>14} {:>14} {:>14} {:>16}", "", kReportLabel, "members",
              "chip to peers", "chips a group", "out of it", "for each chip");
  for (const LevelBandwidth& level : measures.levels) {
    const bool is_all = level.groups == 1;
    report.line(
        "  {:<{}}{:>8} {:>14} {:>14} {:>14} {:>16}", level.level, kReportLabel,
        grouped(std::int64_t{level.members}), level.members > 1 ? to_text(level.to_peers) : "-",
        grouped(std::int64_t{level.group_chips}), is_all ? "-" : to_text(level.out_of_group),
        is_all ? "-" : to_text(level.out_of_group / level.group_chips));
  }
  if (!measures.routes.empty()) {
    report.section("Routes", "from the first chip to the middle of each level, and of all");
  }
  for (const RouteSample& route : measures.routes) {
    report.line("  {:<{}}{} hops, {}{}{}", route.level, kReportLabel, route.links.size(),
                to_text(route.narrowest),
                route.latency > Duration(0) ? ", " + to_text(route.latency) : "",
                route.paths > 1 ? fmt::format("; adaptive, one of {} paths", route.paths) : "");
    add_path(built, route, report);
  }
  if (!options.dot.empty() || !options.json.empty()) report.blank();
  if (!options.json.empty()) report.line("  result   {}", options.json);
  if (!options.dot.empty()) {
    const std::size_t box = chips_per_box(built, {});
    report.line(
        "  drawing  {}  (dot -Tsvg{})", options.dot,
        box > 1 ? fmt::format("; collapsed: a box is {} chips", grouped(signed_size(box))) : "");
  }
  return report.text();
}

struct TopologyResult {
  const ClusterSpec* cluster;
  const BuiltTopology* built;
  const Measures* measures;
};

struct MeasuredLevel {
  const LevelBandwidth* measured;
  const Level* level;
};

std::vector<MeasuredLevel> levels_of(const TopologyResult& result) {
  std::vector<MeasuredLevel> levels;
  for (std::size_t i = 0; i < result.measures->levels.size(); ++i) {
    levels.push_back({&result.measures->levels[i], &result.built->places.levels[i]});
  }
  return levels;
}

const ResultTable<MeasuredLevel>& level_results() {
  static const ResultTable<MeasuredLevel> kTable = [] {
    const auto measured = [](auto member) {
      return [member](const MeasuredLevel& one) { return one.measured->*member; };
    };
    ResultTable<MeasuredLevel> table;
    table.add("name", measured(&LevelBandwidth::level), {"of the level, innermost first"});
    table.add("members", measured(&LevelBandwidth::members), {"its size"});
    table.add("members_are", [](const MeasuredLevel& one) { return name_of(one.level->members); },
              {"kind of its members: chip, package, node, rack, leaf, pod, slice, ..."});
    table.add("kind",
              [](const MeasuredLevel& one) {
                return one.level->kind == LevelKind::kTorusAxis ? "torus_axis" : "switched";
              },
              {"torus_axis or switched"});
    table.add("wraps", [](const MeasuredLevel& one) { return one.level->wraps; },
              {"whether an axis is a ring"});
    table.add("chips_per_group", measured(&LevelBandwidth::group_chips), {"of one group"});
    table.add("groups", measured(&LevelBandwidth::groups), {"in the cluster"});
    table.add(
        "chip_to_peers_bytes_per_s", measured(&LevelBandwidth::to_peers),
        {"from one chip to all its peers, with nobody else sending; 0 without peers", "bytes/s"});
    table.add("out_of_group_bytes_per_s", measured(&LevelBandwidth::out_of_group),
              {"from all chips of one group to all outside; 0 if there are none", "bytes/s"});
    return table;
  }();
  return kTable;
}

const ResultTable<LinksOfAKind>& kind_of_link_results() {
  static const ResultTable<LinksOfAKind> kTable = [] {
    ResultTable<LinksOfAKind> table;
    table.add("name", &LinksOfAKind::name, {"from and to, by kinds of places"});
    table.add("links", &LinksOfAKind::links, {"one way each"});
    table.add("bandwidth_bytes_per_s", &LinksOfAKind::bandwidth, {"of each", "bytes/s"});
    table.add("latency_s", &LinksOfAKind::latency, {"of each", "s"});
    return table;
  }();
  return kTable;
}

struct BuiltRoute {
  const BuiltTopology* built;
  const RouteSample* route;
};

std::vector<BuiltRoute> routes_of(const TopologyResult& result) {
  std::vector<BuiltRoute> routes;
  for (const RouteSample& route : result.measures->routes) {
    routes.push_back({result.built, &route});
  }
  return routes;
}

std::vector<std::string> links_of_route(const BuiltRoute& one) {
  std::vector<std::string> links;
  for (const LinkId id : one.route->links) links.emplace_back(one.built->fabric.link_name(id));
  return links;
}

const ResultTable<BuiltRoute>& route_results() {
  static const ResultTable<BuiltRoute> kTable = [] {
    const auto sampled = [](auto member) {
      return [member](const BuiltRoute& one) { return one.route->*member; };
    };
    const auto node = [](NodeId RouteSample::*member) {
      return [member](const BuiltRoute& one) {
        return one.built->fabric.node(one.route->*member).name;
      };
    };
    ResultTable<BuiltRoute> table;
    table.add("level", sampled(&RouteSample::level),
              {"along which its ends differ; all: along every one"});
    table.add("from", node(&RouteSample::from), {"the first chip"});
    table.add("to", node(&RouteSample::to), {"the middle member"});
    table.add("bandwidth_bytes_per_s", sampled(&RouteSample::narrowest),
              {"of its narrowest link", "bytes/s"});
    table.add("latency_s", sampled(&RouteSample::latency), {"of all its links", "s"});
    table.add("paths", sampled(&RouteSample::paths),
              {"over which adaptive switches spread a message"});
    table.add("links", links_of_route, {"in order"});
    return table;
  }();
  return kTable;
}

const ResultTable<TopologyResult>& topology_results() {
  static const ResultTable<TopologyResult> kTable = [] {
    const auto nodes = [](NodeKind kind) {
      return [kind](const TopologyResult& result) { return count(*result.measures, kind); };
    };
    ResultTable<TopologyResult> table;
    table.add("name", [](const TopologyResult& result) { return result.cluster->name; },
              {"of the cluster"});
    table.add("chip", [](const TopologyResult& result) { return result.cluster->chip.name; },
              {"its chip"});
    table.add("chips", nodes(NodeKind::kChip), {"how many"});
    table.add("switches", nodes(NodeKind::kSwitch), {"how many"});
    table.add("hosts", nodes(NodeKind::kHost), {"how many"});
    table.add("nics", nodes(NodeKind::kNic), {"network cards"});
    table.add("links",
              [](const TopologyResult& result) { return result.built->fabric.links().size(); },
              {"one way each"});
    table.add(
        "diameter_hops",
        [](const TopologyResult& result) { return OrNull{result.measures->diameter}; },
        {"by shortest paths between chips; null for clusters too large to compute it", "hops"});
    table.add("bisection_bandwidth_bytes_per_s",
              [](const TopologyResult& result) { return result.measures->bisection; },
              {"one way, across the least cut into halves", "bytes/s"});
    table.add("assumed", [](const TopologyResult& result) { return result.measures->assumed; },
              {"of links that the file says nothing of"});
    table.list("levels", level_results(), levels_of, {"of the cluster"});
    table.list("link_kinds", kind_of_link_results(),
               [](const TopologyResult& result) { return result.measures->kinds; },
               {"links that are alike"});
    table.list(
        "routes", route_results(), routes_of,
        {"from the first chip to the middle member of each level, and to the middle of all"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> topology_command_results() {
  return {{"", &topology_results()}};
}

ExitStatus write(const ClusterSpec& cluster, const BuiltTopology& built, const Measures& measures,
                 TopologyOptions options) {
  Outputs outputs;
  if (!options.dot.empty()) outputs.write(options.dot, dot_of(built, {.title = cluster.name}));
  const std::string json =
      options.json.empty() ? "" : topology_results().json({&cluster, &built, &measures}) + '\n';
  outputs.write(options.json, json);
  outputs.commit();
  if (options.json == "-") {
    outputs.print(json);
  } else {
    options.dot = outputs.if_written(options.dot);
    options.json = outputs.if_written(options.json);
    outputs.print(report_of(cluster, built, measures, options));
  }
  return outputs.end(ExitStatus::kDone);
}

ExitStatus run_topology_command(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const TopologyOptions options = read_topology_options(arguments, problems);
  ClusterSpec cluster;
  if (!options.cluster.empty()) {
    try {
      cluster = load_cluster(options.cluster);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  throw_if_any(std::move(problems));
  const BuiltTopology built = build_topology(cluster.topology, cluster.faults);
  Measures measures = measure(built);
  measures.assumed = assumed_links_of(options.cluster);
  return write(cluster, built, measures, options);
}

}  // namespace

constinit const Subcommand kTopologySubcommand = {
    .name = "topology",
    .arguments = "CLUSTER [options]",
    .summary = "measure and draw a cluster's network",
    .description =
        R"(stepsim topology describes a cluster: counts, diameter, bisection bandwidth, the bandwidth that each
level offers its chips, and the routes of messages.

Usage:
  stepsim topology CLUSTER [options]

CLUSTER is a name of the catalog or a file (.textproto or .json). Each bandwidth counts one
direction. It is a maximum flow over the network as built, with its faults; no routing can exceed it.
The bisection is the least of many halvings of the chips, whatever their order.
)",
    .options = topology_option_list,
    .run = run_topology_command,
    .results = topology_command_results,
};

}  // namespace stepsim
