#include "sim/run/channels.h"

#include <algorithm>

#include "sim/run/simulate.h"

namespace stepsim {

Channels::Channels(const OpGraph& graph, const Streams& streams, Transport& transport)
    : graph_(graph), streams_(streams), transport_(transport), posted_(streams.count()) {}

std::size_t Channels::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = std::uint64_t{key.source} << 32 | key.destination;
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  };
  mix(static_cast<std::uint32_t>(key.microbatch));
  mix(std::uint64_t{static_cast<std::uint32_t>(key.boundary)} << 32 | key.step);
  mix(static_cast<std::uint64_t>(key.kind));
  return hash;
}

Channels::Key Channels::key_of(std::uint32_t stream, const Message& message) const {
  const std::uint32_t self = streams_.rank_of(stream);
  const Communicator& communicator = graph_.communicators[message.communicator.index()];
  const std::uint32_t peer =
      communicator.groups[communicator.seat_of[self].group][message.peer].index();
  return {.source = message.is_send ? self : peer,
          .destination = message.is_send ? peer : self,
          .microbatch = message.microbatch,
          .boundary = message.boundary,
          .step = streams_.step(stream),
          .kind = message.kind};
}

void Channels::post(std::uint32_t stream, Time now, Meetings& meetings) {
  const Op& op = streams_.program_of(stream).ops[streams_.op(stream)];
  posted_[stream] = {.left = op.work_count, .moving = now, .waited_for_other_stage = false};
  for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
    const Message& message = graph_.messages[m];
    const Key key = key_of(stream, message);
    const auto next = static_cast<std::uint32_t>(free_.empty() ? open_.size() : free_.back());
    const auto [place, added] = index_.try_emplace(key, next);
    const std::uint32_t index = place->second;
    if (added) {
      if (free_.empty()) {
        open_.emplace_back();
      } else {
        free_.pop_back();
      }
      open_[index] = {.sender = kNobody, .receiver = kNobody, .bytes = message.bytes, .key = key};
    }
    Open& open = open_[index];
    (message.is_send ? open.sender : open.receiver) = stream;
    if (open.bytes != message.bytes) throw MismatchError(describe_mismatch(open, message));
    if (message.is_send) open.eager = message.eager;
    if (open.arrived) {  // eager: the send has ended before
      one_done(stream, meetings);
      close(index);
      continue;
    }
    const bool both = open.sender != kNobody && open.receiver != kNobody;
    if (both) match(open, stream, now, meetings);
    if (open.eager ? message.is_send : both) move(index, op.axis, now);
  }
  if (op.work_count == 0) meetings.ends.push_back({stream, now, false});
}

void Channels::move(std::uint32_t index, Axis axis, Time now) {
  const Key& key = open_[index].key;
  const Bytes bytes = open_[index].bytes;
  sent_[static_cast<std::size_t>(axis)] += bytes;
  transport_.send(
      now, graph_.ranks[key.source].chip, graph_.ranks[key.destination].chip, bytes,
      {.collective = false,
       .index = index,
       .order = std::uint64_t{key.source} << 32 | static_cast<std::uint32_t>(KeyHash()(key))});
}

// Both sides are posted, `late` just now: the other one goes on because of it. (An eager send does
// not wait.)
void Channels::match(const Open& open, std::uint32_t late, Time now, Meetings& meetings) {
  meetings.arrows.push_back({.stream = open.receiver, .from = open.sender});
  const std::uint32_t early = late == open.sender ? open.receiver : open.sender;
  if (early == late || (open.eager && early == open.sender)) return;
  Posted& waited = posted_[early];
  if (streams_.started_at(early) < now) {
    waited.moving = now;
    waited.waited_for_other_stage = other_stage(early, late);
    meetings.joins.push_back({.stream = early, .from = late});
  }
}

void Channels::arrived(const TransferOwner& owner, Meetings& meetings) {
  Open& open = open_[owner.index];
  const std::uint32_t receiver = open.receiver;
  one_done(open.sender, meetings);
  if (receiver == kNobody) {
    open.arrived = true;
    return;
  }
  if (receiver != open.sender) one_done(receiver, meetings);
  close(owner.index);
}

std::string Channels::describe_mismatch(const Open& open, const Message& message) const {
  const Bytes sent = message.is_send ? message.bytes : open.bytes;
  const Bytes received = message.is_send ? open.bytes : message.bytes;
  return "rank " + std::to_string(open.key.source) + " sends " + std::to_string(sent.value()) +
         " bytes to rank " + std::to_string(open.key.destination) + ", which receives " +
         std::to_string(received.value()) + " (" + describe(open.key) + ")";
}

std::string Channels::describe(const Key& key) {
  return std::string(name_of(key.kind)) + ", micro-batch " + std::to_string(key.microbatch) +
         ", boundary " + std::to_string(key.boundary);
}

void Channels::one_done(std::uint32_t stream, Meetings& meetings) {
  Posted& posted = posted_[stream];
  if (--posted.left == 0) {
    meetings.ends.push_back({stream, posted.moving, posted.waited_for_other_stage});
  }
}

void Channels::close(std::uint32_t index) {
  index_.erase(open_[index].key);
  free_.push_back(index);
}

bool Channels::other_stage(std::uint32_t a, std::uint32_t b) const {
  return graph_.ranks[streams_.rank_of(a)].pp != graph_.ranks[streams_.rank_of(b)].pp;
}

std::string Channels::waits_for(std::uint32_t stream, std::vector<std::uint32_t>& ranks) const {
  const Op& op = streams_.program_of(stream).ops[streams_.op(stream)];
  std::string text;
  for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
    const Message& message = graph_.messages[m];
    const Key key = key_of(stream, message);
    const auto found = index_.find(key);
    if (found == index_.end()) continue;
    const Open& open = open_[found->second];
    if ((message.is_send ? open.receiver : open.sender) != kNobody) continue;
    const std::uint32_t peer = message.is_send ? key.destination : key.source;
    ranks.push_back(peer);
    text += (text.empty() ? "" : " and ") +
            std::string(message.is_send ? "the receive" : "the send") + " of " +
            std::string(name_of(message.kind)) + ", micro-batch " +
            std::to_string(message.microbatch) + ", boundary " + std::to_string(message.boundary) +
            " by rank " + std::to_string(peer);
  }
  return text;
}

}  // namespace stepsim
