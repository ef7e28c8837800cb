#include "analysis/accuracy/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/accuracy/accuracy.h"
#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/network_words.h"
#include "analysis/accuracy/row_fields.h"
#include "analysis/accuracy/slice_words.h"
#include "analysis/accuracy/training_run_model.h"
#include "analysis/accuracy/training_run_plan.h"
#include "analysis/accuracy/type_words.h"
#include "schedules/plan/domain_share.h"
#include "schedules/plan/key_groups.h"
#include "sim/base/error.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

// Returns the bandwidth of a chip's own network card; nullptr if the chips have none.
Bandwidth* card_of(TopologySpec& topology) {
  if (auto* pod = std::get_if<DgxSuperPodSpec>(&topology)) return &pod->nic_bandwidth;
  auto* composed = std::get_if<ComposedSpec>(&topology);
  if (composed == nullptr || composed->tiers.empty() || !composed->tiers[0].fabric) return nullptr;
  auto* rails = std::get_if<RailFabricSpec>(&*composed->tiers[0].fabric);
  return rails == nullptr ? nullptr : &rails->nic_bandwidth;
}

// Returns the machine that a row names, be it in what it says of its network or of its chips.
const Machine* machine_of(const RowReader& row, const std::vector<Machine>& machines) {
  for (const char* column : {"inter_node", "intra_node", "chip"}) {
    if (const Machine* const machine = find_machine(machines, row.text(column))) return machine;
  }
  return nullptr;
}

void set_cards(RowReader& row, const std::vector<Machine>& machines, ClusterSpec& cluster) {
  Bandwidth* const card = card_of(cluster.topology);
  const std::int64_t chips = row.integer_or("chips_per_node", 8);
  if (card == nullptr) return;
  const auto node = network_of_node(row.text("inter_node"), chips, *card);
  if (!node) {
    const Machine* const machine = machine_of(row, machines);
    if (machine == nullptr) return row.assume("network of a node: the catalog's");
    *card = machine->network / static_cast<double>(chips);
    return row.assume("network of a node: that of " + machine->names.front());
  }
  *card = node->bandwidth / static_cast<double>(chips);
  if (!node->assumed.empty()) {
    row.assume("network of a node: " + std::string(node->assumed));
  }
}

// Reads "500 W", "500W", "500". A chip without a model of its power keeps its clock.
void set_power_limit(RowReader& row, ChipSpec& chip) {
  const std::string_view text = row.text("power_limit");
  if (is_blank(text)) return;
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto watts = number_in<double>(text.substr(0, end));
  const std::string_view unit =
      text.substr(std::min(text.find_first_not_of(' ', end), text.size()));
  if (!watts || *watts <= 0 || (!unit.empty() && unit != "W")) {
    return row.fail(fmt::format("power_limit is \"{}\", must be a number of watts", text));
  }
  if (chip.power) {
    chip.power->limit_watts = *watts;
  } else {
    row.assume("power_limit: " + chip.name + " has no model of its power");
  }
}

ClusterSpec cluster_of_row(RowReader& row, const Hardware& hardware, const Software& software,
                           const std::vector<Machine>& machines, const std::string& library,
                           std::int64_t chips) {
  if (hardware.cluster.empty()) {
    row.fail("the catalog has no cluster of " + hardware.chip);
    return {};
  }
  std::string name = cluster_of(hardware, chips);
  if (!hardware.multislice.empty()) {
    const SliceCluster slices =
        slice_cluster(hardware, slice_words(row.text("intra_node"), row.text("inter_node")), chips);
    if (!slices.problem.empty()) {
      row.fail(slices.problem);
      return {};
    }
    name = slices.name;
  }
  ClusterSpec cluster = load_measured_cluster(
      {.cluster = name, .chip = hardware.chip, .software = software.name, .library = library});
  if (chips > hardware.chips_per_node) set_cards(row, machines, cluster);
  set_power_limit(row, cluster.chip);
  return cluster;
}

