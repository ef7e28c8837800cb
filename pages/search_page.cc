#include <fmt/format.h>

#include <cmath>
#include <functional>
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

constexpr double kKilowattHour = 3.6e6;  // joules

// "tp 8, pp 4": the sizes above 1, and what else differs between plans.
std::string words_of_plan(const JsonFields& plan) {
  std::string words;
  const bool has_pipeline = plan.has("pp") && plan.number("pp") > 1;
  for (const auto& [key, value] : plan.json().items()) {
    if (value == true || value == "none" || (key == "schedule" && !has_pipeline)) continue;
    if (value.is_number() && value.get<double>() == 1) continue;
    if (key == "global_batch" || key == "sequence") continue;
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", words_of_key(key),
                         value.is_string() ? value.get<std::string>() : json_text(value));
  }
  return words;
}

Json point_of_plan(const JsonFields& found) {
  Json point = Json::object();
  point["x"] = found.number("step_time_s");
  point["y"] = found.number("peak_bytes");
  Json lines = Json::array();
  lines.push_back(words_of_plan(found.object("plan")));
  lines.push_back(fmt::format("{} a step, {} at the peak",
                              shown_seconds(found.number("step_time_s")).text,
                              shown_bytes(found.number("peak_bytes")).text));
  lines.push_back(fmt::format("{} chips of {}, MFU {}", found.number("chips"),
                              found.text("cluster"),
                              shown_percent(found.number("model_flops_utilization")).text));
  if (found.has("run")) lines.push_back("click, or Enter: the command to run it");
  point["lines"] = std::move(lines);
  if (found.has("run")) point["command"] = found.text("run");
  return point;
}

// "sure to fit", "likely to fit", "does not fit".
std::string words_of_fit(const JsonFields& found) {
  if (!found.truth("fits")) return "does not fit";
  return found.has("fits_certainty") ? found.text("fits_certainty") + " to fit" : "fits";
}

// Why there is no plan that is sure to fit; "" if there is one.
std::string words_of_outcome(const JsonFields& fields) {
  if (!fields.has("outcome")) return fields.objects("best").empty() ? "No plan was found." : "";
  const std::string outcome = fields.text("outcome");
  if (outcome == "nothing fits")
    return "Nothing fits: no plan of the space leaves the headroom that was asked for.";
  if (outcome == "not fast enough") return "No plan that fits is as fast as asked.";
  if (outcome == "likely") return "No plan was found that is sure to fit; this one is likely to.";
  if (outcome != "not known") return "";
  const JsonFields excluded = fields.object("excluded");
  return fmt::format("Not known: no plan that fits was found, and {} of {} plans were not reached.",
                     shown_number(excluded.number("not reached")).text,
                     shown_number(fields.number("considered")).text);
}

// " over tp, dp": the keys of the space.
std::string words_of_keys(const JsonFields& fields) {
  std::string words;
  if (!fields.has("searched_keys")) return words;
  for (const Json& key : fields.json().at("searched_keys")) {
    if (!key.is_string()) continue;
    words += (words.empty() ? " over " : ", ") + words_of_key(key.get<std::string>());
  }
  return words;
}

// "14.2 s to 15.9 s"; "" if there is none.
std::string words_of_interval(const JsonFields& of, const std::string& key,
                              const std::function<Shown(double)>& shown) {
  if (!of.has(key)) return "";
  const std::vector<double> ends = of.numbers(key);
  return ends.size() == 2 ? fmt::format("{} to {}", shown(ends[0]).text, shown(ends[1]).text) : "";
}

// What `cost` counts.
std::string name_of_cost(const JsonFields& fields) {
  const bool has_price = fields.has("asked") && (fields.object("asked").has("gpu-hour") ||
                                                 fields.object("asked").has("chip-hour"));
  return has_price ? "cost" : "chip-hours";
}

