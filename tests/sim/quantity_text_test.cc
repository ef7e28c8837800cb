#include "sim/base/quantity_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace stepsim {
namespace {

using namespace literals;

TEST(QuantityTextTest, ReadsSizesInDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("64MiB"), 64_MiB);
  EXPECT_EQ(parse_bytes("64MB"), Bytes(64'000'000));
  EXPECT_EQ(parse_bytes("1.5GB"), Bytes(1'500'000'000));
  EXPECT_EQ(parse_bytes("1.5 KiB"), Bytes(1536));
  EXPECT_EQ(parse_bytes("4096"), Bytes(4096));
  EXPECT_EQ(parse_bytes("2e3"), Bytes(2000));
  EXPECT_EQ(parse_bytes("0"), Bytes(0));
}

TEST(QuantityTextTest, AWholeSizeIsExactThoughItsDecimalIsNoDouble) {
  EXPECT_EQ(parse_bytes("1.1TB"), Bytes(1'100'000'000'000));
  EXPECT_EQ(parse_bytes("0.3GB"), Bytes(300'000'000));
  EXPECT_EQ(parse_bytes("9007199254740993"), Bytes(9'007'199'254'740'993)) << "2^53 + 1";
}

TEST(QuantityTextTest, RefusesAPartOfAByte) {
  EXPECT_EQ(parse_bytes("1.5"), std::nullopt);
  EXPECT_EQ(parse_bytes("1.1KiB"), std::nullopt) << "1126.4 bytes";
  EXPECT_EQ(parse_bytes("1000000000.5"), std::nullopt);
}

TEST(QuantityTextTest, SizesEndAtTheLargestInteger) {
  EXPECT_EQ(parse_bytes("9223372036854775807"), Bytes(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(parse_bytes("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_bytes("8191PiB"), Bytes(8191 * (std::int64_t{1} << 50)));
  EXPECT_EQ(parse_bytes("8192PiB"), std::nullopt) << "2^63";
  EXPECT_EQ(parse_bytes("1e19"), std::nullopt);
}

TEST(QuantityTextTest, RefusesWhatIsNoQuantity) {
  for (const char* text : {"", " ", "MiB", "-1", "-0", "+1", "1 ", " 1", "1X", "1mib", "1 M iB",
                           "nan", "inf", "1e999", "0x10", "1,5GB", "1GB/s", "1Gb"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << "'" << text << "'";
  }
}

TEST(QuantityTextTest, ReadsDurationsToThePicosecond) {
  EXPECT_EQ(parse_duration("5us"), Duration(5'000'000));
  EXPECT_EQ(parse_duration("0.1us"), Duration(100'000));
  EXPECT_EQ(parse_duration("0.3us"), Duration(300'000));
  EXPECT_EQ(parse_duration("1.5 ms"), Duration(1'500'000'000));
  EXPECT_EQ(parse_duration("2"), Duration(2s));
  EXPECT_EQ(parse_duration("2min"), Duration(120s));
  EXPECT_EQ(parse_duration("1h"), Duration(3600s));
  EXPECT_EQ(parse_duration("0"), Duration(0));
  EXPECT_EQ(parse_duration("107days"), std::nullopt);
  EXPECT_EQ(parse_duration("9223373"), std::nullopt) << "2^63 ps is 9,223,372.04 s";
}

TEST(QuantityTextTest, APartOfAPicosecondRoundsUp) {
  EXPECT_EQ(parse_duration("0.1ps"), Duration(1));
  EXPECT_EQ(parse_duration("1.0001ns"), Duration(1'001));
  EXPECT_EQ(parse_duration("1e-13"), Duration(1));
}

TEST(QuantityTextTest, TellsBitsFromBytes) {
  EXPECT_EQ(parse_bandwidth("400Gbps"), 400_Gbps);
  EXPECT_EQ(parse_bandwidth("400Gb/s"), 50_GBps);
  EXPECT_EQ(parse_bandwidth("400 GB/s"), 400_GBps);
  EXPECT_EQ(parse_bandwidth("5e10"), 50_GBps);
  EXPECT_EQ(parse_bandwidth("3.35TB/s"), 3350_GBps);
  EXPECT_EQ(parse_bandwidth("400gbps"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("400GB"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("-400Gbps"), std::nullopt);
}

TEST(QuantityTextTest, ReadsThroughputs) {
  EXPECT_EQ(parse_throughput("989TFLOPS"), 989_TFLOPS);
  EXPECT_EQ(parse_throughput("1.5PFLOP/s"), 1500_TFLOPS);
  EXPECT_EQ(parse_throughput("1e15"), 1000_TFLOPS);
  EXPECT_EQ(parse_throughput("989TFLOP"), std::nullopt);
}

using Factors = std::vector<std::pair<std::string, double>>;

// Decimal prefixes step by 1,000 and binary ones by 1,024, whether of bytes or of bytes a second.
TEST(QuantityTextTest, EveryUnitOfBytesIsWhatItsNameSays) {
  for (const auto& [prefix, factor] : Factors{{"", 1},
                                              {"k", 1e3},
                                              {"K", 1e3},
                                              {"M", 1e6},
                                              {"G", 1e9},
                                              {"T", 1e12},
                                              {"P", 1e15},
                                              {"Ki", 0x1p10},
                                              {"Mi", 0x1p20},
                                              {"Gi", 0x1p30},
                                              {"Ti", 0x1p40}}) {
    EXPECT_EQ(parse_bytes("3" + prefix + "B"), Bytes(static_cast<std::int64_t>(3 * factor)))
        << prefix;
    EXPECT_EQ(parse_bandwidth("3" + prefix + "B/s"), Bandwidth(3 * factor)) << prefix;
  }
  EXPECT_EQ(parse_bytes("3PiB"), Bytes(3 * (std::int64_t{1} << 50)));
  EXPECT_EQ(parse_bandwidth("3GBps"), Bandwidth(3e9));
  EXPECT_EQ(parse_bandwidth("3TBps"), Bandwidth(3e12));
}

TEST(QuantityTextTest, EightBitsAreAByte) {
  for (const auto& [prefix, factor] :
       Factors{{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}) {
    EXPECT_EQ(parse_bandwidth("8" + prefix + "bps"), Bandwidth(factor)) << prefix;
    EXPECT_EQ(parse_bandwidth("8" + prefix + "b/s"), Bandwidth(factor)) << prefix;
  }
}

TEST(QuantityTextTest, EveryUnitOfThroughputAndTimeIsWhatItsNameSays) {
  for (const auto& [prefix, factor] : Factors{
           {"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}}) {
    EXPECT_EQ(parse_throughput("3" + prefix + "FLOPS"), Throughput(3 * factor)) << prefix;
    EXPECT_EQ(parse_throughput("3" + prefix + "FLOP/s"), Throughput(3 * factor)) << prefix;
  }
  for (const auto& [unit, picoseconds] : Factors{{"ps", 1},
                                                 {"ns", 1e3},
                                                 {"us", 1e6},
                                                 {"ms", 1e9},
                                                 {"s", 1e12},
                                                 {"min", 60e12},
                                                 {"h", 3600e12}}) {
    EXPECT_EQ(parse_duration("3" + unit), Duration(static_cast<std::int64_t>(3 * picoseconds)))
        << unit;
  }
}

TEST(QuantityTextTest, TheExamplesOfWhatIsAcceptedAreAccepted) {
  // Each text reads "a thing such as EXAMPLE, EXAMPLE or EXAMPLE (base unit)".
  EXPECT_EQ(accepted_bytes(), "a size such as 64MiB, 1.5GB or 4096 (bytes)");
  EXPECT_NE(accepted_duration().find("5us, 1.5ms or 0.25 (seconds)"), std::string::npos);
  EXPECT_EQ(parse_duration("0.25"), Duration(250ms));
  EXPECT_NE(accepted_bandwidth().find("400Gbps, 50GB/s or 5e10"), std::string::npos);
  EXPECT_NE(accepted_throughput().find("989TFLOPS, 1.5PFLOP/s or 1e15"), std::string::npos);
}

TEST(QuantityTextTest, WritesThreeSignificantDigitsAndAFittingUnit) {
  EXPECT_EQ(to_text(Bytes(1'530'000'000)), "1.53 GB");
  EXPECT_EQ(to_text(Bytes(512)), "512 B");
  EXPECT_EQ(to_text(Bytes(0)), "0 B");
  EXPECT_EQ(to_text(Bytes(-2'500)), "-2.50 KB");
  EXPECT_EQ(to_text(Duration(24'500'000)), "24.5 us");
  EXPECT_EQ(to_text(Duration(7)), "7 ps");
  EXPECT_EQ(to_text(Duration(12345s)), "12345 s");
  EXPECT_EQ(to_text(Duration(0)), "0 s");
  EXPECT_EQ(to_text(400_Gbps), "50.0 GB/s");
  EXPECT_EQ(to_text(989_TFLOPS), "989 TFLOP/s");
}

TEST(QuantityTextTest, RoundingMovesToTheNextUnitAndNeverShowsAThousand) {
  EXPECT_EQ(to_text(Bytes(999'499)), "999 KB");
  EXPECT_EQ(to_text(Bytes(999'500)), "1.00 MB");
  EXPECT_EQ(to_text(Bytes(9'994)), "9.99 KB");
  EXPECT_EQ(to_text(Bytes(9'996)), "10.0 KB");
  EXPECT_EQ(to_text(Bytes(99'960)), "100 KB");
}

TEST(QuantityTextTest, WhatIsWrittenCanBeRead) {
  EXPECT_EQ(parse_bytes(to_text(Bytes(1'530'000'000))), Bytes(1'530'000'000));
  EXPECT_EQ(parse_duration(to_text(Duration(24'500'000))), Duration(24'500'000));
  EXPECT_EQ(parse_bandwidth(to_text(50_GBps)), 50_GBps);
  EXPECT_EQ(parse_throughput(to_text(Throughput(5'000))), Throughput(5'000));
}

TEST(QuantityTextTest, ExactSecondsHaveTwelveDecimals) {
  EXPECT_EQ(exact_seconds(Duration(1'500'000)), "0.000001500000");
  EXPECT_EQ(exact_seconds(Duration(0)), "0.000000000000");
  EXPECT_EQ(exact_seconds(Duration(12'000'000'000'001)), "12.000000000001");
  EXPECT_EQ(exact_seconds(Duration(-1)), "-0.000000000001");
  // -2^63 ps, whose magnitude is no int64.
  EXPECT_EQ(exact_seconds(Duration::min()), "-9223372.036854775808");
}

}  // namespace
}  // namespace stepsim
