#include "analysis/accuracy/predict_training_runs.h"

#include <array>
#include <limits>
#include <utility>

#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/training_run_text.h"
#include "schedules/lowering/lower.h"
#include "sim/hardware/cluster.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kGB = 1e9;

struct Prediction {
  double step_time_s = 0;
  double memory_bytes = 0;
  double fixed_bytes = 0;  // of them, of the context and of libraries
};

std::uint64_t count_ops(const OpGraph& graph) {
  std::uint64_t ops = 0;
  for (const RankData& rank : graph.ranks) ops += graph.programs[rank.program.index()].ops.size();
  return ops;
}

// Throws ConfigError, DeadlockError.
Prediction simulate_run(const std::string& text, const PredictOptions& options) {
  ExperimentSource source;
  source.text = text;
  source.library = options.library;
  LoadedExperiment loaded = load_with_topology(source);
  const Experiment& experiment = loaded.experiment;
  const Cluster cluster = cluster_for_steps(experiment, std::move(loaded.topology));
  const OpGraph graph = lower(experiment.model, experiment.plan, cluster.places, cluster.chip);
  SimulationOptions simulation;
  // FSDP gathers ahead of the next step.
  const ParallelPlan& plan = experiment.plan;
  simulation.steps = plan.zero == 3 && plan.dp * plan.cp > 1 ? 2 : 1;
  const std::uint64_t ops = count_ops(graph) * simulation.steps;
  if (ops > options.most_ops) {
    throw ConfigError({{"size", "has " + std::to_string(ops / 1'000'000) +
                                    " million ops, more than --most-ops allows"}});
  }
  const SimulationResult result = simulate(graph, cluster, simulation);
  const MemoryPeak& peak = result.memory_peaks[result.peak_rank.index()];
  return {.step_time_s = to_seconds(result.step_time),
          .memory_bytes = static_cast<double>(peak.bytes.value()),
          .fixed_bytes = static_cast<double>(
              peak.by_category[static_cast<std::size_t>(MemoryCategory::kFixedOverhead)].value())};
}

bool says(const CsvTable& table, std::size_t record, std::string_view word) {
  for (const std::string_view column : {"metric_origin", "other_metrics", "remarks"}) {
    if (table.at(record, column).find(word) != std::string_view::npos) return true;
  }
  return false;
}

// As printed, or what the printed throughput means.
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
  const std::vector<Software> software = load_software();
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
    std::optional<Prediction> prediction;
    const Hardware* entry = find_hardware(hardware, table.at(record, "chip"));
    if (entry == nullptr) {
      row.skipped = "the catalog has no chip for this hardware";
    } else {
      const RunText text =
          training_run_text(table, record, *entry, software_of(table, record, software));
      row.skipped = text.problem;
      if (row.skipped.empty()) {
        try {
          prediction = simulate_run(text.experiment, options);
        } catch (const ConfigError& error) {
          row.skipped = error.problems().front().field + ": " + error.problems().front().message;
        } catch (const DeadlockError&) {
          row.skipped = "the step never ends";
        }
      }
    }
    if (step) {
      row.measured = *step;
      if (prediction) row.predicted = prediction->step_time_s;
      rows.push_back(row);
    }
    if (memory) {
      row.metric = "memory_bytes";
      row.measured = *memory * (says(table, record, "GiB") ? kGiB : kGB);
      row.predicted.reset();
      // What PyTorch has allocated is without the context and without what libraries hold.
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
