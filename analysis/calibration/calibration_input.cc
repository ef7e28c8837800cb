#include "analysis/calibration/calibration_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/accuracy/columns.h"
#include "analysis/accuracy/row_fields.h"
#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/base/input_file.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostTableProblems = 100;  // of one file, that are listed
constexpr std::size_t kMostRowsOfFit = 20'000;
// A matmul above the peak, or a time this far off in either direction, is a slip of a unit.
constexpr double kAbovePeak = 1.05;
constexpr double kFarOff = 30;

bool is_csv(const std::string& path) {
  return path.ends_with(".csv") || path.ends_with(".CSV");
}

bool is_far_off(double predicted, double measured) {
  return predicted > kFarOff * measured || measured > kFarOff * predicted;
}

// Returns the chips that were chosen; a problem for each name that is none.
std::set<std::string> chosen_chips(const std::vector<std::string>& names,
                                   const std::vector<Hardware>& hardware,
                                   std::vector<Problem>& problems) {
  std::set<std::string> chips;
  for (const std::string& name : names) {
    const Hardware* entry = find_hardware(hardware, name);
    if (entry == nullptr) {
      problems.push_back({"--hardware",
                          "must be a chip of the catalog (stepsim catalog chips) or "
                          "a name that tables use for one, is \"" +
                              name + "\""});
    } else {
      chips.insert(entry->chip);
    }
  }
  return chips;
}

}  // namespace

// Reads one table into the input.
class CalibrationInput::TableReader {
 public:
  TableReader(CalibrationInput& input, const std::string& path, const CsvTable& table,
              const CalibrationChoice& choice, const std::set<std::string>& chips,
              std::vector<Problem>& problems)
      : input_(input),
        path_(path),
        table_(table),
        choice_(choice),
        chips_(chips),
        problems_(problems) {}

  // `what` names the kind in the summary.
  void read(TableKind kind, std::string what) {
    const bool has_runs = kind == TableKind::kTrainingRuns;
    for (std::size_t record = 0; record < table_.records.size(); ++record) {
      if (problems_of_file_ >= kMostTableProblems) break;
      const Hardware* entry = hardware_of(record, has_runs ? "chip" : "hardware");
      if (entry == nullptr) continue;
      if (kind == TableKind::kKernels) add_kernel(record, *entry);
      if (kind == TableKind::kCollectives) add_collective(record, *entry);
      if (has_runs) add_step(record, *entry);
    }
    finish_steps();
    check_mixture();
    input_.files_.push_back({table_.file, std::move(what), table_.records.size(), used_});
  }

 private:
  // Returns nullptr if the row is not used.
  const Hardware* hardware_of(std::size_t record, std::string_view column) {
    const Hardware* entry = find_hardware(input_.hardware_, table_.at(record, column));
    if (entry == nullptr) {
      leave_out("the catalog has no chip for this hardware");
    } else if (!chips_.empty() && !chips_.contains(entry->chip)) {
      leave_out("other hardware than --hardware");
      return nullptr;
    }
    return entry;
  }

  void leave_out(const std::string& reason) { ++input_.unused_[reason]; }

  void use(const Hardware& entry) {
    ++used_;
    found_.insert(entry.chip);
  }

  // Returns false, with a problem for each column that holds no such number. Blank ones are fine.
  bool are_numbers(std::size_t record, std::span<const std::string_view> columns) {
    bool all = true;
    for (const std::string_view column : columns) {
      const std::string_view text = table_.at(record, column);
      if (is_blank(text)) continue;
      const std::optional<double> value = number_in<double>(text);
      if (value && std::isfinite(*value) && *value > 0) continue;
      all = false;
      ++problems_of_file_;
      problems_.push_back(
          {fmt::format("{}:{}", path_, table_.lines[record]),
           fmt::format("{} must be a number above 0, is \"{}\"", column, shortened(text))});
    }
    return all;
  }

  std::optional<double> seconds(std::size_t record) {
    const std::optional<double> microseconds = table_.number(record, "time_us");
    if (!microseconds) leave_out("no time was measured");
    if (!microseconds) return std::nullopt;
    return *microseconds * 1e-6;
  }

