#include "sim/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepsim {
namespace {

TEST(ParallelTest, EachPieceIsDoneOnceWithAnyNumberOfThreads) {
  for (const std::size_t threads : {1U, 2U, 7U, 40U}) {
    for (const std::size_t count : {0U, 1U, 30U, 1000U}) {
      std::vector<int> done(count);
      for_each_in_parallel(count, threads, [&](std::size_t i) { ++done[i]; });
      EXPECT_EQ(done, std::vector<int>(count, 1)) << threads << " threads";
    }
  }
}

TEST(ParallelTest, TheFirstPieceThatThrowsEndsIt) {
  std::atomic<int> begun = 0;
  const auto work = [&](std::size_t i) {
    ++begun;
    if (i == 10) throw std::runtime_error("ten");
  };
  for (const std::size_t threads : {1U, 4U}) {
    begun = 0;
    try {
      for_each_in_parallel(100'000, threads, work);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "ten");
    }
    EXPECT_GE(begun, 11);
    if (threads == 1) {
      EXPECT_EQ(begun, 11);
    }
  }
  EXPECT_THROW(for_each_in_parallel(8, 8, [](std::size_t) { throw std::logic_error("all"); }),
               std::logic_error);
}

}  // namespace
}  // namespace stepsim
