// A plan takes equally long through every entrance: simulate_experiment() on the experiment's own
// cluster and on one that was built before, and the studies. tests/end_to_end/entrances_test.py
// does the same with `stepsim run` and `stepsim accuracy`.

#include <gtest/gtest.h>

#include "books/laboratory/laboratory.h"
#include "books/laboratory/stack_step.h"
#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "schedules/pipeline/published/published_schedule.h"
#include "topology/small_clusters.h"

namespace stepsim {
namespace {

struct Case {
  ScheduleName schedule;
  std::int64_t chunks;
  std::int64_t pp;
  std::int64_t dp;
  int zero;
};

constexpr Case kPlans[] = {{ScheduleName::kOneForwardOneBackward, 1, 4, 2, 0},
                           {ScheduleName::kZeroBubbleAuto2P, 1, 4, 2, 0},
                           {ScheduleName::kZeroBubbleVAuto, 2, 4, 2, 1},
                           {ScheduleName::kOneForwardOneBackward, 1, 1, 8, 3}};

StackStep step_of(const Case& plan) {
  StackStep step{.width = 512, .mlp_width = 2048, .layers = 8, .tokens = 256, .slice = {8}};
  step.plan.mesh.pp = plan.pp;
  step.plan.mesh.dp = plan.dp;
  step.plan.state.zero = plan.zero;
  step.plan.pipeline.schedule = plan.schedule;
  if (plan.chunks > 1) step.plan.pipeline.chunks = plan.chunks;
  step.microbatches = plan.pp == 1 ? 1 : 8;
  return step;
}

// Writes out what books/laboratory/stack_step.h says about its steps.
Experiment experiment_of(const StackStep& step) {
  TorusSpec ring;
  ring.axes = {{.size = 8, .wraps = true}};
  ring.link_bandwidth = Bandwidth(kV5pLink);
  Experiment experiment{.name = "stack", .model = {}, .cluster = {}, .plan = step.plan};
  experiment.model = {.name = "stack",
                      .kind = ModelKind::kMlpStack,
                      .layers = step.layers,
                      .hidden = step.width,
                      .mlp = {.width = step.mlp_width}};
  experiment.cluster = {.name = "ring", .chip = ideal_v5p({8}).chip, .topology = ring};
  experiment.plan.batch.sequence = step.tokens;
  experiment.plan.batch.global_batch = step.plan.mesh.dp * step.microbatches;
  experiment.plan.training.optimizer = Optimizer::kNone;
  if (step.plan.state.zero < 3) experiment.plan.messages.gradient_bucket_parameters = 1;
  return experiment;
}

TEST(EntrancesTest, EveryWayInGivesTheSameStep) {
  for (const Case& plan : kPlans) {
    SCOPED_TRACE(name_of(plan.schedule));
    const StackStep step = step_of(plan);
    const Experiment experiment = experiment_of(step);
    const Cluster cluster = cluster_for_steps(experiment);
    ASSERT_EQ(check(experiment, cluster.places), std::vector<Problem>{});
    const Duration own = simulate_experiment(experiment).runs.front().result.step_time;
    EXPECT_GT(own, Duration(0));
    EXPECT_EQ(simulate_experiment(experiment, cluster).runs.front().result.step_time, own);
    EXPECT_EQ(Laboratory{}.simulate(experiment, cluster).step_time, own);
    EXPECT_EQ(run(Laboratory{}, step).step_time, own);
  }
}

TEST(EntrancesTest, StepsAreAsManyAsThePlanNeeds) {
  const auto steps = [](const Case& plan) { return steps_of(step_of(plan).plan); };
  EXPECT_EQ(steps(kPlans[0]), 1U);
  EXPECT_EQ(steps(kPlans[1]), 2U) << "its bubble is between the steps";
  EXPECT_EQ(steps(kPlans[3]), 2U) << "gathers ahead of the next step";
  ParallelPlan ahead;
  ahead.mesh.dp = 2;
  ahead.overlap.parameters = true;
  EXPECT_EQ(steps_of(ahead), 2U);
  ahead.mesh.dp = 1;
  EXPECT_EQ(steps_of(ahead), 1U) << "nothing to gather";
}

TEST(EntrancesTest, ARunIsAskedForBeforeItStarts) {
  const Experiment experiment = experiment_of(step_of(kPlans[0]));
  ExperimentOptions options{.fidelities = {Fidelity::kLatencyBandwidth, Fidelity::kFlow}};
  std::vector<Fidelity> asked;
  options.before = [&asked](const OpGraph& graph, const Cluster&, SimulationOptions& simulation) {
    EXPECT_EQ(graph.ranks.size(), 8U);
    asked.push_back(simulation.fidelity);
  };
  const SimulatedExperiment done = simulate_experiment(experiment, options);
  EXPECT_EQ(asked, options.fidelities);
  ASSERT_EQ(done.runs.size(), 2U);
  EXPECT_EQ(done.runs[1].options.fidelity, Fidelity::kFlow);
  EXPECT_EQ(done.runs[1].metrics.step_time, done.runs[1].result.step_time);
}

}  // namespace
}  // namespace stepsim
