#include "sim/network/packets/packet_messages.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace stepsim {

PacketMessages::PacketMessages(const Fabric& fabric, const PacketOptions& options)
    : fabric_(fabric), packet_bytes_(options.packet_bytes.value()), spraying_(options.spraying) {}

void PacketMessages::start(Time now, TransferId id, const Transfer& transfer) {
  check_message(transfer);
  const Slot slot = take_slot();
  Message& message = messages_[slot];
  message.id = id;
  message.order = transfer.order;
  message.routes = 1;
  message.is_sprayed = spraying_ && !transfer.keeps_links;
  message.latest = 0;
  message.bytes = transfer.bytes.value();
  message.words.size = 0;
  if (transfer.bytes <= Bytes(0) || transfer.uses.empty()) {
    ending_.push((now + transfer.latency).since_start.count(), slot);
    return;
  }
  message.packets_left = (message.bytes - 1) / packet_bytes_ + 1;
  if (message.is_sprayed) {
    spray(message, fabric_.link(transfer.uses.front().link).from,
          fabric_.link(transfer.uses.back().link).to);
  } else {
    links_.clear();
    for (const LinkUse& use : transfer.uses) links_.push_back(use.link);
    add_route(message, links_, transfer.keeps_links);
  }
  count_hops(message);
  if (transfer.sender_latency > Duration(0)) {
    delayed_.push((now + transfer.sender_latency).since_start.count(), slot);
  } else {
    starting_.push_back(slot);
  }
}

void PacketMessages::release(std::int64_t now) {
  while (!delayed_.empty() && delayed_.next() == now) delayed_.pop(starting_);
}

void PacketMessages::check_message(const Transfer& transfer) const {
  for (std::size_t i = 0; i < transfer.uses.size(); ++i) {
    const LinkUse& use = transfer.uses[i];
    const bool joins =
        i == 0 || fabric_.link(transfer.uses[i - 1].link).to == fabric_.link(use.link).from;
    if (use.weight == 1 && joins) continue;
    throw std::logic_error("the packet network moves messages along a path, but at link " +
                           fabric_.link_name(use.link) + " a transfer " +
                           (joins ? "has the weight " + std::to_string(use.weight)
                                  : std::string("does not go on from the link before")));
  }
}

std::uint32_t PacketMessages::word_of(LinkId link, bool keeps_links) const {
  assert(link.index() < Hop::kChoiceMark);
  return link.index() | (!keeps_links && fabric_.group_of(link) ? Hop::kChoiceMark : 0);
}

void PacketMessages::add_route(Message& message, std::span<const LinkId> links, bool keeps_links) {
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::uint32_t mark = i + 1 == links.size() ? Hop::kLastMark : 0;
    words_.push_back(message.words, word_of(links[i], keeps_links) | mark);
  }
}

// With several routes, the words start with the offset of each route.
void PacketMessages::spray(Message& message, NodeId from, NodeId to) {
  message.routes = spraying_->routes;
  sprayed_.clear();
  beginning_.clear();
  for (std::uint32_t key = 0; key < message.routes; ++key) {
    links_.clear();
    spraying_->router->route(from, to, key, links_);
    if (links_.empty()) throw std::logic_error("the router of a packet network gave no route");
    beginning_.push_back(static_cast<std::uint32_t>(sprayed_.size()) + message.routes);
    for (const LinkId link : links_) sprayed_.push_back(word_of(link, false));
    sprayed_.back() |= Hop::kLastMark;
  }
  for (const std::uint32_t offset : beginning_) words_.push_back(message.words, offset);
  for (const std::uint32_t word : sprayed_) words_.push_back(message.words, word);
}

std::uint32_t PacketMessages::first_place(Slot slot, std::uint32_t route) const {
  const Message& message = messages_[slot];
  if (!message.is_sprayed) return message.words.begin;
  return message.words.begin + words_.word(message.words.begin + route);
}

void PacketMessages::count_hops(const Message& message) {
  const auto packets = static_cast<std::uint64_t>(message.packets_left);
  const std::uint32_t* words = words_.data(message.words);
  for (std::uint32_t route = 0; route < message.routes; ++route) {
    const std::uint32_t begin = message.is_sprayed ? words[route] : 0;
    const std::uint32_t end = route + 1 < message.routes ? words[route + 1] : message.words.size;
    const std::uint64_t of_route =
        packets / message.routes + (route < packets % message.routes ? 1 : 0);
    statistics_.packet_hops += of_route * (end - begin);
  }
}

std::span<const PacketMessages::Slot> PacketMessages::take_starting() {
  taken_.clear();
  std::swap(taken_, starting_);
  const auto is_before = [this](Slot a, Slot b) {
    const Message& first = messages_[a];
    const Message& second = messages_[b];
    return first.order != second.order ? first.order < second.order : first.id < second.id;
  };
  if (!std::is_sorted(taken_.begin(), taken_.end(), is_before)) {
    std::sort(taken_.begin(), taken_.end(), is_before);
  }
  return taken_;
}

void PacketMessages::take_ended(std::int64_t now, std::vector<TransferId>& done) {
  taken_.clear();
  while (!ending_.empty() && ending_.next() == now) ending_.pop(taken_);
  const auto first = static_cast<std::ptrdiff_t>(done.size());
  for (const Slot slot : taken_) {
    done.push_back(messages_[slot].id);
    free_.push_back(slot);
  }
  std::sort(done.begin() + first, done.end());
  statistics_.transfers += taken_.size();
}

PacketMessages::Slot PacketMessages::take_slot() {
  if (free_.empty()) {
    free_.push_back(messages_.next());
    messages_.push_back({});
  }
  const Slot slot = free_.back();
  free_.pop_back();
  return slot;
}

}  // namespace stepsim
