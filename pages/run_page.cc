#include "pages/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/uncertainty.h"
#include "pages/html_page.h"
#include "pages/json_fields.h"
#include "pages/page_parts.h"
#include "pages/quantity_words.h"
#include "sim/base/json_text.h"

namespace stepsim {
namespace {

// A part of the step: "exposed tp" of breakdown_s.exposed_communication.tp.
struct StepPart {
  std::string name;
  double seconds = 0;
  std::string key;
};

std::vector<StepPart> step_parts(const JsonFields& fields) {
  const JsonFields breakdown = fields.object("breakdown_s");
  std::vector<StepPart> parts;
  parts.push_back({"compute", breakdown.number("compute"), breakdown.path_of("compute")});
  const JsonFields exposed = breakdown.object("exposed_communication");
  for (const auto& [axis, seconds] : exposed.all_numbers()) {
    parts.push_back({"exposed " + axis, seconds, exposed.path_of(axis)});
  }
  for (const char* key : {"bubble", "idle", "launch"}) {
    if (const auto seconds = breakdown.number_if_given(key)) {
      parts.push_back({key, *seconds, breakdown.path_of(key)});
    }
  }
  return parts;
}

// A published figure in the unit of its metric.
Shown shown_figure(std::string_view metric, double value) {
  if (metric.find("time") != std::string_view::npos) return shown_seconds(value);
  if (metric.find("utilization") != std::string_view::npos) return shown_percent(value);
  if (metric.find("bytes") != std::string_view::npos) return shown_bytes(value);
  return shown_number(value);
}

class RunPage {
 public:
  RunPage(const Json& result, const Json& drawings)
      : result_(result),
        drawings_(drawings),
        fields_(result, "", problems_),
        title_(fields_.text("name")),
        page_(title_, subtitle()) {}

  std::string text() {
    answer();
    asked();
    step();
    pipeline();
    memory();
    energy();
    links();
    kernels();
    sensitivity();
    formulas();
    throw_if_any(std::move(problems_));
    page_.result(without_simulator_times(result_));
    return page_.text();
  }

 private:
  std::string subtitle() const {
    const bool inference = fields_.has("kv_cache");
    return fmt::format("{} on {} chips, simulated by stepsim with the {} network model",
                       inference ? "A pass of inference" : "A training step",
                       shown_number(fields_.number("chips")).text, fields_.text("fidelity"));
  }

  double step_s() const { return fields_.number("step_time_s"); }

  std::string interval_text(const JsonFields& fields, std::string_view key,
                            Shown (*shown)(double, std::string)) const {
    if (!fields.has(key)) return "";
    const std::vector<double> ends = fields.numbers(key);
    if (ends.size() != 2) return "";
    return fmt::format("{} to {} in 8 of 10 such runs", shown(ends[0], "").text,
                       shown(ends[1], "").text);
  }

  // Where the prediction lies outside the middle half of its interval.
  static std::string median_text(const JsonFields& fields, const char* interval, const char* median,
                                 double predicted, Shown (*shown)(double, std::string)) {
    if (!fields.has(interval) || !fields.has(median)) return "";
    const std::vector<double> ends = fields.numbers(interval);
    if (ends.size() != 2) return "";
    const Interval known{.low = ends[0], .high = ends[1], .median = fields.number(median)};
    const auto times = telling_median(known, predicted);
    if (!times) return "";
    return fmt::format("; {:.2f} times this at the median: {}", *times,
                       shown(*known.median, fields.path_of(median)).text);
  }

  // "8,030,261,248" as "8.03 billion".
  static Shown shown_count(double count) {
    constexpr double kBillion = 1e9;
    constexpr double kMillion = 1e6;
    const bool is_large = count >= kBillion;
    return {fmt::format("{} {}", shown_number(count / (is_large ? kBillion : kMillion)).text,
                        is_large ? "billion" : "million"),
            fmt::format("{:.0f}", count)};
  }

