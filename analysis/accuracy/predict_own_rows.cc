#include "analysis/accuracy/predict_own_rows.h"

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

#include "analysis/accuracy/predict_collectives.h"
#include "analysis/accuracy/predict_kernels.h"
#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/run_rows.h"
#include "analysis/accuracy/simulate_served_run.h"
#include "analysis/accuracy/simulate_training_run.h"
#include "experiment/build_cluster.h"
#include "serving/serving_text.h"
#include "sim/base/field_text.h"
#include "sim/base/parallel.h"
#include "sim/base/quantity_field.h"
#include "sim/base/suggestion.h"
#include "sim/collectives/algorithm_table.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

// The first problem, as the reason to skip a row. Some list all names of the catalog.
std::string first_line(const std::vector<Problem>& problems) {
  constexpr std::size_t kLongest = 240;
  return problems.front().field + ": " + shortened(problems.front().message, kLongest);
}

// The row with what tables in own keys say of it, without a measurement.
AccuracyRow begin_row(const CsvTable& table, std::size_t record, std::string chip,
                      std::string metric) {
  AccuracyRow row;
  row.id = table.at(record, "id");
  if (row.id.empty()) row.id = fmt::format("{}:{}", table.file, table.lines[record]);
  row.source_id = table.at(record, "source");
  row.grade = table.at(record, "grade");
  row.chip = std::move(chip);
  row.metric = std::move(metric);
  if (const std::string_view assumed = table.at(record, "assumed"); !assumed.empty()) {
    row.assumed.emplace_back(assumed);
  }
  return row;
}

// ---- runs ----

