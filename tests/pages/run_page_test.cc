#include "pages/run_page.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/base/error.h"
#include "tests/support/hand_made_run.h"
#include "traces/results/result_json.h"

namespace stepsim {
namespace {

Json hand_made_json() {
  return parse_json(result_json(hand_made_run().view())).value.value();
}

TEST(RunPageTest, ItsNumbersAreThoseOfTheResult) {
  const std::string html = run_page(hand_made_json(), Json::object());
  for (const char* part :
       {R"(<data value="5.001e-06" data-key="step_time_s">5.001 us</data>)",
        R"(<data value="2e-06" data-key="breakdown_s.compute">2 us</data>)",
        R"(<data value="1e-06" data-key="breakdown_s.exposed_communication.tp">1 us</data>)",
        R"(<data value="750000000" data-key="memory.peak_bytes">750 MB</data>)"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
}

TEST(RunPageTest, TheTimesOfTheSimulatorAreLeftOut) {
  const std::string html = run_page(hand_made_json(), Json::object());
  EXPECT_EQ(html.find("wall_s"), std::string::npos);
  EXPECT_NE(html.find("rate_updates"), std::string::npos);
}

TEST(RunPageTest, WhatIsNoRunIsRefusedWithAllThatIsMissing) {
  try {
    run_page(Json::object(), Json::object());
    FAIL() << "an empty object has a page";
  } catch (const ConfigError& error) {
    EXPECT_GT(error.problems().size(), 5u);
    EXPECT_EQ(error.problems()[0].field, "name");
  }
}

}  // namespace
}  // namespace stepsim
