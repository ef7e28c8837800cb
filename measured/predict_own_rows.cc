#include "measured/predict_own_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "measured/predict_collectives.h"
#include "measured/predict_kernels.h"
#include "measured/row_fields.h"
#include "measured/run_rows.h"
#include "measured/served_rows.h"
#include "measured/simulate_training_run.h"
#include "measured/timed_rows.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

// ---- runs ----

// What a row's run gave, and what is needed to put its measurements beside it.
struct Outcome {
  std::string problem{};
  std::string chip{};
  std::optional<RunPrediction> prediction{};
  MemoryFigure memory_figure = MemoryFigure::kDevice;
  double ranks = 1;
  double tokens = 0;        // of a step
  double peak_flops = 0;    // of a chip
  double causal_flops = 0;  // of the model in a step
  double full_flops = 0;
  bool trains = true;
};

class RunRows {
 public:
  RunRows(const CsvTable& table, const PredictOptions& options) : table_(table), options_(options) {
    for (std::size_t record = 0; record < table.records.size(); ++record) {
      rows_.push_back(read_run_row(table, record));
    }
  }

  std::vector<AccuracyRow> predict() {
    serve_all();
    simulate_all();
    std::vector<AccuracyRow> rows;
    for (std::size_t record = 0; record < rows_.size(); ++record) add_rows(record, rows);
    return rows;
  }

 private:
  void serve_all() {
    std::vector<const RunRow*> served;
    for (const RunRow& row : rows_) {
      if (row.measures.is_served()) served.push_back(&row);
    }
    if (served.empty()) return;
    const std::vector<ServedOutcome> outcomes = serve_rows(
        served, options_, [&](std::size_t more) { report(options_, done_ += more, rows_.size()); });
    auto next = outcomes.begin();
    served_.resize(rows_.size());
    for (std::size_t record = 0; record < rows_.size(); ++record) {
      if (rows_[record].measures.is_served()) served_[record] = *next++;
    }
  }

  void simulate_all() {
    std::map<std::string, std::vector<std::size_t>> runs;
    std::vector<const std::vector<std::size_t>*> work;
    outcomes_.resize(rows_.size());
    for (std::size_t record = 0; record < rows_.size(); ++record) {
      if (rows_[record].measures.is_served()) continue;
      if (!rows_[record].problems.empty()) {
        outcomes_[record].problem = first_line(rows_[record].problems);
        continue;
      }
      std::vector<std::size_t>& same = runs[rows_[record].key];
      same.push_back(record);
      if (same.size() == 1) work.push_back(&same);
    }
    std::mutex reporting;
    for_each_in_parallel(work.size(), options_.threads, [&](std::size_t i) {
      const Outcome outcome = simulate_one(rows_[work[i]->front()]);
      for (const std::size_t record : *work[i]) outcomes_[record] = outcome;
      const std::lock_guard lock(reporting);
      report(options_, done_ += work[i]->size(), rows_.size());
    });
  }

  // Throws SimulationInterrupted.
  Outcome simulate_one(const RunRow& row) {
    Outcome outcome;
    if (is_ended(options_)) {
      outcome.problem = std::string(kInterrupted);
      return outcome;
    }
    try {
      run(row, outcome);
    } catch (const ConfigError& error) {
      outcome.problem = first_line(error.problems());
    } catch (const SimulationInterrupted&) {
      if (!is_ended(options_)) throw;
      outcome.problem = std::string(kInterrupted);
    }
    return outcome;
  }