// Every tensor rank holds as many rows of the embedding, in whole tiles of matmuls.
void pad_vocabulary(const Software& software, std::int64_t tensor_ranks, ModelSpec& model) {
  if (software.pads_vocabulary == 1) return;
  const std::int64_t multiple = software.pads_vocabulary * std::max<std::int64_t>(1, tensor_ranks);
  model.embedding.vocabulary = (model.embedding.vocabulary + multiple - 1) / multiple * multiple;
}

// Returns the product of the axes; 0 if dp is not given.
std::int64_t ranks_of(RowReader& row) {
  constexpr std::int64_t kMostTogether = 1 << 20;
  std::int64_t ranks = row.integer_or("dp", 0);
  for (const char* axis : {"tp", "cp", "pp"}) {
    ranks *= row.integer_or(axis, 1);
    if (ranks <= kMostTogether) continue;
    row.fail("tp x cp x pp x dp must be at most " + std::to_string(kMostTogether) + " ranks");
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
  throw_if_any(with_groups(problems_of_keys(experiment.plan)));
  run.topology = build_topology(experiment.cluster.topology, experiment.cluster.faults);
  throw_if_any(check(experiment, run.topology.places));
}

// Says which chips of a node or rack have ranks, unless all have.
void assume_placement(TrainingRun& run) {
  if (!run.problem.empty()) return;
  const Places& places = run.topology.places;
  const std::int64_t share = domain_share(run.experiment.plan, places);
  const std::int64_t domain = chips_per_node(places);
  if (share == domain) return;
  run.assumed.push_back("placement: " + std::to_string(share) + " of the " +
                        std::to_string(domain) + " chips of a domain");
}

// A row without a type on a chip without bf16 ran in fp16.
void use_type_of_chip(RowReader& row, Experiment& experiment) {
  const ChipSpec& chip = experiment.cluster.chip;
  const std::string_view text = row.text("dtype");
  if (!text.empty() && !leaves_type_open(text)) return;
  if (chip.peak_of(DataType::kBf16).value() > 0 || chip.peak_of(DataType::kFp16).value() == 0) {
    return;
  }
  experiment.plan.precision.type = DataType::kFp16;
  row.assume("dtype: fp16, as the chip has no bf16");
}

}  // namespace

std::int64_t flat_gradient_bytes_of(const Software& software, const ParallelPlan& plan) {
  // DeepSpeed's BF16_Optimizer, which accumulates apart, makes no copies.
  const bool copies =
      (plan.state.zero == 1 || plan.state.zero == 2) && !plan.update.separate_accumulation;
  return copies && !plan.offload.optimizer ? software.flat_gradient_bytes : 0;
}

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
  const MeasuredModel known = known_model(row, catalog.models, catalog.catalog);
  const std::int64_t ranks = ranks_of(row);
  row.integer("chip_count");  // it must make sense where the axes say how many there are, too
  const std::int64_t chips = ranks > 0 ? ranks : row.need("chip_count");
  Experiment& experiment = run.experiment;
  experiment.name = table.at(record, "id");
  run.memory_figure = software.memory_figure;
  run.unused_memory = software.unused_memory;
  experiment.model = model_of_row(row, known, software);
  pad_vocabulary(software, row.integer_or("tp", 1), experiment.model);
  try {
    experiment.cluster = cluster_of_row(row, *hardware, software, catalog.machines, library, chips);
    experiment.plan =
        plan_of_row(row, experiment.model, software, chips, *hardware, run.recomputes);
    run.flat_gradient_bytes = flat_gradient_bytes_of(software, experiment.plan);
    run.zero_is_open = leaves_zero_open(row.text("zero_stage"));
    use_type_of_chip(row, experiment);
    run.problem = row.problem();
    run.assumed = row.assumed();
    if (run.problem.empty()) check_and_build(run);
    assume_placement(run);
  } catch (const ConfigError& error) {
    run.problem = row.problem().empty() ? first_of(error.problems()) : row.problem();
  }
  return run;
}

}  // namespace stepsim
