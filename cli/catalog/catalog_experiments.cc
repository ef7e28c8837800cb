#include "cli/catalog/catalog_experiments.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cli/call.h"
#include "cli/outputs.h"
#include "cli/session/progress.h"
#include "experiment/simulate_experiment.h"
#include "experiment/step/published_comparison.h"
#include "proto/catalog/catalog.h"
#include "proto/load_experiment.h"
#include "proto/messages/json_value.h"
#include "sim/base/quantity_text.h"
#include "traces/results/published_report.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {
namespace {

struct ShownExperiment {
  Experiment experiment;
  Publication publication;
  bool is_served = false;
  bool is_simulated = false;
  std::optional<StepMetrics> metrics;  // set if its step was
  std::vector<PublishedComparison> comparisons;
};

// Returns a measure of the cost: it grows like the ops of all ranks. Serving takes some seconds.
double work_of(const ShownExperiment& shown) {
  constexpr double kWorkOfServing = 1e6;
  if (shown.is_served) return kWorkOfServing;
  const Experiment& experiment = shown.experiment;
  const ParallelPlan& plan = experiment.plan;
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  const double blocks_of_a_rank = number(experiment.model.layers) / number(plan.mesh.pp);
  const double microbatches =
      number(plan.batch.global_batch) / number(plan.batch.microbatch_size * plan.mesh.dp);
  return number(plan.mesh.ranks()) * microbatches * blocks_of_a_rank;
}

// Returns all experiments, the quickest first.
std::vector<ShownExperiment> catalog_experiments() {
  std::vector<ShownExperiment> all;
  for (const std::string& name : list(CatalogKind::kExperiment)) {
    ExperimentSource source;
    source.experiment = name;
    LoadedExperiment loaded = load_with_topology(source);
    all.push_back({.experiment = std::move(loaded.experiment),
                   .publication = std::move(loaded.publication),
                   .is_served = loaded.served.given(),
                   .metrics = {},
                   .comparisons = {}});
  }
  std::ranges::stable_sort(all, {}, work_of);
  return all;
}

bool is_simulated(const ShownExperiment& shown, const CatalogExperimentsOptions& options) {
  if (shown.publication.figures.empty()) return false;
  return !options.most_chips || shown.experiment.plan.mesh.ranks() <= *options.most_chips;
}

double served_value(PublishedMetric metric, const Json& result) {
  if (metric == PublishedMetric::kTimePerToken) return result["tpot_s"]["mean"].get<double>();
  if (metric == PublishedMetric::kTimeToFirstToken) return result["ttft_s"]["mean"].get<double>();
  return result["output_tokens_per_s_per_chip"].get<double>();
}

// Serves it as `stepsim serve NAME` does.
void serve_shown(ShownExperiment& shown) {
  const Called called = call("serve", {shown.experiment.name, "--json=memory:json"});
  const Json result = parse_json(called.kept.at("json")).value.value();
  for (const PublishedFigure& figure : shown.publication.figures) {
    if (!is_of_serving(figure.metric)) continue;
    shown.comparisons.push_back(
        {.figure = figure, .simulated = served_value(figure.metric, result)});
  }
}

void simulate_shown(ShownExperiment& shown) {
  shown.is_simulated = true;
  if (shown.is_served) return serve_shown(shown);
  Progress progress(shown.experiment.name + ": ");
  ExperimentOptions options;
  progress.watch(options);
  const SimulatedExperiment done = simulate_experiment(shown.experiment, options);
  const SimulatedStep& step = done.runs.front();
  shown.metrics = step.metrics;
  shown.comparisons =
      compare_with_published(shown.publication, shown.experiment, step.result, step.metrics);
}

void add_figures(ReportText& text, const Publication& publication) {
  for (const PublishedFigure& figure : publication.figures) {
    text.line("  {:<{}}{:>14}", published_label(figure.metric), kReportLabel,
              published_value_text(figure.metric, figure.value));
    text.wrapped(4, figure.source);
  }
}

std::string shown_text(const ShownExperiment& shown) {
  const Experiment& experiment = shown.experiment;
  ReportText text(shows_color(STDOUT_FILENO));
  text.line("{}", text.paint(experiment.name, Paint::kBold));
  if (shown.publication.figures.empty()) {
    text.wrapped(2, "nothing published: " + shown.publication.none);
  } else if (shown.is_simulated) {
    add_published(text, shown.comparisons);
  } else {
    add_figures(text, shown.publication);
  }
  return text.text();
}

const ResultTable<ShownExperiment>& shown_results() {
  static const ResultTable<ShownExperiment> kTable = [] {
    constexpr std::string_view kSimulated = "where it was simulated";
    ResultTable<ShownExperiment> table;
    table.add("name", [](const ShownExperiment& shown) { return shown.experiment.name; },
              {"its name"});
    table.add("chips",
              [](const ShownExperiment& shown) {
                return shown.metrics ? std::optional(shown.metrics->chips) : std::nullopt;
              },
              {"chips with a rank", "", kSimulated});
    table.add("step_time_s",
              [](const ShownExperiment& shown) {
                return shown.metrics ? std::optional(shown.metrics->step_time) : std::nullopt;
              },
              {"time of a step", "s", kSimulated});
    table.add("served",
              [](const ShownExperiment& shown) {
                return shown.is_served ? std::optional(true) : std::nullopt;
              },
              {"true: it serves requests", "", "of those that serve"});
    table.list("published", published_results(), &ShownExperiment::comparisons,
               {"published figures beside simulated ones"});
    table.add("not_published",
              [](const ShownExperiment& shown) { return given(shown.publication.none); },
              {"why nothing is published", "", "where nothing is"});
    return table;
  }();
  return kTable;
}

const ResultTable<std::vector<ShownExperiment>>& catalog_experiments_results() {
  static const ResultTable<std::vector<ShownExperiment>> kTable = [] {
    ResultTable<std::vector<ShownExperiment>> table;
    table.list("experiments", shown_results(), std::identity{}, {"all of the catalog"});
    return table;
  }();
  return kTable;
}

std::string all_shown_json(const std::vector<ShownExperiment>& all) {
  return catalog_experiments_results().json(all) + '\n';
}

bool shown_as_expected(const ShownExperiment& shown) {
  return std::ranges::all_of(shown.comparisons, &PublishedComparison::as_expected);
}

}  // namespace

const AnyResultTable& catalog_results() {
  return catalog_experiments_results();
}

ExitStatus show_catalog_experiments(const CatalogExperimentsOptions& options) {
  const bool prints_only = options.json.empty() || options.json == "-";
  Outputs outputs;
  std::vector<ShownExperiment> all = catalog_experiments();
  for (ShownExperiment& shown : all) {
    if (is_simulated(shown, options)) simulate_shown(shown);
    if (options.json != "-") outputs.print(shown_text(shown));
    if (!outputs.is_heard() && prints_only) break;
  }
  outputs.write(options.json, all_shown_json(all));
  outputs.commit();
  if (options.json == "-") outputs.print(all_shown_json(all));
  return outputs.end(std::ranges::all_of(all, shown_as_expected) ? ExitStatus::kDone
                                                                 : ExitStatus::kNo);
}

}  // namespace stepsim