  void run(const RunRow& row, Outcome& outcome) {
    if (row.served != ServedCells{}) {
      throw_if_any({{"engine", "and the like are of served runs: give measured.tpot_mean"}});
    }
    std::string keys = row.keys;
    if (!row.software.empty()) keys = "software=" + row.software + (keys.empty() ? "" : "," + keys);
    ExperimentSource source = with_keys(row.source, keys);
    if (!options_.library.empty()) source.library = options_.library;
    LoadedExperiment loaded = load_with_topology(source);
    const Experiment& experiment = loaded.experiment;
    const ParallelPlan& plan = experiment.plan;
    if (options_.change_chip) options_.change_chip(loaded.experiment.cluster.chip);
    outcome.chip = experiment.cluster.chip.name;
    outcome.ranks = static_cast<double>(plan.mesh.ranks());
    outcome.tokens =
        static_cast<double>(plan.batch.global_batch) * static_cast<double>(plan.batch.sequence);
    outcome.peak_flops = experiment.cluster.chip.peak_of(plan.precision.type).value();
    const auto flops = [&](AttentionFlops count) {
      return model_flops(experiment.model, plan.batch.global_batch, plan.batch.sequence, count);
    };
    outcome.causal_flops = flops(AttentionFlops::kCausal);
    outcome.full_flops = flops(AttentionFlops::kFull);
    outcome.trains = !plan.is_inference();
    outcome.memory_figure = plan.allocator.figure;
    RunOutcome done = simulate_training_run(std::move(loaded), options_.most_ops, options_.goes_on,
                                            one_at_a_time_);
    outcome.problem = std::move(done.problem);
    outcome.prediction = done.prediction;
  }

  // ---- measurements beside predictions ----

  // The step time of each figure that a row gives, and of how it follows.
  std::vector<std::pair<std::string, double>> step_times(const RunMeasures& measures,
                                                         const Outcome& outcome) const {
    std::vector<std::pair<std::string, double>> times;
    const double flops = measures.attention_flops == AttentionFlops::kFull ? outcome.full_flops
                                                                           : outcome.causal_flops;
    if (measures.step_time_s) times.emplace_back("step_time", *measures.step_time_s);
    if (measures.tokens_per_s) {
      times.emplace_back("tokens_per_s", outcome.tokens / *measures.tokens_per_s);
    }
    if (measures.tokens_per_s_per_chip) {
      times.emplace_back("tokens_per_s_per_chip",
                         outcome.tokens / (*measures.tokens_per_s_per_chip * outcome.ranks));
    }
    if (measures.flops_per_chip) {
      times.emplace_back("flops_per_chip", flops / (*measures.flops_per_chip * outcome.ranks));
    }
    if (measures.mfu) {
      times.emplace_back("mfu", flops / (*measures.mfu * outcome.peak_flops * outcome.ranks));
    }
    return times;
  }

  void add_rows(std::size_t record, std::vector<AccuracyRow>& rows) {
    const RunMeasures& measures = rows_[record].measures;
    if (measures.is_served()) return add_served(record, rows);
    const Outcome& outcome = outcomes_[record];
    AccuracyRow row = begin_row(table_, record, outcome.chip, "step_time_s");
    row.skipped = outcome.problem;
    if (outcome.prediction) row.fits = outcome.prediction->fits;
    if (!measures.says_step() && !measures.peak_memory_bytes) {
      if (row.skipped.empty()) row.skipped = "nothing was measured: give a measured.* cell";
      rows.push_back(std::move(row));
      return;
    }
    if (measures.says_step()) add_step(row, measures, outcome, rows);
    if (measures.peak_memory_bytes) add_memory(std::move(row), measures, outcome, rows);
  }

  void add_step(AccuracyRow row, const RunMeasures& measures, const Outcome& outcome,
                std::vector<AccuracyRow>& rows) const {
    constexpr double kAlike = 0.02;
    if (outcome.prediction) {
      const auto times = step_times(measures, outcome);
      row.measured = times.front().second;
      for (const auto& [name, time] : times) {
        if (std::abs(time / row.measured - 1) <= kAlike) continue;
        row.assumed.push_back(fmt::format("measured.{}, not measured.{}, which says {:.4g} s",
                                          times.front().first, name, time));
      }
      row.predicted = outcome.prediction->step_time_s;
      row.implausible = why_implausible_step(*outcome.prediction, row.measured);
    } else {
      row.measured = measures.step_time_s.value_or(0);
    }
    set_interval(PredictedMetric::kStepTime, outcome, row);
    rows.push_back(std::move(row));
  }

  void add_memory(AccuracyRow row, const RunMeasures& measures, const Outcome& outcome,
                  std::vector<AccuracyRow>& rows) const {
    row.metric = "memory_bytes";
    row.measured = *measures.peak_memory_bytes;
    if (const auto& prediction = outcome.prediction) {
      row.predicted =
          prediction->memory_bytes(measures.memory_figure.value_or(outcome.memory_figure));
    }
    set_interval(PredictedMetric::kMemory, outcome, row);
    rows.push_back(std::move(row));
  }

