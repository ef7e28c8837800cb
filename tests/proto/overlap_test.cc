// Every switch that puts communication beside compute hides some of it and shortens the step. On
// GPUs the compute beside it slows down, because collectives run on the chip's units; on TPUs it
// does not.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"
#include "schedules/plan/axis.h"
#include "schedules/plan/keys/key_groups.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

struct Switch {
  std::string off;
  std::string on;
  Axis hides;
  std::vector<std::string> plan;
  bool by_collectives = true;  // otherwise by messages between stages, which hold nothing
  std::uint32_t steps = 1;
};

std::vector<Switch> switches() {
  return {
      {.off = "overlap_gradients=false",
       .on = "overlap_gradients=true",
       .hides = Axis::kData,
       .plan = {"dp=16", "zero=0", "gradient_bucket_parameters=100000000"}},
      {.off = "overlap_parameters=false",
       .on = "overlap_parameters=true",
       .hides = Axis::kData,
       .plan = {"dp=16", "zero=1", "gradient_bucket_parameters=100000000"},
       .steps = 3},
      {.off = "prefetch=0",
       .on = "prefetch=1",
       .hides = Axis::kData,
       .plan = {"dp=16", "zero=3"},
       .steps = 2},
      {.off = "overlap_tensor=false",
       .on = "overlap_tensor=true",
       .hides = Axis::kTensor,
       .plan = {"tp=4", "dp=4"}},
      {.off = "tensor_chunks=1",
       .on = "tensor_chunks=2",
       .hides = Axis::kTensor,
       .plan = {"tp=4", "dp=4"}},
      {.off = "tensor_pieces=1",
       .on = "tensor_pieces=4",
       .hides = Axis::kTensor,
       .plan = {"tp=4", "dp=4"}},
      {.off = "overlap_pipeline=false",
       .on = "overlap_pipeline=true",
       .hides = Axis::kPipeline,
       .plan = {"pp=4", "dp=4", "microbatch=2"},
       .by_collectives = false},
  };
}

// "tp=8" is "plan.tp=8" of --set.
std::string path_of(const std::string& setting) {
  return path_of_key(setting.substr(0, setting.find('='))) + setting.substr(setting.find('='));
}

SimulationResult run(const std::string& cluster_name, const Switch& of,
                     const std::string& setting) {
  ExperimentSource source;
  source.model = "llama3-8b";
  source.cluster = cluster_name;
  source.plan = "global-batch=32,sequence=4096";
  source.overrides = {"model.layers=8"};
  for (const std::string& key : of.plan) source.overrides.push_back(path_of(key));
  source.overrides.push_back(path_of(setting));
  const Experiment experiment = load_experiment(source);
  return simulate_experiment(experiment, {.steps = of.steps}).runs.front().result;
}

Duration exposed(const SimulationResult& result, Axis axis) {
  return result.breakdown.exposed_communication[static_cast<std::size_t>(axis)];
}

TEST(OverlapTest, EverySwitchHidesWhatItIsFor) {
  for (const std::string cluster : {"dgx-h100-16", "v5p-2x2x4"}) {
    for (const Switch& each : switches()) {
      SCOPED_TRACE(cluster + " " + each.on);
      const SimulationResult off = run(cluster, each, each.off);
      const SimulationResult on = run(cluster, each, each.on);
      EXPECT_LT(on.step_time, off.step_time);
      EXPECT_LT(exposed(on, each.hides), exposed(off, each.hides));
      EXPECT_EQ(on.bytes_by_axis, off.bytes_by_axis) << "the same is sent";
      const bool drives_itself = cluster.starts_with("v5p");
      // Matmuls are smaller. If steps overlap, compute of the next step runs before the end of this
      // one.
      if (each.on == "tensor_chunks=2" || each.on == "tensor_pieces=4" ||
          each.on == "overlap_parameters=true") {
        continue;
      }
      if (drives_itself || !each.by_collectives) {
        EXPECT_EQ(on.breakdown.compute, off.breakdown.compute);
      } else {
        EXPECT_GT(on.breakdown.compute, off.breakdown.compute);
      }
    }
  }
}

// In groups of more micro-batches than stages, a forward and the backward behind it need messages
// of different ops of their peer.
TEST(OverlapTest, ExpertsOverlapInGroupsOfAnySize) {
  const auto step = [](const std::string& group, const std::string& overlap) {
    ExperimentSource source;
    source.model = "mixtral-8x7b";
    source.cluster = "dgx-h100-16";
    source.plan = "tp=1,pp=2,dp=8,ep=8,chunks=2,schedule=interleaved_1f1b,microbatch=1";
    source.overrides = {"plan.global_batch=96", "plan.sequence=1024",
                        "plan.microbatch_group=" + group,
                        "plan.overlap_expert_parallel=" + overlap};
    return simulate_experiment(load_experiment(source)).runs.front().result.step_time;
  };
  for (const std::string group : {"2", "3", "4", "6", "12"}) {
    EXPECT_LT(step(group, "true"), step(group, "false")) << group;
  }
}

}  // namespace
}  // namespace stepsim
