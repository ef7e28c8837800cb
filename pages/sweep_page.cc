#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <compare>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/page_parts.h"
#include "pages/quantity_words.h"
#include "pages/result_page.h"
#include "sim/fields/plain_value.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostDrawn = 5000;   // points of a figure
constexpr std::size_t kMostListed = 1000;  // rows of the table
constexpr std::size_t kOpenTable = 40;     // longer ones are folded
constexpr std::size_t kMostCurves = 24;

// A point of the sweep that ran.
struct SweptPoint {
  std::vector<std::string> values;  // of each path
  JsonFields fields;
  std::string path;  // "points[3]."
  double step = 0;
  bool fits = true;
};

class SweepPage {
 public:
  explicit SweepPage(const Json& result) : result_(result), fields_(result, "", problems_) {}

  std::string text() {
    read();
    answer();
    if (!ran_.empty()) {
      axis_figure();
      memory_figure();
      table();
    }
    reasons();
    throw_if_any(std::move(problems_));
    page_.result(result_);
    return page_.text();
  }

 private:
  void read() {
    const Json names = result_.value("paths", Json::array());
    for (const Json& name : names) {
      if (name.is_string()) paths_.push_back(name.get<std::string>());
    }
    std::size_t number = 0;
    for (const JsonFields& point : fields_.objects("points")) {
      ++all_;
      const std::string path = fmt::format("points[{}].", number++);
      if (point.has("problem")) {
        ++reasons_[point.text("problem")];
        continue;
      }
      if (!point.has("step_time_s")) continue;
      const JsonFields inputs = point.object("inputs");
      std::vector<std::string> values;
      values.reserve(paths_.size());
      for (const std::string& of : paths_) values.push_back(inputs.text(of));
      const bool fits = !point.has("fits") || point.truth("fits");
      ran_.push_back({std::move(values), point, path, point.number("step_time_s"), fits});
    }
    by_step_.resize(ran_.size());
    for (std::size_t i = 0; i < ran_.size(); ++i) by_step_[i] = i;
    std::ranges::stable_sort(by_step_, {},
                             [&](std::size_t i) { return std::pair(!ran_[i].fits, ran_[i].step); });
  }

