#include "cli/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "proto/messages/json_value.h"
#include "schedules/plan/axis.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/shown_text.h"
#include "sim/fields/plain_value.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

// A column and where its value is in a result.
struct SweepColumn {
  std::string name;
  std::vector<std::string> path;
};

std::vector<SweepColumn> make_columns() {
  std::vector<SweepColumn> columns = {
      {"step_time_s", {"step_time_s"}},
      {"tokens_per_s", {"tokens_per_s"}},
      {"tokens_per_s_per_chip", {"tokens_per_s_per_chip"}},
      {"model_flops_utilization", {"model_flops_utilization"}},
      {"hardware_flops_utilization", {"hardware_flops_utilization"}},
      {"chips", {"chips"}},
      {"peak_bytes", {"memory", "peak_bytes"}},
      {"capacity_bytes", {"memory", "capacity_bytes"}},
      {"fits", {"memory", "fits"}},
      {"compute_s", {"breakdown_s", "compute"}},
  };
  for (const char* axis : {"tp", "cp", "ep", "dp", "pp", "host", "other"}) {
    columns.push_back(
        {fmt::format("exposed_{}_s", axis), {"breakdown_s", "exposed_communication", axis}});
  }
  columns.push_back({"bubble_s", {"breakdown_s", "bubble"}});
  columns.push_back({"idle_s", {"breakdown_s", "idle"}});
  columns.push_back({"launch_s", {"breakdown_s", "launch"}});
  return columns;
}

const std::vector<SweepColumn>& columns_of_table() {
  static const std::vector<SweepColumn> columns = make_columns();
  return columns;
}

std::size_t column_named(std::string_view name) {
  const auto& columns = columns_of_table();
  const auto at = std::ranges::find(columns, name, &SweepColumn::name);
  return static_cast<std::size_t>(at - columns.begin());
}

std::optional<double> number_of(const SweepRow& row, std::size_t column) {
  if (row.cells.empty()) return std::nullopt;
  return number_in<double>(row.cells[column]);
}

// ---- the picture ----

// Values that span more than a factor of ten are spread by their logarithms.
bool spans_decades(const std::vector<PlotCurve>& curves) {
  double least = 0;
  double most = 0;
  for (const PlotCurve& curve : curves) {
    for (const PlotPoint& point : curve.points) {
      if (point.x <= 0) return false;
      least = most == 0 ? point.x : std::min(least, point.x);
      most = std::max(most, point.x);
    }
  }
  return most > 10 * least;
}

std::string unit_of_column(std::string_view column) {
  if (column.ends_with("_per_s") || column.ends_with("_per_chip")) return "";
  if (column.ends_with("_s")) return "s";
  return column.ends_with("_bytes") ? "B" : "";
}

// Whether a path has one value for each value of x: they go together.
bool follows(const SweepTable& table, std::size_t path, std::size_t x) {
  std::map<std::string_view, std::string_view> value_of;
  return std::ranges::all_of(table.rows, [&](const SweepRow& row) {
    const auto& [of, value] = *value_of.try_emplace(row.values[x], row.values[path]).first;
    return value == row.values[path];
  });
}

// A curve has one value of every path but x: a line of several would go to and fro. The value of
// the series comes first and has a colour: "plan.zero=1: plan.microbatch=2, plan.dp=8".
std::string label_of(const SweepTable& table, const SweepRow& row,
                     const std::vector<std::size_t>& paths, std::optional<std::size_t> series) {
  const auto value = [&](std::size_t i) { return table.paths[i] + "=" + row.values[i]; };
  std::string rest;
  for (const std::size_t i : paths) {
    if (i != series) rest += (rest.empty() ? "" : ", ") + value(i);
  }
  if (!series) return rest;
  return value(*series) + (rest.empty() ? "" : ": " + rest);
}

// ---- the report ----

struct ReportColumn {
  std::string title;
  std::vector<std::string> cells{};
};

std::string fixed(const SweepRow& row, std::string_view column, double scale, int digits,
                  std::string_view unit) {
  const auto number = number_of(row, column_named(column));
  return number ? fmt::format("{:.{}f} {}", *number * scale, digits, unit) : "-";
}

