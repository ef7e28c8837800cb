#include "books/laboratory/hops.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "books/laboratory/random_numbers.h"

namespace stepsim {
namespace {

Message message_to(CommunicatorId communicator, bool is_send, std::uint32_t peer,
                   std::uint32_t number, Bytes bytes) {
  Message message;
  message.is_send = is_send;
  message.communicator = communicator;
  message.peer = peer;
  message.microbatch = static_cast<std::int32_t>(number);
  message.bytes = bytes;
  return message;
}

// One direction of a whole-shard all-gather: rank r sends to r + 1 (of n, cyclically).
// `order[p]` is the rank at position p of the direction.
void add_direction(GraphByHand& graph, const std::vector<std::uint32_t>& order, Bytes shard,
                   bool wraps, std::uint32_t most_rounds) {
  const auto n = static_cast<std::uint32_t>(order.size());
  const CommunicatorId communicator = graph.communicator(order);  // member = position
  for (std::uint32_t position = 0; position < n; ++position) {
    const std::uint32_t rank = order[position];
    const StreamId stream = graph.stream(rank, "hops " + std::to_string(communicator.index()));
    const std::uint32_t next = (position + 1) % n;
    const std::uint32_t previous = (position + n - 1) % n;
    // On a line the chip at position p sends p + 1 shards and receives p.
    const std::uint32_t sends = wraps ? most_rounds : (next == 0 ? 0 : position + 1);
    const std::uint32_t receives = wraps ? most_rounds : position;
    for (std::uint32_t round = 0; round < std::max(sends, receives); ++round) {
      std::vector<Message> batch;
      if (round < sends) batch.push_back(message_to(communicator, true, next, round, shard));
      if (round < receives) {
        batch.push_back(message_to(communicator, false, previous, round, shard));
      }
      graph.messages(rank, stream, std::move(batch));
    }
  }
}

// All receives are posted at the start; `add_sends` posts the sends of a rank.
OpGraph messages_to(const std::vector<std::vector<std::uint32_t>>& destinations, Bytes chunk,
                    void (*add_sends)(GraphByHand&, std::uint32_t rank,
                                      const std::vector<Message>&)) {
  const auto n = static_cast<std::uint32_t>(destinations.size());
  GraphByHand graph(n);
  const CommunicatorId communicator = graph.communicator();
  std::vector<std::vector<Message>> receives(n);
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    std::vector<Message> sends;
    for (const std::uint32_t destination : destinations[rank]) {
      sends.push_back(message_to(communicator, true, destination, 0, chunk));
      receives[destination].push_back(message_to(communicator, false, rank, 0, chunk));
    }
    add_sends(graph, rank, sends);
  }
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    const StreamId stream = graph.stream(rank, "receives");
    if (!receives[rank].empty()) graph.messages(rank, stream, std::move(receives[rank]));
  }
  return graph.build();
}

}  // namespace

OpGraph whole_shard_all_gather(std::uint32_t n, Bytes shard, bool wraps) {
  GraphByHand graph(n);
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  add_direction(graph, order, shard, wraps, n / 2);
  std::ranges::reverse(order);
  add_direction(graph, order, shard, wraps, (n - 1) / 2);
  return graph.build();
}

OpGraph all_gather_in_rounds(std::uint32_t n, Bytes shard, Duration floor) {
  GraphByHand graph(n);
  const CommunicatorId communicator = graph.communicator();
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    const StreamId stream = graph.stream(rank, "hops");
    std::vector<Dependency> before;
    for (std::uint32_t round = 0; round + 1 < n; ++round) {
      // Each chip sends to the right its own shard and those from its left, nearest first; to the
      // left likewise.
      std::vector<Message> batch;
      const auto add = [&](bool is_send, std::uint32_t peer, bool to_the_right) {
        const std::uint32_t number = 2 * round + (to_the_right ? 1 : 0);
        batch.push_back(message_to(communicator, is_send, peer, number, shard));
      };
      if (rank + 1 < n && round <= rank) add(true, rank + 1, true);
      if (rank > 0 && round < rank) add(false, rank - 1, true);
      if (rank > 0 && round < n - rank) add(true, rank - 1, false);
      if (rank + 1 < n && round + 1 < n - rank) add(false, rank + 1, false);
      std::vector<Dependency> ended = {after(graph.compute_for(rank, floor, before))};
      if (!batch.empty()) {
        ended.push_back(after(graph.messages(rank, stream, std::move(batch), before)));
      }
      before = std::move(ended);
    }
  }
  return graph.build();
}

OpGraph reduce_scatter_with_adds(std::uint32_t n, Bytes shard, Bytes added) {
  GraphByHand graph(n);
  const CommunicatorId communicator = graph.communicator();
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    const StreamId stream = graph.stream(rank, "hops");
    std::vector<Dependency> added_up;
    for (std::uint32_t round = 0; round + 1 < n; ++round) {
      const OpRef hop =
          graph.messages(rank, stream,
                         {message_to(communicator, true, (rank + 1) % n, round, shard),
                          message_to(communicator, false, (rank + n - 1) % n, round, shard)},
                         added_up);
      added_up = {after(graph.compute(rank, Flops(0), {after(hop)}, added))};
    }
  }
  return graph.build();
}

OpGraph messages_in_order(const std::vector<std::vector<std::uint32_t>>& destinations,
                          Bytes chunk) {
  return messages_to(destinations, chunk,
                     [](GraphByHand& graph, std::uint32_t rank, const std::vector<Message>& sends) {
                       const StreamId stream = graph.stream(rank, "sends");
                       for (const Message& send : sends) graph.messages(rank, stream, {send});
                     });
}

OpGraph messages_at_once(const std::vector<std::vector<std::uint32_t>>& destinations, Bytes chunk) {
  return messages_to(destinations, chunk,
                     [](GraphByHand& graph, std::uint32_t rank, const std::vector<Message>& sends) {
                       for (const Message& send : sends) {
                         const OpRef posted = graph.compute_for(rank, std::chrono::nanoseconds(1));
                         const std::string name = "send to " + std::to_string(send.peer);
                         graph.messages(rank, graph.stream(rank, name), {send}, {after(posted)});
                       }
                     });
}

std::vector<std::vector<std::uint32_t>> same_order(std::uint32_t n) {
  std::vector<std::vector<std::uint32_t>> destinations(n);
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    for (std::uint32_t destination = 0; destination < n; ++destination) {
      if (destination != rank) destinations[rank].push_back(destination);
    }
  }
  return destinations;
}

std::vector<std::vector<std::uint32_t>> rotated_order(std::uint32_t n) {
  std::vector<std::vector<std::uint32_t>> destinations(n);
  for (std::uint32_t rank = 0; rank < n; ++rank) {
    for (std::uint32_t step = 1; step < n; ++step) destinations[rank].push_back((rank + step) % n);
  }
  return destinations;
}

std::vector<std::vector<std::uint32_t>> random_order(std::uint32_t n, std::uint64_t seed) {
  std::vector<std::vector<std::uint32_t>> destinations = rotated_order(n);
  RandomNumbers random(seed);
  for (std::vector<std::uint32_t>& order : destinations) {
    for (std::size_t left = order.size(); left > 1; --left) {
      const auto drawn = static_cast<std::size_t>(random.uniform() * static_cast<double>(left));
      std::swap(order[left - 1], order[std::min(drawn, left - 1)]);
    }
  }
  return destinations;
}

}  // namespace stepsim
