// Replays the flow cases of tests/reference/network through FlowNetwork and compares every finish
// time with the exact one. The README there says where the cases come from and what they mean.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/flow_network.h"

namespace stepsim {
namespace {

constexpr double kPicosecond = 1e-12;

struct Flow {
  std::string name;
  Time start;
  Transfer transfer;
  std::vector<LinkUse> route;
  std::vector<std::size_t> followers;  // flows that wait for this one
  std::size_t awaited = 0;             // flows that this one waits for
  std::size_t depth = 0;               // flows on the longest chain before it
  double expected_finish_s = 0;
  bool is_compared = false;
};

struct Case {
  Fabric fabric;
  std::vector<Flow> flows;
  double tolerance = 0;  // relative
  double makespan_s = 0;
  double amplification = 1;  // of small changes, along chains of flows
  bool is_ill_conditioned = false;
};

std::filesystem::path cases_folder() {
  const std::filesystem::path here = std::source_location::current().file_name();
  return here.parent_path().parent_path() / "reference" / "network" / "cases";
}

// gzopen reads plain files too.
std::string read(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path.string());
  std::string text;
  std::vector<char> block(1 << 16);
  int size = 0;
  while ((size = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  gzclose(file);
  return text;
}

Duration to_picoseconds(double seconds) {
  return Duration(std::llround(seconds / kPicosecond));
}

Case load(const std::filesystem::path& path) {
  const nlohmann::json json = nlohmann::json::parse(read(path));
  Case result;
  std::map<std::string, NodeId> nodes;
  const auto node = [&](const std::string& name) {
    const auto found = nodes.find(name);
    if (found != nodes.end()) return found->second;
    return nodes.emplace(name, result.fabric.add(NodeKind::kSwitch, name)).first->second;
  };
  std::map<std::string, LinkId> links;
  for (const auto& link : json.at("links")) {
    links[link.at("id")] = result.fabric.connect_one_way(node(link.at("from")), node(link.at("to")),
                                                         Bandwidth(link.at("capacity_Bps")),
                                                         to_picoseconds(link.at("latency_s")));
  }
  std::map<std::string, std::size_t> indices;
  for (const auto& json_flow : json.at("flows")) {
    Flow flow;
    flow.name = json_flow.at("id");
    flow.start = Time{to_picoseconds(json_flow.at("start_s"))};
    flow.transfer.bytes = Bytes(json_flow.at("bytes"));
    flow.transfer.latency = Duration::zero();
    for (const auto& name : json_flow.at("route")) {
      const LinkId link = links.at(name);
      flow.route.push_back({link, 1});
      flow.transfer.latency += result.fabric.link(link).latency;
    }
    indices[flow.name] = result.flows.size();
    result.flows.push_back(std::move(flow));
  }
  // Predecessors stand before their followers in these files, so depths are known in time.
  for (const auto& json_flow : json.at("flows")) {
    const std::size_t index = indices.at(json_flow.at("id"));
    for (const auto& name : json_flow.at("after")) {
      const std::size_t before = indices.at(name);
      if (before >= index) throw std::runtime_error("flow waits for a later one");
      result.flows[before].followers.push_back(index);
      result.flows[index].awaited++;
      result.flows[index].depth =
          std::max(result.flows[index].depth, result.flows[before].depth + 1);
    }
  }
  for (const auto& expected : json.at("expect")) {
    Flow& flow = result.flows[indices.at(expected.at("flow"))];
    flow.expected_finish_s = expected.at("finish_s");
    flow.is_compared = true;
  }
  result.tolerance = json.at("tolerance_rel");
  result.makespan_s = json.at("expect_summary").at("makespan_s");
  result.is_ill_conditioned = json.contains("expect_ill_conditioned");
  if (json.contains("conditioning")) {
    result.amplification = std::max(1.0, json.at("conditioning").at("amplification").get<double>());
  }
  return result;
}

// What the simulation loop does, for flows only: the network first, then the starts of the same
// instant, then settle().
std::vector<Time> replay(const Case& input, Network& network) {
  using Begin = std::pair<Time, std::size_t>;
  std::priority_queue<Begin, std::vector<Begin>, std::greater<>> begins;
  std::vector<std::size_t> awaited;
  for (std::size_t i = 0; i < input.flows.size(); ++i) {
    awaited.push_back(input.flows[i].awaited);
    if (awaited[i] == 0) begins.push({input.flows[i].start, i});
  }
  std::vector<Time> finish(input.flows.size());
  std::vector<TransferId> done;
  for (;;) {
    std::optional<Time> now = network.next_event();
    const bool is_network = now && (begins.empty() || *now <= begins.top().first);
    if (!is_network && begins.empty()) break;
    if (is_network) {
      done.clear();
      network.advance(*now, done);
      for (const TransferId id : done) {
        finish[id.index()] = *now;
        for (const std::size_t follower : input.flows[id.index()].followers) {
          if (--awaited[follower] > 0) continue;
          begins.push({std::max(*now, input.flows[follower].start), follower});
        }
      }
    } else {
      now = begins.top().first;
    }
    while (!begins.empty() && begins.top().first == *now) {
      const std::size_t index = begins.top().second;
      begins.pop();
      Transfer transfer = input.flows[index].transfer;
      transfer.uses = input.flows[index].route;
      network.start(*now, TransferId(static_cast<std::uint32_t>(index)), transfer);
    }
    network.settle(*now);
  }
  return finish;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(cases_folder())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class NetworkCaseTest : public ::testing::TestWithParam<std::string> {};

// The clock counts whole picoseconds, the exact solver does not: each end on a chain of dependent
// flows may add one picosecond, times the case's own amplification of small changes. Where that is
// astronomical (ill-conditioned cases) only the makespan means anything.
TEST_P(NetworkCaseTest, EveryFlowEndsWhenTheExactSolverSays) {
  const Case input = load(cases_folder() / GetParam());
  FlowNetwork network(input.fabric);
  const std::clock_t before = std::clock();
  const std::vector<Time> finish = replay(input, network);
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

INSTANTIATE_TEST_SUITE_P(Flow, NetworkCaseTest, ::testing::ValuesIn(case_names()),
                         [](const ::testing::TestParamInfo<std::string>& parameter) {
                           return parameter.param.substr(0, parameter.param.find('.'));
                         });

}  // namespace
}  // namespace stepsim
