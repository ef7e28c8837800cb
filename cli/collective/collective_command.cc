#include "cli/collective/collective_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "books/collective_forms/collective_formulas.h"
#include "books/collective_forms/group_levels.h"
#include "cli/collective/collective_options.h"
#include "cli/network/packet_run.h"
#include "cli/outputs.h"
#include "cli/run/export_option.h"
#include "cli/session/out_of_range.h"
#include "cli/session/progress.h"
#include "import/msccl/msccl_export.h"
#include "proto/assumed_links.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/bus_factor.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_shape.h"
#include "sim/program/program_builder.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/collectives/collective_task.h"
#include "sim/run/ops/chip_share.h"
#include "traces/formats/trace_counters.h"
#include "traces/pictures/plot_svg.h"
#include "traces/results/result_json.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

constexpr std::size_t kListedLinks = 5;
constexpr int kBarWidth = 32;
constexpr std::size_t kLeastColumn = 11;  // letters

struct Point {
  Bytes bytes;
  std::string algorithm;
  std::string protocol;  // protocol of the communication library; empty: none
  std::string why;
  std::int64_t channels = 0;
  ChipShare taken{};  // share of each chip that it takes while it runs
  std::uint32_t steps = 0;
  CollectiveFormula formula;
  SimulationResult result;
};

// ---- running ----

// Every rank runs the same program: one op of one communicator.
OpGraph graph_of(const CollectiveRequest& request, AlgorithmChoice algorithm, Bytes bytes) {
  OpGraph graph;
  graph.path_labels = {"compute"};
  graph.collective_works.push_back({.communicator = CommunicatorId(0),
                                    .op = request.op,
                                    .bytes = bytes,
                                    .type = request.type,
                                    .algorithm = algorithm,
                                    .root = request.root,
                                    .shift = request.shift});
  if (request.matrix) {
    graph.byte_matrices = {*request.matrix};
    graph.collective_works[0].byte_matrix = 0;
  }
  if (!request.permutation.empty()) {
    graph.permutations = {request.permutation};
    graph.collective_works[0].permutation = 0;
  }
  if (request.steps) {
    graph.step_lists = {*request.steps};
    graph.collective_works[0].step_list = 0;
  }
  ProgramBuilder builder("rank");
  builder.add_stream("compute", true);
  OpDraft op{.stream = builder.add_stream("collective"), .kind = OpKind::kCollective};
  graph.names = {std::string(name_of(request.op))};
  builder.add(std::move(op));
  graph.programs.push_back(std::move(builder).build());
  Communicator all{.name = "group", .groups = {{}}, .seat_of = {}};
  for (std::uint32_t rank = 0; rank < request.chips.size(); ++rank) {
    graph.ranks.push_back({.program = ProgramId(0), .chip = request.chips[rank]});
    all.groups[0].emplace_back(rank);
    all.seat_of.push_back({0, rank});
  }
  graph.communicators.push_back(std::move(all));
  return graph;
}

Point run_one(const CollectiveRequest& request, AlgorithmChoice algorithm, Bytes bytes) {
  Point point{.bytes = bytes,
              .algorithm = "none",
              .protocol = {},
              .why = "a group of one member costs nothing",
              .formula = CollectiveFormula{.seconds = 0, .text = "a group of one"},
              .result = {}};
  const OpGraph graph = graph_of(request, algorithm, bytes);
  if (request.chips.size() > 1) {
    const GroupShape shape = describe(request.cluster, request.chips);
    const CollectiveWork& work = graph.collective_works[0];
    const CollectiveTask task = task_of(graph, work);
    CollectivePlans plans(graph, request.cluster, request.granularity, request.fidelity);
    const ChosenCollective ran = plans.chosen_for(CollectiveWorkId(0), GroupId(0));
    const CollectiveWay& chosen = ran.way;
    point.algorithm = name_of(chosen.algorithm);
    point.protocol = chosen.protocol;
    point.why = chosen.why;
    point.channels = chosen.cost.channels;
    point.taken = taken_of(request.cluster.chip, chosen.cost);
    point.steps = ran.algorithm->rounds();
    point.formula = stated_form(request.cluster, request.chips, shape,
                                {.task = task,
                                 .algorithm = chosen.algorithm,
                                 .cost = chosen.cost,
                                 .overlapped = request.granularity == Granularity::kPipelined});
    if (!request.cluster.library.ideal()) {
      point.formula.seconds += to_seconds(chosen.cost.start);
      point.formula.text += " + start, with W and t of " + request.cluster.library.name;
    }
  }
  SimulationOptions options;
  options.fidelity = request.fidelity;
  options.granularity = request.granularity;
  options.transport = request.transport;
  announce_packets(graph, request.cluster, options, request.yes);
  Progress progress;
  progress.watch(options);
  point.result = run_in_range([&] { return simulate(graph, request.cluster, options); },
                              [&] {
                                progress.wipe();
                                std::vector<Problem> fields = named(request.cluster.fabric);
                                fields.push_back({"--bytes", "is " + to_text(bytes)});
                                return fields;
                              });
  return point;
}

