#include <optional>

#include "proto/catalog/catalog.h"
#include "proto/catalog/catalog_message.h"
#include "proto/catalog/measured_tables.h"
#include "proto/uncertainty.pb.h"

namespace stepsim {

std::vector<IntervalEntry> load_intervals() {
  ProblemList problems;
  std::vector<IntervalEntry> entries;
  const auto table = catalog_table<file::UncertaintyTable>("uncertainty", problems);
  for (const file::MeasuredInterval& row : table.interval()) {
    IntervalEntry entry{.metric = row.metric() == "memory_bytes" ? PredictedMetric::kMemory
                                                                 : PredictedMetric::kStepTime,
                        .low = row.low(),
                        .high = row.high()};
    if (row.has_own_kernels()) entry.own_kernels = row.own_kernels();
    if (row.has_experts()) entry.experts = row.experts();
    if (row.has_across_nodes()) entry.across_nodes = row.across_nodes();
    if (row.has_narrow()) entry.narrow = row.narrow();
    if (row.has_median()) entry.median = row.median();
    entries.push_back(entry);
  }
  throw_if_any(problems.all());
  return entries;
}

}  // namespace stepsim
