// Experiment is a checked description of one run: the model, the cluster and the plan. Files, flags
// and rows of measured tables become one (proto/load_experiment.h,
// measured/run_rows.h). simulate_experiment() turns it into a result. Nothing behind
// it sees protobuf.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/plan/parallel_plan.h"
#include "sim/base/error.h"
#include "sim/chips/chip_spec.h"
#include "sim/collectives/library.h"
#include "sim/hardware/hosts.h"
#include "sim/network/places.h"
#include "sim/program/variation.h"
#include "topology/topology.h"
#include "workload/model/model_spec.h"

namespace stepsim {

struct ClusterSpec {
  std::string name{};
  ChipSpec chip{};
  TopologySpec topology{};
  Faults faults{};  // broken links and switches
  CommunicationLibrary library{};
  HostSpec host{};  // the machines that contain the chips; not given: none
  // Bytes of operands that each switch adds up per second. Unset: no limit.
  std::optional<Bandwidth> switch_adders{};
};

struct Experiment {
  std::string name{};
  ModelSpec model{};
  ClusterSpec cluster{};
  ParallelPlan plan{};
  Variation variation{};
};

// Returns every problem of a plan: for the model, for the chips at `places`, and for the chip and
// the hosts of the cluster. Fields are "plan.tp". REQUIRES: as the next one.
std::vector<Problem> check(const ParallelPlan& plan, const ModelSpec& model,
                           const ClusterSpec& cluster, const Places& places);

// Returns every problem of the plan and the variation: for the model, for the chips at `places`,
// and for the hosts of the cluster. Fields are "plan.tp", "variation.jitter". Empty: the experiment
// can run. REQUIRES: check(experiment.model) and check() of the cluster's parts are empty.
std::vector<Problem> check(const Experiment& experiment, const Places& places);

}  // namespace stepsim
