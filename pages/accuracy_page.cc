#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/page_parts.h"
#include "pages/quantity_words.h"
#include "pages/result_page.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostPoints = 4'000;  // of a figure

std::string_view unit_of_metric(std::string_view metric) {
  if (metric.ends_with("_s")) return "seconds";
  return metric.ends_with("_bytes") ? "bytes" : "number";
}

Shown shown_as(std::string_view metric, double value) {
  if (unit_of_metric(metric) == "seconds") return shown_seconds(value);
  return unit_of_metric(metric) == "bytes" ? shown_bytes(value) : shown_number(value);
}

// A figure of one metric: a series a source.
struct MeasuredMetric {
  std::map<std::string, Json> by_source{};
  std::size_t points = 0;
  std::size_t left_out = 0;
};

void add_row(const JsonFields& row, std::map<std::string, MeasuredMetric>& metrics) {
  if (!row.has("predicted") || (row.has("implausible") && !row.text("implausible").empty())) return;
  const double measured = row.number("measured");
  const double predicted = row.number("predicted");
  const std::string metric = row.text("metric");
  MeasuredMetric& its = metrics[metric];
  if (measured <= 0 || predicted <= 0) return;
  if (its.points >= kMostPoints) {
    ++its.left_out;
    return;
  }
  ++its.points;
  Json point = Json::object();
  point["x"] = measured;
  point["y"] = predicted;
  point["lines"] = Json::array();
  point["lines"].push_back(row.text("id"));
  point["lines"].push_back(fmt::format("{}, {}", row.text("source_id"), row.text("chip")));
  point["lines"].push_back(fmt::format("measured {}, predicted {}", shown_as(metric, measured).text,
                                       shown_as(metric, predicted).text));
  point["lines"].push_back(shown_change(predicted / measured - 1).text);
  const auto [series, is_new] = its.by_source.emplace(row.text("source_id"), Json::array());
  series->second.push_back(std::move(point));
}

void add_metric(HtmlPage& page, const std::string& metric, MeasuredMetric& its,
                std::size_t number) {
  Json data = Json::object();
  for (const char* axis : {"x", "y"}) {
    data[axis]["name"] = std::string_view(axis) == "x" ? "measured" : "predicted";
    data[axis]["unit"] = unit_of_metric(metric);
    data[axis]["log"] = true;
  }
  data["same"] = true;
  data["series"] = Json::array();
  for (auto& [source, points] : its.by_source) {
    Json series = Json::object();
    series["name"] = source;
    series["joined"] = false;
    series["points"] = std::move(points);
    data["series"].push_back(std::move(series));
  }
  if (data["series"].empty()) return;
  std::string caption = fmt::format(
      "{}: predicted against measured. On the dashed line they are equal.", words_of_key(metric));
  if (its.left_out > 0) caption += fmt::format(" {} more rows are not drawn.", its.left_out);
  page.figure(
      {.id = fmt::format("metric-{}", number),
       .kind = "points",
       .caption = std::move(caption),
       .description = fmt::format("Points of predicted over measured {}.", words_of_key(metric)),
       .data = std::move(data)});
}

PageTable summary_of_sources(const JsonFields& fields) {
  PageTable table{.caption = "By source"};
  table.columns = {"source",          "metric", "rows",   "median error",
                   "90th percentile", "mean",   "covered"};
  std::size_t i = 0;
  for (const JsonFields& line : fields.objects("summary")) {
    const std::string path = fmt::format("summary[{}].", i++);
    const auto share = [&](const char* key) {
      return line.has(key) ? shown_percent(line.number(key), path + key) : Shown{"-"};
    };
    table.rows.push_back({{line.text("source_id")},
                          {line.text("metric")},
                          shown_number(line.number("rows"), path + "rows"),
                          share("median_absolute_relative_error"),
                          share("p90_absolute_relative_error"),
                          share("mean_relative_error"),
                          share("covered")});
  }
  return table;
}

PageTable reasons_of(const JsonFields& fields) {
  std::map<std::string, std::size_t> counts;
  for (const JsonFields& row : fields.objects("rows")) {
    if (row.has("skipped") && !row.text("skipped").empty()) ++counts[row.text("skipped")];
  }
  PageTable table{.caption = "Rows that were skipped, and why", .folded = true};
  table.columns = {"reason", "rows"};
  for (const auto& [reason, count] : counts) {
    table.rows.push_back({{reason}, shown_number(static_cast<double>(count))});
  }
  return table;
}

}  // namespace

std::string accuracy_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  const std::vector<JsonFields> rows = fields.objects("rows");
  HtmlPage page(
      "Predicted against measured",
      fmt::format("{} measured rows", shown_number(static_cast<double>(rows.size())).text));
  page.section("answer", "The answer");
  page.table(summary_of_sources(fields));
  const PageTable reasons = reasons_of(fields);
  if (!reasons.rows.empty()) page.table(reasons);
  std::map<std::string, MeasuredMetric> metrics;
  for (const JsonFields& row : rows) add_row(row, metrics);
  page.section("points", "Every row");
  std::size_t number = 0;
  for (auto& [metric, its] : metrics) add_metric(page, metric, its, number++);
  PageTable worst{.caption = "The rows that are farthest off", .folded = true};
  worst.columns = {"row", "source", "measured", "predicted", "error"};
  std::vector<std::pair<double, const JsonFields*>> far;
  for (const JsonFields& row : rows) {
    if (row.has("predicted") && row.has("relative_error")) {
      far.emplace_back(-std::abs(row.number("relative_error")), &row);
    }
  }
  std::ranges::stable_sort(far, {}, &std::pair<double, const JsonFields*>::first);
  constexpr std::size_t kListedRows = 20;
  if (far.size() > kListedRows) far.resize(kListedRows);
  for (const auto& [error, row] : far) {
    const std::string metric = row->text("metric");
    worst.rows.push_back({{row->text("id")},
                          {row->text("source_id")},
                          shown_as(metric, row->number("measured")),
                          shown_as(metric, row->number("predicted")),
                          shown_change(row->number("relative_error"))});
  }
  if (!worst.rows.empty()) page.table(worst);
  throw_if_any(std::move(problems));
  return page.text();
}

}  // namespace stepsim
