// The packet network with unlimited buffers. It is fast because with infinite queues a packet's
// time is known as soon as it queues. It is sent when the port is free of all packets before it, so
//
//   begin = max(now, the port is free)        arrival = begin + size / bandwidth + latency
//
// and a port is just the time at which it will be free. An event only hands a packet over to the
// next port. Packets leave a port in the order in which they came. So among those on their way to
// the next port, only the first can be the next event: a tournament has one entry per link, and a
// queue of trains (runs of equal packets back to back) holds the packets behind it. On its last
// link a packet needs no event: its message counts it as soon as it queues.
#include "sim/network/packets/packet_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/finish_tree.h"
#include "sim/network/packets/credit_network.h"
#include "sim/network/packets/packet_messages.h"
#include "sim/network/packets/packet_port.h"
#include "sim/network/packets/packet_timing.h"
#include "sim/network/packets/port_choice.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostPacketBytes = std::numeric_limits<std::int32_t>::max();

void check_options(const PacketOptions& options) {
  const auto refuse = [](const char* what) {
    throw std::logic_error(std::string("packet network: ") + what);
  };
  if (options.packet_bytes < Bytes(1) || options.packet_bytes > Bytes(kMostPacketBytes)) {
    refuse("packet_bytes must be from 1 to 2^31 - 1");
  }
  if (options.switching == Switching::kCutThrough &&
      (options.header_bytes < Bytes(0) || options.header_bytes > options.packet_bytes)) {
    refuse("header_bytes must be from 0 to packet_bytes");
  }
  if (options.buffer_bytes && *options.buffer_bytes < options.packet_bytes) {
    refuse("buffer_bytes must be at least packet_bytes");
  }
  if (options.spraying && (options.spraying->router == nullptr || options.spraying->routes < 1)) {
    refuse("spraying needs a router and at least one route");
  }
}

class UnlimitedPacketNetwork final : public Network {
 public:
  UnlimitedPacketNetwork(const Fabric& fabric, const PacketOptions& options)
      : messages_(fabric, options),
        choice_(fabric, messages_),
        next_arrivals_(fabric.links().size()),
        timing_(options),
        ports_(fabric.links().size()) {
    for (LinkId link(0); link < ports_.next(); link = LinkId(link.index() + 1)) {
      ports_[link].wire = timing_.wire_of(fabric.link(link));
    }
  }

  void start(Time now, TransferId id, const Transfer& transfer) override {
    messages_.start(now, id, transfer);
  }

  void settle(Time now) override {
    for (const PacketMessages::Slot slot : messages_.take_starting()) {
      messages_.cut(slot, [&](std::uint32_t place, std::uint32_t bytes, std::int64_t packets) {
        begin(now.since_start.count(), slot, place, bytes, packets);
      });
    }
    next_arrivals_.flush();
  }

  std::optional<Time> next_event() const override {
    std::optional<std::int64_t> next = next_arrivals_.earliest();
    if (const auto at = messages_.next_event()) next = std::min(next.value_or(*at), *at);
    if (!next) return std::nullopt;
    return Time{Duration(*next)};
  }

  void advance(Time to, std::vector<TransferId>& done) override {
    assert(to == next_event());
    const std::int64_t now = to.since_start.count();
    while (next_arrivals_.earliest() == now) {
      links_.clear();
      next_arrivals_.collect(links_);
      for (const std::uint32_t link : links_) hand_over(now, LinkId(link));
      next_arrivals_.flush();
    }
    messages_.release(now);
    messages_.take_ended(now, done);
  }

  double carried(LinkId link, Time at) const override {
    return ports_[link].sent.up_to(at.since_start.count());
  }

  NetworkStatistics statistics() const override { return messages_.statistics(); }

 private:
  struct Train {
    std::int64_t first_arrival = 0;  // at the next port; the other packets follow as they are sent
    std::int64_t packets = 0;
    std::uint32_t place = 0;  // index of the hop over this link
    PacketMessages::Slot slot{};
    std::uint32_t bytes = 0;  // per packet
  };

  struct Port {
    PacketWire wire;
    std::int64_t free_at = 0;
    std::int64_t last_train_end = 0;  // end of sending it; packets without a train may follow
    RingQueue<Train> trains;          // trains that go on beyond the end of this link
    SentBytes sent;
  };