PageTable plans_table(const JsonFields& fields, const std::string& key, std::string caption) {
  PageTable table{.caption = std::move(caption)};
  table.columns = {"plan",
                   "step",
                   "8 of 10 such runs",
                   "peak",
                   "fits",
                   "MFU",
                   "chips",
                   name_of_cost(fields) + " of a step",
                   "energy of a step",
                   "command"};
  std::size_t i = 0;
  for (const JsonFields& found : fields.objects(key)) {
    const std::string path = fmt::format("{}[{}].", key, i++);
    table.rows.push_back(
        {{words_of_plan(found.object("plan"))},
         shown_seconds(found.number("step_time_s"), path + "step_time_s"),
         {words_of_interval(found, "step_time_interval_s",
                            [](double value) { return shown_seconds(value); })},
         shown_bytes(found.number("peak_bytes"), path + "peak_bytes"),
         {words_of_fit(found)},
         shown_percent(found.number("model_flops_utilization"), path + "model_flops_utilization"),
         shown_number(found.number("chips")),
         shown_number(found.number("cost"), path + "cost"),
         found.has("energy_joules") ? shown_energy(found.number("energy_joules")) : Shown{},
         {found.has("run") ? found.text("run") : ""}});
  }
  return table;
}

// The best plan of each of several clusters.
void add_clusters(HtmlPage& page, const JsonFields& fields) {
  if (!fields.has("best_of_cluster")) return;
  page.section("clusters", "The best of each cluster");
  PageTable table{.caption = "Days, " + name_of_cost(fields) +
                             " and energy are those of a whole training, without failures"};
  table.columns = {"cluster",
                   "chips",
                   "plan",
                   "step",
                   "peak",
                   "fits",
                   "tokens",
                   "days",
                   "8 of 10 such runs",
                   name_of_cost(fields),
                   "energy",
                   "proof",
                   "command"};
  std::size_t i = 0;
  for (const JsonFields& found : fields.objects("best_of_cluster")) {
    const std::string path = fmt::format("best_of_cluster[{}].", i++);
    const double gap = found.number("bound_gap");
    if (!found.has("plan")) {
      std::vector<Shown> row(table.columns.size());
      row.front() = {found.text("cluster")};
      row[5] = {gap > 0 ? "not known" : "nothing fits"};
      table.rows.push_back(std::move(row));
      continue;
    }
    std::vector<Shown> row = {{found.text("cluster")},
                              shown_number(found.number("chips"), path + "chips"),
                              {words_of_plan(found.object("plan"))},
                              shown_seconds(found.number("step_time_s"), path + "step_time_s"),
                              shown_bytes(found.number("peak_bytes"), path + "peak_bytes"),
                              {words_of_fit(found)}};
    if (found.has("training")) {
      const JsonFields training = found.object("training");
      row.push_back(shown_number(training.number("tokens"), path + "training.tokens"));
      row.push_back(shown_number(training.number("days"), path + "training.days"));
      row.push_back({words_of_interval(training, "days_interval",
                                       [](double value) { return shown_number(value); })});
      row.push_back(shown_number(training.number("cost"), path + "training.cost"));
      row.push_back(training.has("energy_kwh")
                        ? shown_energy(training.number("energy_kwh") * kKilowattHour)
                        : Shown{});
    } else {
      row.resize(11);
    }
    row.push_back({gap == 0 ? "proven" : fmt::format("within {}", shown_percent(gap).text)});
    row.push_back({found.has("run") ? found.text("run") : ""});
    table.rows.push_back(std::move(row));
  }
  page.table(table);
}

// Plans that were refined with keys outside the space.
void add_refined(HtmlPage& page, const JsonFields& fields) {
  if (!fields.has("refined")) return;
  const JsonFields refined = fields.object("refined");
  page.section("refined", "Refined");
  PageTable table{.caption = "The best plans with keys changed that the space leaves alone"};
  table.columns = {"of", "changes", "step", "peak", "MFU", "command"};
  std::size_t i = 0;
  for (const JsonFields& found : refined.objects("plans")) {
    const std::string path = fmt::format("refined.plans[{}].", i++);
    std::string changes;
    for (const JsonFields& change : found.objects("changes")) {
      changes += fmt::format("{}{} {} (was {})", changes.empty() ? "" : ", ",
                             words_of_key(change.text("key")), change.text("to"),
                             change.text("from").empty() ? "unset" : change.text("from"));
    }
    table.rows.push_back(
        {found.has("of") ? shown_number(found.number("of"))
                         : Shown{"best of " + found.text("cluster")},
         {changes},
         shown_seconds(found.number("step_time_s"), path + "step_time_s"),
         shown_bytes(found.number("peak_bytes"), path + "peak_bytes"),
         shown_percent(found.number("model_flops_utilization"), path + "model_flops_utilization"),
         {found.has("run") ? found.text("run") : ""}});
  }
  if (table.rows.empty()) {
    page.paragraph("No change of one key outside the space makes the best plans better.");
  } else {
    page.table(table);
  }
  page.paragraph(fmt::format("{} changes were tried, {} of them simulated to the end.",
                             shown_number(refined.number("considered")).text,
                             shown_number(refined.number("simulated")).text));
}