void add_fastest(const SweepTable& table, ReportText& text) {
  constexpr std::size_t kListed = 10;
  const std::size_t step = column_named("step_time_s");
  const std::size_t fits = column_named("fits");
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : table.rows) {
    if (number_of(row, step) && row.cells[fits] != "false") rows.push_back(&row);
  }
  if (rows.empty()) return;
  std::ranges::stable_sort(rows, {}, [&](const SweepRow* row) { return *number_of(*row, step); });
  if (rows.size() > kListed) rows.resize(kListed);
  std::vector<ReportColumn> columns = {{"step"}, {"MFU"}, {"memory"}};
  for (const std::string& path : table.paths) columns.push_back({path});
  for (const SweepRow* row : rows) {
    columns[0].cells.push_back(fixed(*row, "step_time_s", 1, 3, "s"));
    columns[1].cells.push_back(fixed(*row, "model_flops_utilization", 100, 1, "%"));
    columns[2].cells.push_back(fixed(*row, "peak_bytes", 1e-9, 1, "GB"));
    for (std::size_t i = 0; i < row->values.size(); ++i) {
      columns[3 + i].cells.push_back(row->values[i]);
    }
  }
  text.section("Fastest that fit");
  const auto line = [&](const auto& cell) {
    std::string whole;
    for (const ReportColumn& column : columns) {
      std::size_t width = column.title.size();
      for (const std::string& one : column.cells) width = std::max(width, one.size());
      whole += fmt::format("  {:>{}}", cell(column), width);
    }
    text.line("{}", whole);
  };
  line([](const ReportColumn& column) { return column.title; });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    line([i](const ReportColumn& column) { return column.cells[i]; });
  }
}

void add_problems(const SweepTable& table, ReportText& text) {
  constexpr std::size_t kListed = 5;
  std::map<std::string, std::int64_t> counts;
  for (const SweepRow& row : table.rows) {
    if (!row.problem.empty()) ++counts[row.problem];
  }
  if (counts.empty()) return;
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           &std::pair<std::string, std::int64_t>::second);
  text.section("Can't run");
  for (std::size_t i = 0; i < std::min(kListed, sorted.size()); ++i) {
    text.wrapped(2, fmt::format("{}: {}", grouped(sorted[i].second), sorted[i].first));
  }
  if (sorted.size() > kListed) {
    text.line("  and {} more reasons: --csv lists all", sorted.size() - kListed);
  }
}

}  // namespace

std::vector<std::string> sweep_columns() {
  std::vector<std::string> names;
  for (const SweepColumn& column : columns_of_table()) names.push_back(column.name);
  return names;
}

std::vector<std::string> cells_of_result(std::string_view json) {
  const JsonOrProblem read = parse_json(json);
  if (!read.value) throw ConfigError({{"result", "is damaged: " + read.problem}});
  std::vector<std::string> cells;
  for (const SweepColumn& column : columns_of_table()) {
    const Json* value = &*read.value;
    for (const std::string& name : column.path) {
      if (value != nullptr) {
        const auto at = value->find(name);
        value = value->is_object() && at != value->end() ? &*at : nullptr;
      }
    }
    cells.push_back(value != nullptr && value->is_primitive() ? json_text(*value) : "");
  }
  return cells;
}

std::string sweep_csv(const SweepTable& table) {
  std::string text;
  for (const std::string& path : table.paths) text += csv_cell(path) + ",";
  for (const SweepColumn& column : columns_of_table()) text += column.name + ",";
  text += "problem\n";
  for (const SweepRow& row : table.rows) {
    for (const std::string& value : row.values) text += csv_cell(value) + ",";
    for (std::size_t i = 0; i < columns_of_table().size(); ++i) {
      text += (row.cells.empty() ? "" : csv_cell(row.cells[i])) + ",";
    }
    text += csv_cell(row.problem) + "\n";
  }
  return text;
}

