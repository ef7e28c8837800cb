// A port has to wait for credits, so its packets really queue. There are two kinds of events: the
// end of the packet that a port sends, and the arrival of the first packet on its way to the next
// port. At one instant all ends go before all arrivals, each in order of the links.
#include "sim/network/packets/credit_network.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "sim/network/finish_tree.h"
#include "sim/network/packets/packet_messages.h"
#include "sim/network/packets/packet_port.h"
#include "sim/network/packets/packet_timing.h"
#include "sim/network/packets/port_choice.h"

namespace stepsim {
namespace {

class CreditNetwork final : public Network {
 public:
  CreditNetwork(const Fabric& fabric, const PacketOptions& options)
      : fabric_(fabric),
        buffer_bytes_(options.buffer_bytes->value()),
        messages_(fabric, options),
        choice_(fabric, messages_),
        links_(static_cast<std::uint32_t>(fabric.links().size())),
        events_(2 * fabric.links().size()),
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
        begin(now.since_start.count(), {packets, place, slot, bytes, true});
      });
    }
    events_.flush();
  }

  std::optional<Time> next_event() const override {
    std::optional<std::int64_t> next = events_.earliest();
    if (const auto at = messages_.next_event()) next = std::min(next.value_or(*at), *at);
    if (!next) return std::nullopt;
    return Time{Duration(*next)};
  }

  void advance(Time to, std::vector<TransferId>& done) override {
    assert(to == next_event());
    const std::int64_t now = to.since_start.count();
    while (events_.earliest() == now) {
      due_.clear();
      events_.collect(due_);
      for (const std::uint32_t event : due_) {
        if (event < links_) {
          sent(now, LinkId(event));
        } else {
          arrived(now, LinkId(event - links_));
        }
      }
      events_.flush();
    }
    messages_.release(now);
    messages_.take_ended(now, done);
  }

  double carried(LinkId link, Time at) const override {
    return ports_[link].sent.up_to(at.since_start.count());
  }

  NetworkStatistics statistics() const override { return messages_.statistics(); }

  std::string blocked_report() const override;

 private:
  struct Packets {  // equal packets of a message, one behind the other
    std::int64_t count = 0;
    std::uint32_t place = 0;  // index of the hop over the link where they queue
    PacketMessages::Slot slot{};
    std::uint32_t bytes = 0;   // per packet
    bool from_source = false;  // then they take no room in the buffer
  };

  struct Flying {
    std::int64_t arrival = 0;
    std::uint32_t place = 0;  // index of the hop that they are on
    LinkId next;              // the link where they will queue
    PacketMessages::Slot slot{};
    std::uint32_t bytes = 0;
  };

  struct Port {
    PacketWire wire;
    RingQueue<Packets> queue;
    RingQueue<Flying> flying;
    RingQueue<LinkId> waiting;  // ports that wait for room in this one's queue
    std::int64_t reserved = 0;  // bytes in the queue, or on their way to it
    std::int64_t leaving = 0;   // bytes of the packet being sent, included in reserved
    std::int64_t own = 0;       // bytes in the queue that come from the source
    LinkId next;                // next link of the queue's first packet
    bool is_sending = false;
    bool is_waiting = false;  // waits for room in the queue of the next port
    SentBytes sent;
  };

  auto load() const {
    return [this](LinkId link) { return ports_[link].reserved + ports_[link].own; };
  }

  // Starts packets of a message at its source. If the source has several ports, each packet chooses
  // one.
  void begin(std::int64_t now, Packets packets) {
    std::int64_t left = packets.count;
    if (messages_.hop(packets.place).may_choose()) packets.count = 1;
    for (; left > 0; left -= packets.count) {
      const LinkId link = choice_.first(packets.place, load());
      ports_[link].own += packets.count * packets.bytes;
      queue(now, packets, link);
    }
  }

  // `link` is the hop at the packets' place or another link of its group.
  void queue(std::int64_t now, const Packets& packets, LinkId link) {
    Port& port = ports_[link];
    if (!port.queue.empty()) {
      Packets& last = port.queue.back();
      if (last.place == packets.place && last.slot == packets.slot && last.bytes == packets.bytes &&
          last.from_source == packets.from_source) {
        last.count += packets.count;
        return;  // the port is busy or waits, with earlier packets
      }
    }
    port.queue.push_back(packets);
    send_next(now, link);
  }

  // Sends the first packet of the queue if the port is idle and the next one has room for it.
  void send_next(std::int64_t now, LinkId link) {
    Port& port = ports_[link];
    if (port.is_sending || port.is_waiting || port.queue.empty()) return;
    const Packets& first = port.queue.front();
    if (!messages_.hop(first.place).is_last()) {
      port.next = choice_.after(link, first.place + 1, load());
      Port& next = ports_[port.next];
      if (!next.waiting.empty() || next.reserved + first.bytes > buffer_bytes_) {
        port.is_waiting = true;
        next.waiting.push_back(link);
        return;
      }
      next.reserved += first.bytes;
    }
    send(now, link);
  }

  // REQUIRES: room is reserved at the next port.
  void send(std::int64_t now, LinkId link) {
    Port& port = ports_[link];
    Packets& first = port.queue.front();
    const Hop hop = messages_.hop(first.place);
    const std::int64_t each = timing_.time_of(port.wire, first.bytes);
    const std::int64_t end = PacketTiming::end_of(now, each, 1, port.wire);
    port.sent.append(now, now, each, 1, first.bytes);
    port.is_sending = true;
    port.leaving = first.from_source ? 0 : first.bytes;
    if (first.from_source) port.own -= first.bytes;
    events_.set(link.index(), end);
    if (hop.is_last()) {
      messages_.arrive(first.slot, 1, end + port.wire.latency);
    } else {
      const PacketWire& next = ports_[port.next].wire;
      const std::int64_t arrival = now + timing_.until_queued(port.wire, next, first.bytes);
      if (port.flying.empty()) events_.set(links_ + link.index(), arrival);
      port.flying.push_back({arrival, first.place, port.next, first.slot, first.bytes});
    }
    if (--first.count == 0) port.queue.pop_front();
  }

  // The port has finished sending a packet.
  void sent(std::int64_t now, LinkId link) {
    Port& port = ports_[link];
    events_.clear(link.index());
    port.is_sending = false;
    port.reserved -= port.leaving;
    while (!port.waiting.empty()) {
      const LinkId before = port.waiting.front();
      const std::uint32_t bytes = ports_[before].queue.front().bytes;
      if (port.reserved + bytes > buffer_bytes_) break;
      port.waiting.pop_front();
      port.reserved += bytes;
      ports_[before].is_waiting = false;
      send(now, before);
    }
    send_next(now, link);
  }

  void arrived(std::int64_t now, LinkId link) {
    Port& port = ports_[link];
    const Flying first = port.flying.front();
    port.flying.pop_front();
    if (port.flying.empty()) {
      events_.clear(links_ + link.index());
    } else {
      events_.set(links_ + link.index(), port.flying.front().arrival);
    }
    queue(now, {1, first.place + 1, first.slot, first.bytes, false}, first.next);
  }

  // Returns the port whose queue has no room for the first packet of this one's queue.
  LinkId blocker_of(LinkId link) const { return ports_[link].next; }

  const Fabric& fabric_;
  const std::int64_t buffer_bytes_;
  PacketMessages messages_;
  PortChoice choice_;
  const std::uint32_t links_;
  FinishTree events_;  // by link: the port ends sending; links_ + link: a packet is there
  const PacketTiming timing_;
  IdTable<LinkId, Port> ports_;     // by link
  std::vector<std::uint32_t> due_;  // scratch
};

// If nothing can happen any more, every port with packets waits for another such port. So the walk
// from any of them ends in a circle.
std::string CreditNetwork::blocked_report() const {
  if (messages_.in_flight() == 0 || next_event()) return {};
  const auto waiting = std::ranges::find_if(ports_, &Port::is_waiting);
  if (waiting == ports_.end()) return {};
  LinkId link(static_cast<std::uint32_t>(waiting - ports_.begin()));
  std::vector<bool> is_passed(links_, false);
  for (; !is_passed[link.index()]; link = blocker_of(link)) is_passed[link.index()] = true;
  const LinkId first = link;
  std::string report = "a circle of full buffers (" + std::to_string(buffer_bytes_) +
                       " bytes each) stops " + std::to_string(messages_.in_flight()) +
                       " messages:\n";
  do {
    report += "  " + fabric_.link_name(link) + ", which waits for room at\n";
    link = blocker_of(link);
  } while (link != first);
  return report + "  the first\n";
}

}  // namespace

std::unique_ptr<Network> make_credit_network(const Fabric& fabric, const PacketOptions& options) {
  assert(options.buffer_bytes && *options.buffer_bytes >= options.packet_bytes);
  return std::make_unique<CreditNetwork>(fabric, options);
}

}  // namespace stepsim
