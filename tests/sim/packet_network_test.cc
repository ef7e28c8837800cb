#include "sim/network/packets/packet_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/flow_network.h"

namespace stepsim {
namespace {

using namespace literals;

// Links of 1 GB/s: a packet of 1,000 bytes takes 1 us, one byte 1 ns.
constexpr Bandwidth kSlow = 1_GBps;
constexpr PacketOptions kThousand{.packet_bytes = 1'000_B};

// Starts messages, all of them in place, and runs a network to its end.
class Journey {
 public:
  Journey(const Fabric& fabric, const PacketOptions& options)
      : network_(make_packet_network(fabric, options)) {}
  explicit Journey(std::unique_ptr<Network> network) : network_(std::move(network)) {}

  Network& network() { return *network_; }

  void start(Time now, std::uint32_t id, Bytes bytes, const std::vector<LinkId>& route,
             Duration latency = {}, std::uint64_t order = 0) {
    std::vector<LinkUse> uses;
    for (const LinkId link : route) uses.push_back({link, 1});
    network_->start(now, TransferId(id),
                    {.bytes = bytes, .latency = latency, .uses = uses, .order = order});
  }

  void settle(Time now) { network_->settle(now); }

  // Until nothing is left to do; returns the instants of the ends.
  std::map<std::uint32_t, Duration> finish() {
    std::vector<TransferId> done;
    while (const std::optional<Time> next = network_->next_event()) {
      done.clear();
      network_->advance(*next, done);
      for (const TransferId id : done) finish_[id.index()] = next->since_start;
      network_->settle(*next);
    }
    return finish_;
  }

  // Runs until `to`, which must be no later than the next event.
  void go_to(Time to) {
    std::vector<TransferId> done;
    while (network_->next_event() && *network_->next_event() <= to) {
      const Time next = *network_->next_event();
      done.clear();
      network_->advance(next, done);
      for (const TransferId id : done) finish_[id.index()] = next.since_start;
      network_->settle(next);
    }
  }

 private:
  std::unique_ptr<Network> network_;
  std::map<std::uint32_t, Duration> finish_;
};

// a -> b -> c -> d, each way of the same bandwidth and latency.
struct Line {
  explicit Line(Bandwidth bandwidth = kSlow, Duration latency = 100ns) {
    for (const char* name : {"a", "b", "c", "d"}) fabric.add(NodeKind::kChip, name);
    for (std::uint32_t i = 0; i < 3; ++i) {
      links.push_back(fabric.connect_one_way(NodeId(i), NodeId(i + 1), bandwidth, latency));
    }
  }
  Fabric fabric;
  std::vector<LinkId> links;
};

// Sources x0, x1, ... -> switch -> destination.
struct Funnel {
  explicit Funnel(std::uint32_t sources, Bandwidth out = kSlow) {
    const NodeId middle = fabric.add(NodeKind::kSwitch, "s");
    const NodeId end = fabric.add(NodeKind::kChip, "d");
    for (std::uint32_t i = 0; i < sources; ++i) {
      const NodeId source = fabric.add(NodeKind::kChip, "x" + std::to_string(i));
      in.push_back(fabric.connect_one_way(source, middle, kSlow, 0s));
    }
    down = fabric.connect_one_way(middle, end, out, 0s);
  }
  Fabric fabric;
  std::vector<LinkId> in;
  LinkId down;
};

// n switches in a ring, one way round; message i enters at switch i and goes `hops` links on.
struct Ring {
  explicit Ring(std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; ++i) fabric.add(NodeKind::kChip, "r" + std::to_string(i));
    for (std::uint32_t i = 0; i < size; ++i) {
      links.push_back(fabric.connect_one_way(NodeId(i), NodeId((i + 1) % size), kSlow, 0s));
    }
  }
  std::vector<LinkId> route(std::uint32_t from, std::uint32_t hops) const {
    std::vector<LinkId> route;
    for (std::uint32_t i = 0; i < hops; ++i) route.push_back(links[(from + i) % links.size()]);
    return route;
  }
  Fabric fabric;
  std::vector<LinkId> links;
};

// --- One message ---------------------------------------------------------------------------------

TEST(PacketNetworkTest, StoreAndForwardPaysAPacketAndALatencyALink) {
  const Line line;
  Journey run(line.fabric, kThousand);
  run.start(Time{}, 0, 10'000_B, line.links);
  run.settle(Time{});
  // The first packet takes 3 x (1 us + 100 ns), nine more follow at 1 us each.
  EXPECT_EQ(run.finish()[0], Duration(3 * 1100ns + 9us));
  EXPECT_EQ(run.network().statistics().packet_hops, 30u);
  EXPECT_EQ(run.network().statistics().transfers, 1u);
}

TEST(PacketNetworkTest, CutThroughPaysAHeaderALink) {
  const Line line;
  PacketOptions options = kThousand;
  options.switching = Switching::kCutThrough;
  options.header_bytes = 64_B;
  Journey run(line.fabric, options);
  run.start(Time{}, 0, 10'000_B, line.links);
  run.settle(Time{});
  // The header goes over two links, 64 ns + 100 ns each; the whole packet over the third.
  EXPECT_EQ(run.finish()[0], Duration(2 * 164ns + 1us + 100ns + 9us));
}

TEST(PacketNetworkTest, AFasterPortWaitsUntilTheTailCannotStarveIt) {
  Fabric fabric;
  for (const char* name : {"a", "b", "c"}) fabric.add(NodeKind::kChip, name);
  const LinkId slow = fabric.connect_one_way(NodeId(0), NodeId(1), 1_GBps, 0s);
  const LinkId fast = fabric.connect_one_way(NodeId(1), NodeId(2), 10_GBps, 0s);
  PacketOptions options = kThousand;
  options.switching = Switching::kCutThrough;
  Journey run(fabric, options);
  run.start(Time{}, 0, 1'000_B, {slow, fast});
  run.settle(Time{});
  // Its last byte cannot leave the fast port before it has come, at 1 us.
  EXPECT_EQ(run.finish()[0], Duration(1us));
}

TEST(PacketNetworkTest, TheLastPacketCarriesTheRest) {
  const Line line(kSlow, 0ns);
  for (const auto& [bytes, time] : std::vector<std::pair<Bytes, Duration>>{
           {1_B, 3ns},
           {999_B, 3 * 999ns},
           {1'000_B, 3us},
           {1'001_B, 3us + 1ns}}) {  // the rest is never in the way of itself
    Journey run(line.fabric, kThousand);
    run.start(Time{}, 0, bytes, line.links);
    run.settle(Time{});
    EXPECT_EQ(run.finish()[0], time) << bytes.value();
  }
}

TEST(PacketNetworkTest, PacketTimesAreExactWhereTheyAreWhole) {
  EXPECT_EQ(packet_time(4096, 1e9), Duration(4096ns));  // divided first, it would be 1 ps more
  EXPECT_EQ(packet_time(4096, 50e9), Duration(81'920));
  EXPECT_EQ(packet_time(1, 3e12), Duration(1));  // a third of a picosecond, rounded up
  EXPECT_EQ(packet_time(0, 1e9), Duration(0));
}

TEST(PacketNetworkTest, MessagesWithoutBytesOrLinksTakeTheirLatency) {
  const Line line;
  Journey run(line.fabric, kThousand);
  run.start(Time{1us}, 0, 0_B, line.links, 300ns);
  run.start(Time{1us}, 1, 5'000_B, {}, 2us);
  run.settle(Time{1us});
  EXPECT_EQ(run.finish()[0], Duration(1300ns));
  EXPECT_EQ(run.finish()[1], Duration(3us));
  EXPECT_EQ(run.network().statistics().packet_hops, 0u);
}

TEST(PacketNetworkTest, TheLatencyOfATransferWithPacketsIsThatOfItsLinks) {
  const Line line;
  Journey run(line.fabric, kThousand);
  run.start(Time{}, 0, 1'000_B, {line.links[0]}, 1s);
  run.settle(Time{});
  EXPECT_EQ(run.finish()[0], Duration(1100ns));
}

TEST(PacketNetworkTest, OnlyPathsOfWeightOneAreMessages) {
  const Line line;
  const auto network = make_packet_network(line.fabric, kThousand);
  const auto refuses = [&](std::vector<LinkUse> uses) {
    EXPECT_THROW(network->start(Time{}, TransferId(0), {1_B, 0s, uses}), std::logic_error);
  };
  refuses({{line.links[0], 0.5}});
  refuses({{line.links[0], 1}, {line.links[1], 0.5}});
  refuses({{line.links[0], 1}, {line.links[2], 1}});
  refuses({{line.links[1], 1}, {line.links[0], 1}});
  EXPECT_EQ(network->next_event(), std::nullopt);
}

TEST(PacketNetworkTest, OptionsOutsideTheirLimitsAreRefused) {
  const Line line;
  const auto make = [&](PacketOptions options) { make_packet_network(line.fabric, options); };
  EXPECT_THROW(make({.packet_bytes = 0_B}), std::logic_error);
  EXPECT_NO_THROW(make({.packet_bytes = 1_B}));
  EXPECT_NO_THROW(make({.packet_bytes = Bytes(2'147'483'647)}));
  EXPECT_THROW(make({.packet_bytes = Bytes(2'147'483'648)}), std::logic_error);
  EXPECT_NO_THROW(make({.switching = Switching::kCutThrough, .header_bytes = 4096_B}));
  EXPECT_THROW(make({.switching = Switching::kCutThrough, .header_bytes = 4097_B}),
               std::logic_error);
  EXPECT_NO_THROW(make({.buffer_bytes = 4096_B}));
  EXPECT_THROW(make({.buffer_bytes = 4095_B}), std::logic_error);
  EXPECT_THROW(make({.spraying = PacketSpraying{}}), std::logic_error);
}

TEST(PacketNetworkTest, TimeThatPassesTheEndOfTheClockIsRefused) {
  // 1,000 bytes at 1e-3 byte/s are 11.6 days a packet: nine fit into 2^63 ps, ten do not.
  Fabric fabric;
  fabric.add(NodeKind::kChip, "a");
  fabric.add(NodeKind::kChip, "b");
  const LinkId link = fabric.connect_one_way(NodeId(0), NodeId(1), Bandwidth(1e-3), 0s);
  Journey fits(fabric, kThousand);
  fits.start(Time{}, 0, 9'000_B, {link});
  fits.settle(Time{});
  EXPECT_EQ(fits.finish()[0], Duration(9'000'000s));
  Journey too_long(fabric, kThousand);
  too_long.start(Time{}, 0, 10'000_B, {link});
  EXPECT_THROW(too_long.settle(Time{}), std::range_error);
}

// --- Several messages ----------------------------------------------------------------------------

TEST(PacketNetworkTest, MessagesThatStartTogetherQueueInOrderOfTheirIds) {
  const Line line;
  for (const std::vector<std::uint32_t>& calls :
       std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
    Journey run(line.fabric, kThousand);
    for (const std::uint32_t id : calls) run.start(Time{}, id, 2'000_B, {line.links[0]});
    run.settle(Time{});
    run.settle(Time{});  // nothing new
    const auto finish = run.finish();
    for (std::uint32_t id = 0; id < 3; ++id) {
      EXPECT_EQ(finish.at(id), Duration((id + 1) * 2us + 100ns));
    }
  }
}

TEST(PacketNetworkTest, OrderGoesBeforeIds) {
  const Line line(kSlow, 0ns);
  Journey run(line.fabric, kThousand);
  run.start(Time{}, 0, 1'000_B, {line.links[0]}, {}, 7);
  run.start(Time{}, 1, 1'000_B, {line.links[0]}, {}, 5);
  run.settle(Time{});
  EXPECT_EQ(run.finish()[1], Duration(1us));
  EXPECT_EQ(run.finish()[0], Duration(2us));
}

TEST(PacketNetworkTest, PacketsInterleaveAsTheyArrive) {
  // Both sources fill the port down from 1 us on, in turn: x0 at 1, 2, 3 us, x1 1 ns later. The
  // port sends x0, x1, x0, x1, x0, x1.
  const Funnel funnel(2);
  Journey run(funnel.fabric, kThousand);
  run.start(Time{}, 0, 3'000_B, {funnel.in[0], funnel.down});
  run.settle(Time{});
  run.start(Time{1ns}, 1, 3'000_B, {funnel.in[1], funnel.down});
  run.settle(Time{1ns});
  const auto finish = run.finish();
  EXPECT_EQ(finish.at(0), Duration(6us));
  EXPECT_EQ(finish.at(1), Duration(7us));
}

TEST(PacketNetworkTest, ArrivalsOfOneInstantQueueInOrderOfTheirLinks) {
  // Like above, at the same instant, and the ids the other way round.
  const Funnel funnel(2);
  Journey run(funnel.fabric, kThousand);
  run.start(Time{}, 1, 3'000_B, {funnel.in[0], funnel.down});
  run.start(Time{}, 0, 3'000_B, {funnel.in[1], funnel.down});
  run.settle(Time{});
  const auto finish = run.finish();
  EXPECT_EQ(finish.at(1), Duration(6us));
  EXPECT_EQ(finish.at(0), Duration(7us));
}

TEST(PacketNetworkTest, AMessageThatStartsQueuesBehindThePacketsOfThatInstant) {
  const Line line(kSlow, 0ns);
  Journey run(line.fabric, kThousand);
  run.start(Time{}, 0, 2'000_B, {line.links[0], line.links[1]});
  run.settle(Time{});
  run.go_to(Time{1us});  // the first packet queues at the second link
  run.start(Time{1us}, 1, 1'000_B, {line.links[1]});
  run.settle(Time{1us});
  const auto finish = run.finish();
  EXPECT_EQ(finish.at(1), Duration(3us));  // sent from 2 us on
  EXPECT_EQ(finish.at(0), Duration(4us));  // the second packet was there at 2 us: behind it
}

TEST(PacketNetworkTest, TransitAndArrivingPacketsShareAPort) {
  // Message 0 ends at the second link, message 1 goes on over the third. So packets of 1 that stand
  // between those of 0 do not form a train.
  const Line line(kSlow, 0ns);
  Journey run(line.fabric, kThousand);
  run.start(Time{}, 0, 2'000_B, {line.links[0], line.links[1]});
  run.start(Time{}, 1, 4'000_B, {line.links[1], line.links[2]});
  run.settle(Time{});
  const auto finish = run.finish();
  EXPECT_EQ(finish.at(0), Duration(6us));  // behind four packets of 1
  EXPECT_EQ(finish.at(1), Duration(5us));  // 4 us over the second link, one packet over the third
}

TEST(PacketNetworkTest, CarriedCountsThePartOfAPacketThatHasLeft) {
  const Line line(kSlow, 0ns);
  Journey run(line.fabric, kThousand);
  run.start(Time{}, 0, 2'500_B, {line.links[0], line.links[1]});
  run.start(Time{}, 1, 100_B, {line.links[0]});
  run.settle(Time{});
  EXPECT_EQ(run.network().carried(line.links[0], Time{}), 0);
  EXPECT_NEAR(run.network().carried(line.links[0], Time{250ns}), 250, 1e-9);
  run.go_to(Time{2us});
  EXPECT_NEAR(run.network().carried(line.links[0], Time{2550ns}), 2'550, 1e-9);
  EXPECT_NEAR(run.network().carried(line.links[1], Time{2300ns}), 1'300, 1e-9);
  run.finish();
  EXPECT_EQ(run.network().carried(line.links[0], Time{1s}), 2'600);
  EXPECT_EQ(run.network().carried(line.links[1], Time{1s}), 2'500);
  EXPECT_EQ(run.network().carried(line.links[2], Time{1s}), 0);
}

// --- Laws ----------------------------------------------------------------------------------------

// Messages between random neighbours and beyond on a ring, as (start, id, bytes, from, hops).
struct RandomMessage {
  Time start;
  Bytes bytes;
  std::uint32_t from;
  std::uint32_t hops;
};

std::uint32_t below(std::mt19937& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random() % limit);
}

std::vector<RandomMessage> random_messages(std::uint32_t seed, std::uint32_t ring) {
  std::mt19937 random(seed);
  std::vector<RandomMessage> messages;
  Time now{};
  for (int i = 0; i < 60; ++i) {
    now = now + Duration(below(random, 3) == 0 ? below(random, 5'000'000) : 0);
    const Bytes bytes(below(random, 9'000));
    const std::uint32_t from = below(random, ring);
    messages.push_back({now, bytes, from, 1 + below(random, ring - 2)});
  }
  return messages;
}

std::map<std::uint32_t, Duration> run_all(Journey& run, const Ring& ring,
                                          const std::vector<RandomMessage>& messages,
                                          bool backwards) {
  for (std::size_t i = 0; i < messages.size();) {
    std::size_t end = i;
    while (end < messages.size() && messages[end].start == messages[i].start) ++end;
    const Time now = messages[i].start;
    run.go_to(now);
    for (std::size_t k = i; k < end; ++k) {
      const std::size_t id = backwards ? end - 1 - (k - i) : k;
      const RandomMessage& message = messages[id];
      run.start(now, static_cast<std::uint32_t>(id), message.bytes,
                ring.route(message.from, message.hops));
    }
    run.settle(now);
    i = end;
  }
  return run.finish();
}

TEST(PacketNetworkLawTest, EveryByteCrossesEveryLinkOfItsRoute) {
  const Ring ring(6);
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    for (const Switching switching : {Switching::kStoreAndForward, Switching::kCutThrough}) {
      const std::vector<RandomMessage> messages = random_messages(seed, 6);
      Journey run(ring.fabric, {.packet_bytes = 1'000_B, .switching = switching});
      const auto finish = run_all(run, ring, messages, false);
      ASSERT_EQ(finish.size(), messages.size());
      std::vector<std::int64_t> routed(6, 0);
      for (std::size_t id = 0; id < messages.size(); ++id) {
        for (const LinkId link : ring.route(messages[id].from, messages[id].hops)) {
          routed[link.index()] += messages[id].bytes.value();
        }
        // Nobody is faster than alone, cut through without headers: bytes at 1 GB/s.
        EXPECT_GE(finish.at(static_cast<std::uint32_t>(id)) - messages[id].start.since_start,
                  packet_time(messages[id].bytes.value(), 1e9));
      }
      for (std::uint32_t link = 0; link < 6; ++link) {
        EXPECT_EQ(run.network().carried(LinkId(link), Time{1s}), static_cast<double>(routed[link]));
      }
    }
  }
}

TEST(PacketNetworkLawTest, TheOrderOfCallsInAnInstantChangesNothing) {
  const Ring ring(6);
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const std::vector<RandomMessage> messages = random_messages(seed, 6);
    Journey forwards(ring.fabric, kThousand);
    Journey backwards(ring.fabric, kThousand);
    EXPECT_EQ(run_all(forwards, ring, messages, false), run_all(backwards, ring, messages, true));
  }
}

TEST(PacketNetworkLawTest, LargeBuffersAreNoBuffers) {
  // The network with credits works in another way and must come to the same picosecond, ties
  // included.
  const Ring ring(6);
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    for (const Switching switching : {Switching::kStoreAndForward, Switching::kCutThrough}) {
      const std::vector<RandomMessage> messages = random_messages(seed, 6);
      PacketOptions options{.packet_bytes = 1'000_B, .switching = switching};
      Journey unlimited(ring.fabric, options);
      options.buffer_bytes = 1_GB;
      Journey limited(ring.fabric, options);
      EXPECT_EQ(run_all(unlimited, ring, messages, false), run_all(limited, ring, messages, false));
    }
  }
}

TEST(PacketNetworkLawTest, MessagesOfOneRouteEndInTheOrderOfTheirStarts) {
  const Line line;
  std::mt19937 random(5);
  Journey run(line.fabric, kThousand);
  Time now{};
  for (std::uint32_t id = 0; id < 40; ++id) {
    run.go_to(now);
    run.start(now, id, Bytes(1 + below(random, 7'000)), line.links);
    run.settle(now);
    now = now + Duration(below(random, 4'000'000));
  }
  const auto finish = run.finish();
  for (std::uint32_t id = 1; id < 40; ++id) EXPECT_LT(finish.at(id - 1), finish.at(id));
}

TEST(PacketNetworkLawTest, FlowsAgreeWithinAPacketALinkWhereNothingContends) {
  // A flow pays the latencies and bytes / bandwidth; store and forward costs a packet's time more
  // for each link but one.
  const Line line(50_GBps, 500ns);
  for (const Bytes bytes : {1_B, 4'096_B, 100'000_B, 10'000'000_B}) {
    Journey packets(line.fabric, {});
    Journey flows(make_flow_network(line.fabric));
    packets.start(Time{}, 0, bytes, line.links, 1500ns);
    flows.start(Time{}, 0, bytes, line.links, 1500ns);
    packets.settle(Time{});
    flows.settle(Time{});
    const Duration packet_end = packets.finish().at(0);
    const Duration flow_end = flows.finish().at(0);
    EXPECT_GE(packet_end, flow_end);
    EXPECT_LE(packet_end - flow_end, 2 * packet_time(4'096, 50e9));
  }
}

// --- Finite buffers ------------------------------------------------------------------------------

TEST(PacketBufferTest, AFullBufferHoldsBackTheSender) {
  // x0 sends 4 packets at 1 us each into a port that takes 4 us a packet and has room for one: the
  // room is reserved while a packet is on its way and until it has left again. So x0 sends its
  // packets at 0, 5, 10 and 15 us (1 us on the way, 4 us to leave).
  const Funnel funnel(1, kSlow / 4);
  PacketOptions options = kThousand;
  options.buffer_bytes = 1'000_B;
  Journey run(funnel.fabric, options);
  run.start(Time{}, 0, 4'000_B, {funnel.in[0], funnel.down});
  run.settle(Time{});
  run.go_to(Time{12us});
  EXPECT_NEAR(run.network().carried(funnel.in[0], Time{12us}), 3'000, 1e-9);
  EXPECT_EQ(run.finish()[0], Duration(20us));
}

TEST(PacketBufferTest, RoomForTwoKeepsAPortBusy) {
  // As above with room for two: the port down never waits. 1 us for the first, then 4 x 4 us; one
  // byte less than two packets is room for one.
  const Funnel funnel(1, kSlow / 4);
  for (const auto& [buffer, end] :
       std::vector<std::pair<Bytes, Duration>>{{2'000_B, 17us}, {1'999_B, 20us}}) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    Journey run(funnel.fabric, options);
    run.start(Time{}, 0, 4'000_B, {funnel.in[0], funnel.down});
    run.settle(Time{});
    EXPECT_EQ(run.finish()[0], end);
  }
}

TEST(PacketBufferTest, PortsThatWaitAreServedInTurn) {
  // Three sources, one full port: the first packets go in order of the links, and whoever gave a
  // packet waits behind the others. Room for one packet, 2 us each (1 us in, 1 us out): message m
  // sends its k-th packet as number 3 k + m.
  const Funnel funnel(3);
  PacketOptions options = kThousand;
  options.buffer_bytes = 1'000_B;
  Journey run(funnel.fabric, options);
  for (std::uint32_t id = 0; id < 3; ++id) {
    run.start(Time{}, id, 2'000_B, {funnel.in[id], funnel.down});
  }
  run.settle(Time{});
  const auto finish = run.finish();
  for (std::uint32_t id = 0; id < 3; ++id) EXPECT_EQ(finish.at(id), Duration((4 + id) * 2us));
}

TEST(PacketBufferTest, BackPressureSpreadsToTheSource) {
  // A message to d is stuck behind nothing of its own: the port in front of it holds packets for a
  // slow link (head-of-line blocking). a>b carries 0 (to c, slow) and 1 (to d, fast).
  Fabric fabric;
  for (const char* name : {"a", "b", "c", "d"}) fabric.add(NodeKind::kChip, name);
  const LinkId in = fabric.connect_one_way(NodeId(0), NodeId(1), kSlow, 0s);
  const LinkId slow = fabric.connect_one_way(NodeId(1), NodeId(2), kSlow / 100, 0s);
  const LinkId fast = fabric.connect_one_way(NodeId(1), NodeId(3), kSlow, 0s);
  const auto end_of_fast = [&](std::optional<Bytes> buffer) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    Journey run(fabric, options);
    run.start(Time{}, 0, 2'000_B, {in, slow});
    run.start(Time{}, 1, 1'000_B, {in, fast});
    run.settle(Time{});
    return run.finish()[1];
  };
  EXPECT_EQ(end_of_fast(std::nullopt), Duration(4us));
  EXPECT_EQ(end_of_fast(2'000_B), Duration(4us));
  // Room for one: the second packet to c leaves a only when the first has left b, at 101 us.
  EXPECT_EQ(end_of_fast(1'999_B), Duration(104us));
}

TEST(PacketBufferTest, ACircleOfFullBuffersIsReported) {
  // Each of four messages goes two links on, and all first packets leave at once. So every buffer
  // has one packet, and every port has a second packet of its own for a full buffer.
  const Ring ring(4);
  PacketOptions options = kThousand;
  options.buffer_bytes = 1'000_B;
  Journey run(ring.fabric, options);
  for (std::uint32_t id = 0; id < 4; ++id) run.start(Time{}, id, 5'000_B, ring.route(id, 2));
  run.settle(Time{});
  EXPECT_EQ(run.network().blocked_report(), "");  // still moving
  EXPECT_TRUE(run.finish().empty());
  EXPECT_EQ(run.network().next_event(), std::nullopt);
  EXPECT_EQ(run.network().blocked_report(),
            "a circle of full buffers (1000 bytes each) stops 4 messages:\n"
            "  r0>r1, which waits for room at\n"
            "  r1>r2, which waits for room at\n"
            "  r2>r3, which waits for room at\n"
            "  r3>r0, which waits for room at\n"
            "  the first\n");
}

TEST(PacketBufferTest, ACircleOfRoutesWithRoomGoesOn) {
  // Room for all five packets of the message that comes by: the ports never wait.
  const Ring ring(4);
  PacketOptions options = kThousand;
  options.buffer_bytes = 5'000_B;
  Journey run(ring.fabric, options);
  for (std::uint32_t id = 0; id < 4; ++id) run.start(Time{}, id, 5'000_B, ring.route(id, 2));
  run.settle(Time{});
  // Own packets take 5 us, then five of the neighbour's, there since 5 us at the latest.
  const auto finish = run.finish();
  ASSERT_EQ(finish.size(), 4u);
  for (const auto& [id, end] : finish) EXPECT_EQ(end, Duration(10us)) << id;
  EXPECT_EQ(run.network().blocked_report(), "");
}

// --- Spraying ------------------------------------------------------------------------------------

// a -> one of `width` switches -> b; the flow key chooses.
class WideRouter final : public Router {
 public:
  explicit WideRouter(std::uint32_t width) : width_(width) {}
  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    if (from == to) return;
    const auto way = static_cast<std::uint32_t>(flow_key % width_);
    out.push_back(LinkId(2 * way));
    out.push_back(LinkId(2 * way + 1));
  }

 private:
  std::uint32_t width_;
};

Fabric wide_fabric(std::uint32_t width) {
  Fabric fabric;
  const NodeId a = fabric.add(NodeKind::kChip, "a");
  const NodeId b = fabric.add(NodeKind::kChip, "b");
  for (std::uint32_t i = 0; i < width; ++i) {
    const NodeId middle = fabric.add(NodeKind::kSwitch, "s" + std::to_string(i));
    fabric.connect_one_way(a, middle, kSlow, 0s);
    fabric.connect_one_way(middle, b, kSlow, 0s);
  }
  return fabric;
}

TEST(PacketSprayingTest, PacketsTakeTurnsOverTheRoutes) {
  const Fabric fabric = wide_fabric(4);
  const WideRouter router(4);
  for (const std::optional<Bytes> buffer : {std::optional<Bytes>(), std::optional(1'000_B)}) {
    PacketOptions options = kThousand;
    options.buffer_bytes = buffer;
    Journey together(fabric, options);
    together.start(Time{}, 0, 8'500_B, {LinkId(0), LinkId(1)});
    together.settle(Time{});
    options.spraying = PacketSpraying{.router = &router, .routes = 4};
    Journey sprayed(fabric, options);
    sprayed.start(Time{}, 0, 8'500_B, {LinkId(0), LinkId(1)});
    sprayed.settle(Time{});
    // The first way has packets 0, 4 and the rest of 500 bytes. Its second link sends from 1 us on:
    // 2 us, and 500 ns. With room for one packet each of them takes its time twice: 2 x 2.5 us.
    EXPECT_EQ(sprayed.finish()[0], buffer ? Duration(5us) : Duration(3500ns));
    EXPECT_EQ(sprayed.network().statistics().packet_hops, 18u);
    EXPECT_EQ(sprayed.network().carried(LinkId(0), Time{1s}), 2'500);
    EXPECT_EQ(sprayed.network().carried(LinkId(7), Time{1s}), 2'000);
    // One way only: 1 us + 8.5 us, or 2 x 8.5 us.
    EXPECT_EQ(together.finish()[0], buffer ? Duration(17us) : Duration(9500ns));
  }
}

// --- Estimate ------------------------------------------------------------------------------------

TEST(PacketHopsTest, CountPacketsTimesLinks) {
  EXPECT_EQ(packet_hops(4'096_B, 3, 4'096_B), 3u);
  EXPECT_EQ(packet_hops(4'097_B, 3, 4'096_B), 6u);
  EXPECT_EQ(packet_hops(1_B, 3, 4'096_B), 3u);
  EXPECT_EQ(packet_hops(0_B, 3, 4'096_B), 0u);
  EXPECT_EQ(packet_hops(1_GB, 0, 4'096_B), 0u);
}

}  // namespace
}  // namespace stepsim