  // What was simulated, for those who see nothing else of the page.
  void head() {
    if (!fields_.has("experiment") || !drawings_.contains("parameters")) return;
    const JsonFields experiment = fields_.object("experiment");
    const JsonFields plan = experiment.object("plan");
    const auto name_of_part = [&](const char* part) {
      const bool named = experiment.has(part) && experiment.object(part).has("name");
      return named ? experiment.object(part).text("name") : std::string();
    };
    const double parameters = drawings_["parameters"].get<double>();
    const double active = drawings_["active_parameters"].get<double>();
    std::vector<PageFact> facts = {
        {"chips",
         {fmt::format("{} x {}", shown_number(fields_.number("chips")).text,
                      drawings_["chip"].get<std::string>())},
         name_of_part("cluster")},
        {"parameters", shown_count(parameters),
         name_of_part("model") + (active < parameters
                                      ? fmt::format("; a token uses {}", shown_count(active).text)
                                      : "")}};
    if (const auto batch = plan.number_if_given("global_batch")) {
      facts.push_back(
          {"batch", shown_number(*batch, "experiment.plan.global_batch"),
           fmt::format("sequences; micro-batches of {}",
                       shown_number(plan.number_if_given("microbatch").value_or(1)).text)});
    }
    if (const auto sequence = plan.number_if_given("sequence")) {
      facts.push_back({"sequence", shown_number(*sequence, "experiment.plan.sequence"),
                       "tokens, computed in " + (plan.has("dtype") ? plan.text("dtype") : "bf16")});
    }
    page_.facts(facts);
  }

  void answer() {
    page_.section("answer", "The answer");
    head();
    const JsonFields memory = fields_.object("memory");
    const bool fits = memory.truth("fits");
    std::vector<PageFact> facts;
    facts.push_back({"step time", shown_seconds(step_s(), "step_time_s"),
                     interval_text(fields_, "step_time_interval_s", shown_seconds) +
                         median_text(fields_, "step_time_interval_s", "step_time_median_s",
                                     step_s(), shown_seconds)});
    facts.push_back({"tokens per second",
                     shown_number(fields_.number("tokens_per_s"), "tokens_per_s"),
                     shown_number(fields_.number("tokens_per_s_per_chip")).text + " a chip"});
    facts.push_back(
        {"MFU", shown_percent(fields_.number("model_flops_utilization"), "model_flops_utilization"),
         fmt::format("of {} a chip, attention counted {}; HFU {}",
                     shown_rate(fields_.number("peak_flops_per_s_per_chip"), "FLOP").text,
                     fields_.text("flops_convention"),
                     shown_percent(fields_.number("hardware_flops_utilization")).text)});
    facts.push_back({"peak memory", shown_bytes(memory.number("peak_bytes"), "memory.peak_bytes"),
                     fmt::format("{} {}; {}", fits ? "fits in" : "does not fit in",
                                 shown_bytes(memory.number("capacity_bytes")).text,
                                 interval_text(memory, "peak_interval_bytes", shown_bytes) +
                                     median_text(memory, "peak_interval_bytes", "peak_median_bytes",
                                                 memory.number("peak_bytes"), shown_bytes))});
    page_.facts(facts);
    published();
  }

  void published() {
    if (!fields_.has("published")) {
      page_.paragraph(
          "How sure it is: the ranges say where 8 of 10 measured runs of this kind lay around what "
          "stepsim predicted. Nothing was published about this very run.");
      return;
    }
    page_.paragraph(
        "How sure it is: the ranges say where 8 of 10 measured runs of this kind lay around what "
        "stepsim predicted. Others have measured this on real chips:");
    PageTable table{.caption = "Published figures beside simulated ones"};
    table.columns = {"figure", "published", "simulated", "difference", "measured with", "source"};
    std::vector<std::string> reasons;
    for (const JsonFields& row : fields_.objects("published")) {
      const std::string metric = row.text("metric");
      table.rows.push_back({{words_of_key(metric)},
                            shown_figure(metric, row.number("published")),
                            shown_figure(metric, row.number("simulated")),
                            shown_change(row.number("ratio") - 1),
                            {row.has("plan") ? row.text("plan") : "the same plan"},
                            {row.has("source") ? row.text("source") : ""}});
      if (row.has("why")) reasons.push_back(words_of_key(metric) + ": " + row.text("why"));
    }
    page_.table(table);
    page_.list(reasons);
  }

