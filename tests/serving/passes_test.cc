// Steps of a replica on a cluster, and the blocks that fit beside the weights.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "serving/passes/kv_room.h"
#include "serving/passes/simulated_step_cost.h"

namespace stepsim {
namespace {

Experiment serving(const std::string& model, const std::string& plan) {
  return load_experiment({.model = model,
                          .cluster = "dgx-h100-8",
                          .plan = "inference=decode,batch=8,context=2," + plan});
}

BatchEntry decode(std::int32_t computed) {
  return {
      .request = RequestId(0), .computed = computed, .tokens = 1, .is_decode = true, .emits = true};
}
BatchEntry chunk(std::int32_t computed, std::int32_t tokens) {
  return {.request = RequestId(0), .computed = computed, .tokens = tokens};
}

TEST(SimulatedStepCostTest, AStepIsAPassOverItsRequests) {
  const Experiment experiment = serving("llama3-8b", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 1);
  Batch batch;
  batch.add(decode(100));
  batch.add(decode(300));
  batch.add(chunk(512, 256));
  EXPECT_EQ(cost.time_of(batch),
            times.of({.groups = {{.queries = 256, .cached = 512},
                                 {.sequences = 2, .cached = 200, .generates = true}}}));
}

TEST(SimulatedStepCostTest, DraftsAreFurtherQueries) {
  const Experiment experiment = serving("llama3-8b", "tp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 1);
  Batch batch;
  for (int i = 0; i < 4; ++i) {
    batch.add({.request = RequestId(0),
               .computed = 50,
               .tokens = 3,
               .drafts = 2,
               .is_decode = true,
               .emits = true});
  }
  EXPECT_EQ(
      cost.time_of(batch),
      times.of({.groups = {{.sequences = 4, .queries = 3, .cached = 50, .generates = true}}}));
}

TEST(SimulatedStepCostTest, RanksOfAPlanShareTheRequests) {
  const Experiment experiment = serving("llama3-8b", "dp=8");
  PassTimes times(experiment, cluster_for_steps(experiment), {});
  SimulatedStepCost cost(times, 8);
  Batch batch;
  for (int i = 0; i < 20; ++i) batch.add(decode(100));
  EXPECT_EQ(cost.time_of(batch),
            times.of({.groups = {{.sequences = 3, .cached = 100, .generates = true}}}));
}

// 16 tokens x 4,096 bytes a layer of 32, divided by 8 heads over 8 chips.
TEST(KvRoomTest, IsWhatWeightsAndTheLargestPassLeave) {
  const Experiment experiment = serving("llama3-8b", "tp=8");
  const Cluster cluster = cluster_for_steps(experiment);
  const KvRoom room = kv_room(experiment, cluster, 8192, 16, 0.9);
  EXPECT_EQ(room.of_block, Bytes(16 * 4096 * 32 / 8));
  const auto used =
      static_cast<std::int64_t>(0.9 * static_cast<double>(cluster.chip.memory_capacity.value()));
  EXPECT_NEAR(static_cast<double>((room.available + room.others).value()),
              static_cast<double>(used), 1);
  EXPECT_EQ(room.blocks, room.available.value() / room.of_block.value());
  EXPECT_GT(room.others, Bytes(16'000'000'000 / 8));
  EXPECT_LT(room.others, Bytes(16'000'000'000 / 8 + 4'000'000'000));
}

TEST(KvRoomTest, AModelThatFillsTheChipLeavesNoBlock) {
  const Experiment experiment = serving("llama3-70b", "tp=1,dp=8");
  const KvRoom room = kv_room(experiment, cluster_for_steps(experiment), 8192, 16, 0.9);
  EXPECT_EQ(room.blocks, 0);
  EXPECT_LT(room.available, Bytes(0));
}

}  // namespace
}  // namespace stepsim
