#include "sim/network/transport/transport_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/base/random.h"
#include "sim/engine/event_queue.h"
#include "sim/network/packets/packet_network.h"
#include "sim/network/packets/packet_port.h"
#include "sim/network/transport/path_choice.h"
#include "sim/network/transport/path_table.h"
#include "sim/network/transport/switch_buffer.h"
#include "sim/network/transport/transport_table.h"

namespace stepsim {
namespace {

enum EventKind : std::uint32_t {
  kPortFree,      // of a link
  kArrival,       // over a link
  kMessageReady,  // a message may send
  kSenderTimer,   // of a message
  kReceiverTimer,
  kCredit,       // of a node
  kPauseSignal,  // 2 x link + whether it stops
  kMessageStarts,
  kMessageEnds,
};

class TransportFabric final : public TransportNetwork {
 public:
  TransportFabric(const Fabric& fabric, const TransportSpec& spec, const Router* router);

  void start(Time now, TransferId id, const Transfer& transfer) override;
  void settle(Time now) override;
  std::optional<Time> next_event() const override {
    if (queue_.empty()) return std::nullopt;
    return queue_.next_time();
  }
  void advance(Time to, std::vector<TransferId>& done) override;
  double carried(LinkId link, Time at) const override;
  NetworkStatistics statistics() const override { return statistics_; }
  std::string blocked_report() const override;

  const MessageCounters& message(TransferId id) const override { return counters_[id.index()]; }
  const PortCounters& port(LinkId link) const override { return ports_[link.index()].counters; }
  TransportTotals totals() const override;

 private:
  struct Port {
    double rate = 0;
    Instant latency = 0;
    Instant full_packet = 0;  // time of one on the wire
    Instant ack = 0;
    std::uint32_t back = kNoIndex;  // the link the other way
    std::uint32_t input = 0;        // number among the links into its end
    std::uint32_t sending = kNoIndex;
    std::uint32_t sending_bytes = 0;
    Instant sent_until = 0;
    Instant free_at = kNever;  // event at sent_until, if somebody waits
    Instant sent_from = 0;
    std::int64_t data_bytes = 0;
    std::int64_t control_bytes = 0;
    std::uint64_t sent = 0;  // bytes, with the one being sent
    PacketList data;
    PacketList control;
    PacketList flying;
    RingQueue<std::uint32_t> ready;  // messages
    Instant paused_since = kNever;
    PortCounters counters;

    bool is_paused() const { return paused_since != kNever; }
    bool is_busy(Instant now) const {
      return now < sent_until || (now == sent_until && free_at == now);
    }
  };

  struct Node {
    std::unique_ptr<SwitchBuffer> buffer;
    CreditOfHost credit;
    Instant credit_at = kNever;
    bool has_credit = false;
    std::uint32_t inputs = 0;
  };

  struct Message {
    TransferId id{0};
    std::uint64_t order = 0;
    std::unique_ptr<Sender> sender;
    std::unique_ptr<Receiver> receiver;
    PacketPaths paths;
    std::vector<std::uint32_t> route;  // explicit routes, one after another
    std::vector<std::uint32_t>
        begins;  // of each explicit route, and the end; empty: shortest paths
    NodeId from{0};
    NodeId to{0};
    std::uint32_t port = kNoIndex;  // the first link of path 0
    bool is_waiting = false;        // in a port's list
    bool is_delivered = false;
    bool keeps_links = false;
    Instant ready_at = kNever;  // event that is scheduled
    Instant sender_at = kNever;
    Instant receiver_at = kNever;
    Instant paused_before = 0;
    std::uint64_t packets_alive = 0;
    bool is_free = true;
  };

  // ---- setting up ----
  void set_routes(Message& message, const Transfer& transfer);
  MessageView view_of(std::uint32_t number, const Message& message, const Transfer& transfer);
  std::uint32_t take_slot();

  // ---- events ----
  void schedule(Instant at, EventKind kind, std::uint32_t index) {
    queue_.schedule(Time{Duration(at)}, Event(kind, index));
  }
  void handle(Instant now, Event event);
  void port_is_free(Instant now, std::uint32_t link);
  void arrive(Instant now, std::uint32_t link);
  void pause(Instant now, std::uint32_t link, bool stops);

  // ---- messages ----
  void wake(Instant now, std::uint32_t number);
  void watch(Instant now, std::uint32_t number);
  void end_if_over(Instant now, std::uint32_t number);
  void sender_timer(Instant now, std::uint32_t number);
  void answer_all(Instant now, NodeId node);
  void watch_credit(Instant now, std::uint32_t node);