  void add_served(std::size_t record, std::vector<AccuracyRow>& rows) const {
    const ServedOutcome& outcome = served_[record];
    const RunMeasures& measures = rows_[record].measures;
    const ServedFigures figures = outcome.figures.value_or(ServedFigures{});
    const auto add = [&](const char* metric, const std::optional<double>& measured,
                         double predicted) {
      if (!measured) return;
      AccuracyRow row = begin_row(table_, record, outcome.chip, metric);
      row.skipped = outcome.problem;
      row.measured = *measured;
      if (outcome.figures) row.predicted = predicted;
      rows.push_back(std::move(row));
    };
    add("tpot_mean_s", measures.tpot_mean_s, to_seconds(figures.tpot));
    add("ttft_mean_s", measures.ttft_mean_s, to_seconds(figures.ttft));
    add("output_tok_per_s_per_chip", measures.output_tokens_per_s_per_chip,
        figures.output_tokens_per_s / outcome.chips);
  }

  // Intervals are known of training alone.
  void set_interval(PredictedMetric metric, const Outcome& outcome, AccuracyRow& row) const {
    if (!row.predicted || !outcome.trains) return;
    const Situation& situation = outcome.prediction->situation;
    row.situation = text_of(situation);
    row.interval = interval_of(intervals_, metric, situation, *row.predicted);
  }

  const CsvTable& table_;
  const PredictOptions& options_;
  std::vector<RunRow> rows_{};
  std::vector<Outcome> outcomes_{};
  std::vector<ServedOutcome> served_{};  // empty: no row is served
  std::size_t done_ = 0;
  std::vector<IntervalEntry> intervals_ = load_intervals();
  std::mutex one_at_a_time_{};
};

}  // namespace

bool is_measured_table(const CsvTable& table) {
  return std::ranges::any_of(
      table.header, [](const std::string& column) { return column.starts_with("measured."); });
}

std::vector<AccuracyRow> predict(const CsvTable& table, const PredictOptions& options) {
  if (!table.has("measured.time")) return RunRows(table, options).predict();
  return table.has("chip") ? predict_kernels(table, options) : predict_collectives(table, options);
}

std::string_view table_template(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTemplates = {
      {{"training",
        "id,source,grade,model,cluster,software,plan.tp,plan.dp,plan.pp,plan.zero,plan.microbatch,"
        "plan.global_batch,plan.sequence,plan.recompute,plan.dtype,measured.step_time,"
        "measured.peak_memory,measured.memory_figure,said,assumed\n"
        "my-first-run,our own log of 2 May,A,llama3-8b,dgx-h100-8,torchtitan,1,8,1,3,1,16,8192,"
        "selective,bf16,2.3s,80GB,reserved,,\n"},
       {"serving",
        "id,source,grade,model,cluster,engine,requests,plan.tp,plan.dtype,pass.cache_dtype,"
        "measured.ttft_mean,measured.tpot_mean,measured.output_tokens_per_s_per_chip,said,assumed\n"
        "my-first-run,our own benchmark of 2 May,A,llama3-8b,dgx-h100-8,\"vllm,budget=8192\","
        "\"closed:concurrency=16,count=160,input=1024,output=128\",8,bf16,bf16,60ms,4.2ms,,,\n"},
       {"collectives",
        "id,source,cluster,op,ranks,bytes,dtype,algorithm,measured.time,said\n"
        "my-first-row,nccl-tests on our cluster,dgx-h100-8,all_reduce,8,64MiB,bf16,,330us,\n"},
       {"kernels",
        "id,source,chip,op,shape,dtype,measured.time,said\n"
        "my-first-row,our own profile,h100-sxm,gemm,\"m=4096,n=4096,k=4096\",bf16,175us,\n"}}};
  const auto* const found =
      std::ranges::find(kTemplates, kind, &std::pair<std::string_view, std::string_view>::first);
  return found == kTemplates.end() ? std::string_view() : found->second;
}

}  // namespace stepsim
