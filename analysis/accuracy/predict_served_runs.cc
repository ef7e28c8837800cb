#include "analysis/accuracy/predict_served_runs.h"

#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/simulate_served_run.h"
#include "serving/serving_run.h"
#include "sim/base/parallel.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 3> kMetrics = {"tpot_mean_s", "ttft_mean_s",
                                                      "output_tok_per_s_per_chip"};

struct Served {
  std::optional<ServedFigures> figures;
  std::string problem;
};

bool was_measured(const CsvTable& table, std::size_t record) {
  for (const std::string_view metric : kMetrics) {
    if (!is_blank(table.at(record, metric))) return true;
  }
  return false;
}

// The plans of runs that share their passes, and their rows.
using PlanPair = std::pair<ServedPlan, std::optional<ServedPlan>>;
using Groups = std::map<PlanPair, std::vector<std::size_t>>;

Served serve(const ServedRun& run, PlanTimes& replicas, PlanTimes& decode,
             const PredictOptions& options) {
  const Served ended{.figures = {}, .problem = std::string(kInterrupted)};
  if (is_ended(options)) return ended;
  try {
    return {.figures = simulate_served_run(run, replicas, decode, options.goes_on), .problem = {}};
  } catch (const SimulationInterrupted&) {
    if (!is_ended(options)) throw;
    return ended;
  } catch (const ConfigError& error) {
    const Problem& first = error.problems().front();
    return {.figures = {}, .problem = first.field + ": " + first.message};
  } catch (const ServingStuck& stuck) {
    return {.figures = {}, .problem = stuck.what()};
  }
}

// Serves the runs of one pair of plans, one after the other. Throws SimulationInterrupted.
template <class Done>
void serve_group(const std::vector<std::size_t>& records, const std::vector<ServedRun>& runs,
                 std::vector<Served>& served, const PredictOptions& options, const Done& done) {
  const ServedRun& first = runs[records.front()];
  try {
    PlanTimes replicas(first.plan);
    std::optional<PlanTimes> decode;
    if (first.decode) decode.emplace(*first.decode);
    for (const std::size_t record : records) {
      served[record] = serve(runs[record], replicas, decode ? *decode : replicas, options);
      done(1);
    }
  } catch (const ConfigError& error) {
    const Problem& problem = error.problems().front();
    for (const std::size_t record : records) {
      served[record].problem = problem.field + ": " + problem.message;
    }
    done(records.size());
  }
}

std::vector<Served> serve_all(const CsvTable& table, const std::vector<ServedRun>& runs,
                              const PredictOptions& options) {
  Groups groups;
  for (std::size_t record = 0; record < runs.size(); ++record) {
    const bool runs_it = runs[record].problem.empty() && was_measured(table, record);
    if (runs_it) groups[{runs[record].plan, runs[record].decode}].push_back(record);
  }
  std::vector<const std::vector<std::size_t>*> work;
  for (const auto& [plans, records] : groups) work.push_back(&records);
  std::ranges::stable_sort(work, std::ranges::greater{}, [](const auto* g) { return g->size(); });
  std::vector<Served> served(runs.size());
  std::mutex reporting;
  std::size_t finished = 0;
  for_each_in_parallel(work.size(), options.threads, [&](std::size_t i) {
    serve_group(*work[i], runs, served, options, [&](std::size_t more) {
      const std::lock_guard lock(reporting);
      report(options, finished += more, runs.size());
    });
  });
  return served;
}

double value_of(std::string_view metric, const ServedFigures& figures, std::int64_t chips) {
  if (metric == "tpot_mean_s") return to_seconds(figures.tpot);
  if (metric == "ttft_mean_s") return to_seconds(figures.ttft);
  return figures.output_tokens_per_s / static_cast<double>(chips);
}

// Adds a row for each metric that was measured.
void add_rows(const CsvTable& table, std::size_t record, const AccuracyRow& start,
              const ServedRun& run, const Served& served, std::vector<AccuracyRow>& rows) {
  for (const std::string_view metric : kMetrics) {
    if (is_blank(table.at(record, metric))) continue;
    AccuracyRow row = start;
    row.metric = std::string(metric);
    const auto measured = table.number(record, metric);
    row.measured = measured.value_or(0);
    if (!measured || *measured <= 0) {
      row.skipped = no_value(table, record, metric, "a number above 0");
    } else if (served.figures) {
      row.predicted = value_of(metric, *served.figures, run.chips);
    }
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<AccuracyRow> predict_served_runs(const CsvTable& table,
                                             const std::vector<Hardware>& hardware,
                                             const PredictOptions& options) {
  ServedRunReader reader(table, hardware);
  std::vector<ServedRun> runs;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    runs.push_back(reader.read(record));
    change_keys(options.serving_plan, options.serving_engine, runs.back());
    if (!options.library.empty()) {
      runs.back().plan.library = options.library;
      if (runs.back().decode) runs.back().decode->library = options.library;
    }
  }
  const std::vector<Served> served = serve_all(table, runs, options);
  std::vector<AccuracyRow> rows;
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    const ServedRun& run = runs[record];
    AccuracyRow row = start_row(table, record, hardware, "chip", std::string(kMetrics[0]));
    row.grade = table.at(record, "grade");
    row.skipped = run.problem.empty() ? served[record].problem : run.problem;
    row.assumed = run.assumed;
    if (was_measured(table, record)) {
      add_rows(table, record, row, run, served[record], rows);
      continue;
    }
    if (row.skipped.empty()) row.skipped = "none of its figures is predicted";
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepsim
