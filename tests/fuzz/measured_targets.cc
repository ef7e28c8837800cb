#include "tests/fuzz/measured_targets.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "goodput/energy/carbon_table.h"
#include "measured/accuracy.h"
#include "measured/nccl_log.h"
#include "sim/base/csv_table.h"
#include "tests/fuzz/input_on_disk.h"
#include "tests/fuzz/target_parts.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostRecords = 4;
constexpr std::int64_t kMostRanks = 16;

CsvTable table_of(std::string_view input) {
  const InputOnDisk file(input, ".csv");
  CsvTable table = read_csv(file.path());
  if (table.records.size() > kMostRecords) table.records.resize(kMostRecords);
  return table;
}

bool is_small(const CsvTable& table) {
  for (std::size_t record = 0; record < table.records.size(); ++record) {
    if (table.integer(record, "ranks").value_or(0) > kMostRanks) return false;
  }
  return true;
}

void check_rows(const std::vector<AccuracyRow>& rows) {
  for (const AccuracyRow& row : rows) {
    require(row.predicted.has_value() != !row.skipped.empty(),
            "a row without reason or prediction");
    require(!row.predicted || *row.predicted > 0, "a prediction that takes no time");
  }
}

}  // namespace

void read_measured_rows(std::string_view input) {
  const CsvTable table = table_of(input);
  if (!is_measured_table(table) || !is_small(table)) {
    throw_if_any({{"table", "has other rows"}});
  }
  check_rows(predict(table, {}));
}

void read_carbon_table(std::string_view input) {
  const InputOnDisk file(input, ".csv");
  std::vector<Problem> problems;
  const CarbonTable carbon = carbon_of(read_csv(file.path()), problems);
  throw_if_any(std::move(problems));
  const double grams = mean_grams(carbon, carbon.end_hours);
  require(grams >= 0 && grams <= kMostGrams * 1.000001, "a mean that no row has");
}

void read_nccl_tests(std::string_view input) {
  const NcclLog log = read_nccl_log(input);
  require(!log.rows.empty() || !log.problems.empty(), "a log with neither rows nor problems");
  for (const NcclRow& row : log.rows) {
    require(row.bytes > 0 && row.time_us() > 0, "a row without size or time");
    require(row.ranks.value_or(1) > 0 && row.nodes.value_or(1) > 0, "a row without ranks");
  }
  std::vector<Problem> problems = log.problems;
  const LogFacts facts{.op = "all_reduce", .hardware = "H100", .ranks = 8};
  static const std::vector<Hardware> hardware = load_hardware();
  const CsvTable table = table_of(log, "log", facts, hardware, problems);
  require(table.records.size() == log.rows.size(), "a table of other rows");
  throw_if_any(std::move(problems));
}

}  // namespace stepsim
