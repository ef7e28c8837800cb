// Properties that the flow network must have on any input, tried on random ones. The seed is fixed;
// RC_PARAMS="seed=... max_success=..." tries others.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/flow_network.h"
#include "sim/network/flow_run.h"
#include "sim/network/packets/packet_network.h"

namespace stepsim {
namespace {

constexpr double kTolerance = 1e-9;  // relative

struct RandomCase {
  Fabric fabric;
  FlowList list;
};

void show(const RandomCase& input, std::ostream& out) {
  for (const Link& link : input.fabric.links()) {
    out << "link of " << link.bandwidth.value() << " bytes/s, " << link.latency.count() << " ps\n";
  }
  for (const FlowList::Flow& flow : input.list.flows) {
    out << "flow from " << flow.start.since_start.count() << " ps, " << flow.bytes.value()
        << " bytes, over";
    for (const LinkId link : input.list.route(flow)) out << ' ' << link.index();
    out << '\n';
  }
  for (const auto& [flow, after] : input.list.dependences) {
    out << "flow " << flow << " after " << after << '\n';
  }
}

// Round numbers, so that equal rates and equal instants are common.
struct Sizes {
  int most_links = 8;
  int most_flows = 24;
  std::vector<double> bandwidths{1e9, 2e9, 3e9, 10e9};
  std::vector<std::int64_t> bytes{0, 1, 1'000, 6'000, 6'000, 12'000, 1'000'000};
  std::vector<std::int64_t> starts_ps{0, 0, 0, 1'000'000, 2'500'000};
  std::vector<std::int64_t> latencies_ps{0, 0, 500'000};
  bool may_wait = true;
};

Fabric random_fabric(const Sizes& sizes) {
  Fabric fabric;
  const NodeId any = fabric.add(NodeKind::kSwitch, "any");
  const int links = *rc::gen::inRange(1, sizes.most_links + 1);
  for (int i = 0; i < links; ++i) {
    fabric.connect_one_way(any, any, Bandwidth(*rc::gen::elementOf(sizes.bandwidths)),
                           Duration(*rc::gen::elementOf(sizes.latencies_ps)));
  }
  return fabric;
}

// A route is any set of links: the network does not care whether they are connected.
std::vector<LinkId> random_route(const Fabric& fabric) {
  const auto chosen =
      *rc::gen::container<std::vector<bool>>(fabric.links().size(), rc::gen::arbitrary<bool>());
  std::vector<LinkId> route;
  for (std::uint32_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) route.emplace_back(i);
  }
  if (route.empty()) route.emplace_back(0);
  return route;
}

RandomCase random_case(const Sizes& sizes) {
  RandomCase input{random_fabric(sizes), {}};
  const int flows = *rc::gen::inRange(1, sizes.most_flows + 1);
  for (int i = 0; i < flows; ++i) {
    input.list.add(Time{Duration(*rc::gen::elementOf(sizes.starts_ps))},
                   Bytes(*rc::gen::elementOf(sizes.bytes)), random_route(input.fabric));
    const auto flow = static_cast<std::uint32_t>(i);
    if (sizes.may_wait && i > 0 && *rc::gen::inRange(0, 3) == 0) {
      input.list.dependences.push_back({flow, *rc::gen::inRange<std::uint32_t>(0, flow)});
    }
  }
  std::ostringstream text;
  show(input, text);
  RC_LOG() << text.str();
  return input;
}

std::vector<Time> finish_times(const RandomCase& input) {
  FlowNetwork network(input.fabric);
  return run_flows(input.list, input.fabric, network).finish;
}

Time last_of(const std::vector<Time>& times) {
  return *std::max_element(times.begin(), times.end());
}

// A FlowNetwork that calls `watch` after every settle().
template <typename Watch>
class WatchedNetwork final : public Network {
 public:
  WatchedNetwork(const Fabric& fabric, Watch watch) : network_(fabric), watch_(watch) {}

  void start(Time now, TransferId id, const Transfer& transfer) override {
    network_.start(now, id, transfer);
  }
  void settle(Time now) override {
    network_.settle(now);
    watch_(network_, now);
  }
  std::optional<Time> next_event() const override { return network_.next_event(); }
  void advance(Time to, std::vector<TransferId>& done) override { network_.advance(to, done); }
  double carried(LinkId link, Time at) const override { return network_.carried(link, at); }
  NetworkStatistics statistics() const override { return network_.statistics(); }

