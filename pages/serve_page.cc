#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/page_parts.h"
#include "pages/quantity_words.h"
#include "pages/result_page.h"

namespace stepsim {
namespace {

struct ServedTime {
  const char* key;
  const char* words;
};
constexpr std::array<ServedTime, 4> kServedTimes = {{{"ttft_s", "to the first token"},
                                                     {"tpot_s", "an output token"},
                                                     {"inter_token_s", "between tokens"},
                                                     {"end_to_end_s", "end to end"}}};

PageTable times_table(const JsonFields& fields) {
  PageTable table{.caption = "Times of requests"};
  table.columns = {"time", "mean", "p50", "p90", "p99"};
  for (const ServedTime& time : kServedTimes) {
    if (!fields.has(time.key)) continue;
    const JsonFields spread = fields.object(time.key);
    std::vector<Shown> row = {{time.words}};
    for (const char* key : {"mean", "p50", "p90", "p99"}) {
      row.push_back(spread.has(key) ? shown_seconds(spread.number(key), spread.path_of(key))
                                    : Shown{"-"});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Shares of requests over time, from quantiles_s: its values are those of the 0 th to 100 th
// percentile.
void add_distributions(HtmlPage& page, const JsonFields& fields) {
  page.section("latency", "Latency");
  if (!fields.has("quantiles_s")) {
    page.table(times_table(fields));
    return;
  }
  const JsonFields quantiles = fields.object("quantiles_s");
  Json lines = Json::array();
  double least = 0;
  double most = 0;
  for (const ServedTime& time : kServedTimes) {
    if (!quantiles.has(time.key)) continue;
    const std::vector<double> values = quantiles.numbers(time.key);
    if (values.size() < 2) continue;
    Json line = Json::object();
    line["name"] = time.words;
    line["at"] = Json::array();
    line["values"] = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] <= 0) continue;
      line["at"].push_back(values[i]);
      line["values"].push_back(static_cast<double>(i) / static_cast<double>(values.size() - 1));
      least = least == 0 ? values[i] : std::min(least, values[i]);
      most = std::max(most, values[i]);
    }
    if (!line["at"].empty()) lines.push_back(std::move(line));
  }
  Json data = Json::object();
  data["lines"] = std::move(lines);
  data["begin"] = least;
  data["end"] = most;
  data["log"] = true;
  data["step"] = false;
  data["low"] = 0;
  data["high"] = 1;
  if (data["lines"].empty() || most <= least) {
    page.table(times_table(fields));
    return;
  }
  page.figure({.id = "latency",
               .kind = "lines",
               .caption = "Cumulative distributions: the share of requests, or of gaps between "
                          "tokens, that took at most so long.",
               .description =
                   "Cumulative distributions of the times of requests; the table has the "
                   "mean and percentiles.",
               .data = std::move(data),
               .table = times_table(fields)});
}

void add_parts(HtmlPage& page, const JsonFields& fields) {
  page.section("parts", "Where the time of a request goes");
  add_stacked_parts(
      page, fields.object("parts_s"),
      {.of = "a request",
       .table = "Of the mean request",
       .caption = "Queue: waiting to be taken in. Prefill: until the first token. Decode: from "
                  "token to token.",
       .description = "A stacked bar of the parts of a request's time; the table has them."});
}

// One line over time: `key` of the load, against the most that there could be.
void add_occupancy(HtmlPage& page, const JsonFields& fields) {
  if (!fields.has("load")) return;
  page.section("occupancy", "Occupancy over time");
  const JsonFields load = fields.object("load");
  const double bin = load.number("bin_s");
  const auto figure = [&](const char* id, std::vector<std::pair<const char*, const char*>> keys,
                          double most, const char* unit, const char* caption) {
    Json data = Json::object();
    data["y"] = unit;
    data["lines"] = Json::array();
    std::size_t bins = 0;
    for (const auto& [key, name] : keys) {
      Json line = Json::object();
      line["name"] = name;
      line["at"] = Json::array();
      line["values"] = Json::array();
      const std::vector<double> values = load.numbers(key);
      for (std::size_t i = 0; i < values.size(); ++i) {
        line["at"].push_back(bin * static_cast<double>(i));
        line["values"].push_back(most > 0 ? values[i] / most : values[i]);
      }
      bins = std::max(bins, values.size());
      data["lines"].push_back(std::move(line));
    }
    data["end"] = bin * static_cast<double>(bins);
    page.figure({.id = id,
                 .kind = "lines",
                 .caption = caption,
                 .description = caption,
                 .data = std::move(data)});
  };
  figure("load", {{"running", "running"}, {"waiting", "waiting"}}, 0, "number",
         "Requests that run and that wait, in all replicas: the most in each interval.");
  const double total = fields.object("kv_blocks").number("total");
  figure("blocks", {{"kv_blocks", "KV cache held"}}, total, "percent",
         "The share of the KV cache's blocks that is held: the most in each interval.");
}

}  // namespace

std::string serve_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  const double chips = fields.number("chips");
  HtmlPage page("Serving",
                fmt::format("{}: {} requests on {} {}, engine {}", words_of_asked(fields),
                            shown_number(fields.number("requests")).text, shown_number(chips).text,
                            chips == 1 ? "chip" : "chips", fields.text("engine")));
  page.section("answer", "The answer");
  const JsonFields blocks = fields.object("kv_blocks");
  std::vector<PageFact> facts;
  facts.push_back({"to the first token (TTFT)",
                   shown_seconds(fields.object("ttft_s").number("mean"), "ttft_s.mean"),
                   "mean of the requests"});
  const JsonFields tpot = fields.object("tpot_s");
  if (tpot.has("mean")) {
    facts.push_back(
        {"an output token (TPOT)", shown_seconds(tpot.number("mean"), "tpot_s.mean"), "mean"});
  }
  facts.push_back({"output tokens a second",
                   shown_number(fields.number("output_tokens_per_s"), "output_tokens_per_s"),
                   shown_number(fields.number("output_tokens_per_s_per_chip")).text + " a chip"});
  if (fields.has("goodput_requests_per_s")) {
    facts.push_back(
        {"good requests a second",
         shown_number(fields.number("goodput_requests_per_s"), "goodput_requests_per_s"),
         "those that met the objective"});
  }
  facts.push_back(
      {"KV cache at the peak", shown_number(blocks.number("peak"), "kv_blocks.peak"),
       fmt::format("of {} blocks; {} preemptions", shown_number(blocks.number("total")).text,
                   shown_number(fields.number("preemptions")).text)});
  page.facts(facts);
  add_asked(page, fields);
  add_distributions(page, fields);
  add_parts(page, fields);
  add_occupancy(page, fields);
  throw_if_any(std::move(problems));
  page.result(without_simulator_times(result));
  return page.text();
}

