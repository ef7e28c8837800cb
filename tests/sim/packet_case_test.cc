// Replays the packet cases of tests/reference/network. Every message must end at exactly the
// picosecond of the reference. With buffers that never fill, the network with credits must do the
// same, though it works differently.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/network/packets/packet_network.h"
#include "tests/support/network_case.h"

namespace stepsim {
namespace {

using namespace network_case;

PacketOptions options_of(const Case& input) {
  PacketOptions options{.packet_bytes = input.packets->packet_bytes};
  if (input.packets->header_bytes) {
    options.switching = Switching::kCutThrough;
    options.header_bytes = *input.packets->header_bytes;
  }
  return options;
}

class PacketCaseTest : public ::testing::TestWithParam<std::string> {
 protected:
  PacketCaseTest() : input_(load(cases_folder() / GetParam())) {}

  void expect_exact(const PacketOptions& options) {
    const std::unique_ptr<Network> network = make_packet_network(input_.fabric, options);
    const std::vector<Time> finish = run_flows(input_, *network);
    for (std::size_t i = 0; i < input_.flows.size(); ++i) {
      ASSERT_TRUE(input_.flows[i].is_compared);
      ASSERT_EQ(finish[i].since_start.count(), input_.flows[i].expected_finish.since_start.count())
          << input_.flows[i].name;
    }
    EXPECT_EQ(network->statistics().packet_hops, input_.packets->packet_hops);
    EXPECT_EQ(network->statistics().transfers, input_.flows.size());
    EXPECT_EQ(network->blocked_report(), "");
    expect_all_bytes(*network, *std::max_element(finish.begin(), finish.end()));
  }

  void expect_all_bytes(const Network& network, Time end) {
    std::vector<double> routed(input_.fabric.links().size(), 0);
    for (const Flow& flow : input_.flows) {
      for (const LinkUse& use : flow.route) {
        routed[use.link.index()] += static_cast<double>(flow.transfer.bytes.value());
      }
    }
    for (std::uint32_t link = 0; link < routed.size(); ++link) {
      ASSERT_EQ(network.carried(LinkId(link), end), routed[link]);
    }
  }

  const Case input_;
};

TEST_P(PacketCaseTest, EveryMessageEndsAtTheExactPicosecond) {
  expect_exact(options_of(input_));
}

TEST_P(PacketCaseTest, BuffersThatNeverFillChangeNothing) {
  PacketOptions options = options_of(input_);
  options.buffer_bytes = Bytes(1'000'000'000'000);
  expect_exact(options);
}

INSTANTIATE_TEST_SUITE_P(Packet, PacketCaseTest, ::testing::ValuesIn(packet_case_names()),
                         [](const ::testing::TestParamInfo<std::string>& parameter) {
                           return parameter.param.substr(0, parameter.param.find('.'));
                         });

}  // namespace
}  // namespace stepsim
