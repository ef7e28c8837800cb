#include "sim/network/latency_bandwidth_network.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <vector>

namespace stepsim {
namespace {

using namespace literals;

class LatencyBandwidthNetworkTest : public ::testing::Test {
 protected:
  LatencyBandwidthNetworkTest() {
    const NodeId any = fabric_.add(NodeKind::kSwitch, "any");
    wide_ = fabric_.connect_one_way(any, any, 100_GBps, 0s);
    narrow_ = fabric_.connect_one_way(any, any, 50_GBps, 0s);
    unlimited_ =
        fabric_.connect_one_way(any, any, Bandwidth(std::numeric_limits<double>::infinity()), 0s);
    network_ = make_latency_bandwidth_network(fabric_);
  }

  void start(Time now, std::uint32_t id, Bytes bytes, std::vector<LinkUse> uses,
             Duration latency = Duration::zero()) {
    network_->start(now, TransferId(id), {bytes, latency, uses});
    network_->settle(now);
  }

  void run_to_end() {
    while (const std::optional<Time> next = network_->next_event()) {
      std::vector<TransferId> done;
      network_->advance(*next, done);
      for (const TransferId id : done) {
        finish_[id.index()] = next->since_start;
        order_.push_back(id.index());
      }
      network_->settle(*next);
    }
  }

  Fabric fabric_;
  LinkId wide_;
  LinkId narrow_;
  LinkId unlimited_;
  std::unique_ptr<Network> network_;
  std::map<std::uint32_t, Duration> finish_;
  std::vector<std::uint32_t> order_;
};

TEST_F(LatencyBandwidthNetworkTest, ATransferTakesItsLatencyAndTheTimeOfItsSlowestLink) {
  start(Time{1us}, 0, 1'000'000_B, {{wide_, 1}, {narrow_, 1}}, 3us);
  run_to_end();
  EXPECT_EQ(finish_[0], Duration(1us + 3us + 20us));  // 1 MB at 50 GB/s
}

TEST_F(LatencyBandwidthNetworkTest, AWeightWidensALink) {
  // 50 GB/s at weight 1/4 allow 200 GB/s: the wide link is the slower one.
  start(Time{}, 0, 1'000'000_B, {{wide_, 1}, {narrow_, 0.25}});
  run_to_end();
  EXPECT_EQ(finish_[0], Duration(10us));
  EXPECT_NEAR(network_->carried(narrow_, Time{10us}), 250'000, 1e-3);
}

TEST_F(LatencyBandwidthNetworkTest, TransfersDoNotContend) {
  for (std::uint32_t id = 0; id < 10; ++id) start(Time{}, id, 1'000'000_B, {{narrow_, 1}});
  run_to_end();
  for (std::uint32_t id = 0; id < 10; ++id) EXPECT_EQ(finish_[id], Duration(20us));
  EXPECT_NEAR(network_->carried(narrow_, Time{20us}), 1e7, 1e-2);
}

TEST_F(LatencyBandwidthNetworkTest, TransfersThatNeedNoTimeEndAfterTheirLatency) {
  start(Time{1us}, 0, 0_B, {{narrow_, 1}});
  EXPECT_EQ(network_->next_event(), Time{1us});
  start(Time{1us}, 1, 0_B, {{narrow_, 1}}, 2us);
  start(Time{1us}, 2, 1_GB, {}, 3us);
  start(Time{1us}, 3, 1_GB, {{unlimited_, 1}}, 4us);
  run_to_end();
  EXPECT_EQ(finish_[0], Duration(1us));
  EXPECT_EQ(finish_[1], Duration(3us));
  EXPECT_EQ(finish_[2], Duration(4us));
  EXPECT_EQ(finish_[3], Duration(5us));
  EXPECT_EQ(network_->carried(narrow_, Time{5us}), 0);
  EXPECT_EQ(network_->carried(unlimited_, Time{5us}), 1e9);
}

TEST_F(LatencyBandwidthNetworkTest, EndsOfOneInstantComeInOrderOfId) {
  start(Time{}, 5, 1'000'000_B, {{narrow_, 1}});
  start(Time{}, 2, 2'000'000_B, {{wide_, 1}});
  start(Time{}, 3, 0_B, {}, 20us);
  start(Time{}, 9, 1'000'000_B, {{wide_, 1}}, 10us);
  run_to_end();
  EXPECT_EQ(order_, (std::vector<std::uint32_t>{2, 3, 5, 9}));
  EXPECT_EQ(network_->statistics().transfers, 4u);
}

TEST_F(LatencyBandwidthNetworkTest, CarriedIsTheIntegralOfTheRate) {
  start(Time{}, 0, 1'000'000_B, {{wide_, 1}, {narrow_, 1}}, 5us);
  std::vector<TransferId> done;
  ASSERT_EQ(network_->next_event(), Time{5us});
  network_->advance(Time{5us}, done);
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(network_->carried(wide_, Time{5us}), 0);
  EXPECT_NEAR(network_->carried(wide_, Time{15us}), 500'000, 1e-3);  // 10 us at 50 GB/s
  run_to_end();
  EXPECT_NEAR(network_->carried(wide_, Time{25us}), 1e6, 1e-3);
}

TEST_F(LatencyBandwidthNetworkTest, CarriedIsExactForTransfersOfAFewPicoseconds) {
  // 3 bytes at 50 GB/s take 60 ps, 1 byte at 100 GB/s 10 ps; 7 bytes at 100/0.3 GB/s 21 ps.
  for (std::uint32_t round = 0; round < 100; ++round) {
    start(Time{Duration(1000 * round)}, 0, 7_B, {{wide_, 0.3}, {unlimited_, 1}});
    run_to_end();
  }
  EXPECT_NEAR(network_->carried(wide_, Time{1us}), 100 * 7 * 0.3, 210 * 1e-9);
  EXPECT_NEAR(network_->carried(unlimited_, Time{1us}), 700, 700 * 1e-9);
}

TEST_F(LatencyBandwidthNetworkTest, AnIdMayBeUsedAgainAtTheInstantOfItsEnd) {
  Time now{};
  for (int round = 1; round <= 3; ++round) {
    start(now, 0, 1'000'000_B, {{narrow_, 1}});
    run_to_end();
    EXPECT_EQ(finish_[0], Duration(20us) * round);
    now = Time{finish_[0]};
  }
}

}  // namespace
}  // namespace stepsim
