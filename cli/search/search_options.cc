#include "cli/search/search_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "cli/command_line.h"
#include "cli/headroom_option.h"
#include "cli/help/moved_keys.h"
#include "cli/html_option.h"
#include "proto/catalog/measured_tables.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/keys/key_groups.h"
#include "schedules/plan/plan_schedule.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/suggestion.h"
#include "sim/fields/key_spelling.h"

namespace stepsim {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostListed = 1'000'000;

Objective read_objective(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.options.count("minimize") == 0) return Objective::kStep;
  const std::string text = line.value("minimize");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kObjectives; ++i) {
    const auto objective = static_cast<Objective>(i);
    if (name_of(objective) == text) return objective;
    names.emplace_back(name_of(objective));
  }
  problems.push_back({"--minimize", "must be " + either_of(names) + ", is \"" + text + "\"" +
                                        did_you_mean(text, names)});
  return Objective::kStep;
}

std::optional<double> read_time_limit(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.options.count("time-limit") == 0) return std::nullopt;
  const std::string text = line.value("time-limit");
  const auto limit = parse_duration(text);
  if (limit && *limit > Duration()) return to_seconds(*limit);
  problems.push_back({"--time-limit", "must be " + std::string(accepted_duration()) +
                                          ", above 0, is \"" + text + "\""});
  return std::nullopt;
}

FrontEffort read_front(const CommandLine& line, std::vector<Problem>& problems) {
  const std::string text = line.options.count("front") == 0 ? "quick" : line.value("front");
  if (text == "quick") return FrontEffort::kQuick;
  if (text == "whole") return FrontEffort::kWhole;
  if (text != "none") {
    const std::vector<std::string> kinds = {"quick", "whole", "none"};
    problems.push_back({"--front", "must be quick, whole or none, is \"" + text + "\"" +
                                       did_you_mean(text, kinds)});
  }
  return FrontEffort::kNone;
}

// By default the usual space is refined, and one that somebody has written down is not.
RefineEffort read_refine(const CommandLine& line, std::vector<Problem>& problems) {
  const bool is_usual = line.options.count("within") == 0;
  if (line.options.count("refine") == 0) {
    return is_usual ? RefineEffort::kQuick : RefineEffort::kNone;
  }
  const std::string text = line.value("refine");
  if (text == "quick") return RefineEffort::kQuick;
  if (text == "whole") return RefineEffort::kWhole;
  if (text != "none") {
    const std::vector<std::string> kinds = {"quick", "whole", "none"};
    problems.push_back({"--refine", "must be quick, whole or none, is \"" + text + "\"" +
                                        did_you_mean(text, kinds)});
  }
  return RefineEffort::kNone;
}

std::optional<Duration> read_most_step(const CommandLine& line, std::vector<Problem>& problems) {
  if (line.options.count("step-at-most") == 0) return std::nullopt;
  const std::string text = line.value("step-at-most");
  const auto step = parse_duration(text);
  if (step && *step > Duration()) return step;
  problems.push_back({"--step-at-most", "must be " + std::string(accepted_duration()) +
                                            ", above 0, is \"" + text + "\""});
  return std::nullopt;
}

// Adds the clusters of "dgx-h100-64..512", whose sizes double, or one of another name.
void add_clusters(std::string_view text, std::vector<std::string>& names,
                  std::vector<Problem>& problems) {
  const std::size_t dots = text.find("..");
  const std::size_t digits = text.substr(0, dots).find_last_not_of("0123456789") + 1;
  if (dots == std::string_view::npos) return names.emplace_back(text), void();
  const auto low = number_in<std::int64_t>(text.substr(digits, dots - digits));
  const auto high = number_in<std::int64_t>(text.substr(dots + 2));
  if (!low || !high || *low < 1 || *low > *high) {
    problems.push_back(
        {"--cluster",
         "must name sizes that double, such as dgx-h100-64..512, has \"" + shortened(text) + "\""});
    return;
  }
  for (std::int64_t size = *low; size <= *high; size *= 2) {
    names.push_back(std::string(text.substr(0, digits)) + std::to_string(size));
    if (size > *high / 2) break;
  }
}

std::vector<std::string> read_clusters(const CommandLine& line, std::vector<Problem>& problems) {
  std::vector<std::string> names;
  const std::string text = line.value("cluster");
  for (const std::string_view part : split_text(text, ',')) add_clusters(part, names, problems);
  return names;
}

