#include "analysis/accuracy/training_run.h"

#include <utility>

#include "analysis/accuracy/accuracy.h"
#include "analysis/accuracy/network_words.h"
#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/training_run_model.h"
#include "analysis/accuracy/training_run_plan.h"
#include "schedules/plan/plan_fields.h"
#include "sim/base/error.h"

namespace stepsim {
namespace {

// Each GPU of a DGX has a network card of its own.
void set_cards(RowReader& row, ClusterSpec& cluster) {
  auto* pod = std::get_if<DgxSuperPodSpec>(&cluster.topology);
  const std::int64_t chips = row.integer_or("chips_per_node", 8);
  const auto node = network_of_node(row.text("inter_node"), chips);
  if (pod == nullptr) return;
  if (node) {
    pod->nic_bandwidth = *node / static_cast<double>(chips);
  } else {
    row.assume("network of a node: the catalog's");
  }
}

ClusterSpec cluster_of_row(RowReader& row, const Hardware& hardware, const Software& software,
                           const std::string& library, std::int64_t chips) {
  if (hardware.cluster.empty()) {
    row.fail("the catalog has no cluster of " + hardware.chip);
    return {};
  }
  ClusterSpec cluster = load_measured_cluster({.cluster = cluster_of(hardware, chips),
                                               .chip = hardware.chip,
                                               .software = software.name,
                                               .library = library});
  if (chips > hardware.chips_per_node) set_cards(row, cluster);
  return cluster;
}

// Returns the product of the axes; 0 if dp is not given.
std::int64_t ranks_of(RowReader& row) {
  constexpr std::int64_t kMostRanks = 1 << 20;
  std::int64_t ranks = row.integer_or("dp", 0);
  for (const char* axis : {"tp", "cp", "pp"}) {
    ranks *= row.integer_or(axis, 1);
    if (ranks <= kMostRanks) continue;
    row.fail("tp x cp x pp x dp must be at most " + std::to_string(kMostRanks) + " ranks");
    return 0;
  }
  return ranks;
}

// Returns the first problem, as the reason to skip a row.
std::string first_of(const std::vector<Problem>& problems) {
  return problems.empty() ? "" : problems.front().field + ": " + problems.front().message;
}

// Throws ConfigError.
void check_and_build(TrainingRun& run) {
  const Experiment& experiment = run.experiment;
  throw_if_any(under("model", check(experiment.model)));
  throw_if_any(under("plan", limit_problems(plan_fields(), &experiment.plan)));
  run.topology = build_topology(experiment.cluster.topology, experiment.cluster.faults);
  throw_if_any(check(experiment, run.topology.places));
}

}  // namespace

TrainingRun training_run(const CsvTable& table, std::size_t record, const MeasuredCatalog& catalog,
                         const std::string& library) {
  TrainingRun run;
  const Hardware* const hardware = find_hardware(catalog.hardware, table.at(record, "chip"));
  if (hardware == nullptr) {
    run.problem = "the catalog has no chip for this hardware";
    return run;
  }
  RowReader row(table, record);
  const Software software = software_of(row, catalog.software);
  const MeasuredModel known = known_model(row, catalog.models);
  const std::int64_t ranks = ranks_of(row);
  const std::int64_t chips = ranks > 0 ? ranks : row.need("chip_count");
  Experiment& experiment = run.experiment;
  experiment.name = table.at(record, "id");
  experiment.model = model_of_row(row, known, software.dropout);
  try {
    experiment.cluster = cluster_of_row(row, *hardware, software, library, chips);
    experiment.plan = plan_of_row(row, known, software, chips, hardware->chips_per_node);
    run.problem = row.problem();
    run.assumed = row.assumed();
    if (leaves_recompute_open(row)) {
      run.recomputes = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
    }
    if (run.problem.empty()) check_and_build(run);
  } catch (const ConfigError& error) {
    run.problem = first_of(error.problems());
  }
  return run;
}

}  // namespace stepsim
