#include "calibration/calibration_input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "experiment/build_cluster.h"
#include "measured/run_rows.h"
#include "measured/timed_rows.h"
#include "proto/load_experiment.h"
#include "sim/base/input_file.h"

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

  // `what` names the kind in the summary; empty: a table of a person, whose cells must all be read.
  void read(std::string what) {
    is_own_ = what.empty();
    const bool is_timed = table_.has("measured.time");
    const bool is_of_kernels = table_.has("chip");
    if (is_own_) what = !is_timed ? "training runs" : is_of_kernels ? "kernels" : "collectives";
    for (std::size_t record = 0; record < table_.records.size(); ++record) {
      if (problems_of_file_ >= kMostTableProblems) break;
      try {
        if (!is_timed) {
          add_step(record);
        } else {
          is_of_kernels ? add_kernel(record) : add_collective(record);
        }
      } catch (const ConfigError& error) {
        refuse(record, first_line(error.problems()));
      }
    }
    finish_steps();
    check_mixture();
    input_.files_.push_back({table_.file, std::move(what), table_.records.size(), used_});
  }

 private:
  void leave_out(const std::string& reason) { ++input_.unused_[reason]; }

  // What a program wrote is left out, what a person wrote must be right.
  void refuse(std::size_t record, const std::string& problem) {
    if (!is_own_) return leave_out(problem);
    ++problems_of_file_;
    problems_.push_back({fmt::format("{}:{}", path_, table_.lines[record]), problem});
  }

  // Returns the chip's name; nullptr, with the reason, if its rows are not used.
  const ChipSpec* chosen(const ChipSpec& chip) {
    if (chips_.empty() || chips_.contains(chip.name)) return &chip;
    leave_out("other hardware than --hardware");
    return nullptr;
  }

  void use(const std::string& chip) {
    ++used_;
    found_.insert(chip);
  }

  // Returns seconds; nullopt, with the reason, if the row has none or a cell that isn't read.
  std::optional<double> seconds(std::size_t record, const AccuracyRow& row) {
    if (table_.at(record, "measured.time").empty()) {
      leave_out("no time was measured");
    } else if (!row.skipped.empty()) {
      refuse(record, row.skipped);
    } else {
      return row.measured;
    }
    return std::nullopt;
  }

  // Throws ConfigError.
  void add_kernel(std::size_t record) {
    if (table_.at(record, "op") != "gemm") return leave_out("kernels but matmuls");
    const std::string name(table_.at(record, "chip"));
    const std::optional<double> time = seconds(record, begin_kernel_row(table_, record));
    if (!time) return;
    const ChipSpec* const chip = chosen(chip_of(name));
    if (chip == nullptr) return;
    MeasuredKernel kernel = read_kernel(table_, record);
    if (!kernel.problem.empty()) return refuse(record, kernel.problem);
    const DataType type = kernel.kernel->type;
    const double peak = chip->peak_of(type).value();
    if (peak == 0) return leave_out(fmt::format("{} has no peak of {}", name, name_of(type)));
    if (kernel.kernel->flops.value() > kAbovePeak * peak * *time) {
      return leave_out("faster than the chip's peak");
    }
    if (is_far_off(to_seconds(time_of(kernel, *chip)), *time)) return leave_out(far_off());
    const MatmulType types{.type = type, .weights = kernel.kernel->stored};
    std::vector<MatmulTiming>& timings = input_.matmuls_[name][types];
    if (timings.size() == kMostRowsOfFit) return leave_out(too_many());
    timings.push_back({std::move(kernel), *time});
    use(name);
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

  // Throws ConfigError.
  void add_collective(std::size_t record) {
    if (is_exchange(table_.at(record, "op"))) return leave_out("exchanges with experts");
    const std::optional<double> time = seconds(record, begin_collective_row(table_, record));
    if (!time) return;
    MeasuredCollective measured;
    const std::string problem = read_collective(table_, record, measured);
    if (!problem.empty()) return refuse(record, problem);
    Cluster& cluster = cluster_of_row(record);
    if (chosen(cluster.chip) == nullptr) return;
    const std::string misfit = misfit_of(measured, cluster.places);
    if (!misfit.empty()) return refuse(record, misfit);
    add_timing(record, measured, cluster, *time);
  }

  void add_timing(std::size_t record, const MeasuredCollective& measured, Cluster& cluster,
                  double time) {
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
    use(cluster.chip.name);
  }

  // Throws ConfigError.
  Cluster& cluster_of_row(std::size_t record) {
    const std::string name = choice_.facts.cluster.empty()
                                 ? std::string(table_.at(record, "cluster"))
                                 : choice_.facts.cluster;
    const std::string own(table_.at(record, "library"));
    std::unique_ptr<Cluster>& cluster = input_.clusters_[{name, own}];
    if (!cluster) cluster = std::make_unique<Cluster>(build_cluster(load_cluster(name, own)));
    return *cluster;
  }

  // Throws ConfigError.
  void add_step(std::size_t record) {
    const RunRow row = read_run_row(table_, record);
    if (!row.problems.empty()) return refuse(record, first_line(row.problems));
    if (row.measures.is_served()) return leave_out("served runs");
    const std::string& cluster = row.source.cluster;
    auto known = chips_of_clusters_.find({cluster, row.source.chip});
    if (known == chips_of_clusters_.end()) {
      ChipSpec chip = load_cluster(cluster, {}, row.source.chip).chip;
      known =
          chips_of_clusters_.emplace(std::pair(cluster, row.source.chip), std::move(chip)).first;
    }
    const ChipSpec* const chip = chosen(known->second);
    if (chip == nullptr) return;
    CsvTable& table = steps_[chip->name];
    if (table.header.empty()) {
      table = {.file = table_.file, .folder = table_.folder, .header = table_.header};
    }
    table.records.push_back(table_.records[record]);
    table.lines.push_back(table_.lines[record]);
    use(chip->name);
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
  bool is_own_ = true;
  std::map<std::string, ChipSpec> loaded_;
  std::map<std::pair<std::string, std::string>, ChipSpec> chips_of_clusters_;
  std::map<std::string, CsvTable> steps_;
  std::set<std::string> found_;
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
    const CsvTable table = table_of(log, path, choice.facts, hardware_, problems);
    TableReader(*this, path, table, choice, chips, problems).read("nccl-tests");
  };
  const auto read_table = [&](const std::string& path) {
    const CsvTable table = read_csv(path);
    if (!is_measured_table(table)) {
      problems.push_back({path, std::string(why_no_table())});
      return;
    }
    TableReader(*this, path, table, choice, chips, problems).read("");
  };
  for (const std::string& path : files) {
    try {
      is_csv(path) ? read_table(path) : read_log(path);
    } catch (const ConfigError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  for (const GivenTable& one : given) {
    TableReader(*this, one.path, one.table, choice, chips, problems).read(one.what);
  }
  return problems;
}

}  // namespace stepsim