  void add_kernel(std::size_t record, const Hardware& entry) {
    if (!table_.at(record, "op").starts_with("gemm")) return leave_out("kernels but matmuls");
    constexpr std::array<std::string_view, 4> kColumns = {"m", "n", "k", "time_us"};
    if (!are_numbers(record, kColumns)) return;
    const std::optional<double> time = seconds(record);
    if (!time) return;
    MeasuredKernel kernel = read_kernel(table_, record);
    if (!kernel.kernel) return leave_out(kernel.problem);
    const DataType type = kernel.kernel->type;
    const ChipSpec& chip = chip_of(entry.chip);
    const double peak = chip.peak_of(type).value();
    if (peak == 0) return leave_out(fmt::format("{} has no peak of {}", chip.name, name_of(type)));
    if (kernel.kernel->flops.value() > kAbovePeak * peak * *time) {
      return leave_out("faster than the chip's peak");
    }
    if (is_far_off(to_seconds(time_of(kernel, chip)), *time)) return leave_out(far_off());
    const MatmulType types{.type = type, .weights = kernel.kernel->stored};
    std::vector<MatmulTiming>& timings = input_.matmuls_[entry.chip][types];
    if (timings.size() == kMostRowsOfFit) return leave_out(too_many());
    timings.push_back({std::move(kernel), *time});
    use(entry);
  }

  static std::string far_off() {
    return fmt::format("more than {} times off: a slip of a unit?", kFarOff);
  }
  static std::string too_many() {
    return fmt::format("beyond the first {} of one fit", kMostRowsOfFit);
  }

  const ChipSpec& chip_of(const std::string& name) {
    const auto found = loaded_.find(name);
    return found != loaded_.end() ? found->second
                                  : loaded_.emplace(name, load_chip(name)).first->second;
  }

  void add_collective(std::size_t record, const Hardware& entry) {
    constexpr std::array<std::string_view, 3> kColumns = {"ranks", "nodes", "time_us"};
    if (!are_numbers(record, kColumns)) return;
    const std::optional<double> time = seconds(record);
    if (!time) return;
    MeasuredCollective measured;
    const std::string problem = read_collective(table_, record, measured);
    if (!problem.empty()) return leave_out(problem);
    if (entry.cluster.empty() && choice_.cluster.empty()) {
      return leave_out("the catalog has no cluster for this hardware");
    }
    const std::int64_t of_node = measured.ranks / measured.nodes;
    if (choice_.cluster.empty() && of_node > entry.chips_per_node) {
      return leave_out("more ranks a node than " + entry.cluster + " has chips");
    }
    Cluster* cluster = cluster_for(entry, measured);
    if (cluster == nullptr) return;
    add_timing(record, entry, measured, *cluster, *time);
  }

  void add_timing(std::size_t record, const Hardware& entry, const MeasuredCollective& measured,
                  Cluster& cluster, double time) {
    const CommunicationLibrary library = cluster.library;
    if (library.ideal()) return leave_out("links that DMA drives have no library to calibrate");
    const std::string op(table_.at(record, "op"));
    CollectiveTiming timing{
        .name = measured.nodes == 1
                    ? fmt::format("{} of {}", op, measured.ranks)
                    : fmt::format("{} of {} in {} nodes", op, measured.ranks, measured.nodes),
        .collective = CollectiveOnCluster(measured, cluster),
        .shape = fmt::format("{} {} {} {} {}", op, measured.ranks, measured.nodes, measured.bytes,
                             name_of(measured.type)),
        .seconds = time};
    const double predicted = timing.collective.time(library);
    if (is_far_off(predicted, time)) return leave_out(far_off());
    MeasuredLibrary& group = input_.libraries_[library.name];
    if (group.timings.size() == kMostRowsOfFit) return leave_out(too_many());
    group.library = library;
    group.timings.push_back(std::move(timing));
    use(entry);
  }

