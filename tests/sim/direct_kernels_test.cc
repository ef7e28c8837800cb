// All-reduces and exchanges of serving (sim/collectives/direct_kernels.h), computed by hand.

#include "sim/collectives/direct_kernels.h"

#include <gtest/gtest.h>

#include <chrono>

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

}  // namespace
}  // namespace stepsim