// One price for all clusters, or one for each.
std::vector<std::optional<double>> read_prices(const CommandLine& line, std::size_t clusters,
                                               std::vector<Problem>& problems) {
  std::vector<std::optional<double>> prices(clusters);
  if (line.options.count("chip-hour") == 0) return prices;
  const std::string text = line.value("chip-hour");
  const std::vector<std::string_view> parts = split_text(text, ',');
  if (parts.size() != 1 && parts.size() != clusters) {
    problems.push_back(
        {"--chip-hour", fmt::format("has {} prices for {} clusters: give one, or one "
                                    "for each",
                                    parts.size(), clusters)});
    return prices;
  }
  for (std::size_t i = 0; i < clusters; ++i) {
    const std::string_view part = parts[parts.size() == 1 ? 0 : i];
    const auto price = number_in<double>(part);
    if (price && *price >= 0 && std::isfinite(*price)) {
      prices[i] = *price;
    } else if (i < parts.size()) {
      problems.push_back(
          {"--chip-hour", "must be the price of a chip for an hour, such as 2.5, is \"" +
                              std::string(part) + "\""});
    }
  }
  return prices;
}

// The tokens of a training; unset: nothing is said of it.
std::optional<double> read_tokens(const CommandLine& line, bool has_clusters,
                                  std::vector<Problem>& problems) {
  constexpr double kUsual = 1e12;
  constexpr double kMost = 1e18;
  if (line.options.count("pass") != 0) {
    if (line.options.count("tokens") == 0) return std::nullopt;
    problems.push_back({"--tokens", "is the length of a training: leave it out with --pass"});
    return std::nullopt;
  }
  if (line.options.count("tokens") == 0) {
    return has_clusters ? std::optional(kUsual) : std::nullopt;
  }
  return read_positive(line, "tokens", kMost, problems);
}

// The keys that --fix gives one value.
std::set<std::string> keys_of(const std::string& text) {
  std::set<std::string> keys;
  for (const std::string_view part : split_text(text, ',')) {
    if (part.find('=') == std::string_view::npos) continue;
    keys.insert(written_key(part.substr(0, part.find('='))).key);
  }
  return keys;
}

// Other groups' keys stand with their group: software.loss=fused.
void check_fixed(const std::string& text, std::vector<Problem>& problems) {
  for (const std::string_view part : split_text(text, ',')) {
    if (part.find('=') == std::string_view::npos) continue;
    const WrittenKey written = written_key(part.substr(0, part.find('=')));
    if (!written.meant.empty()) problems.push_back({"--fix " + written.key, "is " + written.meant});
  }
}

// The keys that vary. Usual values are filled in for each cluster.
std::vector<Dimension> read_dimensions(const CommandLine& line, const std::set<std::string>& fixed,
                                       std::vector<Problem>& problems) {
  if (line.options.count("within") == 0) return {};
  std::vector<Dimension> dimensions = read_space(line.value("within"), "--within", problems);
  for (const Dimension& dimension : dimensions) {
    if (fixed.contains(dimension.key)) {
      problems.push_back({"--within " + dimension.key, "is given by --fix, too: leave out one"});
    }
    if (dimension.key == "global_batch" || dimension.key == "sequence") {
      problems.push_back(
          {"--within " + dimension.key,
           "is part of the question, not of a plan: give --" +
               std::string(dimension.key == "sequence" ? "sequence" : "global-batch")});
    }
  }
  return dimensions;
}

std::vector<Dimension> filled(std::vector<Dimension> dimensions, const LoadedExperiment& loaded,
                              bool has_within, const std::set<std::string>& fixed,
                              std::vector<Problem>& problems) {
  const ModelSpec& model = loaded.experiment.model;
  if (!has_within) {
    for (std::string& key : usual_keys(model)) {
      if (!fixed.contains(key))
        dimensions.push_back({.key = std::move(key), .values = {}, .is_usual = true});
    }
  }
  for (Dimension& dimension : dimensions) {
    if (!dimension.is_usual) continue;
    std::vector<std::string> usual =
        usual_values(dimension.key, model, loaded.topology.places, loaded.experiment.plan);
    if (usual.empty() && dimension.values.empty()) {
      problems.push_back({"--within " + dimension.key,
                          "has no usual values, so `..` can't stand for them: list its values"});
    }
    for (std::string& value : usual) {
      if (std::ranges::count(dimension.values, value) == 0) {
        dimension.values.push_back(std::move(value));
      }
    }
  }
  return dimensions;
}

// Problems of a plan that was made of --fix and the two numbers carry the names of those options.
Problem with_option_name(Problem problem) {
  for (const auto& [from, to] : {std::pair{"--plan global-batch", "--global-batch"},
                                 std::pair{"--plan sequence", "--sequence"},
                                 std::pair{"plan.global_batch", "--global-batch"},
                                 std::pair{"plan.sequence", "--sequence"}}) {
    if (problem.field == from) problem.field = to;
  }
  if (problem.field.starts_with("--plan")) problem.field.replace(0, 6, "--fix");
  return problem;
}