// What a row's run gave, and what is needed to put its measurements beside it.
struct Outcome {
  std::string problem{};
  std::string chip{};
  std::optional<RunPrediction> prediction{};
  std::optional<ServedFigures> served{};
  std::vector<std::string> assumed{};
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
    simulate_all();
    std::vector<AccuracyRow> rows;
    for (std::size_t record = 0; record < rows_.size(); ++record) add_rows(record, rows);
    return rows;
  }

 private:
  void simulate_all() {
    std::map<std::string, std::vector<std::size_t>> runs;
    std::vector<const std::vector<std::size_t>*> work;
    outcomes_.resize(rows_.size());
    for (std::size_t record = 0; record < rows_.size(); ++record) {
      if (!rows_[record].problems.empty()) {
        outcomes_[record].problem = first_line(rows_[record].problems);
        continue;
      }
      std::vector<std::size_t>& same = runs[rows_[record].key];
      same.push_back(record);
      if (same.size() == 1) work.push_back(&same);
    }
    std::mutex reporting;
    std::size_t done = 0;
    for_each_in_parallel(work.size(), options_.threads, [&](std::size_t i) {
      const Outcome outcome = simulate_one(rows_[work[i]->front()]);
      for (const std::size_t record : *work[i]) outcomes_[record] = outcome;
      const std::lock_guard lock(reporting);
      report(options_, done += work[i]->size(), rows_.size());
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
      if (row.measures.is_served()) {
        serve(row, outcome);
      } else {
        run(row, outcome);
      }
    } catch (const ConfigError& error) {
      outcome.problem = first_line(error.problems());
    } catch (const SimulationInterrupted&) {
      if (!is_ended(options_)) throw;
      outcome.problem = std::string(kInterrupted);
    }
    return outcome;
  }

  void run(const RunRow& row, Outcome& outcome) {
    ExperimentSource source = with_keys(row.source, row.keys);
    source.library = options_.library;
    LoadedExperiment loaded = load_with_topology(source);
    TrainingRun run;
    run.experiment = std::move(loaded.experiment);
    run.topology = std::move(loaded.topology);
    run.is_whole = true;
    const Experiment& experiment = run.experiment;
    const ParallelPlan& plan = experiment.plan;
    for (const Software& software : software_) {
      if (software_in_dashes(software.name) != plan.software) continue;
      run.memory_figure = software.memory_figure;
      run.unused_memory = software.unused_memory;
      run.flat_gradient_bytes = flat_gradient_bytes_of(software, plan);
    }
    if (options_.change_chip) options_.change_chip(run.experiment.cluster.chip);
    outcome.chip = experiment.cluster.chip.name;
    outcome.ranks = static_cast<double>(plan.ranks());
    outcome.tokens =
        static_cast<double>(plan.batch.global_batch) * static_cast<double>(plan.batch.sequence);
    outcome.peak_flops = experiment.cluster.chip.peak_of(plan.precision.type).value();
    const auto flops = [&](AttentionFlops count) {
      return model_flops(experiment.model, plan.batch.global_batch, plan.batch.sequence, count);
    };
    outcome.causal_flops = flops(AttentionFlops::kCausal);
    outcome.full_flops = flops(AttentionFlops::kFull);
    outcome.trains = !plan.is_inference();
    RunOutcome done =
        simulate_training_run(std::move(run), options_.most_ops, options_.goes_on, one_at_a_time_);
    outcome.problem = std::move(done.problem);
    outcome.prediction = done.prediction;
    outcome.assumed = std::move(done.assumed);
  }

  void serve(const RunRow& row, Outcome& outcome) {
    std::vector<Problem> problems;
    ServedRun run;
    const ReplicaGroup replica =
        read_engine(row.engine.empty() ? std::string_view("vllm") : row.engine, problems);
    run.options.replicas = replica;
    if (row.requests.empty()) {
      problems.push_back(
          {"requests", "must be given: closed:concurrency=64,count=640,input=1024,.."});
    } else {
      run.requests = read_request_source(row.requests, problems);
    }
    if (row.source.model.empty()) problems.push_back({"model", "must be given"});
    for (const std::string& change : row.source.overrides) {
      problems.push_back({change.substr(0, change.find('=')),
                          "must be empty: of served runs, keys of plan and pass alone are read"});
    }
    if (row.measures.says_step() || row.measures.peak_memory_bytes) {
      problems.push_back({"measured.*", "must be of a served run, or of a step: not of both"});
    }
    throw_if_any(std::move(problems));
    run.plan.model = row.source.model;
    run.plan.cluster = row.source.cluster;
    run.plan.library = options_.library;
    run.plan.plan = row.keys;
    PlanTimes times(run.plan);
    outcome.chip = times.chip().name;
    outcome.ranks = static_cast<double>(times.chips());
    outcome.served = simulate_served_run(run, times, times, options_.goes_on);
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
    const RunRow& read = rows_[record];
    const RunMeasures& measures = read.measures;
    const Outcome& outcome = outcomes_[record];
    AccuracyRow row = begin_row(table_, record, outcome.chip, "step_time_s");
    row.skipped = outcome.problem;
    if (outcome.prediction) row.fits = outcome.prediction->fits;
    for (const std::string& one : outcome.assumed) row.assumed.push_back(one);
    if (!measures.says_step() && !measures.peak_memory_bytes && !measures.is_served()) {
      if (row.skipped.empty()) row.skipped = "nothing was measured: give a measured.* cell";
      rows.push_back(std::move(row));
      return;
    }
    if (measures.is_served()) return add_served(row, measures, outcome, rows);
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
          prediction->memory_bytes(measures.memory_figure.value_or(prediction->memory_figure));
    }
    set_interval(PredictedMetric::kMemory, outcome, row);
    rows.push_back(std::move(row));
  }

  void add_served(const AccuracyRow& start, const RunMeasures& measures, const Outcome& outcome,
                  std::vector<AccuracyRow>& rows) const {
    const auto add = [&](const char* metric, const std::optional<double>& measured,
                         double predicted) {
      if (!measured) return;
      AccuracyRow row = start;
      row.metric = metric;
      row.measured = *measured;
      if (outcome.served) row.predicted = predicted;
      rows.push_back(std::move(row));
    };
    const ServedFigures figures = outcome.served.value_or(ServedFigures{});
    add("tpot_mean_s", measures.tpot_mean_s, to_seconds(figures.tpot));
    add("ttft_mean_s", measures.ttft_mean_s, to_seconds(figures.ttft));
    add("output_tok_per_s_per_chip", measures.output_tokens_per_s_per_chip,
        figures.output_tokens_per_s / outcome.ranks);
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
  std::vector<Software> software_ = load_software();
  std::vector<IntervalEntry> intervals_ = load_intervals();
  std::mutex one_at_a_time_{};
};

// ---- kernels and collectives ----

// The row of a kernel or a collective with its measured time. Skipped if it has a cell in a column
// that is not among `columns` and those of every row, or no time.
AccuracyRow begin_timed_row(const CsvTable& table, std::size_t record, const std::string& chip,
                            std::vector<std::string> columns) {
  AccuracyRow row = begin_row(table, record, chip, "time_s");
  columns.insert(columns.end(), kColumnsOfARow.begin(), kColumnsOfARow.end());
  columns.emplace_back("measured.time");
  for (const std::string& column : table.header) {
    if (table.at(record, column).empty() || std::ranges::count(columns, column) > 0) continue;
    row.skipped = column + ": is no column of this kind of table" + did_you_mean(column, columns);
    break;
  }
  const double seconds = seconds_in(table.at(record, "measured.time")).value_or(0);
  if (seconds > 0 && std::isfinite(seconds)) row.measured = seconds;
  if (row.skipped.empty() && row.measured <= 0) {
    row.skipped = "measured.time: must be a time above 0: 12us";
  }
  return row;
}

