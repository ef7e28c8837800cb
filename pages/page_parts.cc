#include "pages/page_parts.h"

#include <fmt/format.h>

#include <utility>

namespace stepsim {
namespace {

std::string text_of_value(const Json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

bool is_plain_list(const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& one : value) {
    if (one.is_structured()) return false;
  }
  return true;
}

void add_settings(const Json& value, const std::string& path, PageTable& table) {
  if (is_plain_list(value)) {
    std::string text;
    for (const Json& one : value) text += (text.empty() ? "" : ", ") + text_of_value(one);
    table.rows.push_back({{path}, {text}});
    return;
  }
  if (!value.is_structured()) {
    table.rows.push_back({{path}, {text_of_value(value)}});
    return;
  }
  std::size_t number = 0;
  for (const auto& [key, member] : value.items()) {
    const std::string name = value.is_array()
                                 ? fmt::format("{}[{}]", path, number++)
                                 : (path.empty() ? key : fmt::format("{}.{}", path, key));
    add_settings(member, name, table);
  }
}

}  // namespace

PageTable settings_table(const Json& object, std::string caption, bool folded) {
  PageTable table{.caption = std::move(caption), .folded = folded};
  table.columns = {"key", "value"};
  add_settings(object, "", table);
  return table;
}

void add_experiment(HtmlPage& page, const Json& experiment) {
  if (!experiment.is_object()) return;
  const auto overrides = experiment.find("overrides");
  if (overrides != experiment.end() && overrides->is_array() && !overrides->empty()) {
    page.paragraph("Changed with --set, or by flags:");
    std::vector<std::string> changed;
    for (const Json& one : *overrides) changed.push_back(text_of_value(one));
    page.list(changed);
  }
  const auto add = [&](std::string_view key, const char* caption) {
    const auto part = experiment.find(key);
    if (part != experiment.end() && part->is_object()) {
      page.table(settings_table(*part, caption, true));
    }
  };
  add("plan", "Plan: every key in force");
  add("software", "Software: every key in force");
  add("pass", "Pass: every key in force");
  add("model", "Model: every key in force");
  add("cluster", "Cluster: every key in force");
  add("variation", "Variation");
  Json rest = Json::object();
  for (const auto& [key, value] : experiment.items()) {
    const bool shown = key == "plan" || key == "software" || key == "pass" || key == "model" ||
                       key == "cluster" || key == "variation" || key == "overrides" ||
                       key == "published";
    if (!shown) rest[key] = value;
  }
  page.table(settings_table(rest, "Simulation", true));
}

void add_asked(HtmlPage& page, const JsonFields& result) {
  if (!result.has("asked")) return;
  const JsonFields asked = result.object("asked");
  if (!asked.json().empty()) {
    page.table(settings_table(asked.json(), "What was asked: options as given", true));
  }
}

std::string words_of_asked(const JsonFields& result) {
  if (!result.has("asked")) return "";
  const Json& asked = result.object("asked").json();
  std::string words;
  for (const char* key :
       {"of", "model", "cluster", "plan", "software", "pass", "requests", "global-batch",
        "sequence", "step-time", "chips", "tokens", "days", "failures"}) {
    const auto value = asked.find(key);
    if (value == asked.end()) continue;
    const auto add = [&](const Json& one) {
      if (!one.is_string()) return;
      const std::string name =
          std::string_view(key).find('-') != std::string_view::npos ||
                  std::string_view(key) == "sequence" || std::string_view(key) == "chips" ||
                  std::string_view(key) == "tokens" || std::string_view(key) == "days"
              ? words_of_key(key) + " "
              : "";
      words += (words.empty() ? "" : ", ") + name + one.get<std::string>();
    };
    if (value->is_array()) {
      for (const Json& one : *value) add(one);
    } else {
      add(*value);
    }
  }
  return words;
}

Json without_simulator_times(const Json& result) {
  Json copy = result;
  if (!copy.is_object() || !copy.contains("simulator") || !copy["simulator"].is_object()) {
    return copy;
  }
  for (const char* key : {"wall_s", "cpu_s", "peak_rss_bytes"}) copy["simulator"].erase(key);
  return copy;
}

void add_stacked_parts(HtmlPage& page, const JsonFields& parts, StackedParts words) {
  PageTable table{.caption = std::move(words.table)};
  table.columns = {"part", "time", "share"};
  double whole = 0;
  for (const auto& [name, value] : parts.all_numbers()) whole += value;
  Json data = Json::object();
  if (!words.unit.empty()) data["unit"] = words.unit;
  data["rows"].push_back(words.of);
  data["parts"] = Json::array();
  for (const auto& [name, value] : parts.all_numbers()) {
    if (value == 0 && !words.with_zeros) continue;
    table.rows.push_back({{name},
                          words.shown(value, parts.path_of(name)),
                          shown_percent(whole > 0 ? value / whole : 0)});
    Json part = Json::object();
    part["name"] = name;
    part["values"].push_back(value);
    data["parts"].push_back(std::move(part));
  }
  page.figure({.id = "parts",
               .kind = "bars",
               .caption = std::move(words.caption),
               .description = std::move(words.description),
               .data = std::move(data),
               .table = std::move(table)});
}

}  // namespace stepsim