 private:
  FlowNetwork network_;
  Watch watch_;
};

struct LinkState {
  double load = 0;
  double fastest = 0;
};

// Load and fastest transfer of each link, added up from the rates of the transfers.
std::vector<LinkState> states(const RandomCase& input,
                              const std::vector<FairSharing::Rate>& rates) {
  std::vector<LinkState> states(input.fabric.links().size());
  for (const FairSharing::Rate& rate : rates) {
    for (const LinkId link : input.list.route(input.list.flows[rate.id.index()])) {
      states[link.index()].load += rate.bytes_per_second;
      states[link.index()].fastest = std::max(states[link.index()].fastest, rate.bytes_per_second);
    }
  }
  return states;
}

template <typename Check>
void at_every_instant(const RandomCase& input, Check check) {
  WatchedNetwork network(input.fabric, [&](const FlowNetwork& flows, Time) {
    const std::vector<FairSharing::Rate> rates = flows.sharing().rates();
    check(rates, states(input, rates));
  });
  run_flows(input.list, input.fabric, network);
}

template <typename Property>
void expect_always(const std::string& description, Property property) {
  // RapidCheck reads this when it is used first.
  setenv("RC_PARAMS", "seed=20261120 max_success=1000", 0);
  EXPECT_TRUE(rc::check(description, property));
}

TEST(FlowNetworkPropertyTest, NoLinkIsEverAboveItsCapacity) {
  expect_always("load <= capacity at every instant", [] {
    const RandomCase input = random_case({});
    at_every_instant(input, [&](const auto&, const std::vector<LinkState>& links) {
      for (std::size_t i = 0; i < links.size(); ++i) {
        RC_ASSERT(links[i].load <= input.fabric.links()[i].bandwidth.value() * (1 + kTolerance));
      }
    });
  });
}

// The definition of max-min fairness.
TEST(FlowNetworkPropertyTest, EveryFlowHasAFullLinkOnWhichNoFlowIsFaster) {
  expect_always("every flow has a bottleneck", [] {
    const RandomCase input = random_case({});
    at_every_instant(input, [&](const std::vector<FairSharing::Rate>& rates,
                                const std::vector<LinkState>& links) {
      for (const FairSharing::Rate& rate : rates) {
        const auto route = input.list.route(input.list.flows[rate.id.index()]);
        RC_ASSERT(std::any_of(route.begin(), route.end(), [&](LinkId link) {
          const LinkState& state = links[link.index()];
          return state.load >= input.fabric.link(link).bandwidth.value() * (1 - kTolerance) &&
                 rate.bytes_per_second >= state.fastest * (1 - kTolerance);
        }));
      }
    });
  });
}

TEST(FlowNetworkPropertyTest, EveryByteCrossesEachLinkOfItsRoute) {
  expect_always("bytes are conserved", [] {
    const RandomCase input = random_case({});
    FlowNetwork network(input.fabric);
    const Time end = last_of(run_flows(input.list, input.fabric, network).finish);
    std::vector<double> routed(input.fabric.links().size(), 0);
    for (const FlowList::Flow& flow : input.list.flows) {
      for (const LinkId link : input.list.route(flow)) {
        routed[link.index()] += static_cast<double>(flow.bytes.value());
      }
    }
    for (std::uint32_t link = 0; link < routed.size(); ++link) {
      const double carried = network.carried(LinkId(link), end);
      RC_ASSERT(std::abs(carried - routed[link]) <= routed[link] * kTolerance + 1e-6);
    }
  });
}

// A link can't move its bytes faster than at its bandwidth; nor can one flow.
TEST(FlowNetworkPropertyTest, TheMakespanIsAtLeastTheBottleneckBound) {
  expect_always("makespan >= bytes of a link / bandwidth", [] {
    const RandomCase input = random_case({});
    const std::vector<Time> finish = finish_times(input);
    std::vector<double> seconds(input.fabric.links().size(), 0);
    for (std::size_t i = 0; i < finish.size(); ++i) {
      const FlowList::Flow& flow = input.list.flows[i];
      Duration latency{};
      double alone_s = 0;
      for (const LinkId link : input.list.route(flow)) {
        const double time_s =
            static_cast<double>(flow.bytes.value()) / input.fabric.link(link).bandwidth.value();
        seconds[link.index()] += time_s;
        alone_s = std::max(alone_s, time_s);
        latency += input.fabric.link(link).latency;
      }
      const double least_s = to_seconds((flow.start + latency).since_start) + alone_s;
      RC_ASSERT(to_seconds(finish[i].since_start) >= least_s - 1e-12);
    }
    // Each end on the way may be rounded by half a picosecond.
    const double slack_s = 1e-12 * static_cast<double>(finish.size());
    const double bound_s = *std::max_element(seconds.begin(), seconds.end());
    RC_ASSERT(to_seconds(last_of(finish).since_start) >= bound_s - slack_s);
  });
}

// All flows share link 0 and cross one link of their own that is never the narrower one.
TEST(FlowNetworkPropertyTest, MoreBandwidthAtASingleBottleneckIsNeverSlower) {
  expect_always("more bandwidth is never slower", [] {
    const auto flows = *rc::gen::inRange<std::uint32_t>(1, 16);
    const double factor = *rc::gen::elementOf(std::vector<double>{1.1, 1.5, 2, 7});
    const Sizes sizes;
    std::vector<std::pair<Time, Bytes>> list;
    for (std::uint32_t i = 0; i < flows; ++i) {
      list.emplace_back(Time{Duration(*rc::gen::elementOf(sizes.starts_ps))},
                        Bytes(*rc::gen::elementOf(sizes.bytes)));
    }
    const auto run = [&](double bandwidth) {
      RandomCase input;
      const NodeId any = input.fabric.add(NodeKind::kSwitch, "any");
      input.fabric.connect_one_way(any, any, Bandwidth(bandwidth), Duration::zero());
      for (const auto& [start, bytes] : list) {
        const LinkId own =
            input.fabric.connect_one_way(any, any, Bandwidth(10e9), Duration::zero());
        input.list.add(start, bytes, std::vector{LinkId(0), own});
      }
      return finish_times(input);
    };
    const std::vector<Time> before = run(1e9);
    const std::vector<Time> after = run(1e9 * factor);
    for (std::uint32_t i = 0; i < flows; ++i) {
      // Half a picosecond of rounding for each end before this one.
      RC_ASSERT(after[i] <= before[i] + Duration(flows));
    }
  });
}

TEST(FlowNetworkPropertyTest, TheOrderOfTheInputDoesNotMatter) {
  expect_always("order does not matter", [] {
    Sizes sizes;
    sizes.may_wait = false;
    const RandomCase input = random_case(sizes);
    std::vector<std::uint32_t> order(input.list.flows.size());
    std::iota(order.begin(), order.end(), 0u);
    order = *rc::gen::map(
        rc::gen::container<std::vector<std::uint32_t>>(order.size(),
                                                       rc::gen::arbitrary<std::uint32_t>()),
        [order](const std::vector<std::uint32_t>& keys) {
          std::vector<std::uint32_t> shuffled = order;
          std::stable_sort(shuffled.begin(), shuffled.end(),
                           [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
          return shuffled;
        });
    RandomCase other{input.fabric, {}};
    for (const std::uint32_t flow : order) {
      const FlowList::Flow& moved = input.list.flows[flow];
      other.list.add(moved.start, moved.bytes, input.list.route(moved));
    }
    const std::vector<Time> finish = finish_times(input);
    const std::vector<Time> finish_of_other = finish_times(other);
    for (std::size_t i = 0; i < order.size(); ++i) {
      // Sums of rates in another order round differently: a picosecond at each end at most.
      const Duration difference = finish_of_other[i] - finish[order[i]];
      RC_ASSERT(std::abs(difference.count()) <= static_cast<std::int64_t>(order.size()));
    }
  });
}

// Messages on paths of their own. The fluid ends after the latencies and bytes / narrowest
// bandwidth. Packets end later by at most one packet's time on each link but the narrowest: store
// and forward.
TEST(FlowNetworkPropertyTest, FlowAndPacketAgreeWithinAPacketALinkOnUncongestedPaths) {
  expect_always("flow and packet agree", [] {
    const Bytes packet(4096);
    RandomCase input;
    const NodeId any = input.fabric.add(NodeKind::kSwitch, "any");
    std::vector<Duration> packet_times;  // by flow: one packet's time on each of its links
    const int flows = *rc::gen::inRange(1, 5);
    for (int i = 0; i < flows; ++i) {
      std::vector<LinkId> route;
      packet_times.emplace_back();
      const int links = *rc::gen::inRange(1, 7);
      for (int link = 0; link < links; ++link) {
        // Powers of two: a packet takes a whole number of picoseconds.
        const Bandwidth bandwidth(*rc::gen::elementOf(std::vector<double>{1e9, 2e9, 4e9, 16e9}));
        route.push_back(input.fabric.connect_one_way(
            any, any, bandwidth,
            Duration(*rc::gen::elementOf(std::vector<std::int64_t>{0, 500'000}))));
        packet_times.back() += packet_time(packet.value(), bandwidth.value());
      }
      input.list.add(Time{Duration(*rc::gen::inRange(0, 10'000))},
                     Bytes(*rc::gen::inRange<std::int64_t>(1, 1'000'000)), route);
    }
    const std::vector<Time> fluid = finish_times(input);
    const auto packets = make_packet_network(input.fabric, {.packet_bytes = packet});
    const std::vector<Time> finish = run_flows(input.list, input.fabric, *packets).finish;
    for (std::size_t i = 0; i < fluid.size(); ++i) {
      // The rest of a message that is no whole number of packets is rounded up on each link.
      const Duration later = finish[i] - fluid[i];
      RC_ASSERT(later >= Duration(-1));
      RC_ASSERT(later <= packet_times[i] + Duration(8));
    }
  });
}

}  // namespace
}  // namespace stepsim
