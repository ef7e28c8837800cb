// Tables of measured runs in the program's own keys: each row is an experiment, and what was
// measured of it. docs/measured-tables.md has the columns.
//
//   id,source,model,cluster,software,plan.tp,plan.dp,plan.global_batch,plan.sequence,measured.step_time
//   a,paper,llama3-8b,dgx-h100-8,torchtitan,1,8,64,8192,9.8s
//
// Every column but those that name the row is a path of --set, or begins with `measured.`. An empty
// cell leaves the default. Nothing else is interpreted: `said` and `assumed` are for people. A row
// with a cell that can't be read is skipped, with the reason.

#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measured/accuracy.h"
#include "proto/catalog/measured_tables.h"
#include "proto/load_experiment.h"
#include "workload/model_counts.h"

namespace stepsim {

// What was measured of a run. Unset: not given.
struct RunMeasures {
  std::optional<double> step_time_s{};
  std::optional<double> tokens_per_s{};  // of all chips
  std::optional<double> tokens_per_s_per_chip{};
  std::optional<double> flops_per_chip{};                    // model FLOPs a second
  std::optional<double> mfu{};                               // 0 to 1
  AttentionFlops attention_flops = AttentionFlops::kCausal;  // that the last two count
  std::optional<double> peak_memory_bytes{};
  std::optional<MemoryFigure> memory_figure{};  // unset: that of the software
  std::optional<double> ttft_mean_s{};          // of served runs
  std::optional<double> tpot_mean_s{};
  std::optional<double> output_tokens_per_s_per_chip{};

  bool says_step() const {
    return step_time_s || tokens_per_s || tokens_per_s_per_chip || flops_per_chip || mfu;
  }
  bool is_served() const { return ttft_mean_s || tpot_mean_s || output_tokens_per_s_per_chip; }
};

// What a row says of how it was served, as options of `stepsim serve` say it.
struct ServedCells {
  std::string engine{};
  std::string requests{};
  std::string replicas{};
  std::string prefill{};  // of replicas that compute prompts only
  std::string decode{};
  std::string chips{};  // that tokens a second and chip count; empty: those of the replicas
  // Paths of --set for one kind of replicas.
  std::vector<std::string> prefill_overrides{};
  std::vector<std::string> decode_overrides{};

  bool operator==(const ServedCells&) const = default;
};

struct RunRow {
  ExperimentSource source{};
  std::string software{};  // a name or a file
  std::string keys{};      // of plan, software and pass, as with_keys() takes them
  ServedCells served{};
  RunMeasures measures{};
  std::string key{};  // all that says what was run: rows with the same are the same run
  std::vector<Problem> problems{};  // cells that can't be read; fields are columns
};

// Columns of every kind of table that say nothing of what was run.
inline constexpr std::array<std::string_view, 5> kColumnsOfARow = {"id", "source", "grade", "said",
                                                                   "assumed"};

// Returns the seconds of "1.5s", or of a plain number.
std::optional<double> seconds_in(std::string_view text);

// Reads a row. Names of files are relative to the table.
RunRow read_run_row(const CsvTable& table, std::size_t record);

}  // namespace stepsim