  void asked() {
    page_.section("asked", "What was asked");
    if (fields_.has("experiment")) {
      const JsonFields experiment = fields_.object("experiment");
      std::vector<PageFact> facts;
      for (const char* part : {"model", "cluster"}) {
        if (experiment.has(part) && experiment.object(part).has("name")) {
          facts.push_back({part, {experiment.object(part).text("name")}, ""});
        }
      }
      facts.push_back({"plan", {plan_words(experiment)}, ""});
      page_.facts(facts);
      add_experiment(page_, experiment.json());
    }
    if (fields_.has("placement")) {
      page_.paragraph("Where the ranks are placed costs something:");
      std::vector<std::string> notes;
      for (const Json& note : result_["placement"]) {
        if (note.is_string()) notes.push_back(note.get<std::string>());
      }
      page_.list(notes);
    }
  }

  // "tp 8, dp 16, pp 4, 1f1b".
  static std::string plan_words(const JsonFields& experiment) {
    if (!experiment.has("plan")) return "";
    const JsonFields plan = experiment.object("plan");
    std::string words;
    for (const char* axis : {"tp", "cp", "dp", "pp", "ep", "etp", "zero"}) {
      if (!plan.has(axis)) continue;
      const double size = plan.number(axis);
      if (size != (std::string_view(axis) == "zero" ? 0 : 1)) {
        words += fmt::format("{}{} {}", words.empty() ? "" : ", ", axis, size);
      }
    }
    if (plan.has("schedule")) words += (words.empty() ? "" : ", ") + plan.text("schedule");
    return words;
  }

  void step() {
    page_.section("step", "Where the step goes");
    const std::vector<StepPart> parts = step_parts(fields_);
    PageTable table{.caption = "Mean of all ranks"};
    table.columns = {"part", "time", "share"};
    Json mean = Json::array();
    for (const StepPart& part : parts) {
      if (part.seconds == 0) continue;
      table.rows.push_back({{part.name},
                            shown_seconds(part.seconds, part.key),
                            shown_percent(part.seconds / step_s())});
      Json one = Json::object();
      one["name"] = part.name;
      one["value"] = part.seconds;
      mean.push_back(std::move(one));
    }
    table.rows.push_back({{"step"}, shown_seconds(step_s(), "step_time_s"), shown_percent(1)});
    Json data = Json::object();
    data["mean"] = std::move(mean);
    data["stages"] = drawings_.value("stages", Json::object());
    page_.figure(
        {.id = "breakdown",
         .kind = "breakdown",
         .caption = "A step of the mean rank, and of the mean rank of each pipeline stage.",
         .description = "Stacked bars of the parts of a step, by stage. The table below "
                        "has the numbers of the mean.",
         .data = std::move(data),
         .table = std::move(table)});
    page_.figure({.id = "ranks",
                  .kind = "ranks",
                  .caption = "The same by rank. Choose a part of the step above the map.",
                  .description = "A heat map: a row a pipeline stage, a cell a rank.",
                  .data = drawings_.value("ranks", Json::object())});
    critical_path();
  }

