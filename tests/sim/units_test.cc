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

TEST(UnitsTest, TimesAreExactSums) {
  const Time start{1s};
  EXPECT_EQ(start + 1ns, Time{Duration(1'000'000'001'000)});
  EXPECT_EQ((start + 1ns) - start, Duration(1'000));
  EXPECT_LT(start, start + Duration(1));
}

}  // namespace
}  // namespace stepsim