  std::string words_of(const SweptPoint& point) const {
    std::string words;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", short_path(i), point.values[i]);
    }
    return words;
  }
  // "tp" of plan.tp.
  std::string short_path(std::size_t i) const {
    const std::size_t dot = paths_[i].rfind('.');
    return words_of_key(std::string_view(paths_[i]).substr(dot == std::string::npos ? 0 : dot + 1));
  }

  void answer() {
    page_.section("answer", "The answer");
    if (by_step_.empty()) {
      page_.paragraph("No point could run.");
      return;
    }
    const SweptPoint& first = ran_[by_step_.front()];
    std::vector<PageFact> facts = {{first.fits ? "fastest that fits" : "fastest; nothing fits",
                                    shown_seconds(first.step, first.path + "step_time_s"),
                                    words_of(first)}};
    if (first.fields.has("peak_bytes")) {
      facts.push_back({"its peak memory",
                       shown_bytes(first.fields.number("peak_bytes"), first.path + "peak_bytes"),
                       first.fits ? "fits" : "does not fit"});
    }
    if (first.fields.has("model_flops_utilization")) {
      facts.push_back({"its MFU",
                       shown_percent(first.fields.number("model_flops_utilization"),
                                     first.path + "model_flops_utilization"),
                       ""});
    }
    const auto fitting = std::ranges::count(ran_, true, &SweptPoint::fits);
    facts.push_back({"points", shown_number(static_cast<double>(all_)),
                     fmt::format("{} ran, {} of them fit", ran_.size(), fitting)});
    page_.facts(facts);
  }

  Json drawn(const SweptPoint& point, double x, double y) const {
    Json one = Json::object();
    one["x"] = x;
    one["y"] = y;
    one["lines"] = Json::array();
    one["lines"].push_back(words_of(point));
    one["lines"].push_back(shown_seconds(point.step).text + " a step");
    if (point.fields.has("peak_bytes")) {
      one["lines"].push_back(shown_bytes(point.fields.number("peak_bytes")).text + " at the peak" +
                             (point.fits ? "" : ", does not fit"));
    }
    return one;
  }

  // Returns the first path whose values are numbers of which there are at least two.
  std::optional<std::size_t> numeric_path() const {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      bool all = true;
      for (const SweptPoint& point : ran_) {
        all = all && plain_value_of(point.values[i]).has_value();
      }
      const auto differs = [&](const SweptPoint& point) {
        return point.values[i] != ran_.front().values[i];
      };
      if (all && std::ranges::any_of(ran_, differs)) return i;
    }
    return std::nullopt;
  }

  // Whether a path has one value for each value of another: they are one axis.
  bool follows(std::size_t path, std::size_t other) const {
    std::map<std::string_view, std::string_view> value_of;
    return std::ranges::all_of(ran_, [&](const SweptPoint& point) {
      return value_of.try_emplace(point.values[other], point.values[path]).first->second ==
             point.values[path];
    });
  }

  static std::string_view unit_of(const PlainValue& value) {
    return value.unit == "s" ? "seconds" : value.unit == "B" ? "bytes" : "number";
  }

  // What `x=`, `y=` or `series=` of --plot asked for; "" if nothing.
  std::string asked_of_plot(std::string_view key) const {
    if (!fields_.has("plot")) return "";
    const JsonFields plot = fields_.object("plot");
    return plot.has(key) ? plot.text(key) : "";
  }

  std::optional<std::size_t> place_of_path(const std::string& path) const {
    const auto found = std::ranges::find(paths_, path);
    if (found == paths_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - paths_.begin());
  }

  // What is drawn over x.
  struct Measure {
    std::string key;
    std::string name;
    std::string_view unit;
  };
  Measure measure() const {
    const std::string asked = asked_of_plot("y");
    const std::string key = asked.empty() ? "step_time_s" : asked;
    if (key.ends_with("_per_s") || key.ends_with("_per_chip")) {
      return {key, words_of_key(key), "number"};
    }
    if (key.ends_with("_s")) return {key, words_of_key(key.substr(0, key.size() - 2)), "seconds"};
    if (key.ends_with("_bytes")) {
      return {key, words_of_key(key.substr(0, key.size() - 6)), "bytes"};
    }
    return {key, words_of_key(key), key.ends_with("_utilization") ? "percent" : "number"};
  }

  std::string value_text(const SweptPoint& point, std::size_t path) const {
    return fmt::format("{} {}", short_path(path), point.values[path]);
  }

  // A curve has one value of every path but x. Its colour is that of its series.
  struct Curve {
    std::string series;
    std::string rest;
    auto operator<=>(const Curve&) const = default;

    std::string name(const std::string& otherwise) const {
      const std::string both = series + (series.empty() || rest.empty() ? "" : ", ") + rest;
      return both.empty() ? otherwise : both;
    }
  };
  Curve curve_of(const SweptPoint& point, std::size_t x, std::optional<std::size_t> series) const {
    Curve curve;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      if (i == x || follows(i, x)) continue;
      if (i == series) {
        curve.series = value_text(point, i);
      } else {
        curve.rest += (curve.rest.empty() ? "" : ", ") + value_text(point, i);
      }
    }
    return curve;
  }

  void axis_figure() {
    const std::string asked_x = asked_of_plot("x");
    const std::optional<std::size_t> x = asked_x.empty() ? numeric_path() : place_of_path(asked_x);
    if (!x || !plain_value_of(ran_.front().values[*x])) return;
    const std::optional<std::size_t> series = place_of_path(asked_of_plot("series"));
    const Measure y = measure();
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < std::min(ran_.size(), kMostDrawn); ++i) {
      if (plain_value_of(ran_[i].values[*x]) && ran_[i].fields.has(y.key)) order.push_back(i);
    }
    if (order.empty()) return;
    const auto place = [&](std::size_t i) { return plain_value_of(ran_[i].values[*x])->number; };
    std::ranges::stable_sort(order, {}, place);
    std::map<Curve, Json> curves;
    for (const std::size_t i : order) {
      Json& points = curves.try_emplace(curve_of(ran_[i], *x, series), Json::array()).first->second;
      points.push_back(drawn(ran_[i], place(i), ran_[i].fields.number(y.key)));
    }
    const PlainValue first = *plain_value_of(ran_.front().values[*x]);
    const double least = place(order.front());
    const double most = place(order.back());
    Json data = axes(paths_[*x] + (first.unit.empty() || unit_of(first) != "number"
                                       ? ""
                                       : fmt::format(" [{}]", first.unit)),
                     unit_of(first), y.name, y.unit);
    if (least > 0 && most > 10 * least) data["x"]["log"] = true;
    const bool joined = curves.size() <= kMostCurves;
    if (!joined) curves = by_series(std::move(curves));
    std::map<std::string, std::size_t> colours;
    for (auto& [curve, points] : curves) {
      add_series(data, curve.name(y.name), joined, std::move(points));
      if (series) {
        data["series"].back()["colour"] =
            colours.try_emplace(curve.series, colours.size()).first->second;
      }
    }
    page_.section("axis", fmt::format("{} over {}", capitalized(y.name), paths_[*x]));
    page_.figure({.id = "axis",
                  .kind = "points",
                  .caption = "Each point is one of the sweep." + cut(),
                  .description = fmt::format("{} over the values of {}; the table of points has "
                                             "those of each.",
                                             capitalized(y.name), paths_[*x]),
                  .data = std::move(data)});
  }

  static std::string capitalized(std::string text) {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text;
  }

  // Too many to follow: the points of a series together.
  static std::map<Curve, Json> by_series(std::map<Curve, Json> curves) {
    std::map<Curve, Json> joined;
    for (auto& [curve, points] : curves) {
      Json& all = joined.try_emplace({curve.series, ""}, Json::array()).first->second;
      for (Json& point : points) all.push_back(std::move(point));
    }
    return joined;
  }

  void memory_figure() {
    Json fitting = Json::array();
    Json large = Json::array();
    for (std::size_t i = 0; i < std::min(ran_.size(), kMostDrawn); ++i) {
      if (!ran_[i].fields.has("peak_bytes")) continue;
      (ran_[i].fits ? fitting : large)
          .push_back(drawn(ran_[i], ran_[i].step, ran_[i].fields.number("peak_bytes")));
    }
    if (fitting.empty() && large.empty()) return;
    Json data = axes("step time", "seconds", "peak memory", "bytes");
    if (!fitting.empty()) add_series(data, "fits", false, std::move(fitting));
    if (!large.empty()) add_series(data, "does not fit", false, std::move(large));
    page_.section("memory", "Step time against memory");
    page_.figure(
        {.id = "memory",
         .kind = "points",
         .caption = "Each point is one of the sweep." + cut(),
         .description = "Points of step time and peak memory; the table of points has them.",
         .data = std::move(data)});
  }

  static Json axes(const std::string& x, std::string_view x_unit, const std::string& y,
                   std::string_view y_unit) {
    Json data = Json::object();
    data["x"]["name"] = x;
    data["x"]["unit"] = x_unit;
    data["y"]["name"] = y;
    data["y"]["unit"] = y_unit;
    data["series"] = Json::array();
    return data;
  }
  static void add_series(Json& data, const std::string& name, bool joined, Json points) {
    Json series = Json::object();
    series["name"] = name;
    series["joined"] = joined;
    if (joined) series["straight"] = true;
    series["points"] = std::move(points);
    data["series"].push_back(std::move(series));
  }
  std::string cut() const {
    if (ran_.size() <= kMostDrawn) return "";
    return fmt::format(" The first {} of {} are drawn.", kMostDrawn, ran_.size());
  }

  void table() {
    page_.section("points", "The points");
    PageTable table{.caption = "Points that fit first, then by step time"};
    if (ran_.size() > kMostListed) {
      table.caption += fmt::format("; the first {} of {}", kMostListed, ran_.size());
    }
    table.columns = paths_;
    for (const char* const column : {"step", "tokens/s a chip", "MFU", "peak", "fits"}) {
      table.columns.emplace_back(column);
    }
    for (std::size_t place = 0; place < std::min(by_step_.size(), kMostListed); ++place) {
      const SweptPoint& point = ran_[by_step_[place]];
      std::vector<Shown> row;
      for (const std::string& value : point.values) row.push_back({value});
      const auto add = [&](const char* key, Shown (*shown)(double, std::string)) {
        row.push_back(point.fields.has(key) ? shown(point.fields.number(key), point.path + key)
                                            : Shown{"-"});
      };
      add("step_time_s", shown_seconds);
      add("tokens_per_s_per_chip", shown_number);
      add("model_flops_utilization", shown_percent);
      add("peak_bytes", shown_bytes);
      row.push_back({point.fits ? "yes" : "no"});
      table.rows.push_back(std::move(row));
    }
    table.folded = table.rows.size() > kOpenTable;
    page_.table(table);
  }

  void reasons() {
    if (reasons_.empty()) return;
    page_.section("refused", "What can't run");
    PageTable table{.caption = "Points that break a rule"};
    table.columns = {"rule", "points"};
    for (const auto& [reason, count] : reasons_) {
      table.rows.push_back({{reason}, shown_number(static_cast<double>(count))});
    }
    page_.table(table);
  }

  const Json& result_;
  std::vector<Problem> problems_;
  JsonFields fields_;
  HtmlPage page_{"Sweep", "An experiment at many points"};
  std::vector<std::string> paths_;
  std::size_t all_ = 0;
  std::vector<SweptPoint> ran_;       // in the order of points
  std::vector<std::size_t> by_step_;  // those that fit first
  std::map<std::string, std::int64_t> reasons_;
};

}  // namespace

std::string sweep_page(const Json& result) {
  return SweepPage(result).text();
}

}  // namespace stepsim
