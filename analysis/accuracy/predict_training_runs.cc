#include "analysis/accuracy/predict_training_runs.h"

#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/training_run.h"
#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kGB = 1e9;

struct Prediction {
  double step_time_s = 0;
  double memory_bytes = 0;
  double fixed_bytes = 0;  // its share for the context and libraries
  bool fits = false;
};

std::uint64_t count_ops(const OpGraph& graph) {
  std::uint64_t ops = 0;
  for (const RankData& rank : graph.ranks) ops += graph.programs[rank.program.index()].ops.size();
  return ops;
}

// Throws ConfigError.
void refuse_long_runs(const OpGraph& graph, std::uint32_t steps, std::uint64_t most_ops) {
  const std::uint64_t ops = count_ops(graph) * steps;
  if (ops <= most_ops) return;
  throw ConfigError({{"size", "has " + std::to_string(ops / 1'000'000) +
                                  " million ops, more than --most-ops allows"}});
}

// Throws ConfigError, DeadlockError.
Prediction simulate_run(const Experiment& experiment, const Cluster& cluster,
                        const PredictOptions& options) {
  ExperimentOptions simulation;
  simulation.before = [&options](const OpGraph& graph, const Cluster&,
                                 const SimulationOptions& chosen) {
    refuse_long_runs(graph, chosen.steps, options.most_ops);
  };
  const SimulatedExperiment done = simulate_experiment(experiment, cluster, simulation);
  const SimulationResult& result = done.runs.front().result;
  const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
  return {.step_time_s = to_seconds(result.step_time),
          .memory_bytes = static_cast<double>(peak.bytes.value()),
          .fixed_bytes = static_cast<double>(
              peak.by_category[static_cast<std::size_t>(MemoryCategory::kFixedOverhead)].value()),
          .fits = peak.bytes <= cluster.chip.memory_capacity};
}

// Takes the first of the run's recomputes that fits in memory, and says so. If none does, something
// else was read or assumed wrongly, and it takes the first. Throws ConfigError, DeadlockError.
Prediction simulate_first_that_fits(TrainingRun& run, const PredictOptions& options) {
  Experiment& experiment = run.experiment;
  const Cluster cluster = cluster_for_steps(experiment, std::move(run.topology));
  if (run.recomputes.empty()) return simulate_run(experiment, cluster, options);
  std::optional<Prediction> first;
  for (const Recompute recompute : run.recomputes) {
    experiment.plan.recompute = recompute;
    const Prediction prediction = simulate_run(experiment, cluster, options);
    if (prediction.fits) {
      run.assumed.push_back("recompute: " + std::string(name_of(recompute)) +
                            ", the cheapest that fits");
      return prediction;
    }
    if (!first) first = prediction;
  }
  run.assumed.push_back("recompute: " + std::string(name_of(run.recomputes.front())) +
                        ", though no recompute fits");
  return *first;
}

// Returns nullopt, with the reason in `run.problem`, if the run cannot be simulated.
std::optional<Prediction> predict_run(TrainingRun& run, const PredictOptions& options) {
  if (!run.problem.empty()) return std::nullopt;
  try {
    return simulate_first_that_fits(run, options);
  } catch (const ConfigError& error) {
    run.problem = error.problems().front().field + ": " + error.problems().front().message;
  } catch (const DeadlockError&) {
    run.problem = "the step never ends";
  } catch (const std::range_error& error) {
    run.problem = error.what();
  }
  return std::nullopt;
}

bool says(const CsvTable& table, std::size_t record, std::string_view word) {
  for (const std::string_view column : {"metric_origin", "other_metrics", "remarks"}) {
    if (table.at(record, column).find(word) != std::string_view::npos) return true;
  }
  return false;
}

// Returns the printed step time, or the one that follows from the printed throughput.
std::optional<double> step_time(const CsvTable& table, std::size_t record) {
  if (const auto step = table.number(record, "step_time_s")) return step;
  const auto rate = table.number(record, "tokens_per_s");
  const auto batch = table.number(record, "global_batch");
  const auto sequence = table.number(record, "seq_len");
  if (!rate || *rate <= 0 || !batch || !sequence) return std::nullopt;
  return *batch * *sequence / *rate;
}

}  // namespace

std::vector<AccuracyRow> predict_training_runs(const CsvTable& table,
                                               const std::vector<Hardware>& hardware,
                                               const PredictOptions& options) {
  const MeasuredCatalog catalog{
      .hardware = hardware, .software = load_software(), .models = load_measured_models()};
  std::vector<AccuracyRow> rows;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    report(options, record, table.records.size());
    AccuracyRow row = start_row(table, record, hardware, "chip", "step_time_s");
    const std::optional<double> step = step_time(table, record);
    const std::optional<double> memory = table.number(record, "memory_gb");
    if (!step && !memory) {
      row.skipped = "neither a step time nor memory was measured";
      rows.push_back(std::move(row));
      continue;
    }
    TrainingRun run = training_run(table, record, catalog, options.library);
    const std::optional<Prediction> prediction = predict_run(run, options);
    row.skipped = run.problem;
    row.assumed = run.assumed;
    if (prediction) row.fits = prediction->fits;
    if (step) {
      row.measured = *step;
      if (prediction) row.predicted = prediction->step_time_s;
      rows.push_back(row);
    }
    if (memory) {
      row.metric = "memory_bytes";
      row.measured = *memory * (says(table, record, "GiB") ? kGiB : kGB);
      row.predicted.reset();
      // PyTorch's allocated memory excludes the context and the memory of libraries.
      const bool allocated = says(table, record, "allocated");
      if (prediction) {
        row.predicted = prediction->memory_bytes - (allocated ? prediction->fixed_bytes : 0);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace stepsim
