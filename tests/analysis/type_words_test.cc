#include "analysis/accuracy/type_words.h"

#include <gtest/gtest.h>

#include <optional>

namespace stepsim {
namespace {

std::optional<DataType> type(std::string_view text) {
  return type_of_words(text).type;
}

TEST(TypeWordsTest, OneFormat) {
  EXPECT_EQ(type("bf16"), DataType::kBf16);
  EXPECT_EQ(type("BF16"), DataType::kBf16);
  EXPECT_EQ(type("amp_bf16 / MP DEFAULT"), DataType::kBf16);
  EXPECT_EQ(type("bf16 (Autocast:BF16+FP32Optimizer)"), DataType::kBf16);
  EXPECT_EQ(type("fp16 mixed"), DataType::kFp16);
  EXPECT_EQ(type("FP32"), DataType::kFp32);
  EXPECT_EQ(type("fp8 \"e4m3\""), DataType::kFp8);
  EXPECT_EQ(type("float8 rowwise"), DataType::kFp8);
  EXPECT_EQ(type("FP8-CS"), DataType::kFp8);
}

TEST(TypeWordsTest, OfSeveralTheNarrowestIsThatOfMatmuls) {
  EXPECT_EQ(type("float8 linears + bf16"), DataType::kFp8);
  EXPECT_EQ(type("bf16 + fp8"), DataType::kFp8);
  EXPECT_EQ(type("fp8 hybrid (TE) GEMMs, bf16 rest"), DataType::kFp8);
  EXPECT_EQ(type("int8 (AQT) GEMMs + bf16"), DataType::kInt8);
  EXPECT_EQ(type("fp16/bf16 mixed (not stated)"), DataType::kFp16);
}

TEST(TypeWordsTest, ParenthesesExplain) {
  EXPECT_EQ(type("FP8 (25.09: FP8-CS; value in parentheses = FP8-MX, dropped)"), DataType::kFp8);
  EXPECT_EQ(type("not stated (fp8 or nvfp4)"), std::nullopt);
  EXPECT_EQ(type("not stated (default bfloat16)"), DataType::kBf16);
  EXPECT_EQ(type("FP4=True (FP4_RECIPE=nvfp4), bf16 rest"), DataType::kNvfp4);
}

TEST(TypeWordsTest, SixteenBitsByAnyName) {
  for (const char* words : {"amp", "w16a16", "mixed precision", "16-bit"}) {
    EXPECT_EQ(type(words), DataType::kFp16) << words;
  }
}

TEST(TypeWordsTest, WhatIsNotModelledIsNotTakenForAnother) {
  EXPECT_EQ(type_of_words("MXFP6 GEMMs").problem, "dtype \"MXFP6 GEMMs\": mxfp6 is not modelled");
  EXPECT_EQ(type("fp4"), std::nullopt) << "which one?";
}

TEST(TypeWordsTest, FormatsWithScalesOfTheirOwn) {
  EXPECT_EQ(type("nvfp4 GEMMs (TE)"), DataType::kNvfp4);
  EXPECT_EQ(type("MXFP8"), DataType::kMxfp8);
  EXPECT_EQ(type("FP8-MX"), DataType::kMxfp8);
  EXPECT_EQ(type("MXFP4 + bf16"), DataType::kMxfp4);
  EXPECT_EQ(type("int4 weights + bf16"), DataType::kInt4);
  EXPECT_EQ(type_of_words("mxfp8, blocks of 32").scale_block, std::nullopt) << "its own scales";
}

TEST(TypeWordsTest, ScalesOfFp8) {
  EXPECT_TRUE(type_of_words("float8 rowwise").scale_rows);
  EXPECT_EQ(type_of_words("fp8 (blockwise scaling)").scale_block, 128);
  EXPECT_EQ(type_of_words("FP8 1x128").scale_block, 128);
  for (const char* text :
       {"float8 tensorwise", "fp8 hybrid (TE delayed scaling)", "bf16 rowwise"}) {
    EXPECT_FALSE(type_of_words(text).scale_rows) << text;
    EXPECT_EQ(type_of_words(text).scale_block, std::nullopt) << text;
  }
}

TEST(TypeWordsTest, WhatIsNotStatedIsLeftOpen) {
  EXPECT_TRUE(leaves_type_open("not stated"));
  EXPECT_TRUE(leaves_type_open("Not stated (their script)"));
  for (const char* words : {"not stated (fp8 or nvfp4)", "unknown", "posit16", "bf16"}) {
    EXPECT_FALSE(leaves_type_open(words)) << words;
  }
}

TEST(TypeWordsTest, AnUnknownTypeIsNotBf16) {
  EXPECT_EQ(type_of_words("unknown").problem, "dtype \"unknown\" names no known type");
  EXPECT_EQ(type("posit16"), std::nullopt);
  EXPECT_EQ(type(""), std::nullopt);
}

TEST(TypeWordsTest, WeightsAndMomentsIn16BitsAreNamed) {
  for (const char* words : {"pure bf16", "torch.bfloat16 (weights, AdamW)", "bf16-true",
                            "--training.dtype=bfloat16", "bf16 (weights loaded in bfloat16)"}) {
    EXPECT_TRUE(is_pure(words)) << words;
  }
  for (const char* words :
       {"bf16", "bf16; fp32 master weights, Adam in fp32", "not full bf16",
        "bf16 weights, Adam states fp32", "weights loaded in bf16; master copy"}) {
    EXPECT_FALSE(is_pure(words)) << words;
  }
}

}  // namespace
}  // namespace stepsim
