// Replays the flow cases of tests/reference/network through FlowNetwork and compares every finish
// time with the exact one. The README there says where the cases come from and what they mean.
#include "tests/support/network_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "sim/network/flow_network.h"

namespace stepsim {
namespace {

using namespace network_case;

class NetworkCaseTest : public ::testing::TestWithParam<std::string> {};

// The clock counts whole picoseconds, the exact solver does not: each end on a chain of dependent
// flows may add one picosecond, times the case's own amplification of small changes. Where that is
// astronomical (ill-conditioned cases) only the makespan means anything.
TEST_P(NetworkCaseTest, EveryFlowEndsWhenTheExactSolverSays) {
  const Case input = load(cases_folder() / GetParam());
  FlowNetwork network(input.fabric);
  const std::clock_t before = std::clock();
  const std::vector<Time> finish = run_flows(input, network);
  RecordProperty("cpu_us", std::to_string((std::clock() - before) * 1'000'000 / CLOCKS_PER_SEC));

  double worst_ps = 0;
  for (std::size_t i = 0; i < input.flows.size(); ++i) {
    const Flow& flow = input.flows[i];
    if (!flow.is_compared || input.is_ill_conditioned) continue;
    const double allowed_s =
        flow.expected_finish_s * input.tolerance +
        kPicosecond * (1 + static_cast<double>(flow.depth)) * input.amplification;
    const double finish_s = to_seconds(finish[i].since_start);
    worst_ps = std::max(worst_ps, std::abs(finish_s - flow.expected_finish_s) / kPicosecond);
    ASSERT_NEAR(finish_s, flow.expected_finish_s, allowed_s) << flow.name;
  }
  RecordProperty("worst_ps", std::to_string(worst_ps));

  const Time makespan = *std::max_element(finish.begin(), finish.end());
  std::size_t depth = 0;
  for (const Flow& flow : input.flows) depth = std::max(depth, flow.depth);
  EXPECT_NEAR(to_seconds(makespan.since_start), input.makespan_s,
              input.makespan_s * input.tolerance + kPicosecond * static_cast<double>(depth + 1));

  // Every byte crossed each link of its route, by the integral of the links' rates.
  std::vector<double> routed(input.fabric.links().size(), 0);
  for (const Flow& flow : input.flows) {
    for (const LinkUse& use : flow.route) {
      routed[use.link.index()] += static_cast<double>(flow.transfer.bytes.value());
    }
  }
  for (std::uint32_t link = 0; link < routed.size(); ++link) {
    ASSERT_NEAR(network.carried(LinkId(link), makespan), routed[link], routed[link] * 1e-9);
  }
  EXPECT_EQ(network.statistics().transfers, input.flows.size());
  EXPECT_EQ(network.sharing().refills(), 0u) << "the fallback should not be needed";
}

INSTANTIATE_TEST_SUITE_P(Flow, NetworkCaseTest, ::testing::ValuesIn(flow_case_names()),
                         [](const ::testing::TestParamInfo<std::string>& parameter) {
                           return parameter.param.substr(0, parameter.param.find('.'));
                         });

}  // namespace
}  // namespace stepsim