  // ---- packets ----
  void send_next(Instant now, std::uint32_t link);
  bool send_own(Instant now, std::uint32_t link);
  void free_later(std::uint32_t link);
  void transmit(Instant now, std::uint32_t link, std::uint32_t packet);
  void leave(Instant now, std::uint32_t link, std::uint32_t packet);
  void forward(Instant now, std::uint32_t over, std::uint32_t packet);
  void deliver(Instant now, std::uint32_t packet);
  void enqueue(Instant now, std::uint32_t link, std::uint32_t packet);
  bool fits(std::uint32_t link, std::uint32_t packet);
  void trim(std::uint32_t link, std::uint32_t packet);
  void drop(std::uint32_t link, std::uint32_t packet);
  void release(Instant now, std::uint32_t packet);
  void check_pause(Instant now, std::uint32_t over);
  void signal(Instant now, std::uint32_t over, bool stops);
  void give_back(std::uint32_t packet);
  void mark(std::uint32_t link, std::uint32_t packet);
  std::uint32_t next_link(Packet& packet, NodeId at);
  bool is_at_end(const Packet& packet, NodeId at) const;
  bool uses_control(const Packet& packet) const {
    return packet.trimmed || packet.kind == PacketKind::kPause ||
           (spec_.acks_first && packet.kind != PacketKind::kData);
  }
  double draw() { return static_cast<double>(mixed_bits(random_ + ++drawn_) >> 11U) * 0x1p-53; }
  Instant time_of(const Port& port, std::uint32_t bytes) const {
    if (bytes == full_bytes_) return port.full_packet;
    if (bytes == ack_bytes_) return port.ack;
    return exact_time(port, bytes);
  }
  Instant exact_time(const Port& port, std::uint32_t bytes) const {
    return in_units(static_cast<double>(packet_time(bytes, port.rate).count()), unit_);
  }
  NodeId end_of(std::uint32_t link) const { return fabric_.link(LinkId(link)).to; }

  const Fabric& fabric_;
  const TransportSpec spec_;
  const TransportRow& row_;
  const Router* const router_;
  const Instant unit_;
  const std::uint32_t full_bytes_;
  const std::uint32_t ack_bytes_;
  const bool has_buffers_;
  const std::uint64_t random_;
  std::uint64_t drawn_ = 0;
  EventQueue queue_;
  PacketPool pool_;
  std::vector<Port> ports_;
  std::vector<Node> nodes_;
  PathTable table_;
  std::vector<Telemetry> telemetry_;
  std::vector<std::uint32_t> free_telemetry_;
  std::vector<Message> messages_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> starting_;
  std::vector<TransferId> ended_;
  std::vector<MessageCounters> counters_;   // by TransferId
  std::vector<Packet> answers_;             // scratch
  std::vector<LinkId> links_;               // scratch
  std::vector<std::uint32_t> host_number_;  // by NodeId, among nodes with one link
  NetworkStatistics statistics_;
  std::uint64_t sent_ = 0;  // data packets
  std::uint64_t sent_again_ = 0;
  std::uint64_t in_flight_ = 0;
};

TransportFabric::TransportFabric(const Fabric& fabric, const TransportSpec& spec,
                                 const Router* router)
    : fabric_(fabric),
      spec_(spec),
      row_(row_of(spec.kind)),
      router_(router),
      unit_(std::max<Instant>(spec.time_unit.count(), 1)),
      full_bytes_(static_cast<std::uint32_t>((spec.payload + spec.header).value())),
      ack_bytes_(static_cast<std::uint32_t>(spec.ack.value())),
      has_buffers_(spec.switches.shared_buffer || spec.switches.pfc != PfcKind::kNone),
      random_(mixed_bits(spec.seed)),
      ports_(fabric.links().size()),
      nodes_(fabric.nodes().size()),
      table_(fabric) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> between;
  const auto pair = [](NodeId from, NodeId to) {
    return std::uint64_t{from.index()} << 32U | to.index();
  };
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    const Link& link = fabric.link(LinkId(i));
    Port& port = ports_[i];
    port.rate = link.bandwidth.value();
    port.latency = in_units(static_cast<double>(link.latency.count()), unit_);
    port.full_packet = exact_time(port, full_bytes_);
    port.ack = exact_time(port, ack_bytes_);
    port.input = nodes_[link.to.index()].inputs++;
    between[pair(link.from, link.to)].push_back(i);
  }
  // Of several links between two nodes, the n-th one way has the n-th the other way.
  for (const auto& [ends, links] : between) {
    const auto other = between.find(ends << 32U | ends >> 32U);
    if (other == between.end()) continue;
    for (std::size_t i = 0; i < links.size(); ++i) {
      ports_[links[i]].back = other->second[i % other->second.size()];
    }
  }
  std::vector<std::uint32_t> degree(nodes_.size(), 0);
  for (const Link& link : fabric.links()) ++degree[link.from.index()];
  host_number_.resize(nodes_.size());
  std::uint32_t hosts = 0;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    host_number_[node] = degree[node] == 1 ? hosts++ : 0;
  }
  if (!has_buffers_) return;
  std::vector<Bytes> headroom(nodes_.size(), Bytes(0));
  for (const Link& link : fabric.links()) {
    Bytes& most = headroom[link.to.index()];
    most = std::max(most, headroom_needed(spec_, link.bandwidth.value(), link.latency.count()));
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    SwitchSpec switches = spec_.switches;
    if (switches.pfc == PfcKind::kDynamic && !switches.pfc_headroom) {
      switches.pfc_headroom = headroom[node];
    }
    nodes_[node].buffer = std::make_unique<SwitchBuffer>(switches, nodes_[node].inputs);
  }
}

