#include "measured/served_rows.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "measured/row_fields.h"
#include "measured/served_run.h"
#include "measured/timed_rows.h"
#include "serving/serving_run.h"
#include "sim/base/parallel.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

class ServedRows {
 public:
  ServedRows(const std::vector<const RunRow*>& rows, const PredictOptions& options,
             const std::function<void(std::size_t)>& done)
      : options_(options), done_(done), runs_(rows.size()), outcomes_(rows.size()) {
    ServedRunReader reader(options);
    for (std::size_t i = 0; i < rows.size(); ++i) read(*rows[i], reader, i);
  }

  std::vector<ServedOutcome> serve() {
    std::vector<const std::vector<std::size_t>*> work;
    for (const auto& [plans, rows] : groups_) work.push_back(&rows);
    std::ranges::stable_sort(work, std::ranges::greater{}, [](const auto* g) { return g->size(); });
    for_each_in_parallel(work.size(), options_.threads,
                         [&](std::size_t i) { serve_group(*work[i]); });
    return std::move(outcomes_);
  }

 private:
  // The plans of runs that share their passes.
  using PlanPair = std::pair<ServedPlan, std::optional<ServedPlan>>;

  void read(const RunRow& row, ServedRunReader& reader, std::size_t i) {
    try {
      runs_[i] = reader.read(row);
    } catch (const ConfigError& error) {
      outcomes_[i].problem = first_line(error.problems());
      done_(1);
      return;
    }
    reader.change_engines(runs_[i]);
    groups_[{runs_[i].plan, runs_[i].decode}].push_back(i);
  }

  // Throws SimulationInterrupted.
  void serve_group(const std::vector<std::size_t>& rows) {
    try {
      PlanTimes replicas(runs_[rows.front()].plan);
      std::optional<PlanTimes> decode;
      if (runs_[rows.front()].decode) decode.emplace(*runs_[rows.front()].decode);
      for (const std::size_t i : rows) {
        serve_one(i, replicas, decode);
        finish(1);
      }
    } catch (const ConfigError& error) {
      for (const std::size_t i : rows) outcomes_[i].problem = first_line(error.problems());
      finish(rows.size());
    }
  }

  void serve_one(std::size_t i, PlanTimes& replicas, std::optional<PlanTimes>& decode) {
    ServedOutcome& outcome = outcomes_[i];
    outcome.problem = std::string(kInterrupted);
    if (is_ended(options_)) return;
    const ServedRun& run = runs_[i];
    std::int64_t chips = run.options.replicas.count * replicas.chips();
    if (decode) chips += run.options.decode->count * decode->chips();
    outcome.chips = static_cast<double>(run.chips.value_or(chips));
    outcome.chip = replicas.chip().name;
    try {
      outcome.figures =
          simulate_served_run(run, replicas, decode ? *decode : replicas, options_.goes_on);
      outcome.problem.clear();
    } catch (const SimulationInterrupted&) {
      if (!is_ended(options_)) throw;
    } catch (const ConfigError& error) {
      outcome.problem = first_line(error.problems());
    } catch (const ServingStuck& stuck) {
      outcome.problem = stuck.what();
    }
  }

  void finish(std::size_t rows) {
    const std::lock_guard lock(reporting_);
    done_(rows);
  }

  const PredictOptions& options_;
  const std::function<void(std::size_t)>& done_;
  std::vector<ServedRun> runs_;
  std::vector<ServedOutcome> outcomes_;
  std::map<PlanPair, std::vector<std::size_t>> groups_{};
  std::mutex reporting_{};
};

}  // namespace

std::vector<ServedOutcome> serve_rows(const std::vector<const RunRow*>& rows,
                                      const PredictOptions& options,
                                      const std::function<void(std::size_t)>& done) {
  return ServedRows(rows, options, done).serve();
}

}  // namespace stepsim