  // Returns how long the port of a link is busy with its packets.
  auto load_at(std::int64_t now) const {
    return
        [this, now](LinkId link) { return std::max<std::int64_t>(ports_[link].free_at - now, 0); };
  }

  // The first packet on its way over `link` has reached the end of it.
  void hand_over(std::int64_t now, LinkId link) {
    Port& port = ports_[link];
    Train& train = port.trains.front();
    const PacketMessages::Slot slot = train.slot;
    const std::uint32_t place = train.place;
    const std::uint32_t bytes = train.bytes;
    if (--train.packets > 0) {
      train.first_arrival += timing_.time_of(port.wire, bytes);
    } else {
      port.trains.pop_front();
    }
    if (port.trains.empty()) {
      next_arrivals_.clear(link.index());
    } else {
      next_arrivals_.set(link.index(), port.trains.front().first_arrival);
    }
    queue(now, slot, place + 1, choice_.after(link, place + 1, load_at(now)), bytes, 1);
  }

  // Starts packets of a message at its source. If the source has several ports, each packet chooses
  // one.
  void begin(std::int64_t now, PacketMessages::Slot slot, std::uint32_t place, std::uint32_t bytes,
             std::int64_t packets) {
    const std::int64_t together = messages_.hop(place).may_choose() ? 1 : packets;
    for (; packets > 0; packets -= together) {
      queue(now, slot, place, choice_.first(place, load_at(now)), bytes, together);
    }
  }

  // Puts packets into the queue of `link`, which is the hop at `place` or another link of its
  // group.
  void queue(std::int64_t now, PacketMessages::Slot slot, std::uint32_t place, LinkId link,
             std::uint32_t bytes, std::int64_t packets) {
    const Hop hop = messages_.hop(place);
    Port& port = ports_[link];
    const std::int64_t each = timing_.time_of(port.wire, bytes);
    const std::int64_t begin = std::max(now, port.free_at);
    port.free_at = PacketTiming::end_of(begin, each, packets, port.wire);
    port.sent.append(now, begin, each, packets, bytes);
    if (hop.is_last()) {
      messages_.arrive(slot, packets, port.free_at + port.wire.latency);
      return;
    }
    const bool was_empty = port.trains.empty();
    if (!was_empty && begin == std::exchange(port.last_train_end, port.free_at)) {
      Train& last = port.trains.back();
      if (last.place == place && last.bytes == bytes && last.slot == slot) {
        last.packets += packets;
        return;
      }
    }
    port.last_train_end = port.free_at;
    const PacketWire& next = ports_[choice_.fastest(place + 1)].wire;
    const std::int64_t arrival = begin + timing_.until_queued(port.wire, next, bytes);
    port.trains.push_back({arrival, packets, place, slot, bytes});
    if (was_empty) next_arrivals_.set(link.index(), arrival);
  }

  PacketMessages messages_;
  PortChoice choice_;
  FinishTree next_arrivals_;  // by link: arrival of the first packet on its way
  const PacketTiming timing_;
  IdTable<LinkId, Port> ports_;       // by link
  std::vector<std::uint32_t> links_;  // scratch
};

}  // namespace

std::string_view name_of(Switching switching) {
  return switching == Switching::kStoreAndForward ? "store-and-forward" : "cut-through";
}

std::unique_ptr<Network> make_packet_network(const Fabric& fabric, const PacketOptions& options) {
  check_options(options);
  if (options.buffer_bytes) return make_credit_network(fabric, options);
  return std::make_unique<UnlimitedPacketNetwork>(fabric, options);
}

std::uint64_t packet_hops(Bytes bytes, std::size_t links, Bytes packet_bytes) {
  if (bytes <= Bytes(0)) return 0;
  const std::int64_t packets = (bytes.value() - 1) / packet_bytes.value() + 1;
  return static_cast<std::uint64_t>(packets) * links;
}

Duration packet_time(std::int64_t bytes, double bytes_per_second) {
  return Bytes(bytes) / Bandwidth(bytes_per_second);
}

}  // namespace stepsim
