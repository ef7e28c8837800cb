// A row of a table of served runs as what was served: which model on which chips, under which
// engine, for which requests. docs/measured-tables.md has the columns.
//
//   ServedRunReader reader(options);
//   const ServedRun run = reader.read(row);
//
// What the row's software brings (proto/catalog/serving_software.h) holds where the row says
// nothing: its engine, the engine's front time, and the communication library for the chip.

#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measured/accuracy.h"
#include "measured/run_rows.h"
#include "proto/catalog/engine_releases.h"
#include "proto/catalog/serving_software.h"
#include "serving/requests/request_source.h"
#include "serving/serve.h"

namespace stepsim {

// ServedPlan is what a step's time depends on beside its batch. Rows of one plan share it.
struct ServedPlan {
  std::string model{};  // names in the catalog, or files
  std::string cluster{};
  std::string chip{};
  std::string library{};
  std::string software{};
  std::string keys{};                    // of plan and pass: "tp=2,cache_dtype=fp8"
  std::vector<std::string> overrides{};  // paths of --set and their values

  auto operator<=>(const ServedPlan&) const = default;
};

struct ServedRun {
  ServedPlan plan;  // of prefill where decode is apart
  std::optional<ServedPlan> decode{};
  ServingOptions options{};  // engines and how many replicas of each
  RequestSource requests{};
  std::optional<std::int64_t> chips{};  // that tokens a second and chip count; unset: the replicas'
};

class ServedRunReader {
 public:
  // Must live as long as the reader. Its serving_plan goes over the keys of every row:
  // "expert_spread=20", which is left out where the model has no experts.
  explicit ServedRunReader(const PredictOptions& options) : options_(options) {}

  // Throws ConfigError.
  ServedRun read(const RunRow& row);

  // Gives the run's engines the keys of serving_engine: "host-time=1ms". "vllm@0.11,host-time=1ms"
  // gives runs of vllm the defaults of that release on their chips and further keys, and runs of
  // other engines nothing. Throws ConfigError, whatever the run.
  void change_engines(ServedRun& run);

 private:
  const ClusterSpec& cluster(const ServedPlan& plan);
  ServedPlan plan_of(const RunRow& row, std::vector<Problem>& problems);
  std::string engine_of(const RunRow& row) const;
  ReplicaGroup group_of(const RunRow& row, const ServedPlan& plan, std::vector<Problem>& problems);
  void add_pools(const RunRow& row, ServedRun& run, std::vector<Problem>& problems);
  void add_engine_keys(const RequestSource& requests, const ServedPlan& plan, ReplicaGroup& group);
  EngineSetting setting_of(const ServedPlan& plan);

  const PredictOptions& options_;
  std::optional<ServingSoftware> software_{};  // of the row
  std::map<std::pair<std::string, std::string>, ClusterSpec> clusters_{};
};

}  // namespace stepsim