void add_space(HtmlPage& page, const JsonFields& fields) {
  page.section("space", "What was looked at");
  add_asked(page, fields);
  PageTable table{.caption = "Plans of the space"};
  table.columns = {"what became of them", "plans"};
  const JsonFields excluded = fields.object("excluded");
  for (const auto& [reason, count] : excluded.all_numbers()) {
    table.rows.push_back({{reason}, shown_number(count, excluded.path_of(reason))});
  }
  table.rows.push_back({{"simulated"}, shown_number(fields.number("simulated"), "simulated")});
  table.rows.push_back({{"all"}, shown_number(fields.number("considered"), "considered")});
  page.table(table);
}

}  // namespace

std::string search_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  const std::vector<JsonFields> best = fields.objects("best");
  const std::string objective = fields.text("objective");
  HtmlPage page("Search of plans",
                fmt::format("{}: the plans with the least {}", words_of_asked(fields),
                            objective == "step" ? "step time" : objective));
  page.section("answer", "The answer");
  const double gap = fields.number("bound_gap");
  const bool has_answer = fields.has("answer");  // results of 0.1 have none
  if (const std::string words = words_of_outcome(fields); !words.empty()) page.paragraph(words);
  if (has_answer || !best.empty()) {
    const JsonFields first = has_answer ? fields.object("answer") : best.front();
    const std::string path = has_answer ? "answer." : "best[0].";
    page.facts(
        {{has_answer || first.truth("fits") ? "best step" : "step",
          shown_seconds(first.number("step_time_s"), path + "step_time_s"),
          words_of_plan(first.object("plan"))},
         {"peak memory", shown_bytes(first.number("peak_bytes"), path + "peak_bytes"),
          words_of_fit(first)},
         {"MFU",
          shown_percent(first.number("model_flops_utilization"), path + "model_flops_utilization"),
          ""},
         {"proof",
          {gap == 0 ? "proven best" : "not proven"},
          gap == 0 ? "no plan of the space is better" + words_of_keys(fields)
                   : fmt::format("another may be up to {} better", shown_percent(gap).text)}});
    if (first.has("run")) page.command(first.text("run"));
  }

  add_clusters(page, fields);

  page.section("front", "Step time against memory");
  std::map<double, Json> by_chips;
  for (const JsonFields& found : fields.objects("front")) {
    const auto [series, is_new] = by_chips.emplace(found.number("chips"), Json::array());
    series->second.push_back(point_of_plan(found));
  }
  Json data = Json::object();
  data["x"]["name"] = "step time";
  data["x"]["unit"] = "seconds";
  data["y"]["name"] = "peak memory";
  data["y"]["unit"] = "bytes";
  data["series"] = Json::array();
  for (auto& [chips, points] : by_chips) {
    Json series = Json::object();
    series["name"] =
        by_chips.size() == 1 ? std::string("front") : fmt::format("front of {} chips", chips);
    series["joined"] = by_chips.size() == 1;
    series["points"] = std::move(points);
    data["series"].push_back(std::move(series));
  }
  if (has_answer && !by_chips.empty()) {
    Json answer = Json::object();
    answer["name"] = "the answer";
    answer["joined"] = false;
    answer["points"] = Json::array({point_of_plan(fields.object("answer"))});
    data["series"].push_back(std::move(answer));
  }
  if (!by_chips.empty()) {
    page.figure(
        {.id = "front",
         .kind = "points",
         .caption = "Plans that no other beats in time, memory and chips. Point at one to see "
                    "the plan; click it, or press Enter, for the command to run it.",
         .description = "Points of step time and peak memory of the plans of the Pareto front; "
                        "the table has them.",
         .data = std::move(data),
         .table = plans_table(fields, "front", "The front")});
  }
  page.section("best", "The best plans");
  page.table(plans_table(fields, "best", "Best first"));
  add_refined(page, fields);
  add_space(page, fields);
  throw_if_any(std::move(problems));
  page.result(without_simulator_times(result));
  return page.text();
}

}  // namespace stepsim
