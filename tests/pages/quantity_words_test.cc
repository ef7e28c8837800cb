#include "pages/quantity_words.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepsim {
namespace {

TEST(QuantityWordsTest, FourDigitsAndTheUnitOfAPerson) {
  EXPECT_EQ(shown_seconds(18.22163682468).text, "18.22 s");
  EXPECT_EQ(shown_seconds(0.10995).text, "110 ms");  // 109.95, rounded
  EXPECT_EQ(shown_seconds(2.5e-6).text, "2.5 us");
  EXPECT_EQ(shown_seconds(-4e-10).text, "-0.4 ns");
  EXPECT_EQ(shown_seconds(0).text, "0 s");
  EXPECT_EQ(shown_bytes(39860355072).text, "39.86 GB");
  EXPECT_EQ(shown_bytes(999).text, "999 B");
  EXPECT_EQ(shown_bytes(0).text, "0 B");
  EXPECT_EQ(shown_rate(989.4e12, "FLOP").text, "989.4 TFLOP/s");
  EXPECT_EQ(shown_number(460365.228).text, "460,365");
  EXPECT_EQ(shown_number(-1234567).text, "-1,234,567");
  EXPECT_EQ(shown_number(0.012345).text, "0.01235");
  EXPECT_EQ(shown_percent(0.40824).text, "40.8 %");
  EXPECT_EQ(shown_change(-0.0441).text, "-4.41 %");
}

TEST(QuantityWordsTest, TheValueBehindReadsBackAsTheSameNumber) {
  const Shown shown = shown_seconds(18.22163682468, "step_time_s");
  EXPECT_EQ(std::stod(shown.value), 18.22163682468);
  EXPECT_EQ(shown.key, "step_time_s");
}

TEST(QuantityWordsTest, WhatIsNoNumberIsADash) {
  EXPECT_EQ(shown_seconds(std::numeric_limits<double>::infinity()).text, "-");
  EXPECT_EQ(shown_number(std::numeric_limits<double>::quiet_NaN()).value, "");
}

}  // namespace
}  // namespace stepsim
