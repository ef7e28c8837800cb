#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "goodput/best_interval.h"
#include "goodput/goodput.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

// A run that takes this many times its work is not worth a simulation.
constexpr double kHopeless = 1000;

std::int64_t units_of(FailureUnit unit, const JobShape& job) {
  const auto groups = [&job](std::int64_t chips) {
    return std::max<std::int64_t>(1, (job.chips + chips - 1) / chips);
  };
  switch (unit) {
    case FailureUnit::kChip:
      return job.chips;
    case FailureUnit::kNode:
      return groups(job.chips_per_node);
    case FailureUnit::kLeaf:
      return groups(job.chips_per_leaf);
    case FailureUnit::kPod:
      return groups(job.chips_per_pod);
    case FailureUnit::kJob:
      return 1;
  }
  return 1;
}

std::int64_t nodes_lost(FailureScope scope, const JobShape& job) {
  switch (scope) {
    case FailureScope::kNothing:
      return 0;
    case FailureScope::kNode:
      return 1;
    case FailureScope::kLeaf:
      return std::max<std::int64_t>(1, job.chips_per_leaf / job.chips_per_node);
    case FailureScope::kPod:
      return std::max<std::int64_t>(1, job.chips_per_pod / job.chips_per_node);
  }
  return 0;
}

ClassSetup class_setup(const FailureClass& failure, const FailureTable& table, const JobShape& job,
                       double slowdown) {
  return {.effect = failure.effect,
          .loses = failure.loses,
          .times = failure.times,
          .units = units_of(failure.per, job),
          .failures_per_day =
              failures_per_day(failure, table.observed, job.chips_per_leaf, job.chips_per_pod),
          .shape = failure.shape,
          .lemon_share = failure.lemon_share,
          .lemon_failures = failure.lemon_failures,
          .lemon_limit = failure.lemon_limit,
          .detection = ticks_of(failure.detection),
          .repair = ticks_of(failure.repair),
          .nodes_lost = nodes_lost(failure.loses, job),
          .slowed = Pace::slower_by(slowdown)};
}

// Mean time between the stops after which the nearest place that helps is `place`.
std::optional<Ticks> mean_time(const RunSetup& setup, CheckpointPlace place) {
  RunSetup own = setup;
  const auto outlives = [&setup](const ClassSetup& failure) {
    const bool node = failure.loses >= FailureScope::kNode;
    const bool group = failure.loses >= FailureScope::kLeaf;
    if (setup.checkpoint.has[0] && !node) return CheckpointPlace::kHost;
    if (setup.checkpoint.has[1] && !group) return CheckpointPlace::kPeer;
    return CheckpointPlace::kStorage;
  };
  for (ClassSetup& failure : own.classes) {
    const bool is_stored = outlives(failure) == CheckpointPlace::kStorage;
    if (is_stored != (place == CheckpointPlace::kStorage)) failure.failures_per_day = 0;
  }
  return mean_time_between_stops(own);
}

Ticks whole_steps(Ticks time, Ticks step) {
  return std::max<Ticks>(1, (time + step - 1) / step) * step;
}

// The least cost, but not so often that one is written while the next begins.
Ticks interval_for(std::optional<Ticks> mean, Ticks stall, Ticks flush, const JobShape& job) {
  if (!mean) return job.work;
  return std::min(job.work, whole_steps(std::max(best_interval(stall, *mean), flush), job.step));
}

void set_intervals(const CheckpointPolicy& policy, const JobShape& job, RunSetup& setup) {
  CheckpointCosts& costs = setup.checkpoint;
  const bool has_copies = costs.has[0] || costs.has[1];
  const auto given = [&job](const std::optional<Duration>& time) {
    return std::min(job.work, whole_steps(ticks_of(*time), job.step));
  };
  if (!has_copies) {
    costs.interval = policy.every ? given(policy.every)
                                  : interval_for(mean_time_between_stops(setup),
                                                 costs.storage_stall, costs.storage_flush, job);
    return;
  }
  costs.interval = policy.every ? given(policy.every)
                                : interval_for(mean_time(setup, CheckpointPlace::kHost),
                                               costs.copy_stall, costs.copy_flush, job);
  if (!costs.has[2]) {
    costs.per_storage = std::max<std::int64_t>(1, job.work / costs.interval);
    return;
  }
  const Ticks storage = policy.storage_every
                            ? given(policy.storage_every)
                            : interval_for(mean_time(setup, CheckpointPlace::kStorage),
                                           costs.storage_stall, costs.storage_flush, job);
  costs.per_storage = std::max<std::int64_t>(1, (storage + costs.interval - 1) / costs.interval);
}