  void critical_path() {
    PageTable table{.caption =
                        "Critical path: the chain of causes that decided when the step ended"};
    table.columns = {"label", "time", "share"};
    std::size_t i = 0;
    for (const JsonFields& part : fields_.objects("critical_path")) {
      const double seconds = part.number("duration_s");
      table.rows.push_back(
          {{part.text("label")},
           shown_seconds(seconds, fmt::format("critical_path[{}].duration_s", i++)),
           shown_percent(step_s() > 0 ? seconds / step_s() : 0)});
    }
    page_.table(table);
  }

  void pipeline() {
    page_.section("pipeline", "The pipeline over time");
    page_.figure(
        {.id = "gantt",
         .kind = "gantt",
         .caption =
             "One rank of each stage. The upper lane of a rank is its compute, the thin ones "
             "below it are its communication, by axis. A pass includes the moments in which it "
             "waits for its tensor group: zoom in to see them. The line between them marks what is "
             "on the critical path. Wheel, + and - zoom; the arrow keys step from slice to "
             "slice.",
         .description = "A Gantt chart of one rank of each pipeline stage: passes, gaps with their "
                        "reasons, communication, and the critical path.",
         .data = drawings_.value("gantt", Json::object()),
         .table = gaps_table()});
  }

  // Gaps of the drawn ranks by their part of the breakdown, longest first.
  std::optional<PageTable> gaps_table() const {
    const Json gantt = drawings_.value("gantt", Json::object());
    if (!gantt.contains("ranks")) return std::nullopt;
    struct Gap {
      double seconds = 0;
      std::string rank;
      double from = 0;
      std::string reason;
      std::string part;
    };
    const double tick = gantt["tick_s"].get<double>();
    std::vector<Gap> gaps;
    for (const Json& rank : gantt["ranks"]) {
      for (const Json& gap : rank["gaps"]) {
        gaps.push_back({gap[1].get<double>() * tick, rank["name"].get<std::string>(),
                        gap[0].get<double>() * tick,
                        gantt["texts"][gap[2].get<std::size_t>()].get<std::string>(),
                        gantt["parts"][gap[3].get<std::size_t>()].get<std::string>()});
      }
    }
    std::ranges::stable_sort(gaps, std::greater<>(), &Gap::seconds);
    constexpr std::size_t kListedGaps = 20;
    if (gaps.size() > kListedGaps) gaps.resize(kListedGaps);
    PageTable table{.caption = "The longest gaps and their reasons", .folded = true};
    table.columns = {"rank", "from", "length", "counts as", "reason"};
    for (const Gap& gap : gaps) {
      table.rows.push_back({{gap.rank},
                            shown_seconds(gap.from),
                            shown_seconds(gap.seconds),
                            {gap.part},
                            {gap.reason}});
    }
    return table;
  }

  void memory() {
    page_.section("memory", "Memory");
    const JsonFields memory = fields_.object("memory");
    const double peak = memory.number("peak_bytes");
    const std::string op = memory.has("peak_op") ? memory.text("peak_op") : "";
    std::string words =
        fmt::format("Rank {} needs most: {} at {}", memory.number("peak_rank"),
                    shown_bytes(peak).text, shown_seconds(memory.number("peak_time_s")).text);
    page_.paragraph(words +
                    (op.empty() ? ", from the start on." : fmt::format(", reached with {}.", op)));
    PageTable table{.caption = "At the peak, by category"};
    table.columns = {"category", "bytes", "share"};
    const JsonFields categories = memory.object("by_category_bytes");
    for (const auto& [key, bytes] : categories.all_numbers()) {
      if (bytes == 0) continue;
      table.rows.push_back({{words_of_key(key)},
                            shown_bytes(bytes, categories.path_of(key)),
                            shown_percent(peak > 0 ? bytes / peak : 0)});
    }
    table.rows.push_back({{"peak"}, shown_bytes(peak, "memory.peak_bytes"), shown_percent(1)});
    page_.figure({.id = "memory",
                  .kind = "memory",
                  .caption = "Memory of a rank over time, by category. The dashed line is what the "
                             "chip has; the mark is the peak.",
                  .description = "Stacked areas of the memory of one rank over time. The tables "
                                 "below have the numbers at the peak.",
                  .data = drawings_.value("memory", Json::object()),
                  .table = std::move(table)});
    alive();
    by_stage(memory);
  }

