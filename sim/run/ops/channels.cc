#include "sim/run/ops/channels.h"

#include <algorithm>

#include "sim/run/ops/mismatch_error.h"

namespace stepsim {

Channels::Channels(const Job& job, const Streams& streams, const LastCause& last_cause,
                   Transport& transport)
    : job_(job),
      graph_(job.graph()),
      streams_(streams),
      last_cause_(last_cause),
      transport_(transport),
      posted_(streams.count()) {}

std::size_t Channels::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = std::uint64_t{key.source.index()} << 32 | key.destination.index();
  const auto mix = [&hash](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 32;
  };
  mix(static_cast<std::uint32_t>(key.microbatch.value_or(-1)));
  mix(std::uint64_t{static_cast<std::uint32_t>(key.boundary)} << 32 | key.step);
  mix(static_cast<std::uint64_t>(key.kind));
  return hash;
}

Channels::Key Channels::key_of(RankStreamId stream, const Message& message) const {
  const RankId self = streams_.rank_of(stream);
  const RankId peer = job_.simulated(peer_of(job_.representative(self), message));
  return {.source = message.is_send ? self : peer,
          .destination = message.is_send ? peer : self,
          .microbatch = message.microbatch,
          .boundary = message.boundary,
          .step = streams_.step(stream),
          .kind = message.kind};
}

// Returns the other side of a message of a rank of the graph.
RankId Channels::peer_of(RankId in_graph, const Message& message) const {
  const Communicator& communicator = graph_.communicators[message.communicator.index()];
  return communicator.groups[communicator.seat_of[in_graph.index()].group][message.peer];
}

OpenMessageId Channels::open(const Key& key, Bytes bytes) {
  const auto next =
      free_.empty() ? OpenMessageId(static_cast<std::uint32_t>(open_.size())) : free_.back();
  const auto [place, added] = ids_.try_emplace(key, next);
  if (!added) return place->second;
  if (free_.empty()) {
    open_.emplace_back();
  } else {
    free_.pop_back();
  }
  open_[next.index()] = {.bytes = bytes, .key = key};
  return next;
}

void Channels::post(RankStreamId stream, Time now, CommunicationReports& reports) {
  const Op& op = streams_.op(stream);
  posted_[stream.index()] = {.left = op.work_count, .moving = now, .waited_for_other_stage = false};
  for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
    const Message& message = graph_.messages[m];
    const OpenMessageId id = open(key_of(stream, message), message.bytes);
    Open& open = open_[id.index()];
    (message.is_send ? open.sender : open.receiver) = stream;
    if (open.bytes != message.bytes) throw MismatchError(describe_mismatch(open, message));
    if (message.is_send) {
      const RankId from = job_.representative(streams_.rank_of(stream));
      open.eager = message.eager;
      open.from_chip = graph_.ranks[from.index()].chip;
      open.to_chip = graph_.ranks[peer_of(from, message).index()].chip;
    }
    if (open.arrived) {  // an eager send has ended already
      one_done(stream, reports);
      close(id);
      continue;
    }
    const bool both = open.sender && open.receiver;
    if (both) match(open, stream, now, reports);
    if (open.eager ? message.is_send : both) move(id, op.axis, now);
  }
  if (op.work_count == 0) reports.ends.push_back({.stream = stream, .moving = now});
}

void Channels::move(OpenMessageId id, Axis axis, Time now) {
  const Open& open = open_[id.index()];
  const Key& key = open.key;
  const Bytes bytes = open.bytes;
  const std::uint32_t count = job_.count(key.source);
  sent_[static_cast<std::size_t>(axis)] += std::int64_t{count} * bytes;
  const auto hash = static_cast<std::uint32_t>(KeyHash()(key));
  transport_.send(now, {.from_chip = open.from_chip,
                        .to_chip = open.to_chip,
                        .bytes = bytes,
                        .owner = MessageTransfer{id},
                        .order = TransferOrder::of_message(key.source, hash),
                        .count = count});
}

