// Every text is a value or has a problem with its place; none throws, exhausts the stack or takes
// long.

#include "proto/messages/json_value.h"

#include <gtest/gtest.h>

#include <string>

namespace stepsim {
namespace {

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

std::string problem_of(const std::string& text) {
  const JsonOrProblem read = parse_json(text);
  EXPECT_EQ(read.value.has_value(), read.problem.empty());
  return read.problem;
}

// Returns the text as it is printed again.
std::string again(const std::string& text) {
  const JsonOrProblem read = parse_json(text);
  return read.value ? json_text(*read.value) : read.problem;
}

TEST(JsonValueTest, ValuesComeOutAsTheyWereWritten) {
  for (const char* text : {"null", "true", "-7", "18446744073709551615", "2.5", "\"a \\\"b\\\"\"",
                           "[]", "{}", R"({"z":1,"a":[1,[2,{"b":null}],"c"],"m":{"k":false}})"}) {
    EXPECT_EQ(again(text), text);
  }
}

TEST(JsonValueTest, AKeyIsGivenOnce) {
  EXPECT_NE(problem_of(R"({"a":1,"b":2,"a":3})").find("given twice"), std::string::npos);
}

TEST(JsonValueTest, LargeObjectsKeepTheirOrder) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i) text += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  const JsonOrProblem read = parse_json(text + R"("last":{"inner":[1]}})");
  ASSERT_TRUE(read.value);
  EXPECT_EQ(read.value->size(), 101U);
  EXPECT_EQ(read.value->begin().key(), "k0");
  EXPECT_EQ(json_text((*read.value)["last"]), R"({"inner":[1]})");
  EXPECT_EQ((*read.value)["k99"], 99);
  EXPECT_NE(problem_of(text + R"("k3":0})").find("given twice"), std::string::npos);
}

TEST(JsonValueTest, ManyKeysTakeTimeInProportion) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"" + std::to_string(i) + "\":0,";
  const JsonOrProblem read = parse_json(text + "\"end\":1}");
  ASSERT_TRUE(read.value);
  EXPECT_EQ(read.value->size(), 200'001U);
}

TEST(JsonValueTest, ProblemsNameLineAndColumn) {
  EXPECT_TRUE(problem_of("{\n  \"a\": 1,\n  b}").starts_with("parse error at line 3, column 3: "));
  EXPECT_TRUE(problem_of("").starts_with("parse error at line 1, column 1: "));
  EXPECT_TRUE(problem_of("[1] 2").starts_with("parse error at line 1, column 5: "));
}

TEST(JsonValueTest, NestingIsLimited) {
  const auto nested = [](std::size_t depth) { return repeated("[", depth) + repeated("]", depth); };
  EXPECT_EQ(problem_of(nested(100)), "");
  EXPECT_EQ(problem_of(nested(101)),
            "parse error at line 1, column 101: lists and objects must be nested at most 100 deep");
  EXPECT_EQ(problem_of(repeated("{\"a\":\n", 1'000'000)),
            "parse error at line 101, column 1: lists and objects must be nested at most 100 deep");
  EXPECT_NE(problem_of(repeated("[", 1'000'000)), "");
}

TEST(JsonValueTest, NumbersAreLimited) {
  EXPECT_EQ(problem_of("[\n1e999]"),
            "parse error at line 2, column 6: a number must be at most 1.7e308, is 1e999");
  EXPECT_EQ(again("[1e308,-1e308,1e-999]"), "[1e+308,-1e+308,0.0]");
  EXPECT_TRUE(problem_of(repeated("9", 100'000)).ends_with(repeated("9", 60) + "..."));
  EXPECT_TRUE(problem_of("0." + repeated("1", 100'000))
                  .ends_with("a number must have at most 1000 characters, this one has 100002"));
}

TEST(JsonValueTest, ValuesAreLimited) {
  EXPECT_EQ(problem_of("[" + repeated("0,", 20'000'000) + "0]"),
            "must have at most 20 million values");
}

TEST(JsonValueTest, BytesThatAreNotUtf8AreRefusedAndNeverPrinted) {
  const std::string problem = problem_of("[\"ok\",\n\"\xff\xfe\"]");
  EXPECT_TRUE(problem.starts_with("parse error at line 2, column 2: ")) << problem;
  EXPECT_EQ(problem.find('\xff'), std::string::npos);
  EXPECT_EQ(json_text(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

TEST(JsonValueTest, MessagesStayShort) {
  EXPECT_LT(problem_of("\"" + repeated("x", 1'000'000)).size(), 300U);
  EXPECT_EQ(shown(Json(repeated("x", 100))), "\"" + repeated("x", 59) + "...");
  EXPECT_EQ(shown(Json(repeated("\xC3\xA4", 100))), "\"" + repeated("\xC3\xA4", 29) + "...");
}

}  // namespace
}  // namespace stepsim