std::string serve_search_page(const Json& result) {
  std::vector<Problem> problems;
  const JsonFields fields(result, "", problems);
  HtmlPage page("Search of serving plans", "Throughput of a chip against the speed of a user");
  page.section("answer", "The answer");
  const auto row_of = [](const JsonFields& point, const std::string& path) {
    return std::vector<Shown>{{point.text("plan")},
                              shown_number(point.number("chips")),
                              shown_number(point.number("concurrency")),
                              shown_number(point.number("output_tokens_per_s_per_chip"),
                                           path + "output_tokens_per_s_per_chip"),
                              shown_number(point.number("output_tokens_per_s_per_user"),
                                           path + "output_tokens_per_s_per_user"),
                              shown_seconds(point.number("ttft_mean_s"), path + "ttft_mean_s"),
                              shown_seconds(point.number("tpot_mean_s"), path + "tpot_mean_s"),
                              {point.truth("meets") ? "yes" : "no"}};
  };
  const std::vector<std::string> columns = {
      "plan",        "chips",           "at one time",        "tokens/s a chip", "tokens/s a user",
      "first token", "an output token", "meets the objective"};
  if (fields.has("best")) {
    PageTable table{.caption = "The best", .columns = columns};
    table.rows.push_back(row_of(fields.object("best"), "best."));
    page.table(table);
  } else {
    page.paragraph("No plan meets the objective.");
  }
  add_asked(page, fields);
  page.section("front", "Throughput against speed");
  PageTable front{.caption = "The front", .columns = columns};
  std::size_t i = 0;
  for (const JsonFields& point : fields.objects("front")) {
    front.rows.push_back(row_of(point, fmt::format("front[{}].", i++)));
  }
  Json data = Json::object();
  data["x"]["name"] = "tokens/s a user";
  data["x"]["unit"] = "number";
  data["y"]["name"] = "tokens/s a chip";
  data["y"]["unit"] = "number";
  data["series"] = Json::array();
  const auto add_series = [&](const char* key, const char* name, bool joined) {
    Json series = Json::object();
    series["name"] = name;
    series["joined"] = joined;
    series["points"] = Json::array();
    std::vector<JsonFields> points = fields.objects(key);
    if (joined) {
      std::ranges::stable_sort(points, {}, [](const JsonFields& point) {
        return point.number("output_tokens_per_s_per_user");
      });
    }
    for (const JsonFields& point : points) {
      Json one = Json::object();
      one["x"] = point.number("output_tokens_per_s_per_user");
      one["y"] = point.number("output_tokens_per_s_per_chip");
      one["lines"] = Json::array();
      one["lines"].push_back(point.text("plan"));
      one["lines"].push_back(fmt::format("{} requests at one time on {} chips",
                                         point.number("concurrency"), point.number("chips")));
      one["lines"].push_back(
          fmt::format("{} tokens/s a chip, {} a user",
                      shown_number(point.number("output_tokens_per_s_per_chip")).text,
                      shown_number(point.number("output_tokens_per_s_per_user")).text));
      one["lines"].push_back(point.truth("meets") ? "meets the objective"
                                                  : "does not meet the objective");
      series["points"].push_back(std::move(one));
    }
    if (!series["points"].empty()) data["series"].push_back(std::move(series));
  };
  add_series("points", "all", false);
  add_series("front", "front", true);
  if (!data["series"].empty()) {
    page.figure({.id = "front",
                 .kind = "points",
                 .caption = "Each point is a plan with as many requests at one time.",
                 .description =
                     "Points of throughput of a chip over tokens a second of a user; the "
                     "table has the front.",
                 .data = std::move(data),
                 .table = std::move(front)});
  }
  throw_if_any(std::move(problems));
  page.result(without_simulator_times(result));
  return page.text();
}

}  // namespace stepsim
