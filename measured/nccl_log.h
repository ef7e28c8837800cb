// Reads what nccl-tests prints (all_reduce_perf, sendrecv_perf, ...): a header line that names the
// columns, one row a size, and comments that name the test, the devices and their hosts.
//
//   NcclLog log = read_nccl_log(text);
//   for (const NcclRow& row : log.rows) ... row.bytes, row.time_us()
//
// Versions and flags differ: columns are found by the header line, one half (out of place or in
// place) may be missing, older ones name the test only in the command line, and some logs name
// neither test nor devices. Prefixes of launchers and loggers ("0: ", "[1,0]<stdout>:", a time) are
// taken off, whatever they are: the header line shows them. A row that a warning splits is put
// together again. A log may hold several tests. Two runs that print into one log side by side are a
// problem. The files that the tests write beside a log are read too (nccl_records.h).
//
// Cost: O(text). Any text can be given; what is no log has a problem.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/catalog/measured_tables.h"
#include "sim/base/csv_table.h"
#include "sim/base/error.h"

namespace stepsim {

struct NcclRow {
  std::uint32_t line = 0;  // from 1
  std::string op;          // "all_reduce"; empty: the log does not say
  std::string hardware;    // name of the devices; empty: the log does not say
  std::optional<std::int64_t> ranks{};
  std::optional<std::int64_t> nodes{};  // hosts of the ranks
  std::int64_t bytes = 0;               // of the larger buffer of a rank
  std::string type;                     // "float"
  // At least one of the two is set, and both are above 0.
  std::optional<double> out_of_place_us{};
  std::optional<double> in_place_us{};

  double time_us() const { return out_of_place_us ? *out_of_place_us : *in_place_us; }
};

struct NcclLog {
  std::vector<NcclRow> rows;
  // Why the log can't be used, with the line as field ("17"; empty: the whole log): rows that are
  // cut off, wrong values, devices that differ, ranks that are missing, no measurement at all.
  std::vector<Problem> problems;
};

NcclLog read_nccl_log(std::string_view text);

// LogFacts is what a log may not say; a person adds it.
struct LogFacts {
  std::string op{};        // "all_reduce"
  std::string hardware{};  // a chip of the catalog, or a name that tables use for one
  std::optional<std::int64_t> ranks{};
  std::optional<std::int64_t> nodes{};  // unset: as the log says, or 1
  std::string cluster{};                // empty: the catalog's, of the hardware
};

// Returns the rows as a table of collectives (docs/measured-tables.md), with the lines of the log.
// `facts` fill in what it does not say, or what `hardware` doesn't know. Adds a problem under
// `path` for what is still missing, once.
CsvTable table_of(const NcclLog& log, const std::string& path, const LogFacts& facts,
                  const std::vector<Hardware>& hardware, std::vector<Problem>& problems);

// Returns the catalog's cluster of whole nodes of the hardware; empty: there is none.
std::string cluster_of_ranks(const Hardware* hardware, std::int64_t nodes);

}  // namespace stepsim