// ---- setting up ----

std::uint32_t TransportFabric::take_slot() {
  if (!free_.empty()) {
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  messages_.emplace_back();
  return static_cast<std::uint32_t>(messages_.size() - 1);
}

void TransportFabric::set_routes(Message& message, const Transfer& transfer) {
  message.from = fabric_.link(transfer.uses.front().link).from;
  message.to = fabric_.link(transfer.uses.back().link).to;
  message.route.clear();
  message.begins.clear();
  const bool is_given = spec_.paths_by == PathPolicy::kGivenRoute || transfer.keeps_links;
  if (!is_given && router_ == nullptr) {
    std::uint32_t path = 0;
    message.port = table_.take(message.from, message.to, path).index();
    return;
  }
  const std::uint32_t routes = is_given ? 1 : spec_.paths;
  for (std::uint32_t key = 0; key < routes; ++key) {
    links_.clear();
    if (is_given) {
      for (const LinkUse& use : transfer.uses) links_.push_back(use.link);
    } else {
      router_->route(message.from, message.to, key, links_);
    }
    message.begins.push_back(static_cast<std::uint32_t>(message.route.size()));
    for (const LinkId link : links_) message.route.push_back(link.index());
  }
  message.begins.push_back(static_cast<std::uint32_t>(message.route.size()));
  message.port = message.route.front();
}

MessageView TransportFabric::view_of(std::uint32_t number, const Message& message,
                                     const Transfer& transfer) {
  MessageView view;
  view.flow = number;
  view.bytes = transfer.bytes.value();
  view.rate = ports_[message.port].rate;
  view.hops = static_cast<std::uint32_t>(transfer.uses.size());
  view.seed = mixed_bits(spec_.seed) + message.id.index();
  if (spec_.base_rtt) {
    view.base_rtt = spec_.base_rtt->count();
    return view;
  }
  for (const LinkUse& use : transfer.uses) {
    const Port& port = ports_[use.link.index()];
    view.base_rtt += 2 * port.latency;
    view.base_rtt += spec_.base_rtt_without_headers
                         ? packet_time(spec_.payload.value(), port.rate).count()
                         : port.full_packet + port.ack;
  }
  return view;
}

void TransportFabric::start(Time now, TransferId id, const Transfer& transfer) {
  for (const LinkUse& use : transfer.uses) {
    if (use.weight != 1 || ports_[use.link.index()].back == kNoIndex) {
      throw std::logic_error("a transport moves messages along links that have one back, not " +
                             fabric_.link_name(use.link));
    }
  }
  const std::uint32_t number = take_slot();
  Message& message = messages_[number];
  message.id = id;
  message.order = transfer.order;
  message.is_waiting = message.is_delivered = false;
  message.keeps_links = transfer.keeps_links;
  message.ready_at = message.sender_at = message.receiver_at = kNever;
  message.packets_alive = 0;
  message.is_free = false;
  message.sender.reset();
  if (id.index() >= counters_.size()) counters_.resize(id.index() + 1);
  counters_[id.index()] = {};
  ++in_flight_;
  ++statistics_.transfers;
  if (transfer.bytes <= Bytes(0) || transfer.uses.empty()) {
    schedule((now + transfer.latency).since_start.count(), kMessageEnds, number);
    return;
  }
  set_routes(message, transfer);
  const MessageView view = view_of(number, message, transfer);
  Node& node = nodes_[message.to.index()];
  if (row_.make_credit != nullptr && !node.has_credit) {
    node.credit = row_.make_credit(spec_, view);
    node.has_credit = true;
  }
  message.sender = row_.make_sender(spec_, view);
  message.receiver = row_.make_receiver(spec_, view, node.credit);
  const std::uint32_t routes = message.begins.empty()
                                   ? table_.count(message.from, message.to, 4096)
                                   : static_cast<std::uint32_t>(message.begins.size() - 1);
  message.paths = PacketPaths(spec_, view.seed, routes);
  message.paused_before = ports_[message.port].counters.paused;
  if (transfer.sender_latency > Duration(0)) {
    schedule((now + transfer.sender_latency).since_start.count(), kMessageStarts, number);
  } else {
    starting_.push_back(number);
  }
}

void TransportFabric::settle(Time now) {
  if (starting_.empty()) return;
  std::ranges::sort(starting_, [this](std::uint32_t a, std::uint32_t b) {
    const Message& first = messages_[a];
    const Message& second = messages_[b];
    return std::tie(first.order, first.id) < std::tie(second.order, second.id);
  });
  for (const std::uint32_t number : starting_) {
    wake(now.since_start.count(), number);
    watch(now.since_start.count(), number);
  }
  starting_.clear();
}

// ---- events ----

void TransportFabric::advance(Time to, std::vector<TransferId>& done) {
  assert(to == next_event());
  const Instant now = to.since_start.count();
  while (!queue_.empty() && queue_.next_time() == to) handle(now, queue_.pop());
  std::ranges::sort(ended_);
  done.insert(done.end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void TransportFabric::handle(Instant now, Event event) {
  const std::uint32_t index = event.index();
  switch (static_cast<EventKind>(event.kind())) {
    case kPortFree:
      port_is_free(now, index);
      return;
    case kArrival:
      arrive(now, index);
      return;
    case kMessageReady:
      if (messages_[index].ready_at != now) return;
      messages_[index].ready_at = kNever;
      wake(now, index);
      return;
    case kSenderTimer:
      sender_timer(now, index);
      return;
    case kReceiverTimer: {
      Message& message = messages_[index];
      if (message.receiver_at != now) return;
      message.receiver_at = kNever;
      if (message.receiver->timer() <= now) {
        message.receiver->on_timer(now, answers_);
        answer_all(now, message.to);
      }
      watch(now, index);
      return;
    }
    case kCredit: {
      Node& node = nodes_[index];
      if (node.credit_at != now) return;
      node.credit_at = kNever;
      if (node.credit.source()->timer() <= now) {
        node.credit.source()->on_timer(now, answers_);
        answer_all(now, NodeId(index));
      }
      watch_credit(now, index);
      return;
    }
    case kPauseSignal:
      pause(now, index / 2, index % 2 != 0);
      return;
    case kMessageStarts:
      wake(now, index);
      watch(now, index);
      return;
    case kMessageEnds: {
      Message& message = messages_[index];
      ended_.push_back(message.id);
      counters_[message.id.index()].acknowledged = now;
      message.is_free = true;
      --in_flight_;
      free_.push_back(index);
      return;
    }
  }
}

void TransportFabric::port_is_free(Instant now, std::uint32_t link) {
  Port& port = ports_[link];
  if (port.free_at != now) return;
  port.free_at = kNever;
  if (spec_.switches.holds_leaving_packet) leave(now, link, port.sending);
  send_next(now, link);
}

void TransportFabric::arrive(Instant now, std::uint32_t link) {
  Port& port = ports_[link];
  const std::uint32_t packet = port.flying.pop_front(pool_);
  if (!port.flying.empty()) schedule(pool_[port.flying.front()].at, kArrival, link);
  if (pool_[packet].kind == PacketKind::kPause) {
    const bool stops = pool_[packet].at_last_hop;
    pool_.give_back(packet);
    pause(now, port.back, stops);
    return;
  }
  if (spec_.loss > 0 && draw() < spec_.loss) {
    drop(link, packet);
    return;
  }
  if (is_at_end(pool_[packet], end_of(link))) {
    deliver(now, packet);
  } else {
    forward(now, link, packet);
  }
}

void TransportFabric::pause(Instant now, std::uint32_t link, bool stops) {
  Port& port = ports_[link];
  if (stops == port.is_paused()) return;
  if (stops) {
    port.paused_since = now;
    ++port.counters.pauses;
    return;
  }
  port.counters.paused += now - port.paused_since;
  port.paused_since = kNever;
  send_next(now, link);
}

// ---- messages ----

// Lets a message send, now or when it may.
void TransportFabric::wake(Instant now, std::uint32_t number) {
  Message& message = messages_[number];
  if (message.is_waiting || message.is_free) return;
  const Instant at = message.sender->ready_at(now);
  if (at == kNever) return;
  Port& port = ports_[message.port];
  if (at <= now || (port.is_busy(now) && at <= port.sent_until)) {
    message.is_waiting = true;
    port.ready.push_back(number);
    send_next(now, message.port);
  } else if (message.ready_at == kNever || at < message.ready_at) {
    message.ready_at = at;
    schedule(at, kMessageReady, number);
  }
}

void TransportFabric::watch(Instant now, std::uint32_t number) {
  Message& message = messages_[number];
  if (message.is_free) return;
  const auto set = [&](Instant wanted, Instant& scheduled, EventKind kind) {
    if (wanted == kNever || wanted >= scheduled) return;
    scheduled = std::max(wanted, now);
    schedule(scheduled, kind, number);
  };
  set(message.sender->timer(), message.sender_at, kSenderTimer);
  set(message.receiver->timer(), message.receiver_at, kReceiverTimer);
}

void TransportFabric::sender_timer(Instant now, std::uint32_t number) {
  Message& message = messages_[number];
  if (message.sender_at != now || message.is_free) return;
  message.sender_at = kNever;
  if (message.sender->timer() <= now) {
    message.sender->on_timer(now, answers_);
    for (Packet& packet : answers_) {
      packet.flow = number;
      packet.to_sender = false;
      packet.entropy = message.paths.next();
    }
    answer_all(now, message.from);
    wake(now, number);
  }
  watch(now, number);
}

void TransportFabric::watch_credit(Instant now, std::uint32_t node) {
  Node& host = nodes_[node];
  const CreditSource* const source = host.credit.source();
  if (source == nullptr || source->timer() >= host.credit_at) return;
  host.credit_at = std::max(source->timer(), now);
  schedule(host.credit_at, kCredit, node);
}

// Sends the packets of answers_ from a host.
void TransportFabric::answer_all(Instant now, NodeId node) {
  for (const Packet& answer : answers_) {
    const std::uint32_t packet = pool_.take(answer);
    Message& message = messages_[answer.flow];
    ++message.packets_alive;
    pool_[packet].path =
        answer.to_sender ? message.paths.answer_path() : message.paths.path_of(answer.entropy);
    enqueue(now, next_link(pool_[packet], node), packet);
  }
  answers_.clear();
}

// Frees a message of which nothing is left.
void TransportFabric::end_if_over(Instant now, std::uint32_t number) {
  Message& message = messages_[number];
  if (message.is_free || message.sender == nullptr || !message.sender->is_finished()) return;
  MessageCounters& counters = counters_[message.id.index()];
  if (counters.acknowledged == kNever) {
    counters.acknowledged = now;
    counters.paused = ports_[message.port].counters.paused - message.paused_before;
  }
  if (!message.is_delivered || message.packets_alive > 0 || message.is_waiting) return;
  message.is_free = true;
  free_.push_back(number);
}

// ---- packets ----

std::uint32_t TransportFabric::next_link(Packet& packet, NodeId at) {
  const Message& message = messages_[packet.flow];
  if (packet.to_sender && spec_.answers_by_destination) {
    if (packet.place++ == 0) {
      packet.path = host_number_[message.from.index()];
      return table_.next(at, message.from).front().index();
    }
    return table_.take_by_table(at, message.from, packet.path).index();
  }
  if (message.begins.empty()) {
    return table_.take(at, packet.to_sender ? message.from : message.to, packet.path).index();
  }
  const auto routes = static_cast<std::uint32_t>(message.begins.size() - 1);
  const std::uint32_t route = routes == 1 ? 0 : packet.path % routes;
  const std::uint32_t link =
      packet.to_sender ? ports_[message.route[message.begins[route + 1] - 1 - packet.place]].back
                       : message.route[message.begins[route] + packet.place];
  ++packet.place;
  const auto group = fabric_.group_of(LinkId(link));
  if (!group || message.keeps_links || fabric_.group(*group).down > 0) return link;
  // Adaptive switches: the least queue, from a place that changes with every packet.
  const std::span<const LinkId> ports = fabric_.alternatives(*group, at);
  const std::size_t first = mixed_bits(random_ + ++drawn_) % ports.size();
  std::uint32_t best = ports[first].index();
  for (std::size_t i = 1; i < ports.size(); ++i) {
    const std::uint32_t other = ports[(first + i) % ports.size()].index();
    if (ports_[other].data_bytes < ports_[best].data_bytes) best = other;
  }
  return best;
}

bool TransportFabric::is_at_end(const Packet& packet, NodeId at) const {
  const Message& message = messages_[packet.flow];
  return at == (packet.to_sender ? message.from : message.to);
}

void TransportFabric::send_next(Instant now, std::uint32_t link) {
  Port& port = ports_[link];
  if (port.is_busy(now)) {
    if (port.free_at == kNever) free_later(link);
    return;
  }
  std::uint32_t packet = kNoIndex;
  if (!port.control.empty()) {
    packet = port.control.pop_front(pool_);
    port.control_bytes -= pool_[packet].bytes;
  } else if (port.is_paused()) {
    return;
  } else if (!port.data.empty()) {
    packet = port.data.pop_front(pool_);
    if (!spec_.switches.holds_leaving_packet) port.data_bytes -= pool_[packet].bytes;
  } else {
    while (!port.ready.empty() && !send_own(now, link)) {
    }
    return;
  }
  transmit(now, link, packet);
}

// Sends a packet of the message whose turn it is. Returns false if it may not send.
bool TransportFabric::send_own(Instant now, std::uint32_t link) {
  Port& port = ports_[link];
  const std::uint32_t number = port.ready.front();
  port.ready.pop_front();
  Message& message = messages_[number];
  message.is_waiting = false;
  if (message.sender->ready_at(now) > now) {
    wake(now, number);
    end_if_over(now, number);
    return false;
  }
  const std::uint32_t taken = pool_.take();
  Packet& packet = pool_[taken];
  packet.flow = number;
  packet.entropy = message.paths.next();
  message.sender->send(now, static_cast<std::uint32_t>(port.ready.size() + 1), packet);
  packet.path = message.paths.path_of(packet.entropy);
  if (message.sender->wants_telemetry()) {
    if (free_telemetry_.empty()) {
      free_telemetry_.push_back(static_cast<std::uint32_t>(telemetry_.size()));
      telemetry_.emplace_back();
    }
    packet.telemetry = free_telemetry_.back();
    free_telemetry_.pop_back();
    telemetry_[packet.telemetry] = {};
  }
  MessageCounters& counters = counters_[message.id.index()];
  ++counters.packets;
  counters.repeated += packet.again ? 1 : 0;
  ++sent_;
  sent_again_ += packet.again ? 1 : 0;
  ++message.packets_alive;
  const std::uint32_t first = next_link(packet, message.from);
  if (first == link) {
    if (packet.kind == PacketKind::kData && spec_.switches.holds_leaving_packet) {
      port.data_bytes += packet.bytes;
    }
    transmit(now, link, taken);
  } else {
    enqueue(now, first, taken);
  }
  wake(now, number);
  watch(now, number);
  return first == link;
}

void TransportFabric::transmit(Instant now, std::uint32_t link, std::uint32_t number) {
  Port& port = ports_[link];
  Packet& packet = pool_[number];
  if (!spec_.switches.holds_leaving_packet) leave(now, link, number);
  if (packet.telemetry != kNoIndex && packet.over != kNoIndex && !packet.to_sender) {
    telemetry_[packet.telemetry].add(
        {.at = now,
         .sent = port.sent,
         .queue = static_cast<std::uint64_t>(port.data_bytes + port.control_bytes),
         .rate = port.rate});
  }
  port.sending = number;
  port.sending_bytes = packet.bytes;
  port.sent += packet.bytes;
  port.sent_from = now;
  port.sent_until = now + time_of(port, packet.bytes);
  ++statistics_.packet_hops;
  const bool some_wait = !port.control.empty() || !port.data.empty() || !port.ready.empty();
  if (some_wait || spec_.switches.holds_leaving_packet) free_later(link);
  packet.at = port.sent_until + port.latency;
  const bool is_first = port.flying.empty();
  port.flying.push_back(pool_, number);
  if (is_first) schedule(packet.at, kArrival, link);
}

// Has the port look for its next packet when this one has left.
void TransportFabric::free_later(std::uint32_t link) {
  ports_[link].free_at = ports_[link].sent_until;
  schedule(ports_[link].free_at, kPortFree, link);
}

// The packet leaves the memory of its switch: what it held is free, and it may be marked.
void TransportFabric::leave(Instant now, std::uint32_t link, std::uint32_t number) {
  Packet& packet = pool_[number];
  if (spec_.switches.holds_leaving_packet && !uses_control(packet)) {
    ports_[link].data_bytes -= packet.bytes;
  }
  if (packet.over == kNoIndex) return;
  if (packet.is_counted) release(now, number);
  if (spec_.switches.ecn_at == EcnAt::kDequeue) mark(link, number);
}

void TransportFabric::mark(std::uint32_t link, std::uint32_t number) {
  const SwitchSpec& switches = spec_.switches;
  Packet& packet = pool_[number];
  if (!switches.ecn_low || packet.kind != PacketKind::kData || packet.trimmed) return;
  const double probability = marking_probability(switches, ports_[link].data_bytes);
  if (probability <= 0) return;
  if (!switches.ecn_on_last_hop && is_at_end(packet, end_of(link))) return;
  if (probability < 1 && draw() >= probability) return;
  packet.marked = true;
  ++ports_[link].counters.marked;
  ++counters_[messages_[packet.flow].id.index()].marked;
}

void TransportFabric::forward(Instant now, std::uint32_t over, std::uint32_t number) {
  Packet& packet = pool_[number];
  const NodeId node = end_of(over);
  packet.over = over;
  const std::uint32_t link = next_link(packet, node);
  if (!uses_control(packet)) {
    SwitchBuffer* const buffer = nodes_[node.index()].buffer.get();
    const std::uint32_t input = ports_[over].input;
    if (buffer != nullptr && !buffer->admits(input, packet.bytes)) {
      drop(link, number);
      return;
    }
    if (!fits(link, number)) return;
    if (buffer != nullptr) {
      buffer->take(input, packet.bytes);
      packet.is_counted = true;
      check_pause(now, over);
    }
  } else if (spec_.switches.control_queue &&
             ports_[link].control_bytes + packet.bytes > spec_.switches.control_queue->value()) {
    drop(link, number);
    return;
  }
  enqueue(now, link, number);
  if (spec_.switches.ecn_at == EcnAt::kEnqueue && !uses_control(packet)) mark(link, number);
}

// Makes room for a packet of data. Returns false if it was trimmed or dropped itself.
bool TransportFabric::fits(std::uint32_t link, std::uint32_t number) {
  Port& port = ports_[link];
  const SwitchSpec& switches = spec_.switches;
  if (!switches.queue || port.data_bytes + pool_[number].bytes <= switches.queue->value()) {
    return true;
  }
  const bool cuts_last =
      switches.trims_arriving < 1 && !port.data.empty() && draw() >= switches.trims_arriving;
  if (!cuts_last) {
    if (switches.trim && pool_[number].kind == PacketKind::kData) {
      trim(link, number);
    } else {
      drop(link, number);
    }
    return false;
  }
  const std::uint32_t last = port.data.pop_back(pool_);
  port.data_bytes -= pool_[last].bytes;
  if (pool_[last].is_counted) {
    release(queue_.now().since_start.count(), last);
  }
  if (switches.trim && pool_[last].kind == PacketKind::kData) {
    trim(link, last);
  } else {
    drop(link, last);
  }
  return true;
}

void TransportFabric::trim(std::uint32_t link, std::uint32_t number) {
  Port& port = ports_[link];
  Packet& packet = pool_[number];
  packet.trimmed = true;
  packet.payload = 0;
  packet.bytes = static_cast<std::uint32_t>(spec_.switches.trimmed.value());
  packet.at_last_hop = is_at_end(packet, end_of(link));
  ++port.counters.trimmed;
  ++counters_[messages_[packet.flow].id.index()].trimmed;
  if (spec_.switches.control_queue &&
      port.control_bytes + packet.bytes > spec_.switches.control_queue->value()) {
    drop(link, number);
    return;
  }
  enqueue(queue_.now().since_start.count(), link, number);
}

void TransportFabric::enqueue(Instant now, std::uint32_t link, std::uint32_t number) {
  Port& port = ports_[link];
  const Packet& packet = pool_[number];
  if (uses_control(packet)) {
    port.control_bytes += packet.bytes;
    port.control.push_back(pool_, number);
  } else {
    port.data_bytes += packet.bytes;
    port.data.push_back(pool_, number);
    port.counters.peak_bytes =
        std::max(port.counters.peak_bytes, static_cast<std::uint64_t>(port.data_bytes));
  }
  send_next(now, link);
}

void TransportFabric::drop(std::uint32_t link, std::uint32_t number) {
  ++ports_[link].counters.dropped;
  Packet& packet = pool_[number];
  if (!packet.to_sender) ++counters_[messages_[packet.flow].id.index()].dropped;
  give_back(number);
}

void TransportFabric::give_back(std::uint32_t number) {
  const Packet& packet = pool_[number];
  if (packet.telemetry != kNoIndex) free_telemetry_.push_back(packet.telemetry);
  --messages_[packet.flow].packets_alive;
  pool_.give_back(number);
}

void TransportFabric::release(Instant now, std::uint32_t number) {
  Packet& packet = pool_[number];
  packet.is_counted = false;
  const std::uint32_t over = packet.over;
  SwitchBuffer& buffer = *nodes_[end_of(over).index()].buffer;
  buffer.give(ports_[over].input, packet.bytes);
  if (!buffer.should_resume(ports_[over].input)) return;
  buffer.set_paused(ports_[over].input, false);
  signal(now, over, false);
}

void TransportFabric::check_pause(Instant now, std::uint32_t over) {
  SwitchBuffer& buffer = *nodes_[end_of(over).index()].buffer;
  if (!buffer.should_pause(ports_[over].input)) return;
  buffer.set_paused(ports_[over].input, true);
  signal(now, over, true);
}

// Tells the start of link `over` to stop or to go on.
void TransportFabric::signal(Instant now, std::uint32_t over, bool stops) {
  const std::uint32_t back = ports_[over].back;
  if (spec_.switches.pfc_frame <= Bytes(0)) {
    schedule(now + ports_[back].latency, kPauseSignal, 2 * over + (stops ? 1 : 0));
    return;
  }
  Packet frame;
  frame.kind = PacketKind::kPause;
  frame.bytes = static_cast<std::uint32_t>(spec_.switches.pfc_frame.value());
  frame.at_last_hop = stops;
  enqueue(now, back, pool_.take(frame));
}

void TransportFabric::deliver(Instant now, std::uint32_t number) {
  const Packet packet = pool_[number];
  const std::uint32_t flow = packet.flow;
  Message& message = messages_[flow];
  if (packet.to_sender) {
    if (!message.is_free) {
      const Telemetry* const telemetry =
          packet.telemetry == kNoIndex ? nullptr : &telemetry_[packet.telemetry];
      message.paths.on_answer(packet);
      message.sender->on_answer(now, packet, telemetry);
    }
    give_back(number);
    wake(now, flow);
    watch(now, flow);
    end_if_over(now, flow);
    return;
  }
  message.receiver->on_packet(now, packet, answers_);
  if (packet.telemetry != kNoIndex && !answers_.empty()) {
    answers_.back().telemetry = std::exchange(pool_[number].telemetry, kNoIndex);
  }
  give_back(number);
  answer_all(now, message.to);
  watch_credit(now, message.to.index());
  if (!message.is_delivered && message.receiver->has_all()) {
    message.is_delivered = true;
    ended_.push_back(message.id);
    --in_flight_;
  }
  watch(now, flow);
  end_if_over(now, flow);
}

double TransportFabric::carried(LinkId link, Time at) const {
  const Port& port = ports_[link.index()];
  const Instant now = at.since_start.count();
  if (now >= port.sent_until) return static_cast<double>(port.sent);
  const double left = static_cast<double>(port.sent_until - std::max(now, port.sent_from)) /
                      static_cast<double>(port.sent_until - port.sent_from);
  return static_cast<double>(port.sent) - left * port.sending_bytes;
}

TransportTotals TransportFabric::totals() const {
  TransportTotals totals{.packets = sent_, .repeated = sent_again_};
  for (std::uint32_t link = 0; link < ports_.size(); ++link) {
    const PortCounters& of = ports_[link].counters;
    totals.marked += of.marked;
    totals.trimmed += of.trimmed;
    totals.dropped += of.dropped;
    totals.pauses += of.pauses;
    totals.paused += Duration(of.paused);
    if (of.peak_bytes <= totals.peak_queue) continue;
    totals.peak_queue = of.peak_bytes;
    totals.peak_link = LinkId(link);
  }
  return totals;
}

std::string TransportFabric::blocked_report() const {
  if (in_flight_ == 0 || next_event()) return {};
  // Every paused port with data waits for an input of the switch behind it, whose packets wait in
  // ports of that switch: the walk along paused ones ends in a circle if there is one.
  std::vector<bool> is_passed(ports_.size(), false);
  const auto holds = [this](std::uint32_t link) {
    return ports_[link].is_paused() && !ports_[link].data.empty();
  };
  std::uint32_t link = 0;
  while (link < ports_.size() && !holds(link)) ++link;
  const auto next_of = [&](std::uint32_t from) {
    for (std::uint32_t other = 0; other < ports_.size(); ++other) {
      if (!holds(other) || fabric_.link(LinkId(other)).from != end_of(from)) continue;
      for (std::uint32_t packet = ports_[other].data.front(); packet != kNoIndex;
           packet = pool_[packet].next) {
        if (pool_[packet].over == from) return other;
      }
    }
    return kNoIndex;
  };
  while (link < ports_.size() && !is_passed[link]) {
    is_passed[link] = true;
    link = next_of(link);
  }
  if (link >= ports_.size()) {
    return std::to_string(in_flight_) +
           " messages wait for packets that were lost, and nothing repeats them (rto is not set)\n";
  }
  std::string report = "a circle of pauses stops " + std::to_string(in_flight_) + " messages:\n";
  const std::uint32_t first = link;
  do {
    report += "  " + fabric_.link_name(LinkId(link)) + ", which is paused for the packets of\n";
    link = next_of(link);
  } while (link != first);
  return report + "  the first\n";
}

}  // namespace

bool has_way_back(const Fabric& fabric, LinkId link) {
  const Link& there = fabric.link(link);
  return std::ranges::any_of(fabric.links(), [&there](const Link& other) {
    return other.from == there.to && other.to == there.from;
  });
}

std::vector<Problem> check_transport(const TransportSpec& spec, const Fabric& fabric) {
  const auto ends = [](NodeId from, NodeId to) {
    return std::uint64_t{from.index()} << 32 | to.index();
  };
  std::unordered_set<std::uint64_t> ways;
  double most = 0;
  const Link* longest = nullptr;
  for (const Link& link : fabric.links()) {
    ways.insert(ends(link.from, link.to));
    const double flight = link.bandwidth.value() * static_cast<double>(link.latency.count());
    if (longest != nullptr && flight <= most) continue;
    most = flight;
    longest = &link;
  }
  if (longest == nullptr) return check_transport(spec, 0, 0);
  std::vector<Problem> problems =
      check_transport(spec, longest->bandwidth.value(), longest->latency.count());
  for (std::uint32_t link = 0; link < fabric.links().size(); ++link) {
    const Link& there = fabric.link(LinkId(link));
    if (ways.contains(ends(there.to, there.from))) continue;
    problems.push_back({"name", "answers go back along every link, but " +
                                    fabric.link_name(LinkId(link)) +
                                    " has none the other way: leave the transport out"});
    break;
  }
  return problems;
}

std::unique_ptr<TransportNetwork> make_transport_network(const Fabric& fabric,
                                                         const TransportSpec& spec,
                                                         const Router* router) {
  for (const Problem& problem : check_transport(spec, 0, 0)) {
    throw std::logic_error("transport: " + problem.field + " " + problem.message);
  }
  return std::make_unique<TransportFabric>(fabric, spec, router);
}

}  // namespace stepsim