// The sizes with one algorithm.
struct AlgorithmColumn {
  std::string name;
  std::vector<Point> points;
};

// Returns auto and all algorithms that can do it, or the one that was asked for. What can't go with
// a matrix is left out.
std::vector<AlgorithmColumn> run_all(const CollectiveRequest& request) {
  std::vector<AlgorithmChoice> choices = {request.algorithm};
  if (request.every && request.chips.size() > 1) {
    std::ranges::copy(algorithms_for(request.op, describe(request.cluster, request.chips)),
                      std::back_inserter(choices));
  }
  std::vector<AlgorithmColumn> columns;
  for (const AlgorithmChoice choice : choices) {
    AlgorithmColumn column{.name = std::string(name_of(choice)), .points = {}};
    try {
      for (const Bytes bytes : request.sizes) {
        column.points.push_back(run_one(request, choice, bytes));
      }
    } catch (const ConfigError&) {
      if (columns.empty() || !request.matrix) throw;
      continue;
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

double seconds(const Point& point) {
  return to_seconds(point.result.end.since_start);
}

// Returns nullopt if there is no time or no data.
std::optional<double> algorithm_bandwidth(const Point& point) {
  if (seconds(point) == 0 || point.bytes.value() == 0) return std::nullopt;
  return static_cast<double>(point.bytes.value()) / seconds(point);
}

std::optional<double> bus_bandwidth(const CollectiveRequest& request, const Point& point) {
  const auto bandwidth = algorithm_bandwidth(point);
  const auto ranks = static_cast<std::uint32_t>(request.chips.size());
  if (!bandwidth) return std::nullopt;
  return *bandwidth * bus_factor(request.op, ranks);
}

// ---- results ----

// The measurement of this size; nullopt: there is none.
std::optional<double> measured_at(const CollectiveRequest& request, Bytes bytes) {
  const auto found = std::ranges::find(request.measured, bytes, &MeasuredTime::bytes);
  if (found == request.measured.end()) return std::nullopt;
  return found->seconds;
}

double share(std::int32_t millionths) {
  return millionths / 1e6;
}

struct PointResult {
  const CollectiveRequest* request;
  const Point* point;
};

struct HotLink {
  std::string name;
  double utilization = 0;
  std::int64_t bytes = 0;
};

std::vector<HotLink> hot_links(const PointResult& one) {
  std::vector<HotLink> links;
  for (const LinkTotal& link : busiest_links(one.point->result, kListedLinks)) {
    if (link.bytes <= 0) continue;
    links.push_back({std::string(one.request->cluster.fabric.link_name(link.link)),
                     link.utilization, std::llround(link.bytes)});
  }
  return links;
}

const ResultTable<HotLink>& hot_link_results() {
  static const ResultTable<HotLink> kTable = [] {
    ResultTable<HotLink> table;
    table.add("name", &HotLink::name, {"from and to"});
    table.add("utilization", &HotLink::utilization, {"of its bandwidth", "0 to 1"});
    table.add("bytes", &HotLink::bytes, {"that crossed it", "bytes"});
    return table;
  }();
  return kTable;
}

const ResultTable<SimulatorStatistics>& cost_of_collective_results() {
  static const ResultTable<SimulatorStatistics> kTable = [] {
    using Statistics = SimulatorStatistics;
    ResultTable<Statistics> table;
    table.add("events", &Statistics::events, {"from the queue or the network"});
    table.add("rate_updates", &Statistics::rate_updates, {"changes of a transfer's rate"});
    table.add("wall_s", &Statistics::wall_s, {"wall clock", "s"});
    table.add("cpu_s", &Statistics::cpu_s, {"CPU clock", "s"});
    table.add("peak_rss_bytes", &Statistics::peak_rss_bytes, {"peak memory", "bytes"});
    return table;
  }();
  return kTable;
}

void add_asked(ResultTable<PointResult>& table) {
  const auto of_point = [](auto member) {
    return [member](const PointResult& one) { return one.point->*member; };
  };
  table.add("op", [](const PointResult& one) { return name_of(one.request->op); }, {"what ran"});
  table.add("algorithm", of_point(&Point::algorithm), {"none for a group of one"});
  table.add("why", of_point(&Point::why), {"why it was chosen"});
  table.add("ranks", [](const PointResult& one) { return one.request->chips.size(); },
            {"of the group"});
  table.add("bytes", of_point(&Point::bytes),
            {"the larger of a rank's send and receive buffer", "bytes"});
}

void add_times(ResultTable<PointResult>& table) {
  table.add("time_s", [](const PointResult& one) { return one.point->result.end.since_start; },
            {"from the common start to the last end", "s"});
  table.add("algorithm_bandwidth_bytes_per_s",
            [](const PointResult& one) { return OrNull{algorithm_bandwidth(*one.point)}; },
            {"bytes / time_s; null without time or data", "bytes/s"});
  table.add(
      "bus_bandwidth_bytes_per_s",
      [](const PointResult& one) { return OrNull{bus_bandwidth(*one.request, *one.point)}; },
      {"algorithm bandwidth x 2 (n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter, "
       "all-to-all, gather and scatter, 1 otherwise",
       "bytes/s"});
  table.add("formula_s",
            [](const PointResult& one) { return nearest_time(one.point->formula.seconds); },
            {"the closed form", "s"});
  table.add(
      "formula_is",
      [](const PointResult& one) { return one.point->formula.exact ? "exact" : "lower bound"; },
      {"exact, or lower bound where there is no exact form"});
  table.add("steps", [](const PointResult& one) { return one.point->steps; }, {"rounds"});
  table.add("measured_s",
            [](const PointResult& one) -> std::optional<Duration> {
              const auto seconds = measured_at(*one.request, one.point->bytes);
              return seconds ? std::optional(nearest_time(*seconds)) : std::nullopt;
            },
            {"the measurement of this size", "s", "with --measured, where there is one"});
}

const ResultTable<PointResult>& point_results() {
  static const ResultTable<PointResult> kTable = [] {
    const auto of_point = [](auto member) {
      return [member](const PointResult& one) { return one.point->*member; };
    };
    ResultTable<PointResult> table;
    add_asked(table);
    add_times(table);
    table.add("protocol", of_point(&Point::protocol), {"of the library; empty without one"});
    table.add("channels", of_point(&Point::channels), {"of the library; 0 without one"});
    table.add("compute_share",
              [](const PointResult& one) { return share(one.point->taken.compute); },
              {"of each chip's compute units, while it runs", "0 to 1"});
    table.add("memory_share", [](const PointResult& one) { return share(one.point->taken.memory); },
              {"of each chip's memory bandwidth, while it runs", "0 to 1"});
    table.list("hottest_links", hot_link_results(), hot_links, {"up to five, busiest first"});
    table.object("transport", transport_results(),
                 [](const PointResult& one) { return one.point->result.statistics.transport; },
                 {"what became of the packets", "", "with --transport"});
    table.object("simulator", cost_of_collective_results(),
                 [](const PointResult& one) { return &one.point->result.statistics; },
                 {"the simulation alone"});
    return table;
  }();
  return kTable;
}

// The sizes of one algorithm.
struct SweptCollective {
  const CollectiveRequest* request;
  const std::vector<Point>* points;
  std::string name{};  // of the algorithm
};

std::vector<PointResult> points_of(const SweptCollective& swept) {
  std::vector<PointResult> points;
  for (const Point& point : *swept.points) points.push_back({swept.request, &point});
  return points;
}

const ResultTable<SweptCollective>& swept_results() {
  static const ResultTable<SweptCollective> kTable = [] {
    ResultTable<SweptCollective> table;
    table.add("op", [](const SweptCollective& swept) { return name_of(swept.request->op); },
              {"what ran"});
    table.add("ranks", [](const SweptCollective& swept) { return swept.request->chips.size(); },
              {"of the group"});
    table.list("sweep", point_results(), points_of, {"by size"});
    return table;
  }();
  return kTable;
}

const ResultTable<SweptCollective>& column_results() {
  static const ResultTable<SweptCollective> kTable = [] {
    ResultTable<SweptCollective> table;
    table.add("asked", &SweptCollective::name, {"the algorithm; auto first"});
    table.list("sweep", point_results(), points_of, {"by size"});
    return table;
  }();
  return kTable;
}

struct EveryAlgorithm {
  const CollectiveRequest* request;
  const std::vector<AlgorithmColumn>* columns;
};

std::vector<SweptCollective> columns_of(const EveryAlgorithm& every) {
  std::vector<SweptCollective> columns;
  for (const AlgorithmColumn& column : *every.columns) {
    columns.push_back({every.request, &column.points, column.name});
  }
  return columns;
}

const ResultTable<EveryAlgorithm>& every_algorithm_results() {
  static const ResultTable<EveryAlgorithm> kTable = [] {
    ResultTable<EveryAlgorithm> table;
    table.add("op", [](const EveryAlgorithm& every) { return name_of(every.request->op); },
              {"what ran"});
    table.add("ranks", [](const EveryAlgorithm& every) { return every.request->chips.size(); },
              {"of the group"});
    table.list("algorithms", column_results(), columns_of, {"all that can do it"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> collective_command_results() {
  return {{"one size", &point_results()},
          {"--sweep", &swept_results()},
          {"--algorithm all", &every_algorithm_results()}};
}

std::string collective_json(const CollectiveRequest& request, const std::vector<Point>& points) {
  return (request.sweep ? swept_results().json({&request, &points})
                        : point_results().json({&request, &points.front()})) +
         '\n';
}

std::string collective_json(const CollectiveRequest& request,
                            const std::vector<AlgorithmColumn>& columns) {
  return every_algorithm_results().json({&request, &columns}) + '\n';
}

std::string bandwidth_text(std::optional<double> value) {
  return value ? to_text(Bandwidth(*value)) : "-";
}

std::string heading(const CollectiveRequest& request) {
  std::string text =
      fmt::format("{} of {} ranks of {}, {} model, {}, library {}\n", name_of(request.op),
                  request.chips.size(), request.cluster_name, name_of(request.fidelity),
                  name_of(request.granularity), request.cluster.library.name);
  for (const std::string& line : assumed_links_of(request.cluster_name)) text += line + '\n';
  return text + '\n';
}

std::string report(const CollectiveRequest& request, const Point& point) {
  std::string text = heading(request);
  const auto row = [&text](const char* name, const std::string& value) {
    text += fmt::format("  {:<22} {}\n", name, value);
  };
  row("bytes", to_text(point.bytes));
  row("time", to_text(point.result.end.since_start));
  row("algorithm",
      point.algorithm + (point.protocol.empty() ? "" : " " + point.protocol) + ": " + point.why);
  row("steps", std::to_string(point.steps));
  if (const auto& of = point.result.statistics.transport) {
    row("transport", fmt::format("{}: {} packets, {} marked, {} trimmed, {} dropped, {} sent again",
                                 name_of(request.transport->kind), of->packets, of->marked,
                                 of->trimmed, of->dropped, of->repeated));
    row("longest queue", to_text(Bytes(static_cast<std::int64_t>(of->peak_queue))));
  }
  if (point.taken != ChipShare{}) {
    row("takes of each chip",
        fmt::format("{:.1f} % of the compute units{}, {:.1f} % of the memory bandwidth",
                    100 * share(point.taken.compute),
                    point.channels > 0 ? fmt::format(" ({} channels)", point.channels) : "",
                    100 * share(point.taken.memory)));
  }
  row("algorithm bandwidth", bandwidth_text(algorithm_bandwidth(point)));
  row("bus bandwidth", bandwidth_text(bus_bandwidth(request, point)));
  const double formula = point.formula.seconds;
  row("closed form",
      fmt::format(
          "{}{} = {}{}", point.formula.exact ? "" : "at least ", point.formula.text,
          to_text(duration_from_seconds(formula)),
          formula > 0 ? fmt::format(" ({:+.2f} %)", 100 * (seconds(point) / formula - 1)) : ""));
  text += fmt::format("\n  {:<40} {:>12} {:>12}\n", "hottest links", "bytes", "used");
  for (const LinkTotal& link : busiest_links(point.result, kListedLinks)) {
    if (link.bytes <= 0) continue;
    text +=
        fmt::format("  {:<40} {:>12} {:>10.1f} %\n", request.cluster.fabric.link_name(link.link),
                    to_text(Bytes(std::llround(link.bytes))), 100 * link.utilization);
  }
  return text;
}

// "ring LL"
std::string way_of(const Point& point) {
  return point.algorithm + (point.protocol.empty() ? "" : " " + point.protocol);
}

std::string measured_columns(const CollectiveRequest& request, const Point& point) {
  if (request.measured.empty()) return "";
  const std::optional<double> measured = measured_at(request, point.bytes);
  if (!measured) return fmt::format(" {:>12} {:>9}", "-", "");
  return fmt::format(" {:>12} {:>+7.1f} %", to_text(duration_from_seconds(*measured)),
                     100 * (seconds(point) / *measured - 1));
}

std::string sweep_table(const CollectiveRequest& request, const std::vector<Point>& points) {
  double most = 0;
  for (const Point& point : points) {
    most = std::max(most, bus_bandwidth(request, point).value_or(0));
  }
  std::string text = heading(request);
  text += fmt::format("  {:>12} {:>12}{} {:>14} {:>14}  {:<18} {}\n", "bytes", "time",
                      request.measured.empty() ? "" : fmt::format(" {:>12} {:>9}", "measured", ""),
                      "algorithm bw", "bus bandwidth", "algorithm", "bus bandwidth");
  for (const Point& point : points) {
    const double bus = bus_bandwidth(request, point).value_or(0);
    const int bar = most > 0 ? static_cast<int>(std::lround(kBarWidth * bus / most)) : 0;
    text += fmt::format("  {:>12} {:>12}{} {:>14} {:>14}  {:<18} {}\n", to_text(point.bytes),
                        to_text(point.result.end.since_start), measured_columns(request, point),
                        bandwidth_text(algorithm_bandwidth(point)),
                        bandwidth_text(bus_bandwidth(request, point)), way_of(point),
                        std::string(static_cast<std::size_t>(bar), '#'));
  }
  return text;
}

// A row a size, a column an algorithm; a star marks the fastest. The first column is `auto`.
std::string matrix_text(const CollectiveRequest& request,
                        const std::vector<AlgorithmColumn>& columns, const std::string& title,
                        std::string (*cell)(const CollectiveRequest&, const Point&)) {
  std::string text = fmt::format("\n  {}\n  {:>12}", title, "bytes");
  const auto width = [](const AlgorithmColumn& column) {
    return std::max(kLeastColumn, column.name.size());
  };
  for (const AlgorithmColumn& column : columns) {
    text += fmt::format("  {:>{}} ", column.name, width(column));
  }
  text += '\n';
  for (std::size_t row = 0; row < request.sizes.size(); ++row) {
    text += fmt::format("  {:>12}", to_text(request.sizes[row]));
    double least = seconds(columns.front().points[row]);
    for (const AlgorithmColumn& column : columns)
      least = std::min(least, seconds(column.points[row]));
    for (const AlgorithmColumn& column : columns) {
      const Point& point = column.points[row];
      text += fmt::format("  {:>{}}{}", cell(request, point), width(column),
                          seconds(point) == least ? '*' : ' ');
    }
    text += '\n';
  }
  return text;
}

std::string matrix_report(const CollectiveRequest& request,
                          const std::vector<AlgorithmColumn>& columns) {
  std::string text = heading(request);
  text.pop_back();
  text += matrix_text(request, columns, "time (* the least)",
                      [](const CollectiveRequest&, const Point& point) {
                        return to_text(point.result.end.since_start);
                      });
  text += matrix_text(request, columns, "bus bandwidth",
                      [](const CollectiveRequest& asked, const Point& point) {
                        return bandwidth_text(bus_bandwidth(asked, point));
                      });
  text += "\n  auto takes\n";
  for (const Point& point : columns.front().points) {
    text += fmt::format("  {:>12}  {}\n", to_text(point.bytes), way_of(point));
  }
  return text;
}

// Sizes and names as nccl-tests has them; `asked` is auto or an algorithm.
std::string csv_of(const CollectiveRequest& request, const std::vector<AlgorithmColumn>& columns) {
  std::string text =
      "op,ranks,bytes,asked,algorithm,protocol,time_s,algorithm_bandwidth_bytes_per_s,"
      "bus_bandwidth_bytes_per_s,formula_s\n";
  const auto number = [](std::optional<double> value) {
    return value ? fmt::format("{:.6f}", *value) : "";
  };
  for (std::size_t row = 0; row < request.sizes.size(); ++row) {
    for (const AlgorithmColumn& column : columns) {
      const Point& point = column.points[row];
      text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", name_of(request.op),
                          request.chips.size(), point.bytes.value(), column.name, point.algorithm,
                          point.protocol, exact_seconds(point.result.end.since_start),
                          number(algorithm_bandwidth(point)), number(bus_bandwidth(request, point)),
                          exact_seconds(nearest_time(point.formula.seconds)));
    }
  }
  return text;
}

// Where another algorithm or protocol begins.
std::vector<PlotNote> notes_of(const std::vector<Point>& points) {
  std::vector<PlotNote> notes;
  for (const Point& point : points) {
    if (!notes.empty() && notes.back().label == way_of(point)) continue;
    notes.push_back({static_cast<double>(point.bytes.value()), way_of(point)});
  }
  return notes;
}

// The axes and the title of a picture.
Plot empty_plot(const CollectiveRequest& request) {
  return {.title = fmt::format("{} of {} ranks of {}", name_of(request.op), request.chips.size(),
                               request.cluster_name),
          .subtitle = fmt::format("{} model, {}, library {}", name_of(request.fidelity),
                                  name_of(request.granularity), request.cluster.library.name),
          .x = PlotAxis{.label = "bytes", .unit = "B", .log = true},
          .y = PlotAxis{.label = "bus bandwidth", .unit = "B/s", .log = true}};
}

PlotCurve curve_of(const CollectiveRequest& request, const AlgorithmColumn& column) {
  PlotCurve curve{.label = column.name, .mark = PlotMark::kLineAndPoints};
  for (const Point& point : column.points) {
    const auto bus = bus_bandwidth(request, point);
    if (bus) curve.points.push_back({static_cast<double>(point.bytes.value()), *bus});
  }
  return curve;
}

// A curve an algorithm.
Plot plot_of(const CollectiveRequest& request, const std::vector<AlgorithmColumn>& columns) {
  Plot plot = empty_plot(request);
  for (const AlgorithmColumn& column : columns) plot.curves.push_back(curve_of(request, column));
  return plot;
}

// Bus bandwidth over size, simulated, by the closed form and measured.
Plot plot_of(const CollectiveRequest& request, const std::vector<Point>& points) {
  PlotCurve measured{.label = "measured", .mark = PlotMark::kPoints};
  PlotCurve simulated = curve_of(request, {"simulated", points});
  PlotCurve formula{.label = "closed form", .mark = PlotMark::kLine};
  const double factor = bus_factor(request.op, static_cast<std::uint32_t>(request.chips.size()));
  for (const Point& point : points) {
    const auto bytes = static_cast<double>(point.bytes.value());
    if (point.formula.seconds > 0) {
      formula.points.push_back({bytes, factor * bytes / point.formula.seconds});
    }
  }
  for (const MeasuredTime& time : request.measured) {
    const auto bytes = static_cast<double>(time.bytes.value());
    const bool is_inside = time.bytes >= points.front().bytes && time.bytes <= points.back().bytes;
    if (is_inside) measured.points.push_back({bytes, factor * bytes / time.seconds});
  }
  std::vector<PlotCurve> curves = {std::move(simulated), std::move(formula)};
  if (!measured.points.empty()) curves.push_back(std::move(measured));
  Plot plot = empty_plot(request);
  plot.curves = std::move(curves);
  plot.notes = notes_of(points);
  return plot;
}

std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const CollectiveOp op : kCollectiveOps) names.emplace_back(name_of(op));
  return names;
}

// The algorithm that runs at the first size.
MscclExport msccl_of(const CollectiveRequest& request) {
  if (request.chips.size() < 2) {
    throw ConfigError({Problem{"--export msccl", "needs two ranks: one sends nothing"}});
  }
  const OpGraph graph = graph_of(request, request.algorithm, request.sizes.front());
  CollectivePlans plans(graph, request.cluster, request.granularity, request.fidelity);
  const ChosenCollective chosen = plans.chosen_for(CollectiveWorkId(0), GroupId(0));
  return export_msccl(task_of(graph, graph.collective_works[0]), *chosen.algorithm,
                      name_of(chosen.way.algorithm));
}

ExitStatus run_collective_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest = arguments;
  const std::optional<AskedExport> exported = take_export(rest, {"msccl"});
  if (exported) require_writable(*exported);
  const CollectiveRequest request = read_collective_request(rest);
  if (exported && request.every) {
    throw ConfigError({Problem{"--export msccl", "writes one algorithm: name it by --algorithm"}});
  }
  std::optional<MscclExport> msccl;
  if (exported) msccl = msccl_of(request);
  const std::vector<AlgorithmColumn> columns = run_all(request);
  const std::vector<Point>& points = columns.front().points;
  Outputs outputs;
  if (!request.plot.empty()) {
    outputs.write(request.plot,
                  plot_svg(request.every ? plot_of(request, columns) : plot_of(request, points)));
  }
  const std::string json = request.json.empty() ? ""
                           : request.every      ? collective_json(request, columns)
                                                : collective_json(request, points);
  outputs.write(request.json, json);
  if (msccl) outputs.write(exported->path, msccl->text);
  if (!request.csv.empty()) outputs.write(request.csv, csv_of(request, columns));
  outputs.commit();
  if (msccl) say_notes(msccl->notes);
  outputs.print(request.json == "-" ? json
                : request.every     ? matrix_report(request, columns)
                : request.sweep     ? sweep_table(request, points)
                                    : report(request, points.front()));
  return outputs.end(ExitStatus::kDone);
}

}  // namespace

constinit const Subcommand kCollectiveSubcommand = {
    .name = "collective",
    .arguments = "OP [options]",
    .summary = "run one collective on a cluster",
    .description =
        R"(stepsim collective runs one collective on an idle cluster. It says how long the collective takes,
how fast that is, which links are hottest, and what the closed form predicts.

Usage:
  stepsim collective OP --cluster dgx-h100-16 --bytes 64MiB [options]
  stepsim collective all-to-all --cluster v5p-4x4x4 --sweep 1KiB:1GiB
  stepsim collective all-reduce --cluster dgx-h100-8 --sweep 1KiB:1GiB --algorithm all --csv F.csv

Algorithm bandwidth is bytes / time. Bus bandwidth is what one port carried. Both are defined as
nccl-tests defines them. docs/collectives.md has the algorithms.
)",
    .names = operation_names,
    .options = collective_option_list,
    .run = run_collective_command,
    .results = collective_command_results,
};

}  // namespace stepsim