  void energy() {
    if (!fields_.has("energy")) return;
    page_.section("energy", "Energy");
    const JsonFields energy = fields_.object("energy");
    PageTable table{.caption = "Of the chips alone, without hosts, switches and cooling"};
    table.columns = {"what", ""};
    const auto row = [&](const char* words, const char* key, bool is_power) {
      const double value = energy.number(key);
      Shown shown = is_power ? shown_number(value, energy.path_of(key))
                             : shown_energy(value, energy.path_of(key));
      if (is_power) shown.text += " W";
      table.rows.push_back({{words}, std::move(shown)});
    };
    row("a step", "joules_per_step", false);
    row("a token", "joules_per_token", false);
    row("a chip, mean of the step", "mean_watts_per_chip", true);
    row("a chip, in the kernels that draw most", "peak_watts_per_chip", true);
    row("a chip without arithmetic", "idle_watts_per_chip", true);
    const Json curve = drawings_.value("watts", Json());
    if (curve.is_null()) return page_.table(table);
    page_.figure({.id = "watts",
                  .kind = "lines",
                  .caption = "Watts of the chip of one rank a stage over time.",
                  .description = "Lines of what chips draw over time; the table has the means.",
                  .data = curve,
                  .table = std::move(table)});
  }

  void alive() {
    const Json curves = drawings_.value("memory", Json::object());
    if (!curves.contains("ranks") || curves["ranks"].empty()) return;
    const Json& rank = curves["ranks"].front();
    if (rank["alive"].empty()) return;
    PageTable table{.caption = fmt::format("Layers alive at the peak of {}: between the begin of "
                                           "their first pass and the end of their last",
                                           rank["name"].get<std::string>())};
    table.columns = {"micro-batch", "layers", "how many"};
    for (const Json& row : rank["alive"]) {
      table.rows.push_back({{json_text(row["microbatch"])},
                            {row["layers"].get<std::string>()},
                            shown_number(row["count"].get<double>())});
    }
    table.folded = table.rows.size() > 16;
    page_.table(table);
  }

  void by_stage(const JsonFields& memory) {
    if (!memory.has("by_stage")) return;
    PageTable table{.caption = "The fullest rank of each stage"};
    table.columns = {"stage", "rank", "peak", "at", "reached with"};
    std::size_t i = 0;
    for (const JsonFields& stage : memory.objects("by_stage")) {
      const std::string path = fmt::format("memory.by_stage[{}].", i++);
      table.rows.push_back({{fmt::format("{}", stage.number("stage"))},
                            {fmt::format("{}", stage.number("rank"))},
                            shown_bytes(stage.number("peak_bytes"), path + "peak_bytes"),
                            shown_seconds(stage.number("peak_time_s"), path + "peak_time_s"),
                            {stage.has("peak_op") ? stage.text("peak_op") : ""}});
    }
    table.folded = table.rows.size() > 16;
    page_.table(table);
  }

