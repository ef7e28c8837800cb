// What holds for every transport on random networks and traffic: bytes are conserved though packets
// are lost, trimmed and repeated; nothing hangs that has a time-out; a run repeats itself; order of
// calls within an instant changes nothing. And single properties of the parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/network/packets/packet_network.h"
#include "sim/network/transport/path_table.h"
#include "sim/network/transport/received_set.h"
#include "sim/network/transport/switch_buffer.h"
#include "sim/network/transport/transport_text.h"
#include "tests/sim/transport/transport_runs.h"

namespace stepsim {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(mixed_bits(seed)) {}
  std::uint64_t below(std::uint64_t count) { return mixed_bits(seed_ + ++drawn_) % count; }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

// Messages of 1 B to 300 kB between random hosts of a fat tree of 16.
FatTreeTest random_traffic(std::uint64_t seed) {
  FatTreeTest tree(4);
  Dice dice(seed);
  for (std::uint64_t flow = 3 + dice.below(20); flow > 0; --flow) {
    const auto from = static_cast<std::uint32_t>(dice.below(16));
    const auto to = static_cast<std::uint32_t>((from + 1 + dice.below(15)) % 16);
    tree.flow(from, to, static_cast<std::int64_t>(1 + dice.below(300'000)));
  }
  return tree;
}

TransportSpec hard_on(TransportKind kind, std::uint64_t seed) {
  TransportSpec spec = default_transport(kind);
  spec.seed = seed;
  spec.rto = Duration(300'000'000);
  spec.loss = seed % 2 == 0 ? 0 : 0.002;
  spec.switches.queue = Bytes(12 * 4200);
  return spec;
}

TEST(TransportLawsTest, EveryKindMovesEveryByteThroughLosses) {
  for (const TransportRow& row : transport_table()) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(std::string(row.name) + " " + std::to_string(seed));
      const FatTreeTest tree = random_traffic(seed);
      const auto result = tree.network.run(hard_on(row.kind, seed));
      EXPECT_EQ(result.run.blocked, "");
      for (std::uint32_t flow = 0; flow < tree.network.flows(); ++flow) {
        const MessageCounters& of = result.network->message(TransferId(flow));
        EXPECT_NE(result.run.finish[flow], FlowRun::kNotEnded);
        EXPECT_NE(of.acknowledged, kNever);
        EXPECT_GE(of.acknowledged, result.run.finish[flow].since_start.count());
        EXPECT_GE(of.packets, of.repeated);
      }
    }
  }
}

// Where nothing is lost every packet is sent once, and the last link carries headers and payload.
TEST(TransportLawsTest, BytesAreConservedWithoutLosses) {
  for (const TransportRow& row : transport_table()) {
    SCOPED_TRACE(row.name);
    LinkId last(0);
    const std::int64_t bytes = 100'000;
    const TransportTestNetwork network = incast(3, bytes, &last);
    TransportSpec spec = default_transport(row.kind);
    spec.switches.queue.reset();
    const auto result = network.run(spec);
    const std::int64_t payload = spec.payload.value();
    const std::int64_t packets = (bytes - 1) / payload + 1;
    std::uint64_t sent = 0;
    for (std::uint32_t flow = 0; flow < 3; ++flow) {
      const MessageCounters& of = result.network->message(TransferId(flow));
      EXPECT_EQ(of.packets, static_cast<std::uint64_t>(packets + (spec.handshakes > 0 ? 1 : 0)));
      EXPECT_EQ(of.trimmed + of.dropped + of.repeated, 0u);
      sent += of.packets;
    }
    const double carried = result.network->carried(last, Time{Duration::max()});
    EXPECT_EQ(carried, static_cast<double>(3 * bytes +
                                           static_cast<std::int64_t>(sent) * spec.header.value()));
  }
}

TEST(TransportLawsTest, ARunRepeatsItself) {
  for (const TransportRow& row : transport_table()) {
    const FatTreeTest tree = random_traffic(11);
    const TransportSpec spec = hard_on(row.kind, 3);
    EXPECT_EQ(tree.network.run(spec).run.finish, tree.network.run(spec).run.finish) << row.name;
  }
}

// A message alone takes what the network of packets without a transport takes, if headers count as
// bytes and nothing limits it: 3 links, packets of 1,000 B.
TEST(TransportLawsTest, AloneAMessageTakesWhatItTakesWithoutATransport) {
  TransportSpec spec;
  spec.payload = Bytes(1000);
  spec.header = Bytes(0);
  const TransportTestNetwork network = row(3, 50'000);
  const auto plain = make_packet_network(network.fabric(), {.packet_bytes = Bytes(1000)});
  FlowList list;
  list.add(Time{}, Bytes(50'000), std::vector{LinkId(0), LinkId(2), LinkId(4)});
  EXPECT_EQ(network.run(spec).run.finish, run_flows(list, network.fabric(), *plain).finish);
}

// On one path and in one class first transmissions keep their order, so go-back-N repeats nothing.
TEST(TransportLawsTest, NothingOvertakesOnOnePath) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    TransportSpec spec = default_transport(TransportKind::kGoBackN);
    spec.switches.queue.reset();
    const FatTreeTest tree = random_traffic(seed);
    const auto result = tree.network.run(spec);
    for (std::uint32_t flow = 0; flow < tree.network.flows(); ++flow) {
      EXPECT_EQ(result.network->message(TransferId(flow)).repeated, 0u);
    }
  }
}

TEST(TransportLawsTest, MoreBufferNeverMeansMoreDropsWithAFixedWindow) {
  std::uint64_t before = ~std::uint64_t{0};
  for (const std::int64_t queue : {10'000, 20'000, 50'000, 100'000, 200'000, 1'000'000}) {
    TransportSpec spec;
    spec.payload = Bytes(1000);
    spec.window = Bytes(50'000);
    spec.rto = Duration(100'000'000);
    spec.nack_interval = Duration(50'000'000);
    spec.switches.queue = Bytes(queue);
    LinkId last(0);
    const auto result = incast(8, 200'000, &last).run(spec);
    const std::uint64_t drops = result.network->port(last).dropped;
    EXPECT_LE(drops, before) << queue;
    before = drops;
  }
  EXPECT_EQ(before, 0u);
}

TEST(TransportLawsTest, PfcWithHeadroomLosesNothingAndWithoutItDoes) {
  for (const bool has_room : {true, false}) {
    TransportSpec spec = default_transport(TransportKind::kGoBackN);
    spec.switches.shared_buffer = Bytes(600'000);
    if (!has_room) spec.switches.pfc_headroom = Bytes(0);
    LinkId last(0);
    const auto result = incast(4, 2'000'000, &last).run(spec);
    std::uint64_t dropped = 0;
    std::uint64_t paused = 0;
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      dropped += result.network->message(TransferId(flow)).dropped;
      if (result.network->message(TransferId(flow)).paused > 0) ++paused;
    }
    EXPECT_EQ(dropped == 0, has_room);
    EXPECT_EQ(paused, 4u);
  }
}

TEST(TransportLawsTest, AMessageThatNothingRepeatsIsReported) {
  TransportSpec spec;
  spec.loss = 0.5;
  const auto result = incast(2, 400'000).run(spec);
  EXPECT_NE(result.run.blocked.find("wait for packets that were lost"), std::string::npos);
}

TEST(ReceivedSetTest, KeepsWhatCameInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Dice dice(seed);
    ReceivedSet set;
    std::vector<bool> came(2000, false);
    for (int i = 0; i < 4000; ++i) {
      // Near the first gap mostly, now and then far away.
      const std::uint64_t number =
          std::min<std::uint64_t>(1999, set.expected() + dice.below(dice.below(8) == 0 ? 700 : 12));
      EXPECT_EQ(set.add(number), !came[number]);
      came[number] = true;
    }
    const auto gap = std::ranges::find(came, false) - came.begin();
    EXPECT_EQ(set.expected(), static_cast<std::uint64_t>(gap));
    std::uint64_t beyond = 0;
    for (std::size_t number = 0; number < came.size(); ++number) {
      EXPECT_EQ(set.has(number), came[number]);
      if (number > set.expected() && came[number]) ++beyond;
    }
    EXPECT_EQ(set.beyond(), beyond);
  }
}

// Between pods of a fat tree of 8-port switches there are 16 shortest paths, and numbers 0 to 15
// are all of them.
TEST(PathTableTest, NumbersAreAllShortestPaths) {
  FatTreeTest tree(8);
  tree.flow(0, 127, 1);
  PathTable table(tree.network.fabric());
  const Fabric& fabric = tree.network.fabric();
  const auto node = [&fabric](const std::string& name) {
    for (std::uint32_t i = 0; i < fabric.nodes().size(); ++i) {
      if (fabric.nodes()[i].name == name) return NodeId(i);
    }
    return NodeId(0);
  };
  const NodeId from = node("h0");
  const NodeId to = node("h127");
  EXPECT_EQ(table.count(from, to, 1000), 16u);
  std::vector<std::vector<LinkId>> paths;
  for (std::uint32_t number = 0; number < 16; ++number) {
    std::uint32_t left = number;
    paths.emplace_back();
    for (NodeId at = from; at != to; at = fabric.link(paths.back().back()).to) {
      paths.back().push_back(table.take(at, to, left));
    }
    EXPECT_EQ(paths.back().size(), 6u);
  }
  std::ranges::sort(paths);
  EXPECT_TRUE(std::ranges::adjacent_find(paths) == paths.end());
}

TEST(SwitchBufferTest, GivesBackWhatItTook) {
  for (const PfcKind pfc : {PfcKind::kNone, PfcKind::kStatic, PfcKind::kDynamic}) {
    SwitchSpec spec;
    spec.shared_buffer = Bytes(200'000);
    spec.pfc = pfc;
    spec.pfc_xoff = Bytes(20'000);
    spec.pfc_xon = Bytes(10'000);
    spec.pfc_headroom = Bytes(5000);
    spec.pfc_reserve = Bytes(2000);
    SwitchBuffer buffer(spec, 4);
    Dice dice(7);
    std::vector<std::pair<std::uint32_t, std::int64_t>> held;
    for (int i = 0; i < 2000; ++i) {
      const auto input = static_cast<std::uint32_t>(dice.below(4));
      const auto bytes = static_cast<std::int64_t>(100 + dice.below(1400));
      if (buffer.admits(input, bytes)) {
        buffer.take(input, bytes);
        held.emplace_back(input, bytes);
      }
      if (held.size() < 40 && dice.below(3) != 0) continue;
      if (held.empty()) continue;
      buffer.give(held.front().first, held.front().second);
      held.erase(held.begin());
    }
    for (const auto& [input, bytes] : held) buffer.give(input, bytes);
    for (std::uint32_t input = 0; input < 4; ++input) EXPECT_EQ(buffer.held(input), 0);
    EXPECT_TRUE(buffer.admits(0, 20'000 + (pfc == PfcKind::kDynamic ? -2000 : 0)));
  }
}

TEST(TransportTextTest, SaysAllProblemsAtOnce) {
  std::vector<Problem> problems;
  read_transport_text("dcqcn,ecn_high=1,nothing=3,rto=soon,loss=2,more", {}, problems);
  std::string all;
  for (const Problem& problem : problems) all += problem.field + ": " + problem.message + "\n";
  for (const char* const part :
       {"nothing is no field of a transport", "rto must be a time", "loss must be",
        "must be "
        "key=value behind the name",
        "ecn_high must be at least ecn_low"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
  EXPECT_EQ(problems.size(), 5u) << all;
}

TEST(TransportTextTest, NamesTheHeadroomThatALinkNeeds) {
  TransportSpec spec = default_transport(TransportKind::kGoBackN);
  spec.switches.pfc_headroom = Bytes(10'000);
  // 100 Gb/s and 1 us each way: 2 x 12,500 B, two packets of 4,144 B and a frame of 64 B.
  const std::vector<Problem> problems = check_transport(spec, 12.5e9, 1'000'000);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field, "pfc_headroom");
  EXPECT_NE(problems[0].message.find("33352 B"), std::string::npos) << problems[0].message;
}

TEST(TransportFieldsTest, EveryKindHasDefaultsThatFit) {
  for (const TransportRow& row : transport_table()) {
    const TransportSpec spec = default_transport(row.kind);
    EXPECT_EQ(spec.kind, row.kind);
    EXPECT_TRUE(check_transport(spec, 0, 0).empty()) << row.name;
    EXPECT_TRUE(transport_fields().problems(spec).empty()) << row.name;
  }
}

}  // namespace
}  // namespace stepsim
