// All-reduces and exchanges of serving (sim/collectives/direct_kernels.h), computed by hand.

#include "sim/collectives/direct_kernels.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace stepsim {
namespace {

using namespace std::chrono_literals;

// One-shot: 2 us, 1 us a doubling, 100 GB/s. Two-shot: 10 us and 200 GB/s.
DirectAllReduce round_kernel() {
  return {.up_to = Bytes(16'000'000),
          .one_start = 2us,
          .one_doubling = 1us,
          .one_bandwidth = Bandwidth(100e9),
          .two_start = 10us,
          .two_doubling = 0us,
          .two_bandwidth = Bandwidth(200e9)};
}

double us(std::optional<Duration> time) {
  return to_seconds(time.value()) * 1e6;
}

// 8 members: 2 + 2 x 1 us, and 7 x 50 kB at 100 GB/s.
TEST(DirectKernelsTest, SmallMessagesAreReadByAll) {
  EXPECT_NEAR(us(time_of_all_reduce(round_kernel(), 8, Bytes(50'000))), 4 + 3.5, 1e-5);
  EXPECT_NEAR(us(time_of_all_reduce(round_kernel(), 2, Bytes(50'000))), 2 + 0.5, 1e-5);
}

// 8 members: 2 x 7/8 x 800 kB at 200 GB/s is 7 us; one-shot takes 4 + 56 us.
TEST(DirectKernelsTest, LargerOnesAreAddedUpInParts) {
  EXPECT_NEAR(us(time_of_all_reduce(round_kernel(), 8, Bytes(800'000))), 10 + 7, 1e-5);
}

TEST(DirectKernelsTest, BeyondTheLimitTheyAreOthers) {
  EXPECT_TRUE(time_of_all_reduce(round_kernel(), 4, Bytes(16'000'000)));
  EXPECT_FALSE(time_of_all_reduce(round_kernel(), 4, Bytes(16'000'001)));
}

TEST(DirectKernelsTest, MoreBytesOrMembersNeverTakeLess) {
  double before = 0;
  for (std::int64_t bytes = 256; bytes <= 16'000'000; bytes *= 2) {
    const double time = us(time_of_all_reduce(round_kernel(), 4, Bytes(bytes)));
    EXPECT_GE(time, before) << bytes;
    EXPECT_GE(us(time_of_all_reduce(round_kernel(), 8, Bytes(bytes))), time) << bytes;
    before = time;
  }
}

// 128 tokens to 8 experts each, of 10,000 bytes a copy: 10.24 MB. 5 us, 64 x 10 ns, and 200 GB/s of
// the chip: 51.2 us. With 64 experts at half a unit each, 32 units of 4 GB/s send 128 GB/s: 80 us.
TEST(DirectKernelsTest, AnExchangeIsHeldUpByLinksOrUnits) {
  TokenExchange kernel{.start = 5us,
                       .expert_start = 10ns,
                       .bandwidth = Bandwidth(200e9),
                       .unit_rate = Bandwidth(4e9),
                       .units_of_expert = 0.5};
  ExchangedTokens sent{
      .tokens = 128, .top_k = 8, .experts = 64, .token_bytes = Bytes(10'000), .units = 100};
  EXPECT_NEAR(us(time_of_exchange(kernel, sent)), 5 + 0.64 + 80, 1e-5);
  kernel.units_of_expert = 1;
  EXPECT_NEAR(us(time_of_exchange(kernel, sent)), 5 + 0.64 + 51.2, 1e-5);
  sent.units = 25;
  EXPECT_NEAR(us(time_of_exchange(kernel, sent)), 5 + 0.64 + 102.4, 1e-5);
}

// Of 8 experts on 4 chips, two each, a token that goes to two of them misses a chip with
// (6 x 5) / (8 x 7): 4 x (1 - 30 / 56) = 13 / 7 chips. With as many experts as it goes to, all.
TEST(DirectKernelsTest, ATokenGoesOnceToEachChipOfItsExperts) {
  ExchangedTokens sent{.tokens = 1, .top_k = 2, .experts = 8, .chips = 4};
  EXPECT_NEAR(chips_of_token(sent), 13.0 / 7, 1e-12);
  sent.top_k = 1;
  EXPECT_NEAR(chips_of_token(sent), 1, 1e-12);
  sent.top_k = 8;
  EXPECT_EQ(chips_of_token(sent), 4);
  sent.top_k = 20;
  EXPECT_EQ(chips_of_token(sent), 4);
}

// 1,000 tokens of 1,000 bytes to one chip each. A unit takes 100 ns + 1 us + 200 ns + 500 ns for
// one, ten units 180 us for all and 3.6 us for two more under way. Links of 1 TB/s take 1 us, which
// the fourth powers hide; of 5 GB/s they take 200 us.
TEST(DirectKernelsTest, ABulkExchangeIsHeldUpByUnitsOrLinks) {
  BulkExchange kernel{.start = 5us,
                      .tokens_at_once = 2,
                      .token_time = 100ns,
                      .token_rate = Bandwidth(1e9),
                      .copy_time = 200ns,
                      .copy_rate = Bandwidth(2e9),
                      .bandwidth = Bandwidth(1e12),
                      .units = 10};
  const ExchangedTokens sent{
      .tokens = 1000, .top_k = 1, .experts = 8, .token_bytes = Bytes(1000), .chips = 8};
  EXPECT_NEAR(us(time_of_exchange(kernel, sent)), 5 + 183.6, 1e-4);
  kernel.bandwidth = Bandwidth(5e9);
  EXPECT_NEAR(us(time_of_exchange(kernel, sent)),
              5 + std::pow(std::pow(183.6, 4) + std::pow(200.0, 4), 0.25), 1e-4);
}

}  // namespace
}  // namespace stepsim
