#include "analysis/accuracy/predict_training_runs.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/simulate_training_run.h"
#include "analysis/accuracy/training_run_plan.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr double kGB = 1e9;

bool says(const CsvTable& table, std::size_t record, std::string_view word) {
  for (const std::string_view column : {"metric_origin", "other_metrics", "remarks"}) {
    if (table.at(record, column).find(word) != std::string_view::npos) return true;
  }
  return false;
}

// What was measured of one record.
struct MeasuredRun {
  std::optional<double> step_time_s;
  std::optional<double> memory_bytes;
  // Where nothing else gives the step time: the rate of all chips, in FLOPs of the model with
  // attention counted as if it were not causal.
  std::optional<double> full_flops_per_s;
  std::string problem;  // a number that can't be read

  bool says_step() const { return step_time_s || full_flops_per_s; }
  bool says_anything() const { return problem.empty() && (says_step() || memory_bytes); }
};

class MeasurementReader {
 public:
  MeasurementReader(const CsvTable& table, std::size_t record) : table_(table), record_(record) {}

  MeasuredRun read() {
    MeasuredRun measured{.step_time_s = step_time(),
                         .memory_bytes = positive("memory_gb"),
                         .full_flops_per_s = {},
                         .problem = {}};
    if (measured.memory_bytes) {
      *measured.memory_bytes *= says(table_, record_, "GiB") ? kGiB : kGB;
    }
    if (!measured.step_time_s) measured.full_flops_per_s = full_flops_per_s();
    measured.problem = problem_;
    return measured;
  }

 private:
  // Returns the printed step time, or the one that follows from the printed throughput.
  std::optional<double> step_time() {
    if (const auto step = positive("step_time_s")) return step;
    std::optional<double> rate = positive("tokens_per_s");
    if (const auto of_chip = positive("tokens_per_s_per_gpu"); !rate && of_chip) {
      const auto chips = positive("chip_count");
      if (chips) rate = *of_chip * *chips;
    }
    const auto batch = positive("global_batch");
    const auto sequence = positive("seq_len");
    if (!rate || !batch || !sequence) return std::nullopt;
    return *batch * *sequence / *rate;
  }

  // Other conventions leave open what they count.
  std::optional<double> full_flops_per_s() {
    const auto of_chip = positive("tflops_per_gpu");
    const auto chips = positive("chip_count");
    if (!of_chip || !chips || !contains(table_.at(record_, "flops_convention"), "non-causal")) {
      return std::nullopt;
    }
    return *of_chip * 1e12 * *chips;
  }

  std::optional<double> positive(const char* column) {
    const std::string_view text = table_.at(record_, column);
    if (is_blank(text)) return std::nullopt;
    auto value = table_.number(record_, column);
    if (const std::size_t note = text.find(" ("); !value && note != std::string_view::npos) {
      value = number_in<double>(text.substr(0, note));
    }
    if (value && *value > 0 && std::isfinite(*value)) return value;
    problem_ = no_value(table_, record_, column, "a number above 0");
    return std::nullopt;
  }

  const CsvTable& table_;
  std::size_t record_;
  std::string problem_;
};

// Returns what the table says about the run of a record. Records of which it says the same are the
// same run, measured more than once.
std::string run_in_text(const CsvTable& table, std::size_t record,
                        const std::vector<Software>& software) {
  RowReader row(table, record);
  std::string text = software_of(row, software).name;
  if (trains_adapters(row)) text += "\nLoRA";
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    if (describes_run(table.header[column])) (text += '\n') += table.records[record][column];
  }
  return text;
}

// SameRuns are the records of one run.
using SameRuns = std::vector<std::size_t>;

// Returns the runs in order of their first records.
std::vector<SameRuns> runs_to_simulate(const CsvTable& table,
                                       const std::vector<MeasuredRun>& measured,
                                       const std::vector<Software>& software) {
  std::vector<SameRuns> runs;
  std::map<std::string, std::size_t> known;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    if (!measured[record].says_anything()) continue;
    const auto [run, is_new] = known.try_emplace(run_in_text(table, record, software), runs.size());
    if (is_new) runs.emplace_back();
    runs[run->second].push_back(record);
  }
  return runs;
}

