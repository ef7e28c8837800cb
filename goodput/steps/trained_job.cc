#include "goodput/steps/trained_job.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiment/build_cluster.h"
#include "goodput/steps/scaled_cards.h"
#include "schedules/plan/domain_share.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

constexpr Bandwidth kHostLink{25e9};     // PCIe 4 x16, as measured
constexpr Bandwidth kHostMemory{300e9};  // eight channels of DDR5, or two sockets of DDR4
constexpr double kMostWork = 4e18;       // ticks

Duration step_of(const Experiment& experiment, const Cluster& cluster,
                 const ExperimentOptions& options) {
  return simulate_experiment(experiment, cluster, options).runs.front().metrics.step_time;
}

std::int64_t chips_of_node(const Experiment& experiment, const Cluster& cluster) {
  const std::int64_t domain = chips_per_node(cluster.places);
  if (domain > 1 || !experiment.cluster.host.given()) return domain;
  return experiment.cluster.host.chips;
}

// Chips of the levels outside a node: those of a leaf, and of a pod.
void set_groups(const Cluster& cluster, JobShape& job) {
  std::int64_t chips = 1;
  std::vector<std::int64_t> larger;
  for (const Level& level : cluster.places.levels) {
    chips *= level.size;
    if (chips > job.chips_per_node) larger.push_back(std::min(chips, job.chips));
  }
  job.chips_per_leaf = larger.empty() ? job.chips : larger[0];
  job.chips_per_pod = larger.size() < 2 ? job.chips : larger[1];
}

Experiment without_replicas(Experiment experiment, std::int64_t missing) {
  ParallelPlan& plan = experiment.plan;
  plan.batch.global_batch = plan.batch.global_batch / plan.mesh.dp * (plan.mesh.dp - missing);
  plan.mesh.dp -= missing;
  plan.mesh.allow_idle_chips = true;
  return experiment;
}

// A number of replicas that the plan can't have runs as the next smaller one that it can.
void add_smaller_steps(const Experiment& experiment, const Cluster& cluster,
                       const JobOptions& options, TrainedJob& trained) {
  const std::int64_t dp = experiment.plan.mesh.dp;
  const std::int64_t most = std::min(options.shrink, dp - 1);
  for (std::int64_t missing = 1; missing <= most; ++missing) {
    const Experiment smaller = without_replicas(experiment, missing);
    if (!check(smaller, cluster.places).empty()) continue;
    const Duration step = step_of(smaller, cluster, options.simulation);
    const double sequences = static_cast<double>(dp) / static_cast<double>(dp - missing);
    const double slowdown = to_seconds(step) / to_seconds(trained.step) * sequences;
    trained.smaller.push_back({missing, step, slowdown});
    auto& slowdowns = trained.job.missing_slowdown;
    slowdowns.resize(static_cast<std::size_t>(missing) + 1, slowdown);
    trained.job.least_replicas = dp - missing;
  }
}

std::vector<RankId> ranks_from(std::int64_t first, std::int64_t count) {
  std::vector<RankId> ranks;
  for (std::int64_t rank = first; rank < first + count; ++rank) {
    ranks.emplace_back(static_cast<std::uint32_t>(rank));
  }
  return ranks;
}

std::int64_t chips_of(FailureUnit unit, const JobShape& job) {
  switch (unit) {
    case FailureUnit::kChip:
      return 1;
    case FailureUnit::kNode:
      return job.chips_per_node;
    case FailureUnit::kLeaf:
      return job.chips_per_leaf;
    case FailureUnit::kPod:
      return job.chips_per_pod;
    case FailureUnit::kJob:
      return job.chips;
  }
  return 1;
}

// The first unit of the class is slow.
double slowed_by(const Experiment& experiment, const Cluster& cluster, const FailureClass& failure,
                 const ExperimentOptions& options, const TrainedJob& trained) {
  if (failure.effect != FailureEffect::kSlow) return 1;
  Experiment slow = experiment;
  const std::int64_t ranks =
      std::min(chips_of(failure.per, trained.job), experiment.plan.mesh.ranks());
  slow.variation.stragglers.push_back(
      {.ranks = ranks_from(0, ranks), .slowdown = failure.slowdown});
  return to_seconds(step_of(slow, cluster, options)) / to_seconds(trained.step);
}

// Spares lie in the groups of nodes that are furthest from one another and of which the job has
// several. The job's first node changes places with its last one, so two nodes are far from where
// the plan wants them: no better than one.
void add_far_spares(const Experiment& experiment, const Cluster& cluster,
                    const ExperimentOptions& options, TrainedJob& trained) {
  JobShape& job = trained.job;
  const std::int64_t group = job.chips_per_pod < job.chips ? job.chips_per_pod : job.chips_per_leaf;
  const std::int64_t ranks = experiment.plan.mesh.ranks();
  const std::int64_t node = job.chips_per_node;
  if (group >= job.chips || ranks != job.chips || ranks % node != 0) return;
  job.spare_groups = (job.chips + group - 1) / group;
  Experiment far = experiment;
  far.variation.exchanges.push_back({ranks_from(0, node), ranks_from(ranks - node, node)});
  job.far_slowdown = to_seconds(step_of(far, cluster, options)) / to_seconds(trained.step);
}

