#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/page_parts.h"
#include "pages/quantity_words.h"
#include "pages/result_page.h"

namespace stepsim {
namespace {

Shown shown_in(const std::string& unit, double value, std::string key) {
  if (unit == "s") return shown_seconds(value, std::move(key));
  if (unit == "B" || unit == "bytes") return shown_bytes(value, std::move(key));
  if (unit == "share") return shown_percent(value, std::move(key));
  return shown_number(value, std::move(key));
}

// Shares differ by points, all else by a part of the first value.
Shown shown_difference(const std::string& unit, std::optional<double> from,
                       std::optional<double> to) {
  if (!from || !to) return {"-"};
  if (unit == "share") return {fmt::format("{:+.2f} points", 100 * (*to - *from))};
  if (*from == 0) return {*to == 0 ? "" : "-"};
  return shown_change(*to / *from - 1);
}

// A value of a list, if it is a number.
std::optional<double> number_in_list(const JsonFields& line, const char* key, std::size_t i) {
  const auto list = line.json().find(key);
  if (list == line.json().end() || !list->is_array() || i >= list->size()) return std::nullopt;
  return (*list)[i].is_number() ? std::optional((*list)[i].get<double>()) : std::nullopt;
}

void add_inputs(HtmlPage& page, const JsonFields& fields, const std::vector<std::string>& names) {
  page.section("inputs", "What was asked differently");
  PageTable table{.caption = "Keys that differ"};
  table.columns = {"key"};
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  for (const JsonFields& input : fields.objects("inputs")) {
    std::vector<Shown> row = {{input.text("path")}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Json values = input.json().value("values", Json::array());
      const bool given = values.is_array() && i < values.size() && values[i].is_string();
      row.push_back({given ? values[i].get<std::string>() : "-"});
    }
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) {
    page.paragraph("Nothing: the experiments are the same.");
  } else {
    page.table(table);
  }
}

// The breakdown of all runs beside each other, and every line of the report.
void add_lines(HtmlPage& page, const JsonFields& fields, const std::vector<std::string>& names) {
  Json data = Json::object();
  data["rows"] = names;
  data["parts"] = Json::array();
  PageTable table{.caption = "Every line of the report that isn't 0"};
  table.columns = {"line", "section"};
  table.columns.insert(table.columns.end(), names.begin(), names.end());
  for (std::size_t i = 1; i < names.size(); ++i) {
    table.columns.push_back(names.size() == 2 ? "difference" : "difference of " + names[i]);
  }
  std::size_t number = 0;
  for (const JsonFields& line : fields.objects("lines")) {
    const std::string path = fmt::format("lines[{}].values", number++);
    const std::string section = line.text("section");
    const std::string unit = line.text("unit");
    std::vector<Shown> row = {{line.text("name")}, {section}};
    Json values = Json::array();
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::optional<double> value = number_in_list(line, "values", i);
      row.push_back(value ? shown_in(unit, *value, fmt::format("{}[{}]", path, i)) : Shown{"-"});
      values.push_back(value.value_or(0));
      any = any || value.value_or(0) != 0;
    }
    for (std::size_t i = 1; i < names.size(); ++i) {
      row.push_back(shown_difference(unit, number_in_list(line, "values", 0),
                                     number_in_list(line, "values", i)));
    }
    if (any) table.rows.push_back(std::move(row));
    if (section == "breakdown" && any) {
      Json part = Json::object();
      part["name"] = line.text("name");
      part["values"] = std::move(values);
      data["parts"].push_back(std::move(part));
    }
  }
  if (!data["parts"].empty()) {
    page.figure({.id = "sides",
                 .kind = "bars",
                 .caption = "Where the steps go.",
                 .description = "Stacked bars of the parts of each run's step; the table has them.",
                 .data = std::move(data)});
  }
  page.table(table);
}

void add_explained(HtmlPage& page, const JsonFields& fields, const std::string& first) {
  page.section("difference", "What makes the difference");
  std::size_t i = 0;
  for (const JsonFields& run : fields.objects("explained")) {
    const std::string path = fmt::format("explained[{}].", i);
    PageTable table{.caption = fmt::format("{} less {}", run.text("run"), first)};
    table.columns = {"part", "difference"};
    Json rows = Json::array();
    std::size_t part_number = 0;
    for (const JsonFields& part : run.objects("parts")) {
      const double difference = part.number("difference_s");
      table.rows.push_back({{part.text("part")},
                            shown_seconds(difference, fmt::format("{}parts[{}].difference_s", path,
                                                                  part_number++))});
      Json row = Json::object();
      row["name"] = part.text("part");
      row["value"] = difference;
      rows.push_back(std::move(row));
    }
    table.rows.push_back(
        {{"step"}, shown_seconds(run.number("step_difference_s"), path + "step_difference_s")});
    if (rows.empty()) {
      page.table(table);
    } else {
      Json data = Json::object();
      data["rows"] = std::move(rows);
      page.figure({.id = fmt::format("difference-{}", i),
                   .kind = "differences",
                   .caption =
                       "Parts of the step that take longer (right) or shorter (left). They add "
                       "up to the difference of the steps.",
                   .description = "Bars of the difference of each part; the table has them.",
                   .data = std::move(data),
                   .table = std::move(table)});
    }
    std::vector<std::string> behind;  // older results have none
    if (run.has("behind")) {
      for (const JsonFields& cause : run.objects("behind")) behind.push_back(cause.text("text"));
    }
    page.list(behind);
    ++i;
  }
}

}  // namespace