KeyTexts start_of(const CommandLine& line) {
  std::string text;
  for (const char* key : {"global-batch", "sequence", "fix"}) {
    if (line.options.count(key) == 0) continue;
    const std::string value = line.value(key);
    text += (text.empty() ? "" : ",") +
            (std::string(key) == "fix" ? value : std::string(key) + "=" + value);
  }
  KeyTexts start = split_keys_text(text);
  const auto put_before = [](const std::string& first, std::string& keys) {
    keys = first + (first.empty() || keys.empty() ? "" : ",") + keys;
  };
  put_before(line.value("software"), start.software);
  put_before(line.value("pass"), start.pass);
  return start;
}

// Reads the plan of --why: keys over those of the start.
std::optional<ParallelPlan> read_why(const CommandLine& line, const SearchPlace& place,
                                     std::vector<Problem>& problems) {
  if (line.options.count("why") == 0) return std::nullopt;
  const std::size_t before = problems.size();
  const std::vector<Dimension> keys = read_space(line.value("why"), "--why", problems);
  ParallelPlan plan = place.base.plan;
  bool has_dp = false;
  for (const Dimension& key : keys) {
    has_dp = has_dp || key.key == "dp";
    if (key.values.size() == 1) {
      set_key(key.key, key.values.front(), plan);
    } else {
      problems.push_back({"--why " + key.key, "must have one value"});
    }
  }
  if (problems.size() > before) return std::nullopt;
  const auto chips = static_cast<std::int64_t>(place.places.chips.size());
  const std::int64_t others = plan.mesh.tp * plan.mesh.cp * plan.mesh.pp;
  const std::int64_t left = chips - plan.mesh.expert_chips;
  if (!has_dp && others >= 1 && left >= 1 && left % others == 0) plan.mesh.dp = left / others;
  complete_inference(place.base.model, plan);
  return balanced(plan, place.base.model);
}

void read_outputs(const CommandLine& line, SearchRequest& request, std::vector<Problem>& problems) {
  request.json = read_output_path(line, "json", OutputFormat::kJson, problems);
  request.csv = read_output_path(line, "csv", OutputFormat::kCsv, problems);
  request.plot = read_output_path(line, "plot", OutputFormat::kSvg, problems);
  request.experiment = read_output_path(line, "experiment", OutputFormat::kJson, problems);
  if (request.experiment == "-") {
    problems.push_back({"--experiment", "must be a file, which `stepsim run` reads"});
  }
  request.html = read_html_path(line, {"json", "csv", "plot", "experiment"}, problems);
  request.asked = asked_json(line);
  const std::vector<std::string> all = {"json", "csv", "plot", "experiment"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      refuse_same_output(line, all[i], all[j], problems);
    }
  }
}

void require_options(const CommandLine& line, std::vector<Problem>& problems) {
  if (!line.words.empty()) return;
  for (const auto& [option, what] :
       {std::pair{"model", "a model of the catalog or a file"},
        std::pair{"cluster", "a cluster of the catalog or a file; several with commas"},
        std::pair{"global-batch", "sequences of a step"},
        std::pair{"sequence", "tokens of a sequence"}}) {
    if (line.options.count(option) != 0) continue;
    problems.push_back({std::string("--") + option, std::string("must be given: ") + what});
  }
}

void add_new(const std::vector<Problem>& more, std::vector<Problem>& problems) {
  for (const Problem& problem : more) {
    Problem named = with_option_name(problem);
    const bool is_known = std::ranges::any_of(problems, [&](const Problem& other) {
      return other.field == named.field && other.message == named.message;
    });
    if (!is_known) problems.push_back(std::move(named));
  }
}

}  // namespace