  void links() {
    page_.section("links", "Links");
    const Json loads = drawings_.value("links", Json::object());
    PageTable table{.caption = "Kinds of links"};
    table.columns = {"kind",          "links", "bandwidth each", "bytes", "mean utilization",
                     "busiest link's"};
    for (const Json& kind : loads.value("kinds", Json::array())) {
      table.rows.push_back({{kind["name"].get<std::string>()},
                            shown_number(kind["links"].get<double>()),
                            shown_rate(kind["bandwidth_bytes_per_s"].get<double>(), "B"),
                            shown_bytes(kind["bytes"].get<double>()),
                            shown_percent(kind["mean"].get<double>()),
                            shown_percent(kind["busiest"].get<double>())});
    }
    const bool any = !table.rows.empty();
    if (!any) page_.paragraph("Nothing was sent over a link.");
    if (any) {
      page_.figure({.id = "links",
                    .kind = "links",
                    .caption = "Mean utilization of all links of a kind over time.",
                    .description = "Lines of the utilization of each kind of link over time.",
                    .data = loads,
                    .table = std::move(table)});
    }
    page_.figure({.id = "cluster",
                  .kind = "cluster",
                  .caption =
                      "The cluster. A node has the colour of its busiest link, by its "
                      "utilization over the whole step, from the least to the most of all "
                      "nodes or of those of its kind. Dashed lines are links that are down or "
                      "slow; frames are the chips of stragglers.",
                  .description = "A drawing of the nodes of the cluster, coloured by load. The "
                                 "tables have the kinds of links and the busiest links.",
                  .data = drawings_.value("cluster", Json::object())});
    busiest_links();
  }

  void busiest_links() {
    PageTable table{.caption = "The busiest links", .folded = true};
    table.columns = {"link", "utilization", "bytes"};
    std::size_t i = 0;
    for (const JsonFields& link : fields_.objects("links")) {
      const std::string path = fmt::format("links[{}].", i++);
      table.rows.push_back({{link.text("name")},
                            shown_percent(link.number("utilization"), path + "utilization"),
                            shown_bytes(link.number("bytes"), path + "bytes")});
    }
    page_.table(table);
  }

  void kernels() {
    page_.section("kernels", "Kernels against the roofs of the chip");
    const Json roofline = drawings_.value("kernels", Json::object());
    PageTable table{.caption = "Kernels by their share of all compute", .folded = true};
    table.columns = {"kernel", "type", "FLOPs", "bytes", "time", "a step", "share", "bound by"};
    for (const Json& kernel : roofline.value("kernels", Json::array())) {
      if (table.rows.size() >= 40) break;
      table.rows.push_back({{kernel["name"].get<std::string>()},
                            {kernel["type"].get<std::string>()},
                            shown_number(kernel["flops"].get<double>()),
                            shown_bytes(kernel["bytes"].get<double>()),
                            shown_seconds(kernel["time_s"].get<double>()),
                            shown_number(kernel["count"].get<double>()),
                            shown_percent(kernel["share"].get<double>()),
                            {kernel["bound"].get<std::string>()}});
    }
    std::string caption =
        "Each point is a kernel: what it computes a byte of memory, and what it reaches alone on "
        "the "
        "chip. A larger point takes more of the step.";
    if (roofline.value("left_out", 0) > 0) {
      caption += fmt::format(" {} kernels with {} of the time are left out.",
                             roofline["left_out"].get<int>(),
                             shown_percent(roofline["left_out_share"].get<double>()).text);
    }
    page_.figure({.id = "roofline",
                  .kind = "roofline",
                  .caption = std::move(caption),
                  .description = "A roofline: FLOP/s over FLOPs a byte of all kernels, with the "
                                 "memory's and the arithmetic units' roofs.",
                  .data = roofline,
                  .table = std::move(table)});
  }

