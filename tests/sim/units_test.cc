#include "sim/base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepsim {
namespace {

using namespace literals;

TEST(UnitsTest, DecimalAndBinaryPrefixesDiffer) {
  EXPECT_EQ(80_GB, Bytes(80'000'000'000));
  EXPECT_EQ(80_GiB, Bytes(85'899'345'920));
  EXPECT_EQ(1_MiB, 1024 * 1_KiB);
}

TEST(UnitsTest, BitsAndBytesPerSecondDiffer) {
  EXPECT_EQ(400_Gbps, 50_GBps);
}

TEST(UnitsTest, TransferTimeRoundsUpOnceForTheWholeSize) {
  // 1 byte at 900 GB/s takes 1.11 ps; a per-byte time cut to 1 ps would lose 10%.
  EXPECT_EQ(1_B / 900_GBps, Duration(2));
  EXPECT_EQ(900_GB / 900_GBps, 1s);
  EXPECT_EQ(1_GB / 900_GBps, Duration(1'111'111'112));
}

TEST(UnitsTest, ComputeTimeRoundsUp) {
  EXPECT_EQ(Flops(1e15) / 1000_TFLOPS, 1s);
  EXPECT_EQ(Flops(1) / 1000_TFLOPS, Duration(1)) << "a thousandth of a picosecond";
  EXPECT_EQ(Flops(0) / 1000_TFLOPS, Duration(0));
}

TEST(UnitsTest, RefusesATransferThatNeverEnds) {
  EXPECT_THROW(1_B / Bandwidth(0), std::range_error);
  EXPECT_THROW(0_B / Bandwidth(0), std::range_error) << "0 / 0 is not a number";
}

TEST(UnitsTest, AnInfiniteBandwidthTakesNoTime) {
  EXPECT_EQ(80_GB / Bandwidth(std::numeric_limits<double>::infinity()), Duration(0));
}

TEST(UnitsTest, DurationsReachAHundredDaysAndNotTheirLimit) {
  EXPECT_EQ(duration_from_seconds(0), Duration(0));
  EXPECT_EQ(duration_from_seconds(9e6), Duration(9'000'000'000'000'000'000)) << "104 days";
  EXPECT_THROW(duration_from_seconds(9.2e6), std::range_error);
  EXPECT_THROW(duration_from_seconds(-1e-6), std::range_error);
}

TEST(UnitsTest, TimesDoNotWrap) {
  constexpr Duration kLongest = Duration::max();
  EXPECT_THROW(kLongest + Duration(1), std::range_error);
  EXPECT_THROW(Duration::min() - Duration(1), std::range_error);
  EXPECT_THROW(2 * kLongest, std::range_error);
  EXPECT_THROW(kLongest * -2, std::range_error);
  EXPECT_THROW(Duration::min() / -1, std::range_error);
  EXPECT_THROW(kLongest / 0, std::domain_error);
  EXPECT_THROW(Duration(std::chrono::hours(24 * 107)), std::range_error);
  EXPECT_THROW(Time{kLongest} + Duration(1), std::range_error);
  EXPECT_THROW(Time{Duration(-2)} - Time{kLongest}, std::range_error);
  Duration sum = kLongest - Duration(1);
  EXPECT_EQ(sum += Duration(1), kLongest);
  EXPECT_THROW(sum += Duration(1), std::range_error);
  EXPECT_EQ(sum, kLongest) << "a sum that is refused changes nothing";
  EXPECT_EQ(kLongest / -1, Duration() - kLongest);
}

TEST(UnitsTest, SizesDoNotWrap) {
  constexpr Bytes kLargest(std::numeric_limits<std::int64_t>::max());
  constexpr Bytes kSmallest(std::numeric_limits<std::int64_t>::min());
  EXPECT_THROW(kLargest + 1_B, std::range_error);
  EXPECT_THROW(kSmallest - 1_B, std::range_error);
  EXPECT_THROW(2 * kLargest, std::range_error);
  EXPECT_THROW(kSmallest / -1, std::range_error);
  EXPECT_THROW(kLargest / 0, std::domain_error);
  Bytes sum = kLargest;
  EXPECT_THROW(sum += 1_B, std::range_error);
  sum -= 1_B;
  EXPECT_EQ(sum + 1_B, kLargest);
}

TEST(UnitsTest, RoundsBytesUpWithinTheirRange) {
  EXPECT_EQ(bytes_rounded_up(1.25), 2_B);
  EXPECT_EQ(bytes_rounded_up(0), 0_B);
  EXPECT_THROW(bytes_rounded_up(0x1p63), std::range_error);
  EXPECT_THROW(bytes_rounded_up(-1), std::range_error);
  EXPECT_THROW(bytes_rounded_up(std::numeric_limits<double>::quiet_NaN()), std::range_error);
}

TEST(UnitsTest, TimesAreExactSums) {
  const Time start{1s};
  EXPECT_EQ(start + 1ns, Time{Duration(1'000'000'001'000)});
  EXPECT_EQ((start + 1ns) - start, Duration(1'000));
  EXPECT_LT(start, start + Duration(1));
}

}  // namespace
}  // namespace stepsim