// "m=4096,n=4096,k=1024" as columns of a table of one row.
CsvTable table_of_shape(std::string_view op, std::string_view dtype, std::string_view shape,
                        std::string& problem) {
  static const std::vector<std::string> kKeys = {"m",        "n",      "k",      "batch",
                                                 "seq_q",    "seq_kv", "heads",  "kv_heads",
                                                 "head_dim", "phase",  "library"};
  CsvTable table{.file = ""};
  table.header = {"op", "dtype"};
  table.records = {{std::string(op), std::string(dtype)}};
  table.lines = {1};
  for (const std::string_view part : split_text(shape, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    if (equals == std::string_view::npos || std::ranges::count(kKeys, key) == 0) {
      problem = "shape: has \"" + shortened(part) + "\", must be keys and values of " +
                fmt::format("{}", fmt::join(kKeys, ", "));
      return table;
    }
    table.header.push_back(key);
    table.records[0].emplace_back(part.substr(equals + 1));
  }
  return table;
}

std::vector<AccuracyRow> predict_own_kernels(const CsvTable& table) {
  std::vector<AccuracyRow> rows;
  std::map<std::string, ChipSpec> chips;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    const std::string name(table.at(record, "chip"));
    AccuracyRow row = begin_timed_row(table, record, name, {"chip", "op", "shape", "dtype"});
    const CsvTable shape = table_of_shape(table.at(record, "op"), table.at(record, "dtype"),
                                          table.at(record, "shape"), row.skipped);
    if (row.skipped.empty()) {
      const MeasuredKernel kernel = read_kernel(shape, 0);
      row.skipped = kernel.problem;
      try {
        if (kernel.kernel) {
          const auto chip = chips.try_emplace(name).first;
          if (chip->second.name.empty()) chip->second = load_chip(name);
          if (chip->second.peak_of(kernel.kernel->type) > Throughput(0)) {
            row.predicted = to_seconds(time_of(kernel, chip->second));
          } else {
            row.skipped = name + " does not compute in this type";
          }
        }
      } catch (const ConfigError& error) {
        row.skipped = first_line(error.problems());
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<AccuracyRow> predict_own_collectives(const CsvTable& table,
                                                 const PredictOptions& options) {
  std::vector<AccuracyRow> rows;
  std::map<std::string, Cluster> clusters;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    const std::string name(table.at(record, "cluster"));
    AccuracyRow row = begin_timed_row(table, record, name,
                                      {"cluster", "op", "ranks", "bytes", "dtype", "algorithm"});
    MeasuredCollective measured;
    if (row.skipped.empty()) row.skipped = read_collective(table, record, measured);
    const std::string_view algorithm = table.at(record, "algorithm");
    if (row.skipped.empty() && !algorithm.empty() && algorithm != "auto") {
      const auto found = std::ranges::find(algorithm_table(), algorithm, &AlgorithmRow::name);
      if (found == algorithm_table().end())
        row.skipped = "algorithm: there is none called " + shortened(algorithm);
      if (found != algorithm_table().end()) measured.algorithm = found->choice;
    }
    try {
      if (row.skipped.empty()) {
        auto cluster = clusters.find(name);
        if (cluster == clusters.end()) {
          cluster =
              clusters.emplace(name, build_cluster(load_cluster(name, options.library))).first;
        }
        row.chip = cluster->second.chip.name;
        if (measured.ranks > static_cast<std::int64_t>(cluster->second.places.chips.size())) {
          row.skipped = "ranks: are more than the chips of " + name;
        } else {
          const OpGraph graph = graph_of(measured, measured.ranks);
          row.predicted = to_seconds(simulate(graph, cluster->second, {}).end.since_start);
        }
      }
    } catch (const ConfigError& error) {
      row.skipped = first_line(error.problems());
    }
    rows.push_back(std::move(row));
    report(options, record + 1, table.records.size());
  }
  return rows;
}

}  // namespace

bool is_in_own_keys(const CsvTable& table) {
  return std::ranges::any_of(
      table.header, [](const std::string& column) { return column.starts_with("measured."); });
}

std::vector<AccuracyRow> predict_own_rows(const CsvTable& table, const PredictOptions& options) {
  if (!table.has("measured.time")) return RunRows(table, options).predict();
  return table.has("chip") ? predict_own_kernels(table) : predict_own_collectives(table, options);
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
