#include "cli/serve_search/serve_search_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "books/laboratory/plot.h"
#include "cli/command_line.h"
#include "cli/headroom_option.h"
#include "cli/html_option.h"
#include "cli/outputs.h"
#include "cli/serve_search/serve_layouts.h"
#include "cli/session/progress.h"
#include "cli/session/session.h"
#include "proto/catalog/engine_releases.h"
#include "proto/catalog/serving_software.h"
#include "serving/search/serve_search.h"
#include "serving/serving_text.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"
#include "sim/base/quantity_text.h"
#include "sim/fields/key_spelling.h"
#include "traces/pictures/plot_svg.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr double kMostPrice = 1e9;
constexpr std::int64_t kMostAtATime = 1 << 16;

struct ServeSearchRequest {
  LayoutSource source;
  ServeSearchOptions options;
  std::optional<double> chip_hour{};
  std::string json;
  std::string html;
  std::string svg;
  std::string asked;   // asked_json()
  std::string engine;  // its defaults follow from the chip and the layout
};

po::options_description serve_search_option_list() {
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  add("model", text("NAME|FILE"), "the model that is served");
  add("cluster", text("NAME|FILE"), "the chips of a replica, at most");
  add("chip", text("NAME|FILE"), "replaces the cluster's chip");
  add("library", text("NAME|FILE"), "replaces the cluster's communication library");
  add("software", text("NAME"),
      "whose kernels, library and front run: vllm, sglang, trtllm or none (default: the engine's)");
  add("plan", text("KEYS"), "keys of all layouts, such as dtype=fp8");
  add("pass", text("KEYS"), "keys of their passes: cache_dtype=fp8; see stepsim help pass");
  add("layouts", text("KEYS;KEYS"),
      "layouts to compare (default: tp and pp in powers of two; with experts also dp = ep)");
  add("chips", text("N"), "most chips of a replica (default: those of the cluster)");
  add("engine", text("[NAME,]KEYS"),
      "scheduler and its keys (default: vllm); vllm@0.11: that release");
  add("input", text("LENGTH"), "tokens of a prompt: 1024, uniform:512-1024, ...");
  add("output", text("LENGTH"), "tokens of an answer");
  add("slo", text("KEYS"), "objective: ttft=2s,tpot=50ms,end-to-end=20s");
  add("rate", text("R"),
      "requests a second that come: how many replicas and chips each layout takes for them");
  add("share", text("X"), "share of requests that must meet it (default: 0.9)");
  add_headroom_option(options);
  add("most-requests", text("N"), "most requests at a time (default: 1024)");
  add("chip-hour", text("PRICE"), "price of a chip for an hour: gives that of a million tokens");
  add("threads", text("N"), "layouts at once (default: as many as the machine has cores)");
  add("svg", text("FILE"), "draw tokens a second a chip over those a user");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

template <class Number>
std::optional<Number> read_within(const CommandLine& line, const char* option, Number low,
                                  Number high, std::vector<Problem>& problems) {
  if (line.options.count(option) == 0) return std::nullopt;
  const std::string text = line.value(option);
  const auto number = number_in<Number>(text);
  if (number && *number >= low && *number <= high) return number;
  problems.push_back({std::string("--") + option,
                      fmt::format("must be {} to {}, is \"{}\"", low, high, shortened(text))});
  return std::nullopt;
}

Length read_length(const CommandLine& line, const char* option, std::vector<Problem>& problems) {
  const auto length = Text<Length>::read(line.value(option));
  if (length) return *length;
  problems.push_back({std::string("--") + option, "must be " + Text<Length>::accepts() + ", is \"" +
                                                      shortened(line.value(option)) + "\""});
  return {};
}

ServeSearchRequest read_request(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  const CommandLine line = read_command_line(arguments, serve_search_option_list(), problems);
  for (const std::string& word : line.words) {
    problems.push_back({word, "serve-search takes options only; see stepsim help serve-search"});
  }
  for (const char* const option : {"model", "cluster"}) {
    if (line.value(option).empty())
      problems.push_back({std::string("--") + option, "must be given"});
  }
  ServeSearchRequest request;
  request.source = {.model = line.value("model"),
                    .cluster = line.value("cluster"),
                    .plan = keys_of_replica(line, problems),
                    .layouts = line.value("layouts"),
                    .chip = line.value("chip"),
                    .library = line.value("library"),
                    .software = line.value("software"),
                    .engine = {}};
  constexpr std::int64_t kMostChips = 1 << 14;
  request.source.most_chips =
      read_within<std::int64_t>(line, "chips", 1, kMostChips, problems).value_or(0);
  ServeSearchOptions& options = request.options;
  request.engine =
      line.options.count("engine") != 0 ? line.value("engine") : std::string(default_engine().name);
  check_software_name(request.source.software, problems);
  std::vector<Problem> of_release;
  request.source.engine =
      read_engine(with_release(request.engine, "--engine", {}, of_release), problems).engine->name;
  options.input = read_length(line, "input", problems);
  options.output = read_length(line, "output", problems);
  if (line.options.count("slo") != 0) {
    options.objective = read_objective(line.value("slo"), problems);
  }
  options.share = read_within(line, "share", 0.0, 1.0, problems).value_or(options.share);
  // Intervals are of measured steps of training, so `interval` asks for nothing beyond the engine.
  if (const auto headroom = read_headroom(line, problems)) {
    options.headroom = headroom->share.value_or(0);
  }
  options.most_requests =
      read_within<std::int64_t>(line, "most-requests", 1, kMostAtATime, problems)
          .value_or(options.most_requests);
  options.threads =
      static_cast<std::size_t>(read_within<std::int64_t>(line, "threads", 1, 1024, problems)
                                   .value_or(static_cast<std::int64_t>(threads_of_machine())));
  options.rate = read_within(line, "rate", 1e-3, 1e6, problems);
  request.chip_hour = read_within(line, "chip-hour", 0.0, kMostPrice, problems);
  request.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  request.svg = read_output_path(line, "svg", OutputFormat::kSvg, problems);
  refuse_same_output(line, "json", "svg", problems);
  request.html = read_html_path(line, {"json", "svg"}, problems);
  request.asked = asked_json(line);
  throw_if_any(std::move(problems));
  return request;
}

// Gives each layout the engine of the release on its chips.
void add_releases(const ServeSearchRequest& request, std::vector<ServedLayout>& layouts) {
  const auto software = software_of(request.source.software, request.source.engine);
  const bool says_front = with_underscores(request.engine).find("front_time") != std::string::npos;
  std::vector<Problem> problems;
  for (ServedLayout& layout : layouts) {
    const ChipSpec& chip = layout.experiment.cluster.chip;
    const Ranks& mesh = layout.experiment.plan.mesh;
    const std::string keys = with_release(request.engine, "--engine",
                                          {.chip = chip.name,
                                           .memory = chip.memory_capacity,
                                           .tp = mesh.tp,
                                           .pp = mesh.pp,
                                           .dp = mesh.dp,
                                           .ep = mesh.ep},
                                          problems);
    throw_if_any(problems);  // they would be the same for all
    layout.engine = read_engine(keys, problems);
    throw_if_any(problems);
    if (software && software->engine == layout.engine->engine->name && !says_front) {
      layout.engine->options.host.front_time = software->front_time;
    }
  }
}

// ---- what it says ----

struct Answer {
  const ServeSearchRequest& request;
  const std::vector<ServedLayout>& layouts;
  const std::vector<std::string>& refused;
  const ServeSearchResult& result;
};

std::string price_text(const Answer& answer, const LoadPoint& point) {
  if (!answer.request.chip_hour) return "";
  return fmt::format("{:>12.3f}", price_of_million_tokens(point, *answer.request.chip_hour));
}

std::string point_line(const Answer& answer, const LoadPoint& point) {
  const std::string times = point.replicas > 1 ? fmt::format("{} x ", point.replicas) : "";
  return fmt::format("  {:<22} {:>5} {:>9} {:>12.1f} {:>12.1f} {:>9.3f} {:>9.2f} {:>7.0f} %{}\n",
                     times + answer.layouts[point.layout].plan, point.chips, point.concurrency,
                     point.tokens_per_s_per_chip, point.tokens_per_s_per_user,
                     to_seconds(point.ttft), 1e3 * to_seconds(point.tpot), 100 * point.good,
                     price_text(answer, point));
}

// Says what would be met, and what ends it.
std::string nearest_text(const Answer& answer) {
  const ServeSearchResult& result = answer.result;
  if (!result.nearest) return "";
  const LoadPoint& point = result.points[*result.nearest];
  const ServiceObjective& objective = answer.request.options.objective;
  const bool first = objective.ttft && point.ttft_of_share > *objective.ttft;
  const bool tokens = objective.tpot && point.tpot_of_share > *objective.tpot;
  std::string what = first && tokens ? "the time to the first token, and that of the next"
                     : first         ? "the time to the first token"
                     : tokens        ? "the time of an output token"
                                     : "requests that pile up";
  const std::string load = point.rate > 0 ? fmt::format("{:.4g} requests a second", point.rate)
                                          : fmt::format("{} at a time", point.concurrency);
  return fmt::format(
      "  nearest: {} with {}, which --slo ttft={},tpot={} would let pass; {} end{} it\n",
      answer.layouts[point.layout].plan, load, to_text(point.ttft_of_share),
      to_text(point.tpot_of_share), what, first != tokens ? "s" : "");
}

std::string report_of(const Answer& answer) {
  const ServeSearchResult& result = answer.result;
  const std::string head =
      fmt::format("  {:<22} {:>5} {:>9} {:>12} {:>12} {:>9} {:>9} {:>9}{}\n", "layout", "chips",
                  "requests", "tokens/s/chip", "a user", "TTFT s", "TPOT ms", "good",
                  answer.request.chip_hour ? fmt::format("{:>12}", "million at") : "");
  const std::optional<double>& rate = answer.request.options.rate;
  std::string text = rate ? fmt::format("The fewest chips for {:g} requests a second\n", *rate)
                          : "Serves most requests a chip within the objective\n";
  if (result.best) {
    const LoadPoint& best = result.points[*result.best];
    text += head + point_line(answer, best);
    if (rate) {
      text += fmt::format("  {} replicas; one holds {:.4g} requests a second\n", best.replicas,
                          best.rate);
    }
  } else {
    text += "  none of the layouts does\n" + nearest_text(answer);
  }
  text += "\nFront of tokens a second a chip and a user\n" + head;
  for (const std::size_t i : result.front) text += point_line(answer, result.points[i]);
  if (result.smallest) {
    const ServedLayout& smallest = answer.layouts[*result.smallest];
    text += fmt::format("\nThe fewest chips that hold the model and a cache: {} ({})\n",
                        smallest.experiment.plan.mesh.ranks(), smallest.plan);
  }
  if (!result.unusable.empty() || !answer.refused.empty()) text += "\nNot served\n";
  for (const UnusableLayout& layout : result.unusable) {
    text += fmt::format("  {:<22} {}\n", answer.layouts[layout.layout].plan, layout.why);
  }
  for (const std::string& refused : answer.refused) text += "  " + refused + "\n";
  return text;
}

struct AnsweredPoint {
  const Answer* answer;
  const LoadPoint* point;
};

OrNull<double> price_of(const AnsweredPoint& one) {
  const auto& chip_hour = one.answer->request.chip_hour;
  return {chip_hour ? std::optional(price_of_million_tokens(*one.point, *chip_hour))
                    : std::nullopt};
}

const ResultTable<AnsweredPoint>& load_point_results() {
  static const ResultTable<AnsweredPoint> kTable = [] {
    using One = AnsweredPoint;
    const auto of = [](auto member) {
      return [member](const One& one) { return one.point->*member; };
    };
    ResultTable<One> table;
    table.add("plan", [](const One& one) { return one.answer->layouts[one.point->layout].plan; },
              {"of the layout"});
    table.add("chips", of(&LoadPoint::chips), {"of a replica"});
    table.add("concurrency", of(&LoadPoint::concurrency), {"requests at a time"});
    table.add("requests_per_s_per_chip", of(&LoadPoint::requests_per_s_per_chip),
              {"that are answered", "1/s"});
    table.add("output_tokens_per_s_per_chip", of(&LoadPoint::tokens_per_s_per_chip),
              {"of each chip", "1/s"});
    table.add("output_tokens_per_s_per_user", of(&LoadPoint::tokens_per_s_per_user),
              {"of each request", "1/s"});
    table.add("ttft_mean_s", [](const One& one) { return to_seconds(one.point->ttft); },
              {"time to the first token", "s"});
    table.add("tpot_mean_s", [](const One& one) { return to_seconds(one.point->tpot); },
              {"time of a further token", "s"});
    table.add("good", of(&LoadPoint::good), {"share that meets the objective", "0 to 1"});
    table.add("meets", of(&LoadPoint::meets), {"whether that is enough"});
    table.add(
        "rate",
        [](const One& one) {
          return OrNull{one.point->rate > 0 ? std::optional(one.point->rate) : std::nullopt};
        },
        {"the highest that a replica sustains within the objective; null without --rate", "1/s"});
    table.add("replicas", of(&LoadPoint::replicas), {"that serve --rate"});
    table.add("price_of_million_tokens", price_of, {"null without --chip-hour"});
    return table;
  }();
  return kTable;
}

OrNull<AnsweredPoint> point_at(const Answer& answer, const std::optional<std::size_t>& at) {
  if (!at) return {};
  return {AnsweredPoint{&answer, &answer.result.points[*at]}};
}

std::vector<AnsweredPoint> points_of_front(const Answer& answer) {
  std::vector<AnsweredPoint> points;
  for (const std::size_t i : answer.result.front) {
    points.push_back({&answer, &answer.result.points[i]});
  }
  return points;
}

std::vector<AnsweredPoint> all_points(const Answer& answer) {
  std::vector<AnsweredPoint> points;
  for (const LoadPoint& point : answer.result.points) points.push_back({&answer, &point});
  return points;
}

using NotServed = std::pair<std::string, std::string>;  // a layout, and why

const ResultTable<NotServed>& not_served_results() {
  static const ResultTable<NotServed> kTable = [] {
    ResultTable<NotServed> table;
    table.add("plan", &NotServed::first, {"of the layout"});
    table.add("why", &NotServed::second, {"it can't serve"});
    return table;
  }();
  return kTable;
}

std::vector<NotServed> layouts_not_served(const Answer& answer) {
  std::vector<NotServed> layouts;
  for (const UnusableLayout& layout : answer.result.unusable) {
    layouts.emplace_back(answer.layouts[layout.layout].plan, layout.why);
  }
  return layouts;
}

const ResultTable<Answer>& serve_search_results() {
  static const ResultTable<Answer> kTable = [] {
    ResultTable<Answer> table;
    table.add("asked", [](const Answer& answer) { return RawJson{answer.request.asked}; },
              {"the command's words and options"});
    table.object("best", load_point_results(),
                 [](const Answer& answer) { return point_at(answer, answer.result.best); },
                 {"most requests a second and chip within the objective; null: none"});
    table.object("nearest", load_point_results(),
                 [](const Answer& answer) { return point_at(answer, answer.result.nearest); },
                 {"where nothing meets the objective, what comes nearest; else null"});
    table.list("front", load_point_results(), points_of_front,
               {"points that no other beats in tokens a second a chip and a user"});
    table.list("points", load_point_results(), all_points, {"all that were served"});
    table.add("fewest_chips",
              [](const Answer& answer) {
                const auto& smallest = answer.result.smallest;
                return OrNull{
                    smallest ? std::optional(answer.layouts[*smallest].experiment.plan.mesh.ranks())
                             : std::nullopt};
              },
              {"that hold the model and a cache; null: none do"});
    table.list("not_served", not_served_results(), layouts_not_served, {"layouts that can't"});
    return table;
  }();
  return kTable;
}

std::vector<CommandResult> serve_search_command_results() {
  return {{"", &serve_search_results()}};
}

Plot plot_of(const Answer& answer) {
  Plot plot{
      .title = "Serving " + answer.layouts.front().experiment.model.name,
      .subtitle = "on " + answer.request.source.cluster + ", more and more requests at a time",
      .x = {.label = "tokens a second a user", .unit = ""},
      .y = {.label = "tokens a second a chip", .unit = "", .log = true}};
  const auto place = [](const LoadPoint& point) {
    return PlotPoint{point.tokens_per_s_per_user, point.tokens_per_s_per_chip};
  };
  PlotCurve front{.label = "front", .mark = PlotMark::kLine};
  for (const std::size_t i : answer.result.front) {
    front.points.push_back(place(answer.result.points[i]));
  }
  plot.curves.push_back(std::move(front));
  for (const LoadPoint& point : answer.result.points) {
    const std::string& plan = answer.layouts[point.layout].plan;
    if (plot.curves.back().label != plan) {
      plot.curves.push_back({.label = plan, .mark = PlotMark::kPoints});
    }
    plot.curves.back().points.push_back(place(point));
  }
  return plot;
}

ExitStatus run_serve_search_command(const std::vector<std::string>& arguments) {
  ServeSearchRequest request = read_request(arguments);
  std::vector<std::string> refused;
  std::vector<ServedLayout> layouts = load_layouts(request.source, refused);
  add_releases(request, layouts);
  Progress progress;
  request.options.progress = [&progress](std::size_t done, std::size_t all) {
    progress.show(static_cast<double>(done) / static_cast<double>(all), "of the layouts");
  };
  request.options.watch = [session = current_session()] {
    if (!goes_on(session)) throw SessionStopped();
  };
  const ServeSearchResult result = search_serving(layouts, request.options);
  const Answer answer{request, layouts, refused, result};
  Outputs outputs;
  const std::string json = request.json.empty() && request.html.empty()
                               ? ""
                               : serve_search_results().json(answer) + '\n';
  outputs.write(request.json, json);
  if (!request.html.empty()) outputs.write(request.html, html_of_result(json));
  if (!request.svg.empty()) outputs.write(request.svg, plot_svg(plot_of(answer)));
  outputs.commit();
  outputs.print(request.json == "-" ? json : report_of(answer));
  return outputs.end(result.best ? ExitStatus::kDone : ExitStatus::kNo);
}

}  // namespace

constinit const Subcommand kServeSearchSubcommand = {
    .name = "serve-search",
    .arguments = "--model M --cluster C --input N --output N [options]",
    .summary = "find the layouts that serve most requests a chip",
    .description =
        R"(stepsim serve-search serves a model in several layouts, each at 1, 2, 4, ... requests at a time
until more of them bring no more tokens. It says which serves most requests a second and chip within
an objective, and which points no other beats in tokens a second a chip and a user.

Usage:
  stepsim serve-search --model llama3-70b --cluster dgx-h100-8 --input 1024 --output 256 \
    --slo ttft=2s,tpot=50ms --chip-hour 2.5 --svg front.svg
  stepsim serve-search --model llama3-70b --cluster dgx-h100-8 --input 1024 --output 256 \
    --layouts "tp=8;tp=4,pp=2" --plan dtype=fp8

Exit status 1 if no layout meets the objective.
)",
    .options = serve_search_option_list,
    .run = run_serve_search_command,
    .results = serve_search_command_results,
};

}  // namespace stepsim