  // Returns nullptr, with a problem, if there is no such cluster or it is too small.
  Cluster* cluster_for(const Hardware& entry, const MeasuredCollective& measured) {
    const std::string name = !choice_.cluster.empty()
                                 ? choice_.cluster
                                 : cluster_of(entry, measured.nodes * entry.chips_per_node);
    if (failed_.contains(name)) return nullptr;
    std::unique_ptr<Cluster>& cluster = input_.clusters_[name];
    try {
      if (!cluster) cluster = std::make_unique<Cluster>(build_cluster(load_cluster(name)));
    } catch (const ConfigError& error) {
      failed_.insert(name);
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
      return nullptr;
    }
    const std::int64_t of_node = chips_per_node(cluster->places);
    const auto chips = static_cast<std::int64_t>(cluster->places.chips.size());
    if (measured.ranks / measured.nodes <= of_node && measured.nodes * of_node <= chips) {
      return cluster.get();
    }
    failed_.insert(name);
    problems_.push_back({path_, fmt::format("has {} ranks in {} nodes; {} has {} chips, {} a node",
                                            measured.ranks, measured.nodes, name, chips, of_node)});
    return nullptr;
  }

  void add_step(std::size_t record, const Hardware& entry) {
    CsvTable& table = steps_[entry.chip];
    if (table.header.empty()) table = {.file = table_.file, .header = table_.header};
    table.records.push_back(table_.records[record]);
    table.lines.push_back(table_.lines[record]);
    use(entry);
  }

  void finish_steps() {
    for (auto& [chip, table] : steps_) input_.steps_[chip].push_back(std::move(table));
  }

  void check_mixture() {
    if (choice_.may_mix || !chips_.empty() || found_.size() < 2) return;
    problems_.push_back({path_, fmt::format("has measurements of {}: --hardware says which count",
                                            fmt::join(found_, ", "))});
  }

  CalibrationInput& input_;
  const std::string& path_;
  const CsvTable& table_;
  const CalibrationChoice& choice_;
  const std::set<std::string>& chips_;
  std::vector<Problem>& problems_;
  std::map<std::string, ChipSpec> loaded_;
  std::map<std::string, CsvTable> steps_;
  std::set<std::string> found_;
  std::set<std::string> failed_;  // clusters
  std::size_t used_ = 0;
  std::size_t problems_of_file_ = 0;
};

std::vector<Problem> CalibrationInput::read(const std::vector<std::string>& files,
                                            const CalibrationChoice& choice,
                                            const std::vector<GivenTable>& given) {
  std::vector<Problem> problems;
  const std::set<std::string> chips = chosen_chips(choice.hardware, hardware_, problems);
  const auto read_log = [&](const std::string& path) {
    const TextOrProblem text = read_input(path, InputKind::kTable);
    if (!text.text) {
      problems.push_back({path, "can't be read: " + text.problem});
      return;
    }
    const NcclLog log = read_nccl_log(*text.text);
    for (const Problem& problem : log.problems) {
      problems.push_back(
          {problem.field.empty() ? path : path + ":" + problem.field, problem.message});
    }
    const CsvTable table = table_of(log, path, choice.facts, problems);
    TableReader(*this, path, table, choice, chips, problems)
        .read(TableKind::kCollectives, "nccl-tests");
  };
  const auto read_table = [&](const std::string& path) {
    const CsvTable table = read_csv(path);
    const std::optional<TableKind> kind = kind_of(table);
    if (!kind) {
      const std::string missing = missing_columns(table);
      problems.push_back({path, "must have the columns of one kind of table (" +
                                    accepted_headers() + ")" +
                                    (missing.empty() ? "" : "; " + missing)});
      return;
    }
    if (*kind != TableKind::kKernels && *kind != TableKind::kCollectives &&
        *kind != TableKind::kTrainingRuns) {
      problems.push_back(
          {path, "is a table of " + std::string(name_of(*kind)) + ", which calibrates nothing"});
      return;
    }
    const std::vector<std::string> unknown = unknown_columns(table);
    if (!unknown.empty()) {
      warnings_.push_back(fmt::format("{}: tables of {} have no column {}", table.file,
                                      name_of(*kind), fmt::join(unknown, ", nor ")));
    }
    TableReader(*this, path, table, choice, chips, problems)
        .read(*kind, std::string(name_of(*kind)));
  };
  for (const std::string& path : files) {
    try {
      is_csv(path) ? read_table(path) : read_log(path);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  for (const GivenTable& one : given) {
    TableReader(*this, one.path, one.table, choice, chips, problems)
        .read(kind_of(one.table).value(), one.what);
  }
  return problems;
}

}  // namespace stepsim