po::options_description search_option_list() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options", 100, 50);
  auto add = options.add_options();
  add("model", text("NAME|FILE"), "catalog name, config.json of Hugging Face, or a model file");
  add("cluster", text("NAME[,NAME]"), "clusters of the catalog or files, searched side by side");
  add("global-batch", text("N"), "sequences of a step");
  add("sequence", text("N"), "tokens of a sequence");
  add("within", text("KEYS"),
      "the keys of a plan that vary, and their values: tp=1,2,4,pp=1..8,schedule=.. where .. "
      "stands "
      "for the usual values (default: the usual keys with their usual values)");
  add("fix", text("KEYS"), "keys with one value, such as zero=1,dtype=fp8");
  add_group_options(options);
  add("minimize", text("step|memory|cost|chips"), "what is best (default: step)");
  add("step-at-most", text("TIME"), "leave out plans whose step takes longer");
  add("chip-hour", text("PRICE[,PRICE]"), "price of a chip for an hour, one for each cluster");
  add("tokens", text("N"),
      "tokens of the whole training, as in 15.6e12: say its days, price and energy (default with "
      "several clusters: 1e12)");
  add("top", text("N"), "list the N best plans (default: 10)");
  add("time-limit", text("TIME"),
      "stop after this time with the best plan so far, and say how far the best may be from it");
  add_headroom_option(options);
  add("front", text("quick|whole|none"),
      "how far the front is looked for (default: quick, which is the whole one in small spaces)");
  add("refine", text("quick|whole|none"),
      "go on from the best plans with keys that the space leaves alone: order, map, offloading, "
      "what overlaps (default: quick; none with --within)");
  add("why", text("KEYS"), "say why this plan is not in the list, and what it gives");
  add("jobs", text("N"),
      "simulate this many plans at once (default: as many as the machine has cores; one in each "
      "process that mpirun started)");
  add("chip", text("NAME|FILE"), "chip (default: the cluster's)");
  add("library", text("NAME|FILE"), "communication library (default: the chip's)");
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change one field of the model or the cluster; can be repeated");
  add("csv", text("FILE"), "write the best plans as a table");
  add("plot", text("FILE.svg"), "draw step time against memory, with the front");
  add("experiment", text("FILE.json"), "write the best plan as an experiment for stepsim run");
  add("export", text("KIND PATH"),
      "write the best plan as the settings of a trainer: megatron FILE.sh, torchtitan FILE.toml, "
      "maxtext FILE.yml, nemo FILE.yaml");
  add_json_option(options);
  add_html_option(options);
  add_input_option(options);
  return options;
}

SearchRequest read_search_request(const std::vector<std::string>& arguments) {
  std::vector<Problem> problems;
  SearchRequest request;
  std::vector<std::string> rest = arguments;
  request.exported = take_export(rest, trainer_kinds());
  if (request.exported) require_writable(*request.exported);
  const CommandLine line = read_command_line(rest, search_option_list(), problems);
  if (line.words.size() > 1)
    problems.push_back({line.words[1], "there can be only one EXPERIMENT"});
  require_options(line, problems);
  request.options.objective = read_objective(line, problems);
  request.options.top = static_cast<std::size_t>(
      read_whole_number(line, "top", 1, kMostListed, problems).value_or(10));
  request.options.time_limit_s = read_time_limit(line, problems);
  request.options.threads = read_threads(line, "jobs", problems);
  request.options.front = read_front(line, problems);
  request.options.most_step = read_most_step(line, problems);
  if (const auto headroom = read_headroom(line, problems)) {
    request.options.headroom = *headroom;
    request.options.takes_likely = false;
  }
  request.refine = read_refine(line, problems);
  const std::string fix = line.value("fix");
  const std::set<std::string> fixed = keys_of(fix);
  check_fixed(fix, problems);
  const std::vector<Dimension> dimensions = read_dimensions(line, fixed, problems);
  const bool has_within = line.options.count("within") != 0;
  request.settled.given = fixed;

  const std::vector<std::string> clusters = read_clusters(line, problems);
  const std::vector<std::optional<double>> prices = read_prices(line, clusters.size(), problems);
  request.has_price = line.options.count("chip-hour") != 0;
  request.tokens = read_tokens(line, clusters.size() > 1, problems);
  read_outputs(line, request, problems);
  const KeyTexts start = start_of(line);
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    ExperimentSource source{.experiment = line.words.empty() ? "" : line.words.front(),
                            .model = line.value("model"),
                            .cluster = clusters[i],
                            .plan = start.plan,
                            .software = start.software,
                            .pass = start.pass,
                            .chip = line.value("chip"),
                            .library = line.value("library")};
    if (line.options.count("set") != 0) {
      source.overrides = line.options["set"].as<std::vector<std::string>>();
    }
    if (source.experiment.empty() && (source.model.empty() || source.cluster.empty())) continue;
    if (source.experiment.empty() && source.plan.empty()) continue;
    try {
      LoadedExperiment loaded = load_start(source);
      if (i == 0) say_moved_keys(source.experiment, loaded.moved_keys);
      std::vector<Dimension> all = filled(dimensions, loaded, has_within, fixed, problems);
      for (const Dimension& dimension : all) request.settled.searched.insert(dimension.key);
      const bool has_dp =
          fixed.contains("dp") || std::ranges::count(all, "dp", &Dimension::key) > 0;
      request.places.push_back({.base = std::move(loaded.experiment),
                                .places = std::move(loaded.topology.places),
                                .space = SearchSpace(std::move(all), !has_dp),
                                .chip_hour = prices[i]});
      request.sources.push_back(std::move(source));
    } catch (const ConfigError& error) {
      add_new(error.problems(), problems);
    }
  }
  if (!request.places.empty()) request.why = read_why(line, request.places.front(), problems);
  throw_if_any(std::move(problems));
  request.options.intervals = load_intervals();
  return request;
}

}  // namespace stepsim
