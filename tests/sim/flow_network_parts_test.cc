// Compares each container inside the flow network with an obvious slow one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "sim/network/array_pool.h"
#include "sim/network/finish_tree.h"
#include "sim/network/instant_queue.h"
#include "sim/network/level_queue.h"

namespace stepsim {
namespace {

TEST(ArrayPoolTest, ArraysGrowSideBySide) {
  ArrayPool<int> pool;
  std::vector<PooledArray> arrays(10);
  std::vector<std::vector<int>> expected(10);
  for (int i = 0; i < 1000; ++i) {
    const auto array = static_cast<std::size_t>(i * i % 10);
    pool.push_back(arrays[array], i);
    expected[array].push_back(i);
  }
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto view = pool.view(arrays[i]);
    EXPECT_EQ(std::vector<int>(view.begin(), view.end()), expected[i]);
  }
}

TEST(ArrayPoolTest, APlaceLeftBehindIsUsedAgain) {
  ArrayPool<int> pool;
  PooledArray first;
  for (int i = 0; i < 5; ++i) pool.push_back(first, i);  // left its place for four
  PooledArray second;
  pool.push_back(second, 7);
  EXPECT_EQ(second.begin, 0u);
  EXPECT_EQ(pool.view(first)[4], 4);
}

TEST(ArrayPoolTest, ReservedRoomIsTakenWithoutMoving) {
  ArrayPool<int> pool;
  PooledArray array;
  pool.push_back(array, 1);
  pool.reserve(array, 99);
  const std::uint32_t begin = array.begin;
  EXPECT_EQ(array.capacity, 128u);  // the power of two at or above 100
  PooledArray other;
  for (int i = 2; i <= 100; ++i) {
    pool.push_back(array, i);
    pool.push_back(other, -i);
  }
  EXPECT_EQ(array.begin, begin);
  const auto view = pool.view(array);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(view[static_cast<std::size_t>(i)], i + 1);
  pool.reserve(array, 28);  // it is long enough already
  EXPECT_EQ(array.begin, begin);
}

TEST(FinishTreeTest, KnowsTheEarliestOfMany) {
  for (const std::uint32_t links : {1u, 15u, 16u, 17u, 257u, 5000u}) {
    FinishTree tree(links);
    EXPECT_EQ(tree.earliest(), std::nullopt);
    constexpr std::int64_t kNever = 100;  // after all instants
    std::vector<std::int64_t> expected(links, kNever);
    std::mt19937_64 random(links);
    for (int round = 0; round < 200; ++round) {
      for (int change = 0; change < 5; ++change) {
        const auto link = static_cast<std::uint32_t>(random() % links);
        const bool is_cleared = random() % 4 == 0;
        const auto instant = is_cleared ? kNever : static_cast<std::int64_t>(random() % 100);
        is_cleared ? tree.clear(link) : tree.set(link, instant);
        expected[link] = instant;
      }
      tree.flush();
      const std::int64_t earliest = *std::min_element(expected.begin(), expected.end());
      ASSERT_EQ(tree.earliest(), earliest == kNever ? std::nullopt : std::optional(earliest));
      std::vector<std::uint32_t> first;
      for (std::uint32_t link = 0; link < links; ++link) {
        if (expected[link] == earliest && earliest != kNever) first.push_back(link);
      }
      std::vector<std::uint32_t> collected;
      tree.collect(collected);
      ASSERT_EQ(collected, first);
    }
  }
}

TEST(FinishTreeTest, ANetworkWithoutLinksNeverFinishes) {
  FinishTree tree(0);
  tree.flush();
  EXPECT_EQ(tree.earliest(), std::nullopt);
}

TEST(LevelQueueTest, LowestLevelFirst) {
  LevelQueue queue(6, 1.0);
  const std::vector<double> levels{0.5, 0.25, 1.0, 1e-12, -3.0, 1e6};
  for (std::uint32_t link = 0; link < levels.size(); ++link) queue.push(LinkId(link), levels[link]);
  std::vector<std::uint32_t> order;
  while (!queue.empty()) order.push_back(queue.pop().index());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{4, 3, 1, 0, 2, 5}));
}

TEST(LevelQueueTest, ALinkMayBePushedBelowTheLastOnePopped) {
  LevelQueue queue(3, 1.0);
  queue.push(LinkId(0), 0.5);
  queue.push(LinkId(1), 0.9);
  EXPECT_EQ(queue.pop(), LinkId(0));
  queue.push(LinkId(2), 0.1);
  EXPECT_EQ(queue.pop(), LinkId(2));
  EXPECT_EQ(queue.pop(), LinkId(1));
  EXPECT_TRUE(queue.empty());
}

TEST(LevelQueueTest, TellsLevelsApartThatDifferByAHundredth) {
  LevelQueue queue(1000, 1.0);
  std::vector<std::uint32_t> links(1000);
  std::iota(links.begin(), links.end(), 0u);
  std::shuffle(links.begin(), links.end(), std::mt19937_64(1));
  // From 1 down by 1 % a link: 1000 links span 14.4 octaves of 128 buckets.
  const auto level = [](std::uint32_t link) { return std::pow(0.99, link); };
  for (const std::uint32_t link : links) queue.push(LinkId(link), level(link));
  double last = 0;
  while (!queue.empty()) {
    const double next = level(queue.pop().index());
    EXPECT_GT(next, last);
    last = next;
  }
}

TEST(InstantQueueTest, GivesTheSlotsOfTheEarliestInstant) {
  using Slot = Id<struct SlotTag>;
  InstantQueue<Slot> queue;
  std::map<std::int64_t, std::vector<Slot>> expected;
  std::mt19937_64 random(1);
  std::vector<Slot> free;
  for (std::uint32_t slot = 0; slot < 500; ++slot) free.emplace_back(slot);
  std::int64_t now = 0;
  for (int round = 0; round < 2000; ++round) {
    while (!free.empty() && random() % 3 != 0) {
      const std::int64_t at = now + static_cast<std::int64_t>(random() % 2000);
      queue.push(at, free.back());
      expected[at].push_back(free.back());
      free.pop_back();
    }
    if (expected.empty()) continue;
    now = expected.begin()->first;
    std::vector<Slot> slots;
    while (!queue.empty() && queue.next() == now) queue.pop(slots);
    std::vector<Slot> same = expected.begin()->second;
    std::sort(same.begin(), same.end());
    std::sort(slots.begin(), slots.end());
    ASSERT_EQ(slots, same);
    free.insert(free.end(), slots.begin(), slots.end());
    expected.erase(expected.begin());
    ASSERT_EQ(queue.empty(), expected.empty());
  }
}

}  // namespace
}  // namespace stepsim