// Returns how much longer the step is with the copy of a checkpoint to the hosts beside it.
Duration copy_stall(const Experiment& experiment, Bandwidth link, const TrainedJob& trained,
                    const ExperimentOptions& options) {
  Experiment copying = experiment;
  copying.plan.offload.copy_checkpoint = true;
  HostSpec& host = copying.cluster.host;
  if (!host.given()) {
    host.chips = trained.job.chips_per_node;
    host.memory_bandwidth = kHostMemory;
    host.memory_capacity = Bytes(std::numeric_limits<std::int64_t>::max());
  }
  host.link_bandwidth = link;
  if (host.uplink_bandwidth) {
    host.uplink_bandwidth = std::max(*host.uplink_bandwidth, link);
  }
  const Duration step = step_of(copying, cluster_for_steps(copying), options);
  return std::max(Duration(), step - trained.step);
}

CheckpointWay way_of(const Experiment& experiment, const Cluster& cluster,
                     const JobOptions& options, const TrainedJob& trained) {
  const HostSpec& host = experiment.cluster.host;
  CheckpointWay way{.bytes = trained.checkpoint,
                    .chips = trained.job.chips,
                    .chips_per_node = trained.job.chips_per_node,
                    .host = kHostLink,
                    .card = card_bandwidth(cluster, trained.job.chips_per_node),
                    .step = trained.step};
  if (host.given()) {
    way.host = *host.link_bandwidth;
    if (host.uplink_bandwidth) {
      const Bandwidth share = *host.uplink_bandwidth / static_cast<double>(host.uplink_chips);
      way.host = std::min(way.host, share);
    }
  }
  if (!experiment.plan.offload.optimizer) {
    way.copy_stall = [&experiment, &options, &trained](Bandwidth link) {
      return copy_stall(experiment, link, trained, options.simulation);
    };
  } else {
    way.copy_stall = [](Bandwidth) { return Duration(); };  // what it holds is on the host
  }
  way.slowdown = [&experiment, &options, &trained](double share) {
    Cluster scaled = cluster_for_steps(experiment);
    scale_cards(share, trained.job.chips_per_node, scaled);
    return std::max(1.0, to_seconds(step_of(experiment, scaled, options.simulation)) /
                             to_seconds(trained.step));
  };
  return way;
}

}  // namespace

Ticks work_of(const RunLength& length, Ticks step, double tokens_per_step) {
  double steps = 0;
  if (length.tokens) steps = std::ceil(*length.tokens / tokens_per_step);
  if (length.steps) steps = static_cast<double>(*length.steps);
  if (length.days) {
    const double ticks = *length.days * static_cast<double>(kTicksPerDay);
    steps = std::ceil(ticks / static_cast<double>(step));
  }
  if (!(steps * static_cast<double>(step) < kMostWork)) {
    throw ConfigError({Problem{"--tokens", "makes a run of more than 100,000 years"}});
  }
  return std::max<Ticks>(1, static_cast<Ticks>(steps)) * step;
}

Bytes checkpoint_bytes(const Experiment& experiment) {
  const ParallelPlan& plan = experiment.plan;
  const std::int64_t parameters =
      parameter_count(experiment.model) + prediction_parameter_count(experiment.model);
  const std::int64_t state =
      plan.training.optimizer == Optimizer::kNone ? 0 : plan.update.optimizer_bytes;
  const std::int64_t without =
      plan.training.optimizer == Optimizer::kMuon
          ? matrix_parameter_count(experiment.model) * plan.update.second_moment_bytes
          : 0;
  return (state + 2) * Bytes(parameters) - Bytes(without);  // weights in 16 bits
}

TrainedJob train_job(const Experiment& experiment, const Cluster& cluster,
                     const FailureTable& table, const JobOptions& options) {
  const SimulatedExperiment done = simulate_experiment(experiment, cluster, options.simulation);
  const StepMetrics& metrics = done.runs.front().metrics;
  TrainedJob trained{
      .step = metrics.step_time,
      .tokens_per_step = metrics.tokens_per_s * to_seconds(metrics.step_time),
      .model_flops_utilization = metrics.model_flops_utilization,
      .energy = energy_of_step(experiment, cluster, done.graph, done.runs.front().result)};
  JobShape& job = trained.job;
  job.step = std::max<Ticks>(1, ticks_of(trained.step));
  job.work = work_of(options.length, job.step, trained.tokens_per_step);
  job.chips = metrics.chips;
  job.chips_per_node = std::min(chips_of_node(experiment, cluster), job.chips);
  set_groups(cluster, job);
  job.replicas = job.least_replicas = experiment.plan.mesh.dp;
  add_smaller_steps(experiment, cluster, options, trained);
  for (const FailureClass& failure : table.classes) {
    job.slow_slowdown.push_back(
        slowed_by(experiment, cluster, failure, options.simulation, trained));
  }
  if (table.spares > 0) add_far_spares(experiment, cluster, options.simulation, trained);
  trained.checkpoint = table.checkpoint.bytes.value_or(checkpoint_bytes(experiment));
  trained.times = checkpoint_times(table.checkpoint, table.restart,
                                   way_of(experiment, cluster, options, trained));
  return trained;
}

}  // namespace stepsim
