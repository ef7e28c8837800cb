#include "pages/json_fields.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepsim {
namespace {

std::vector<std::string> fields_of(const std::vector<Problem>& problems) {
  std::vector<std::string> fields;
  for (const Problem& problem : problems) fields.push_back(problem.field);
  return fields;
}

TEST(JsonFieldsTest, ReadsWhatIsThere) {
  const Json json = parse_json(R"({"a": 1.5, "b": {"c": "x", "d": true}, "e": [{"f": 2}, {"f": 3}],
                                   "g": [4, 5], "h": null})")
                        .value.value();
  std::vector<Problem> problems;
  const JsonFields fields(json, "", problems);
  EXPECT_EQ(fields.number("a"), 1.5);
  EXPECT_EQ(fields.object("b").text("c"), "x");
  EXPECT_TRUE(fields.object("b").truth("d"));
  EXPECT_EQ(fields.objects("e")[1].number("f"), 3);
  EXPECT_EQ(fields.numbers("g"), (std::vector<double>{4, 5}));
  EXPECT_FALSE(fields.has("h"));
  EXPECT_FALSE(fields.number_if_given("h"));
  EXPECT_EQ(fields.all_numbers().size(), 1u);
  EXPECT_TRUE(problems.empty());
}

TEST(JsonFieldsTest, EveryProblemIsListedUnderItsPath) {
  const Json json =
      parse_json(R"({"a": "x", "b": {"c": 1}, "e": [7], "g": [1, "y"], "i": 3})").value.value();
  std::vector<Problem> problems;
  const JsonFields fields(json, "", problems);
  fields.number("a");
  fields.object("b").text("c");
  fields.object("missing").number("inside");
  for (const JsonFields& one : fields.objects("e")) one.number("f");
  fields.numbers("g");
  fields.objects("i");
  fields.truth("a");
  EXPECT_EQ(fields_of(problems), (std::vector<std::string>{"a", "b.c", "missing", "missing.inside",
                                                           "e[0]", "e[0].f", "g", "i", "a"}));
  EXPECT_EQ(problems[0].message, "must be a number, is \"x\"");
  EXPECT_EQ(problems[2].message, "must be an object, is not given");
}

}  // namespace
}  // namespace stepsim