  void sensitivity() {
    if (!fields_.has("sensitivity")) return;
    page_.section("sensitivity", "What would change it");
    PageTable table{.caption = "The step with 10 % less and 10 % more of each, simulated"};
    table.columns = {"what", "now", "10 % less", "10 % more", "slope of the path"};
    Json rows = Json::array();
    std::size_t i = 0;
    for (const JsonFields& row : fields_.objects("sensitivity")) {
      const std::string path = fmt::format("sensitivity[{}].", i++);
      const double less = row.number("less_10_percent_step_time_s");
      const double more = row.number("more_10_percent_step_time_s");
      table.rows.push_back(
          {{words_of_key(row.text("name"))},
           {row.text("value")},
           shown_seconds(less, path + "less_10_percent_step_time_s"),
           shown_seconds(more, path + "more_10_percent_step_time_s"),
           row.has("slope") ? shown_number(row.number("slope"), path + "slope") : Shown{"-"}});
      Json one = Json::object();
      one["name"] = words_of_key(row.text("name"));
      one["less"] = step_s() > 0 ? less / step_s() - 1 : 0;
      one["more"] = step_s() > 0 ? more / step_s() - 1 : 0;
      rows.push_back(std::move(one));
    }
    Json data = Json::object();
    data["rows"] = std::move(rows);
    page_.figure({.id = "tornado",
                  .kind = "tornado",
                  .caption = "How much longer or shorter a step is with 10 % less and 10 % more.",
                  .description = "A tornado chart of the sensitivity of the step; the table has "
                                 "the numbers.",
                  .data = std::move(data),
                  .table = std::move(table)});
  }

  void formulas() {
    if (!fields_.has("explain")) return;
    page_.section("formulas", "Formulas beside the simulation");
    const JsonFields explain = fields_.object("explain");
    PageTable table{.caption = "Parts of the step"};
    table.columns = {"part", "formula", "by the formula", "simulated", "what makes the difference"};
    const auto add = [&](const JsonFields& part) {
      std::string causes;
      for (const JsonFields& cause : part.objects("causes")) {
        causes += fmt::format("{}{}: {}{}", causes.empty() ? "" : "; ", cause.text("text"),
                              cause.number("amount_s") > 0 ? "+" : "",
                              shown_seconds(cause.number("amount_s")).text);
      }
      const std::string formula = part.text("formula");
      table.rows.push_back({{part.text("name")},
                            {formula.empty() ? part.text("text")
                                             : fmt::format("{}: {}", formula, part.text("text"))},
                            shown_seconds(part.number("predicted_s")),
                            shown_seconds(part.number("simulated_s")),
                            {causes}});
    };
    for (const JsonFields& part : explain.objects("parts")) add(part);
    add(explain.object("step"));
    page_.table(table);
    traffic_and_limits(explain);
  }

  void traffic_and_limits(const JsonFields& explain) {
    PageTable traffic{.caption = "Communication of a mean rank", .folded = true};
    traffic.columns = {"communicator", "what", "by the formula", "simulated", "waiting for peers"};
    for (const JsonFields& row : explain.objects("traffic")) {
      traffic.rows.push_back({{row.text("name")},
                              {row.text("text")},
                              shown_seconds(row.number("predicted_s")),
                              shown_seconds(row.number("simulated_s")),
                              shown_seconds(row.number("waiting_s"))});
    }
    if (!traffic.rows.empty()) page_.table(traffic);
    PageTable memory{.caption = "Memory by the formulas", .folded = true};
    memory.columns = {"category", "formula", "by the formula", "simulated"};
    for (const JsonFields& row : explain.objects("memory")) {
      memory.rows.push_back({{words_of_key(row.text("name"))},
                             {row.text("text")},
                             shown_bytes(row.number("predicted_bytes")),
                             shown_bytes(row.number("simulated_bytes"))});
    }
    if (!memory.rows.empty()) page_.table(memory);
    PageTable limits{.caption = "Limits from the books", .folded = true};
    limits.columns = {"formula", "limit", "met"};
    for (const JsonFields& row : explain.objects("limits")) {
      limits.rows.push_back(
          {{row.text("formula")}, {row.text("text")}, {row.truth("met") ? "yes" : "no"}});
    }
    if (!limits.rows.empty()) page_.table(limits);
  }

  const Json& result_;
  const Json& drawings_;
  std::vector<Problem> problems_;
  JsonFields fields_;
  std::string title_;
  HtmlPage page_;
};

}  // namespace

std::string run_page(const Json& result, const Json& drawings) {
  return RunPage(result, drawings).text();
}

}  // namespace stepsim