std::string compare_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  std::vector<std::string> names;
  std::vector<PageFact> facts;
  double first_step = 0;
  for (const JsonFields& run : fields.objects("runs")) {
    const std::string path = fmt::format("runs[{}].step_time_s", names.size());
    const double step = run.number("step_time_s");
    if (names.empty()) first_step = step;
    const std::string remark =
        names.empty() || first_step <= 0
            ? "the first run"
            : fmt::format("{} against {}", shown_change(step / first_step - 1).text, names.front());
    names.push_back(run.text("name"));
    facts.push_back({names.back(), shown_seconds(step, path), remark});
  }
  HtmlPage page("Comparison of runs", fmt::format("{} runs side by side", names.size()));
  page.section("answer", "The answer");
  page.facts(facts);
  add_inputs(page, fields, names);
  page.section("lines", "Every line");
  add_lines(page, fields, names);
  add_explained(page, fields, names.empty() ? "" : names.front());
  throw_if_any(std::move(problems));
  page.result(without_simulator_times(result));
  return page.text();
}

std::string diff_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  const std::vector<double> steps = fields.numbers("step_s");
  HtmlPage page("Simulated against real", "A step of two traces, op by op");
  page.section("answer", "The answer");
  if (steps.size() == 2) {
    page.facts({{"simulated step", shown_seconds(steps[0], "step_s[0]"), ""},
                {"real step", shown_seconds(steps[1], "step_s[1]"),
                 steps[1] > 0 ? fmt::format("the simulated step is {:.1f} % {}",
                                            100 * std::abs(steps[0] / steps[1] - 1),
                                            steps[0] < steps[1] ? "shorter" : "longer")
                              : ""}});
  }
  std::vector<std::string> notes;
  for (const Json& note : result.value("notes", Json::array())) {
    if (note.is_string()) notes.push_back(note.get<std::string>());
  }
  page.list(notes);
  PageTable table{.caption = "By kind of op"};
  table.columns = {"kind", "simulated", "real", "difference", "ops simulated", "ops real"};
  Json bars = Json::object();
  bars["rows"] = Json::array();
  bars["rows"].push_back("simulated");
  bars["rows"].push_back("real");
  bars["parts"] = Json::array();
  std::size_t i = 0;
  for (const JsonFields& kind : fields.objects("by_kind")) {
    const std::string path = fmt::format("by_kind[{}].", i++);
    std::vector<double> times = kind.numbers("time_s");
    std::vector<double> counts = kind.numbers("count");
    times.resize(2);
    counts.resize(2);
    table.rows.push_back({{kind.text("kind")},
                          shown_seconds(times[0], path + "time_s[0]"),
                          shown_seconds(times[1], path + "time_s[1]"),
                          shown_seconds(kind.number("difference_s"), path + "difference_s"),
                          shown_number(counts[0]),
                          shown_number(counts[1])});
    Json part = Json::object();
    part["name"] = kind.text("kind");
    part["values"] = times;
    bars["parts"].push_back(std::move(part));
  }
  page.section("kinds", "Where both steps go");
  if (!bars["parts"].empty()) {
    page.figure({.id = "sides",
                 .kind = "bars",
                 .caption = "Kinds of ops. They partition both steps.",
                 .description = "Two stacked bars; the table has them.",
                 .data = std::move(bars),
                 .table = std::move(table)});
  }
  page.section("ops", "Ops that differ most");
  PageTable ops{.caption = "Largest differences first"};
  ops.columns = {"simulated", "real", "kind", "simulated time", "real time", "difference"};
  for (const JsonFields& op : fields.objects("ops")) {
    std::vector<double> times = op.numbers("time_s");
    times.resize(2);
    const Json names = op.json().value("name", Json::array());
    const auto name = [&](std::size_t side) {
      const bool given = names.is_array() && side < names.size() && names[side].is_string();
      return given ? names[side].get<std::string>() : std::string("-");
    };
    ops.rows.push_back({{name(0)},
                        {name(1)},
                        {op.text("kind")},
                        shown_seconds(times[0]),
                        shown_seconds(times[1]),
                        shown_seconds(op.number("difference_s"))});
  }
  page.table(ops);
  throw_if_any(std::move(problems));
  page.result(without_simulator_times(result));
  return page.text();
}

}  // namespace stepsim
