// 150 random cases of an independent oracle of vLLM's rules: tests/reference/serving/.

#include <gtest/gtest.h>

#include "proto/serving_case/read_cases.h"
#include "tests/support/reference_folder.h"

namespace stepsim {
namespace {

TEST(SchedulerCasesTest, AllAreAsTheOracleSays) {
  const auto cases =
      read_cases((reference_folder() / "serving" / "scheduler_cases.jsonl").string());
  ASSERT_EQ(cases.size(), 150U);
  for (const SchedulerCase& given : cases) {
    EXPECT_EQ(answer_of(given), given.expected) << given.id;
  }
}

}  // namespace
}  // namespace stepsim
