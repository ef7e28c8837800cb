// train_job() makes a JobShape of an experiment: every time in it that depends on model, plan or
// network is simulated by simulate_experiment().
//
//   step                    the experiment as it is
//   replicas that are lost  the plan with a smaller dp and as many sequences a replica, on the same
//                           cluster. Its pace is that of tokens: fewer sequences in a step count
//   a slow unit             the ranks of the first one (a chip, a node, ...) as stragglers
//   a spare from elsewhere  the first node in the place of the last, which is in another group
//   checkpoints             parameters and optimizer state, each value once. Asynchronous copies to
//                           the hosts run beside the step; those that take the network cards leave
//                           training a part of them
//
// Not modelled: learning that needs the full batch.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/energy.h"
#include "experiment/simulate_experiment.h"
#include "goodput/checkpoint_times.h"

namespace stepsim {

// How long the training is. One of them is set.
struct RunLength {
  std::optional<double> tokens{};
  std::optional<std::int64_t> steps{};
  std::optional<double> days{};  // without failures and checkpoints
};

// Returns the work of the run in whole steps. Throws ConfigError if it is too long to count.
Ticks work_of(const RunLength& length, Ticks step, double tokens_per_step);

// A step without some of its replicas.
struct SmallerStep {
  std::int64_t missing = 0;
  Duration step{};
  double slowdown = 1;  // of tokens
};

struct TrainedJob {
  JobShape job{};
  CheckpointTimes times{};
  Bytes checkpoint{};
  Duration step{};
  double tokens_per_step = 0;
  double model_flops_utilization = 0;
  std::optional<StepEnergy> energy{};  // unset: the chip doesn't say its power
  std::vector<SmallerStep> smaller{};  // those that can run
};

struct JobOptions {
  RunLength length{};
  std::int64_t shrink = 0;  // replicas that may be missing at most
  ExperimentOptions simulation{};
};

// REQUIRES: the experiment trains, check(experiment, cluster.places) is empty. Throws what
// simulate() throws.
TrainedJob train_job(const Experiment& experiment, const Cluster& cluster,
                     const FailureTable& table, const JobOptions& options);

// Returns bytes of a checkpoint of the whole job.
Bytes checkpoint_bytes(const Experiment& experiment);

}  // namespace stepsim
