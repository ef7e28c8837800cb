#include "schedules/pipeline/orders/one_forward_one_backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/reference_folder.h"
#include "tests/support/run_schedule.h"

namespace stepsim {
namespace {

using namespace literals;

struct Golden {
  std::int32_t stages = 0;
  std::int32_t microbatches = 0;
  nlohmann::json json;
};

std::vector<Golden> golden_cases() {
  std::ifstream file(reference_folder() / "schedules" / "1f1b.jsonl");
  std::vector<Golden> cases;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    cases.push_back({json["stages"], json["microbatches"], json});
  }
  return cases;
}

TEST(OneForwardOneBackwardTest, IsTheOrderOfTheAuthorsCode) {
  const std::vector<Golden> cases = golden_cases();
  ASSERT_EQ(cases.size(), 18U);
  for (const Golden& golden : cases) {
    const PipelineSchedule schedule = one_forward_one_backward(golden.stages, golden.microbatches);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      std::string order;
      int in_flight = 0;
      int peak = 0;
      for (const PipelineOp& op : schedule.ranks[rank]) {
        order += (order.empty() ? "" : " ") + to_text(op);
        in_flight += op.kind == PipelineOpKind::kForward ? 1 : -1;
        peak = std::max(peak, in_flight);
      }
      EXPECT_EQ(order, golden.json["per_rank"][rank]);
      EXPECT_EQ(peak, golden.json["peak_in_flight"][rank]);
    }
  }
}

// The bubble is (P - 1)(T_F + T_B) of a makespan (M + P - 1)(T_F + T_B): (P - 1)/(M + P - 1) to the
// picosecond, also where M < P (SPEC section 3).
TEST(OneForwardOneBackwardTest, HasItsClosedFormBubbleToThePicosecond) {
  for (const int stages : {1, 2, 3, 4, 8, 16}) {
    for (const int microbatches : {1, 2, 3, 4, 7, 8, 32, 64}) {
      const SimulationResult result =
          run_schedule(one_forward_one_backward(stages, microbatches), {});
      EXPECT_EQ(result.step_time, (microbatches + stages - 1) * Duration(3ms));
      for (const Breakdown& breakdown : result.breakdowns) {
        EXPECT_EQ(breakdown.compute, microbatches * Duration(3ms));
        EXPECT_EQ(breakdown.bubble, (stages - 1) * Duration(3ms));
      }
    }
  }
}

}  // namespace
}  // namespace stepsim