// Returns by record what the simulator says. Records without a measurement have no problem and no
// prediction. Throws SimulationInterrupted.
std::vector<RunOutcome> simulate_all(const CsvTable& table,
                                     const std::vector<MeasuredRun>& measured,
                                     const MeasuredCatalog& catalog,
                                     const PredictOptions& options) {
  const std::vector<SameRuns> runs = runs_to_simulate(table, measured, catalog.software);
  std::vector<RunOutcome> outcomes(table.records.size());
  std::mutex one_at_a_time;
  std::mutex reporting;
  std::size_t done = 0;
  const auto simulate_one = [&](std::size_t record) -> RunOutcome {
    const RunOutcome ended{.prediction = {}, .problem = std::string(kInterrupted), .assumed = {}};
    if (is_ended(options)) return ended;
    TrainingRun run = training_run(table, record, catalog, options.library);
    if (options.change_chip) options.change_chip(run.experiment.cluster.chip);
    try {
      return simulate_training_run(std::move(run), options.most_ops, options.goes_on,
                                   one_at_a_time);
    } catch (const SimulationInterrupted&) {
      if (!is_ended(options)) throw;
      return ended;
    }
  };
  for_each_in_parallel(runs.size(), options.threads, [&](std::size_t i) {
    const RunOutcome outcome = simulate_one(runs[i].front());
    for (const std::size_t record : runs[i]) outcomes[record] = outcome;
    const std::lock_guard lock(reporting);
    report(options, done += runs[i].size(), table.records.size());
  });
  return outcomes;
}

// The intervals of all situations beside what is measured in one.
class IntervalsOfRows {
 public:
  void set(const RunOutcome& outcome, PredictedMetric metric, AccuracyRow& row) const {
    if (!row.predicted) return;
    const Situation& situation = outcome.prediction->situation;
    row.situation = text_of(situation);
    row.interval = interval_of(entries_, metric, situation, *row.predicted);
  }

 private:
  std::vector<IntervalEntry> entries_ = load_intervals();
};

void add_step_time(AccuracyRow row, const MeasuredRun& measured, const RunOutcome& outcome,
                   const IntervalsOfRows& intervals, std::vector<AccuracyRow>& rows) {
  row.measured = measured.step_time_s.value_or(0);
  if (const auto& prediction = outcome.prediction) {
    if (!measured.step_time_s) {
      row.measured = prediction->full_flops / *measured.full_flops_per_s;
      row.assumed.push_back("step time: the model's FLOPs over the TFLOP/s");
    }
    row.predicted = prediction->step_time_s;
    row.implausible = why_implausible_step(*prediction, row.measured);
  }
  intervals.set(outcome, PredictedMetric::kStepTime, row);
  rows.push_back(std::move(row));
}

// Returns what the row's figure of memory counts; nullopt: it does not say.
std::optional<MemoryFigure> memory_figure_of(const CsvTable& table, std::size_t record) {
  const auto has = [&](std::string_view word) { return says(table, record, word); };
  if (has("reserved")) return MemoryFigure::kReserved;
  if (has("allocated")) return MemoryFigure::kAllocated;
  if (has("nvidia-smi") || has("rocm-smi")) return MemoryFigure::kDevice;
  return std::nullopt;
}

void add_memory(AccuracyRow row, const MeasuredRun& measured, const RunOutcome& outcome,
                std::optional<MemoryFigure> figure, const IntervalsOfRows& intervals,
                std::vector<AccuracyRow>& rows) {
  row.metric = "memory_bytes";
  row.measured = *measured.memory_bytes;
  if (const auto& prediction = outcome.prediction) {
    row.predicted = prediction->memory_bytes(figure.value_or(prediction->memory_figure));
  }
  intervals.set(outcome, PredictedMetric::kMemory, row);
  rows.push_back(std::move(row));
}

}  // namespace

std::vector<AccuracyRow> predict_training_runs(const CsvTable& table,
                                               const std::vector<Hardware>& hardware,
                                               const PredictOptions& options) {
  const MeasuredCatalog catalog{.hardware = hardware,
                                .machines = load_machines(),
                                .software = load_software(),
                                .models = load_measured_models(),
                                .catalog = load_catalog_models()};
  const IntervalsOfRows intervals;
  std::vector<MeasuredRun> measured;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    measured.push_back(MeasurementReader(table, record).read());
  }
  const std::vector<RunOutcome> outcomes = simulate_all(table, measured, catalog, options);
  std::vector<AccuracyRow> rows;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    const MeasuredRun& values = measured[record];
    const RunOutcome& outcome = outcomes[record];
    AccuracyRow row = start_row(table, record, hardware, "chip", "step_time_s");
    row.grade = table.at(record, "spec_grade");
    row.skipped = values.problem.empty() ? outcome.problem : values.problem;
    row.assumed = outcome.assumed;
    if (outcome.prediction) row.fits = outcome.prediction->fits;
    if (!values.says_anything()) {
      if (row.skipped.empty()) row.skipped = "neither a step time nor memory was measured";
      rows.push_back(std::move(row));
      continue;
    }
    if (values.says_step()) add_step_time(row, values, outcome, intervals, rows);
    if (values.memory_bytes) {
      add_memory(row, values, outcome, memory_figure_of(table, record), intervals, rows);
    }
  }
  return rows;
}

}  // namespace stepsim
