#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace stepsim {
namespace {

using namespace literals;

class EventQueueTest : public ::testing::Test {
 protected:
  void schedule(Duration at, char name) {
    queue_.schedule(Time{at}, Event(0, static_cast<std::uint32_t>(name)));
  }

  // Pops everything and returns the names in the order they came.
  std::string drain() {
    std::string order;
    while (!queue_.empty()) order += static_cast<char>(queue_.pop().index());
    return order;
  }

  EventQueue queue_;
};

TEST_F(EventQueueTest, PopsInOrderOfTime) {
  schedule(3us, 'c');
  schedule(1us, 'a');
  schedule(2us, 'b');
  EXPECT_EQ(drain(), "abc");
}

TEST_F(EventQueueTest, PopsEqualTimesInOrderOfScheduling) {
  for (char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g'}) schedule(1us, name);
  EXPECT_EQ(drain(), "abcdefg");
}

TEST_F(EventQueueTest, NowIsTheTimeOfTheLastEventPopped) {
  EXPECT_EQ(queue_.now(), Time{});
  schedule(7ns, 'a');
  EXPECT_EQ(queue_.now(), Time{}) << "scheduling does not move the clock";
  EXPECT_EQ(queue_.next_time(), Time{7ns});
  queue_.pop();
  EXPECT_EQ(queue_.now(), Time{7ns});
}

TEST_F(EventQueueTest, AcceptsAnEventAtTimeZero) {
  schedule(0s, 'a');
  EXPECT_EQ(drain(), "a");
}

TEST_F(EventQueueTest, AnEventMayScheduleAnotherAtTheSameTime) {
  schedule(1us, 'a');
  schedule(1us, 'b');
  EXPECT_EQ(queue_.pop().index(), static_cast<std::uint32_t>('a'));
  schedule(1us, 'c');
  EXPECT_EQ(drain(), "bc") << "the new event comes after those already waiting";
}

TEST_F(EventQueueTest, KeepsKindAndIndexOfAnEvent) {
  const Event event(15, (1U << 28) - 1);
  EXPECT_EQ(event.kind(), 15U);
  EXPECT_EQ(event.index(), (1U << 28) - 1);
}

TEST_F(EventQueueTest, AdvancesToAnInstantWithoutAnEvent) {
  schedule(5us, 'a');
  queue_.advance_to(Time{5us});
  EXPECT_EQ(queue_.now(), Time{5us});
  EXPECT_EQ(drain(), "a");
}

// Law: the order is that of a stable sort by time, for any mix of pushes and pops.
TEST_F(EventQueueTest, AgreesWithAStableSort) {
  std::mt19937_64 random(1);
  struct Waiting {
    std::int64_t at;
    std::uint32_t index;
  };
  std::vector<Waiting> waiting;  // in order of scheduling
  std::uint32_t next_index = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (waiting.empty() || random() % 5 < 3) {
      const std::int64_t at =
          queue_.now().since_start.count() + static_cast<std::int64_t>(random() % 16);
      queue_.schedule(Time{Duration(at)}, Event(1, next_index));
      waiting.push_back({at, next_index++});
    } else {
      const auto first = std::min_element(waiting.begin(), waiting.end(),
                                          [](auto a, auto b) { return a.at < b.at; });
      ASSERT_EQ(queue_.pop(), Event(1, first->index));
      ASSERT_EQ(queue_.now(), Time{Duration(first->at)});
      waiting.erase(first);
    }
    ASSERT_EQ(queue_.size(), waiting.size());
  }
}

#ifndef NDEBUG
TEST_F(EventQueueTest, RefusesThePast) {
  schedule(2us, 'a');
  queue_.pop();
  EXPECT_DEATH(schedule(1us, 'b'), "at >= now_");
}
#endif

}  // namespace
}  // namespace stepsim
