// A card that is gone: who is behind it, and what waits for the one that does its work.

#include "experiment/step/fault_effects.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/build_cluster.h"
#include "experiment/simulate_experiment.h"
#include "proto/load_experiment.h"

namespace stepsim {
namespace {

FaultEffects effects_of(const std::string& plan, std::vector<std::string> faults) {
  std::vector<std::string> overrides = {"model.layers=4"};
  for (std::string& fault : faults) overrides.push_back("cluster.faults." + std::move(fault));
  const LoadedExperiment loaded =
      load_with_topology({.model = "llama3.2-1b",
                          .cluster = "dgx-h100-64",
                          .plan = plan + ",microbatch=1,sequence=2048,global-batch=64",
                          .overrides = overrides});
  const Cluster cluster = cluster_for_steps(loaded.experiment);
  const SimulatedExperiment done = simulate_experiment(loaded.experiment, cluster, {});
  return fault_effects(loaded.experiment, cluster, done.graph);
}

TEST(FaultEffectsTest, WithoutFaultsThereAreNone) {
  const FaultEffects effects = effects_of("dp=64,zero=1", {});
  EXPECT_TRUE(effects.links.empty());
  EXPECT_TRUE(effects.traffic.empty());
}

// GPU 3 of node 1 is rank 11. Its card is gone, so another card of the node sends for both.
TEST(FaultEffectsTest, NamesTheRankBehindALinkAndTheLinkThatIsWaitedFor) {
  const FaultEffects effects =
      effects_of("dp=64,zero=1", {"links[0].link=node1.gpu3-su0.leaf3", "links[0].down=true"});
  ASSERT_EQ(effects.links.size(), 1U);
  EXPECT_EQ(effects.links[0].links, 2U);
  EXPECT_EQ(effects.links[0].ranks, (std::vector<RankId>{RankId(11)}));
  EXPECT_EQ(effects.links[0].text(), "node1.gpu3-su0.leaf3 is down; behind it rank 11");
  ASSERT_FALSE(effects.traffic.empty());
  const SlowedTraffic& slowed = effects.traffic.front();
  EXPECT_EQ(slowed.axis, Axis::kData);
  EXPECT_EQ(slowed.ranks.size(), 64U);
  EXPECT_NE(slowed.link.find("su0.leaf"), std::string::npos) << slowed.link;
  EXPECT_EQ(slowed.link.find("gpu3"), std::string::npos) << "the rail of another GPU";
  EXPECT_GT(slowed.with_s, slowed.without_s);
  EXPECT_LT(slowed.with_s, 2.1 * slowed.without_s) << "twice the bytes on one card, at most";
}

// Two groups of a tensor axis of 8 stay inside their nodes, whose switches are whole.
TEST(FaultEffectsTest, LeavesOutWhatDoesNotPassTheFault) {
  const FaultEffects effects = effects_of(
      "tp=8,dp=8,zero=1", {"links[0].link=node1.gpu3-su0.leaf3", "links[0].capacity=0.5"});
  EXPECT_EQ(effects.links[0].text(),
            "node1.gpu3-su0.leaf3 is at 50 % of its bandwidth; behind it rank 11");
  ASSERT_FALSE(effects.traffic.empty());
  for (const SlowedTraffic& slowed : effects.traffic) {
    EXPECT_NE(slowed.axis, Axis::kTensor) << slowed.text();
    // One of eight groups, that of the fourth GPU of each node.
    EXPECT_EQ(slowed.slowed, 1U) << slowed.text();
    EXPECT_EQ(slowed.groups, 8U) << slowed.text();
    EXPECT_EQ(slowed.ranks.front(), RankId(3)) << slowed.text();
    EXPECT_NE(slowed.link.find("node1.gpu3"), std::string::npos) << slowed.text();
  }
}

// A leaf has one GPU of each node: ranks 3, 11, ... of 64.
TEST(FaultEffectsTest, BehindALeafAreAllOfItsCards) {
  const FaultEffects effects =
      effects_of("dp=64,zero=1", {"links[0].link=su0.leaf3-spine*", "links[0].capacity=0.5"});
  ASSERT_EQ(effects.links.size(), 1U);
  std::vector<RankId> expected;
  for (std::uint32_t rank = 3; rank < 64; rank += 8) expected.emplace_back(rank);
  EXPECT_EQ(effects.links[0].ranks, expected);
}

}  // namespace
}  // namespace stepsim
