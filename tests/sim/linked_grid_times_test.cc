// A torus, mesh or hub that a person listed takes as long as the kind of topology that makes one.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/idle_collective.h"
#include "tests/support/linked_chips.h"

namespace stepsim {
namespace {

using Op = CollectiveOp;

constexpr Granularity kBoth[] = {Granularity::kPipelined, Granularity::kStepped};

std::vector<double> times_of(const Cluster& cluster) {
  std::vector<double> times;
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kAllToAll}) {
    for (const Bytes bytes : {Bytes(48 << 10), Bytes(48 << 20)}) {
      for (const Granularity granularity : kBoth) {
        times.push_back(simulated(
            cluster, {.communicator = CommunicatorId(0), .op = op, .bytes = bytes}, granularity));
      }
    }
  }
  return times;
}

TEST(LinkedGridTimesTest, AListedTorusTakesAsLongAsATorus) {
  struct Case {
    std::vector<std::uint32_t> sizes;
    std::vector<bool> wraps;
  };
  for (const Case& of : std::vector<Case>{{{8}, {true}},
                                          {{6}, {false}},
                                          {{4, 4}, {true, true}},
                                          {{8, 2}, {true, false}},
                                          {{2, 8}, {false, true}},
                                          {{3, 4}, {false, false}},
                                          {{4, 3, 3}, {true, false, true}}}) {
    const std::vector<int> sizes(of.sizes.begin(), of.sizes.end());
    const std::vector<double> built =
        times_of(torus_of(sizes, kLinkedWidth, kLinkedTrip, of.wraps));
    const ExplicitGraphSpec spec = linked_grid(of.sizes, of.wraps);
    EXPECT_EQ(times_of(cluster_of(spec)), built);
    ExplicitGraphSpec levels = spec;
    for (const std::uint32_t size : of.sizes) {
      levels.levels.push_back(
          {"dimension" + std::to_string(levels.levels.size()), static_cast<int>(size)});
    }
    EXPECT_EQ(times_of(cluster_of(levels)), built);
    for (const unsigned seed : {1U, 2U}) {
      const std::vector<double> times = times_of(cluster_of(listed_otherwise(spec, seed)));
      for (std::size_t i = 0; i < built.size(); ++i) {
        // Parts of whole elements lie elsewhere.
        EXPECT_NEAR(times[i] / built[i], 1, 1e-4) << of.sizes.size() << " axes, case " << i;
      }
    }
  }
}

TEST(LinkedGridTimesTest, TurningATorusChangesNothing) {
  for (const Op op : {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kAllToAll}) {
    const CollectiveWork work{
        .communicator = CommunicatorId(0), .op = op, .bytes = Bytes(64 << 20)};
    for (const Granularity granularity : kBoth) {
      EXPECT_EQ(simulated(cluster_of(linked_grid({2, 8}, {false, true})), work, granularity),
                simulated(cluster_of(linked_grid({8, 2}, {true, false})), work, granularity))
          << name_of(op);
    }
  }
}

TEST(LinkedGridTimesTest, AHubTakesAsLongAsACrossbar) {
  LinkedChips hub(8);
  hub.hub("hub", {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(times_of(cluster_of(hub.spec())), times_of(one_node(8, kLinkedWidth, kLinkedTrip)));
}

}  // namespace
}  // namespace stepsim