// Both sides are posted, `late` only now, so the other side continues because of it. (An eager send
// does not wait.)
void Channels::match(const Open& open, RankStreamId late, Time now, CommunicationReports& reports) {
  reports.arrows.push_back({.stream = *open.receiver, .from = *open.sender});
  const RankStreamId early = late == *open.sender ? *open.receiver : *open.sender;
  if (early == late || (open.eager && early == *open.sender)) return;
  Posted& waited = posted_[early.index()];
  if (streams_.started_at(early) == now) return;
  const bool joins_again = waited.late && waited.moving == now;
  if (joins_again && !last_cause_.precedes(late, *waited.late)) return;
  waited.moving = now;
  waited.late = late;
  waited.waited_for_other_stage = other_stage(early, late);
  reports.joins.push_back({.stream = early, .from = late});
}

void Channels::arrived(const MessageTransfer& transfer, CommunicationReports& reports) {
  Open& open = open_[transfer.message.index()];
  const RankStreamId sender = *open.sender;
  const std::optional<RankStreamId> receiver = open.receiver;
  one_done(sender, reports);
  if (!receiver) {
    open.arrived = true;
    return;
  }
  one_done(*receiver, reports);
  close(transfer.message);
}

std::string Channels::describe_mismatch(const Open& open, const Message& message) const {
  const Bytes sent = message.is_send ? message.bytes : open.bytes;
  const Bytes received = message.is_send ? open.bytes : message.bytes;
  return "rank " + std::to_string(open.key.source.index()) + " sends " +
         std::to_string(sent.value()) + " bytes to rank " +
         std::to_string(open.key.destination.index()) + ", which receives " +
         std::to_string(received.value()) + " (" + describe(open.key) + ")";
}

std::string Channels::describe(const Key& key) {
  std::string text(name_of(key.kind));
  if (key.microbatch) text += ", micro-batch " + std::to_string(*key.microbatch);
  return text + ", boundary " + std::to_string(key.boundary);
}

void Channels::one_done(RankStreamId stream, CommunicationReports& reports) {
  Posted& posted = posted_[stream.index()];
  if (--posted.left == 0) {
    reports.ends.push_back({.stream = stream,
                            .moving = posted.moving,
                            .waited_for_other_stage = posted.waited_for_other_stage,
                            .last = posted.late});
  }
}

void Channels::close(OpenMessageId id) {
  ids_.erase(open_[id.index()].key);
  free_.push_back(id);
}

bool Channels::other_stage(RankStreamId a, RankStreamId b) const {
  return job_.ranks()[streams_.rank_of(a).index()].pp !=
         job_.ranks()[streams_.rank_of(b).index()].pp;
}

void Channels::repeat(std::uint64_t times, const Past& past, std::int32_t microbatches) {
  const auto count = static_cast<std::int64_t>(times);
  for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
    sent_[axis] += count * (sent_[axis] - past[axis]);
  }
  std::vector<OpenMessageId> live;
  for (const auto& [key, id] : ids_) live.push_back(id);
  ids_.clear();
  for (const OpenMessageId id : live) {
    Key& key = open_[id.index()].key;
    *key.microbatch += static_cast<std::int32_t>(count) * microbatches;
    ids_.emplace(key, id);
  }
}

std::string Channels::waits_for(RankStreamId stream, std::vector<RankId>& ranks) const {
  const Op& op = streams_.op(stream);
  std::string text;
  for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
    const Message& message = graph_.messages[m];
    const Key key = key_of(stream, message);
    const auto found = ids_.find(key);
    if (found == ids_.end()) continue;
    const Open& open = open_[found->second.index()];
    if (message.is_send ? open.receiver : open.sender) continue;
    const RankId peer = message.is_send ? key.destination : key.source;
    ranks.push_back(peer);
    text += (text.empty() ? "" : " and ") +
            std::string(message.is_send ? "the receive of " : "the send of ") + describe(key) +
            " by rank " + std::to_string(peer.index());
  }
  return text;
}

}  // namespace stepsim