namespace {

struct SweptPoint {
  const std::vector<std::string>* paths;
  const SweepRow* row;
};

ByName<std::string> inputs_of(const SweptPoint& point) {
  ByName<std::string> inputs;
  for (std::size_t i = 0; i < point.row->values.size(); ++i) {
    inputs.emplace_back((*point.paths)[i], point.row->values[i]);
  }
  return inputs;
}

const ResultTable<SweptPoint>& point_of_sweep_results() {
  static const ResultTable<SweptPoint> kTable = [] {
    ResultTable<SweptPoint> table;
    table.add("number", [](const SweptPoint& point) { return point.row->number; }, {"in order"});
    table.add("inputs", inputs_of, {"by path"});
    for (std::size_t i = 0; i < columns_of_table().size(); ++i) {
      table.add(
          columns_of_table()[i].name,
          [i](const SweptPoint& point) -> std::optional<OrNull<RawJson>> {
            const auto& cells = point.row->cells;
            if (cells.empty()) return std::nullopt;
            return OrNull{cells[i].empty() ? std::nullopt : std::optional(RawJson{cells[i]})};
          },
          {"of the result of the run", "", "where the point ran"});
    }
    table.add("problem", [](const SweptPoint& point) { return OrNull{given(point.row->problem)}; },
              {"why it can't run; null: it ran"});
    return table;
  }();
  return kTable;
}

struct WholeSweep {
  const SweepTable* table;
  const SweepPlot* plot;
};

const ResultTable<SweepPlot>& plot_results() {
  static const ResultTable<SweepPlot> kTable = [] {
    ResultTable<SweepPlot> table;
    table.add("x", &SweepPlot::x, {"path along the axis"});
    table.add("y", &SweepPlot::y, {"member that is drawn"});
    table.add("series", &SweepPlot::series, {"path that tells lines apart"});
    return table;
  }();
  return kTable;
}

const ResultTable<WholeSweep>& whole_sweep_results() {
  static const ResultTable<WholeSweep> kTable = [] {
    ResultTable<WholeSweep> table;
    table.object("plot", plot_results(),
                 [](const WholeSweep& sweep) {
                   const SweepPlot& plot = *sweep.plot;
                   return (plot.x + plot.y + plot.series).empty() ? nullptr : &plot;
                 },
                 {"what is drawn", "", "with --plot"});
    table.add("paths", [](const WholeSweep& sweep) { return sweep.table->paths; }, {"that vary"});
    table.list("points", point_of_sweep_results(),
               [](const WholeSweep& sweep) {
                 std::vector<SweptPoint> points;
                 for (const SweepRow& row : sweep.table->rows)
                   points.push_back({&sweep.table->paths, &row});
                 return points;
               },
               {"in order"});
    return table;
  }();
  return kTable;
}

}  // namespace

std::string sweep_point_json(const std::vector<std::string>& paths, const SweepRow& row) {
  return point_of_sweep_results().json({&paths, &row}, 2);
}

std::string sweep_json(const SweepTable& table, const SweepPlot& plot) {
  return whole_sweep_results().json({&table, &plot}) + '\n';
}

std::vector<CommandResult> sweep_command_results() {
  return {{"", &whole_sweep_results()}};
}

Plot sweep_plot(const SweepTable& table, const SweepPlot& asked) {
  const auto at = [&](const std::string& path) {
    const auto found = std::ranges::find(table.paths, path);
    if (found == table.paths.end()) {
      throw ConfigError({{"--plot", "must be over a field that varies, is over \"" + path + "\""}});
    }
    return static_cast<std::size_t>(found - table.paths.begin());
  };
  const std::size_t x = asked.x.empty() ? 0 : at(asked.x);
  const std::optional<std::size_t> series =
      asked.series.empty() ? std::nullopt : std::optional(at(asked.series));
  const std::string y = asked.y.empty() ? "step_time_s" : asked.y;
  std::vector<std::size_t> paths;
  for (std::size_t i = 0; i < table.paths.size(); ++i) {
    if (i != x && !follows(table, i, x)) paths.push_back(i);
  }
  std::map<std::string, std::size_t> curve_of;
  Plot plot{.title = y + " over " + table.paths[x],
            .subtitle = fmt::format("{} points", table.rows.size()),
            .x = {.label = table.paths[x]},
            .y = {.label = y, .unit = unit_of_column(y)},
            .curves = {}};
  for (const SweepRow& row : table.rows) {
    const auto position = plain_value_of(row.values[x]);
    if (!position) {
      throw ConfigError({{"x", "must be numbers or quantities, but " + table.paths[x] + " has \"" +
                                   row.values[x] + "\""}});
    }
    plot.x.unit = position->unit;
    const auto number = number_of(row, column_named(y));
    if (!number) continue;
    const std::string label = label_of(table, row, paths, series);
    const auto [entry, is_new] = curve_of.try_emplace(label, plot.curves.size());
    if (is_new) plot.curves.push_back({.label = label, .mark = PlotMark::kLineAndPoints});
    plot.curves[entry->second].points.push_back({position->number, *number});
  }
  for (PlotCurve& curve : plot.curves) {
    std::ranges::stable_sort(curve.points, {}, &PlotPoint::x);
  }
  plot.x.log = spans_decades(plot.curves);
  return plot;
}

std::string sweep_report(const SweepTable& table, const SweepCounts& counts, bool color) {
  ReportText text(color);
  const auto number = [](std::uint64_t count) { return grouped(static_cast<std::int64_t>(count)); };
  text.line("{} points", number(counts.points));
  const auto line = [&](const char* name, std::uint64_t count) {
    if (count > 0) text.line("  {:<{}}{:>12}", name, kReportLabel, number(count));
  };
  line("run", counts.run);
  line("in the store before", counts.stored);
  line("can't run", counts.refused);
  line("not run yet", counts.missing);
  add_fastest(table, text);
  add_problems(table, text);
  return text.text();
}

}  // namespace stepsim
