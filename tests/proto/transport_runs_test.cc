// Runs of other simulators: mean and last completion come out as theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "proto/network_case/network_case.h"
#include "sim/network/transport/transport_network.h"
#include "tests/support/reference_folder.h"

namespace stepsim {
namespace {

struct ReferenceRun {
  std::string name;
  bool at_receiver;
  double mean_us, last_us;
  double mean_tolerance, last_tolerance;  // percent
};

std::vector<ReferenceRun> reference_runs() {
  std::ifstream file(reference_folder() / "congestion" / "runs.csv");
  std::vector<ReferenceRun> runs;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::ranges::replace(line, ',', ' ');
    std::istringstream words(line);
    ReferenceRun run;
    std::string at;
    words >> run.name >> at >> run.mean_us >> run.last_us >> run.mean_tolerance >>
        run.last_tolerance;
    run.at_receiver = at == "receiver";
    runs.push_back(run);
  }
  return runs;
}

struct Completions {
  double mean_us = 0;
  double last_us = 0;
};

Completions completions_of(const std::string& name, bool at_receiver) {
  const NetworkCase input =
      load_network_case((reference_folder() / "congestion/runs" / (name + ".json.gz")).string());
  const auto network = make_transport_network(input.fabric, *input.transport);
  const FlowRun run = run_flows(input.flows, input.fabric, *network);
  EXPECT_EQ(run.blocked, "");
  Completions result;
  for (std::uint32_t flow = 0; flow < run.finish.size(); ++flow) {
    const Time end = at_receiver ? run.finish[flow]
                                 : Time{Duration(network->message(TransferId(flow)).acknowledged)};
    const double taken = to_seconds(end - input.flows.flows[flow].start) * 1e6;
    result.mean_us += taken / static_cast<double>(run.finish.size());
    result.last_us = std::max(result.last_us, taken);
  }
  return result;
}

TEST(TransportRunsTest, ComeOutAsInTheOtherSimulators) {
  const std::vector<ReferenceRun> runs = reference_runs();
  ASSERT_EQ(runs.size(), 20u);
  for (const ReferenceRun& run : runs) {
    SCOPED_TRACE(run.name);
    const Completions found = completions_of(run.name, run.at_receiver);
    EXPECT_NEAR(found.mean_us, run.mean_us, run.mean_us * run.mean_tolerance / 100);
    EXPECT_NEAR(found.last_us, run.last_us, run.last_us * run.last_tolerance / 100);
  }
}

TEST(TransportRunsTest, TheSameSeedGivesTheSameRunAndAnotherOneDoesNot) {
  NetworkCase input = load_network_case(
      (reference_folder() / "congestion/runs/htsim-eqds-incast-4-1MB.json.gz").string());
  const auto finish = [&input](std::uint64_t seed) {
    input.transport->seed = seed;
    const auto network = make_transport_network(input.fabric, *input.transport);
    return run_flows(input.flows, input.fabric, *network).finish;
  };
  EXPECT_EQ(finish(1), finish(1));
  EXPECT_NE(finish(1), finish(2));
}

}  // namespace
}  // namespace stepsim
