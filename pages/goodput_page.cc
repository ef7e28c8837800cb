#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/page_parts.h"
#include "pages/quantity_words.h"
#include "pages/result_page.h"

namespace stepsim {
namespace {

Shown shown_days(double days, std::string key = {}) {
  Shown shown = shown_number(days, std::move(key));
  shown.text += " days";
  return shown;
}

void add_days(HtmlPage& page, const JsonFields& fields) {
  page.section("parts", "Where the time goes");
  add_stacked_parts(
      page, fields.object("parts_days"),
      {.of = "a run",
       .table = "Of the mean run",
       .unit = "days",
       .caption = "Days of a run. Lost: steps that were done again. Degraded: what fewer "
                  "replicas or slow nodes cost.",
       .description = "A stacked bar of the parts of a run; the table has them.",
       .with_zeros = true,
       .shown = [](double days, std::string key) { return shown_days(days, std::move(key)); }});
}

void add_checkpoints(HtmlPage& page, const JsonFields& fields) {
  page.section("checkpoints", "Checkpoints");
  const JsonFields checkpoint = fields.object("checkpoint");
  PageTable table{.caption = "What a checkpoint costs"};
  table.columns = {"what", ""};
  const auto seconds = [&](const char* words, const char* key) {
    table.rows.push_back({{words}, shown_seconds(checkpoint.number(key), checkpoint.path_of(key))});
  };
  table.rows.push_back({{"size, of the whole job"},
                        shown_bytes(checkpoint.number("bytes"), checkpoint.path_of("bytes"))});
  table.rows.push_back(
      {{"one every"},
       shown_seconds(fields.number("checkpoint_interval_s"), "checkpoint_interval_s")});
  seconds("one in storage every", "storage_interval_s");
  seconds("training stands for a copy to hosts and peers", "copy_stall_s");
  seconds("training stands for one in storage", "storage_stall_s");
  seconds("until one in storage is safe", "storage_flush_s");
  page.table(table);
}

// Goodput over what was varied: "by_interval" with "interval_s".
void add_varied(HtmlPage& page, const JsonFields& fields, const char* list, const char* key,
                const char* words, bool in_seconds) {
  if (!fields.has(list) || fields.objects(list).empty()) return;
  PageTable table{.caption = fmt::format("Goodput by {}", words), .folded = true};
  table.columns = {words, "days", "goodput"};
  Json line = Json::object();
  line["name"] = "goodput";
  line["at"] = Json::array();
  line["values"] = Json::array();
  std::size_t i = 0;
  double least = 0;
  double most = 0;
  double worst = 1;
  for (const JsonFields& point : fields.objects(list)) {
    const std::string path = fmt::format("{}[{}].", list, i++);
    const double x = point.number(key);
    table.rows.push_back({in_seconds ? shown_seconds(x, path + key) : shown_number(x, path + key),
                          shown_days(point.number("days"), path + "days"),
                          shown_percent(point.number("goodput"), path + "goodput")});
    least = i == 1 ? x : std::min(least, x);
    most = i == 1 ? x : std::max(most, x);
    line["at"].push_back(x);
    line["values"].push_back(point.number("goodput"));
    worst = std::min(worst, point.number("goodput"));
  }
  if (most <= least) return page.table(table);
  Json data = Json::object();
  data["x"] = in_seconds ? "seconds" : "number";
  data["begin"] = least;
  data["end"] = most;
  data["log"] = in_seconds && least > 0;
  data["step"] = false;
  data["low"] = std::max(0.0, std::floor((worst - 0.02) * 20) / 20);
  data["marks"] = true;
  data["lines"].push_back(std::move(line));
  page.figure({.id = list,
               .kind = "lines",
               .caption = fmt::format("Goodput by {}.", words),
               .description = fmt::format("A line of goodput by {}; the table has it.", words),
               .data = std::move(data),
               .table = std::move(table)});
}

void add_classes(HtmlPage& page, const JsonFields& fields) {
  page.section("failures", "Failures");
  PageTable table{.caption = "Failures of a run, by class"};
  table.columns = {"class", "failures"};
  std::size_t i = 0;
  for (const JsonFields& one : fields.objects("failures_by_class")) {
    table.rows.push_back(
        {{one.text("name")},
         shown_number(one.number("count"), fmt::format("failures_by_class[{}].count", i++))});
  }
  if (!table.rows.empty()) page.table(table);
  PageTable halves{.caption = "The run with half and with twice as many failures of a class"};
  halves.columns = {"class", "half", "twice"};
  i = 0;
  const std::vector<JsonFields> rows =
      fields.has("sensitivity") ? fields.objects("sensitivity") : std::vector<JsonFields>();
  for (const JsonFields& one : rows) {
    const std::string path = fmt::format("sensitivity[{}].", i++);
    halves.rows.push_back({{one.text("name")},
                           shown_days(one.number("half_days"), path + "half_days"),
                           shown_days(one.number("twice_days"), path + "twice_days")});
  }
  if (!halves.rows.empty()) page.table(halves);
}

// What the run costs: money, energy and carbon, where they are known.
void add_costs(const JsonFields& fields, std::vector<PageFact>& facts) {
  if (fields.has("cost")) {
    facts.push_back({"price", shown_number(fields.number("cost"), "cost"),
                     "of all nodes and spares, at the price of a chip-hour that was given"});
  }
  if (!fields.has("energy")) return;
  constexpr double kKilowattHour = 3.6e6;  // joules
  const JsonFields energy = fields.object("energy");
  const double pue = energy.number("pue");
  facts.push_back(
      {"energy", shown_energy(energy.number("kwh") * kKilowattHour),
       pue == 1 ? std::string("of the chips alone") : fmt::format("chips times a PUE of {}", pue)});
  if (!energy.has("carbon_kg")) return;
  Shown carbon = shown_number(energy.number("carbon_kg"), energy.path_of("carbon_kg"));
  carbon.text += " kg";
  facts.push_back({"carbon dioxide", std::move(carbon), ""});
}

void add_assumed(HtmlPage& page, const JsonFields& fields) {
  if (!fields.has("assumed") || fields.objects("assumed").empty()) return;
  PageTable table{.caption = "Assumed: not asked for, and not of this cluster"};
  table.columns = {"field", "value", "why"};
  for (const JsonFields& one : fields.objects("assumed")) {
    table.rows.push_back({{one.text("field")}, {one.text("value")}, {one.text("why")}});
  }
  page.table(table);
}

}  // namespace

std::string goodput_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  HtmlPage page("A whole run with failures",
                fmt::format("{}: {} chips and {} spare nodes, {} runs simulated",
                            words_of_asked(fields), shown_number(fields.number("chips")).text,
                            shown_number(fields.number("spares")).text,
                            shown_number(fields.number("runs")).text));
  page.section("answer", "The answer");
  const JsonFields days = fields.object("days");
  std::vector<PageFact> facts;
  facts.push_back({"a run takes", shown_days(days.number("mean"), "days.mean"),
                   fmt::format("{} to {} in 8 of 10 runs", shown_days(days.number("p10")).text,
                               shown_days(days.number("p90")).text)});
  facts.push_back({"goodput", shown_percent(fields.number("goodput"), "goodput"),
                   "of the time makes progress"});
  if (fields.has("effective_mfu")) {
    facts.push_back(
        {"effective MFU", shown_percent(fields.number("effective_mfu"), "effective_mfu"), ""});
  }
  facts.push_back({"failures", shown_number(fields.number("failures"), "failures"), "of a run"});
  facts.push_back({"checkpoint every",
                   shown_seconds(fields.number("checkpoint_interval_s"), "checkpoint_interval_s"),
                   ""});
  add_costs(fields, facts);
  page.facts(facts);
  add_asked(page, fields);
  add_assumed(page, fields);
  add_days(page, fields);
  add_checkpoints(page, fields);
  page.section("varied", "What else it could be");
  page.paragraph(
      "These come from up to 200 runs each, all with the same failures: their differences are "
      "known "
      "better than their values, which may differ a little from the answer above.");
  add_varied(page, fields, "by_interval", "interval_s", "checkpoint interval", true);
  add_varied(page, fields, "by_spares", "spares", "spare nodes", false);
  add_classes(page, fields);
  throw_if_any(std::move(problems));
  page.result(without_simulator_times(result));
  return page.text();
}

}  // namespace stepsim