std::string time_text(Ticks ticks) {
  return fmt::format("{:.6g} s", static_cast<double>(ticks) / kTicksPerSecond);
}

void check_intervals(const CheckpointPolicy& policy, const JobShape& job, const RunSetup& setup,
                     std::vector<Problem>& problems) {
  const auto check_one = [&](const char* key, const std::optional<Duration>& every, Ticks flush) {
    if (!every) return;
    const std::string field = std::string("--checkpoint ") + key;
    if (ticks_of(*every) > job.work) {
      problems.push_back(
          {field, fmt::format("must be at most the {} that the training takes, is {}",
                              time_text(job.work), to_text(*every))});
    } else if (ticks_of(*every) < flush) {
      problems.push_back(
          {field,
           fmt::format("must be at least the {} that a checkpoint takes to be written, is {}",
                       time_text(flush), to_text(*every))});
    }
  };
  const CheckpointCosts& costs = setup.checkpoint;
  const bool has_copies = costs.has[0] || costs.has[1];
  check_one("every", policy.every, has_copies ? costs.copy_flush : costs.storage_flush);
  if (has_copies) check_one("storage-every", policy.storage_every, costs.storage_flush);
  if (!has_copies && policy.storage_every) {
    problems.push_back({"--checkpoint storage-every",
                        "must stand with to=host+storage or another place beside storage"});
  }
}

// Formula K3: failures that come before a checkpoint and a restart are through, again and again.
void check_progress(const RunSetup& setup, std::vector<Problem>& problems) {
  const auto mean = mean_time_between_stops(setup);
  if (!mean) return;
  const auto m = static_cast<double>(*mean);
  const CheckpointCosts& costs = setup.checkpoint;
  const double piece = static_cast<double>(costs.interval + costs.copy_stall + costs.storage_stall);
  const double restart = static_cast<double>(setup.restart);
  const double each = m * std::exp(restart / m) * std::expm1(piece / m);
  if (each <= kHopeless * static_cast<double>(costs.interval)) return;
  problems.push_back(
      {"--failures",
       fmt::format("the job never gets done: something stops it every {}, but {} of work with its "
                   "checkpoint and a restart of {} take longer",
                   time_text(*mean), time_text(costs.interval), time_text(setup.restart))});
}

}  // namespace

RunSetup plan_runs(const FailureTable& table, const JobShape& job, const CheckpointTimes& times) {
  RunSetup setup{.work = job.work,
                 .nodes = std::max<std::int64_t>(1, job.chips / job.chips_per_node),
                 .spares = table.spares,
                 .groups = job.spare_groups,
                 .far = Pace::slower_by(std::max(1.0, job.far_slowdown)),
                 .replicas = job.replicas,
                 .least_replicas = job.least_replicas};
  // Replicas that don't fill nodes can't be lost one by one.
  if (setup.nodes % setup.replicas != 0) setup.replicas = setup.least_replicas = 1;
  setup.paces.clear();
  for (const double slowdown : job.missing_slowdown) {
    setup.paces.push_back(Pace::slower_by(slowdown));
  }
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    const double slowdown =
        i < job.slow_slowdown.size() ? job.slow_slowdown[i] : table.classes[i].slowdown;
    setup.classes.push_back(class_setup(table.classes[i], table, job, slowdown));
  }
  setup.checkpoint = {.interval = job.work,
                      .copy_stall = times.copy_stall,
                      .copy_flush = times.copy_flush,
                      .storage_stall = times.storage_stall,
                      .storage_flush = times.storage_flush,
                      .load = times.load};
  for (std::size_t i = 0; i < kCheckpointPlaces; ++i) {
    setup.checkpoint.has[i] = table.checkpoint.has(static_cast<CheckpointPlace>(i));
  }
  const RestartPolicy& restart = table.restart;
  setup.restart =
      ticks_of(restart.scheduling) + ticks_of(restart.compile) + ticks_of(restart.warmup);
  if (table.maintenance) {
    setup.maintenance_every = ticks_of(table.maintenance->every);
    setup.maintenance_time = ticks_of(table.maintenance->time);
  }
  set_intervals(table.checkpoint, job, setup);
  std::vector<Problem> problems;
  check_intervals(table.checkpoint, job, setup, problems);
  check_progress(setup, problems);
  throw_if_any(std::move(problems));
  return setup;
}

}  // namespace stepsim
