// ServedModel is the model, cluster and plan of `stepsim serve`: what a step of a replica takes,
// how many chips a replica has, and how many blocks of a cache fit beside its weights.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/passes/pass_times.h"
#include "serving/engines/engine_options.h"
#include "serving/passes/kv_room.h"
#include "serving/passes/network_kv_transport.h"
#include "serving/passes/simulated_step_cost.h"
#include "sim/base/error.h"

namespace stepsim {

// What replicas compute: context ranks (cp) divide prompts only.
enum class ServedPart { kAll, kPrompts, kTokens };

// The arguments as texts. Empty: not given.
struct ServedModelSource {
  std::string model;
  std::string cluster;
  std::string plan;
  std::string chip;
  std::string library;
  std::string experiment;  // replaces model and cluster; the keys of `plan` go over its own
  std::string software;    // whose kernels and library run; empty: those of the engine's name
  std::string engine;      // by name
  bool exact = false;      // simulate every step
  ServedPart part = ServedPart::kAll;

  bool given() const {
    return !model.empty() || !cluster.empty() || !plan.empty() || !experiment.empty();
  }
};

class ServedModel {
 public:
  // Throws ConfigError with all problems.
  explicit ServedModel(const ServedModelSource& source);

  StepCost& cost() { return cost_; }
  std::int64_t chips() const { return experiment_.plan.mesh.ranks(); }
  // Makes the engine's options those of all data-parallel ranks (of_ranks()), and gives it as many
  // blocks as fit, unless it says how many it has; host_memory becomes host_blocks. Adds a problem
  // if not one block fits, or if the hosts have less memory.
  void complete(EngineOptions& engine, std::vector<Problem>& problems);

  const Cluster& cluster() const { return times_.cluster(); }
  // The same with the machines that chips are attached to. They may be none.
  const Cluster& cluster_with_hosts();
  // Where a replica is whose first chip is `first`.
  ReplicaPlace place(std::uint32_t first) const;

 private:
  void complete_host(EngineOptions& engine, std::vector<Problem>& problems);

  Experiment experiment_;
  PassTimes times_;
  SimulatedStepCost cost_;
  std::optional<Cluster> with_hosts_{};
};

}  // namespace stepsim
