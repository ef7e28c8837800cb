#include "sim/network/flow_run.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/network/flow_network.h"

namespace stepsim {
namespace {

using namespace literals;

// Two links of 1 GB/s in a row; the second one has a latency of 5 us.
struct TwoLinks {
  TwoLinks() {
    const NodeId a = fabric.add(NodeKind::kSwitch, "a");
    const NodeId b = fabric.add(NodeKind::kSwitch, "b");
    const NodeId c = fabric.add(NodeKind::kSwitch, "c");
    first = fabric.connect_one_way(a, b, 1_GBps, Duration::zero());
    second = fabric.connect_one_way(b, c, 1_GBps, 5us);
  }

  std::vector<Time> run() const {
    const auto network = make_flow_network(fabric);
    return run_flows(list, fabric, *network).finish;
  }

  Fabric fabric;
  LinkId first;
  LinkId second;
  FlowList list;
};

Time at(Duration since_start) {
  return Time{since_start};
}

TEST(FlowRunTest, AFlowPaysTheLatencyOfItsRouteAndThenMoves) {
  TwoLinks net;
  net.list.add(at(1us), Bytes(10'000), std::vector{net.first, net.second});
  // 1 us + 5 us + 10,000 B at 1 GB/s = 10 us.
  EXPECT_EQ(net.run(), std::vector{at(16us)});
}

TEST(FlowRunTest, AFlowThatWaitsBeginsInTheInstantOfTheLastEnd) {
  TwoLinks net;
  net.list.add(at(0us), Bytes(10'000), std::vector{net.first});
  net.list.add(at(0us), Bytes(20'000), std::vector{net.second});
  net.list.add(at(0us), Bytes(10'000), std::vector{net.second});
  net.list.dependences = {{.flow = 2, .after = 0}, {.flow = 2, .after = 1}};
  // Flow 1: 5 + 20 us. Flow 2 begins then, and pays 5 us of latency again.
  EXPECT_EQ(net.run(), (std::vector{at(10us), at(25us), at(40us)}));
}

TEST(FlowRunTest, AStartAfterTheLastEndCounts) {
  TwoLinks net;
  net.list.add(at(0us), Bytes(10'000), std::vector{net.first});
  net.list.add(at(12us), Bytes(1'000), std::vector{net.first});
  net.list.add(at(10us), Bytes(1'000), std::vector{net.first});
  net.list.dependences = {{.flow = 1, .after = 0}, {.flow = 2, .after = 0}};
  EXPECT_EQ(net.run(), (std::vector{at(10us), at(13us), at(11us)}));
}

TEST(FlowRunTest, FlowsOfNoBytesOrNoLinksPassAtOnce) {
  TwoLinks net;
  net.list.add(at(1us), Bytes(0), std::vector{net.first});
  net.list.add(at(0us), Bytes(7), {});
  net.list.add(at(0us), Bytes(1'000), std::vector{net.first});
  net.list.dependences = {{.flow = 1, .after = 0}, {.flow = 2, .after = 1}};
  EXPECT_EQ(net.run(), (std::vector{at(1us), at(1us), at(2us)}));
}

TEST(FlowRunTest, AFlowMayWaitForALaterOneOfTheList) {
  TwoLinks net;
  net.list.add(at(0us), Bytes(1'000), std::vector{net.first});
  net.list.add(at(0us), Bytes(1'000), std::vector{net.first});
  net.list.dependences = {{.flow = 0, .after = 1}};
  EXPECT_EQ(net.run(), (std::vector{at(2us), at(1us)}));
}

TEST(FlowRunTest, AnEmptyListEndsAtOnce) {
  TwoLinks net;
  EXPECT_TRUE(net.run().empty());
}

FlowList waiting(std::uint32_t flows, std::vector<FlowList::Dependence> dependences) {
  FlowList list;
  for (std::uint32_t i = 0; i < flows; ++i) list.add(Time{}, Bytes(1), {});
  list.dependences = std::move(dependences);
  return list;
}

TEST(FindCyclesTest, ThereAreNoneInAnOrderThatCanBeFollowed) {
  EXPECT_TRUE(find_cycles(waiting(3, {{0, 1}, {1, 2}, {0, 2}})).empty());
}

TEST(FindCyclesTest, EachCycleIsFoundOnceWithoutTheFlowsThatOnlyLeadToIt) {
  // 0 waits for 1, 1 -> 2 -> 3 -> 1; 4 waits for itself; 5 waits for 0; 6 for none.
  const auto cycles =
      find_cycles(waiting(7, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {4, 4}, {5, 0}, {5, 6}}));
  EXPECT_EQ(cycles, (std::vector<std::vector<std::uint32_t>>{{1, 2, 3}, {4}}));
}

}  // namespace
}  // namespace stepsim
