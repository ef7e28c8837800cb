// A row of a table of serving runs as what was served: which model on which chips, under which
// engine, for which requests. Columns: docs/accuracy.md.
//
// Assumed where a row says nothing, and noted: 10 requests for each that is in the system at a time
// (InferenceMAX's rule), whose answers are up to a tenth shorter or longer than printed, as
// requests of one length would stay in step for ever; types by the names of checkpoints and the
// custom of the framework; experts over all data-parallel ranks of attention, with copies where
// they don't divide.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/accuracy/row_reader.h"
#include "analysis/accuracy/serving_software.h"
#include "proto/catalog/engine_releases.h"
#include "proto/catalog/measured_tables.h"
#include "serving/requests/request_source.h"
#include "serving/serve.h"
#include "sim/base/csv_table.h"

namespace stepsim {

// ServedPlan is what a step's time depends on beside its batch. Rows of one plan share it.
struct ServedPlan {
  std::string model{};  // names in the catalog
  std::string cluster{};
  std::string chip{};
  std::string library{};
  std::string plan{};
  std::string framework{};
  std::int64_t power_limit = 0;           // watts; 0: the chip's own
  std::optional<std::int64_t> experts{};  // with copies of popular ones; unset: the model's

  auto operator<=>(const ServedPlan&) const = default;
};

struct ServedRun {
  ServedPlan plan;  // of prefill where decode is apart
  std::optional<ServedPlan> decode{};
  ServingOptions options{};  // engines and how many replicas of each
  RequestSource requests{};
  EngineSetting setting{};  // on which the defaults of a release depend
  EngineSetting decode_setting{};
  std::int64_t prompt = 1;  // tokens, the longest
  std::int64_t chips = 1;
  bool has_experts = false;
  std::string problem;  // why it can't be simulated; empty: it can
  std::vector<std::string> assumed{};
};

// Gives the run's plans and engines other keys: "expert_spread=20" (left out where the model has no
// experts), "host-time=1ms". "vllm@0.11,host-time=1ms" gives runs of vllm the defaults of that
// release on their chips and further keys, and runs of other engines nothing. Throws ConfigError.
void change_keys(const std::string& plan, const std::string& engine, ServedRun& run);

class ServedRunReader {
 public:
  // Both must live as long as the reader.
  ServedRunReader(const CsvTable& table, const std::vector<Hardware>& hardware);
  ServedRun read(std::size_t record);

 private:
  const ClusterSpec& cluster(const ServedPlan& plan);

  const CsvTable& table_;
  const std::vector<Hardware>& hardware_;
  std::vector<ModelSpec> models_;  // of the catalog
  std::map<std::string, ClusterSpec> clusters_{};
};

}  // namespace stepsim
