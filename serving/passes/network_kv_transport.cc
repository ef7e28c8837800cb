#include "serving/passes/network_kv_transport.h"

#include <algorithm>

#include "sim/hardware/chip_route.h"

namespace stepsim {
namespace {

std::uint32_t first_of_group(const ReplicaPlace& place, RequestId request) {
  return place.first + request.index() % place.groups * place.ranks;
}

// Returns the position in its group of the chip of a context rank that is the `number`th of those
// with as large a share.
std::uint32_t holder_of(const ReplicaPlace& place, std::uint32_t context, std::uint32_t number) {
  const std::uint32_t stride = place.context_stride;
  return number / stride * stride * place.contexts + context * stride + number % stride;
}

}  // namespace

void NetworkKvTransport::start(Time now, const KvTransfer& transfer) {
  if (transfer.way == KvWay::kBetweenReplicas) {
    start_between(now, transfer);
  } else {
    start_copy(now, transfer);
  }
  network_.settle(now);
  ++started_;
}

void NetworkKvTransport::start_between(Time now, const KvTransfer& transfer) {
  const ReplicaPlace& from = replicas_[transfer.from];
  const ReplicaPlace& to = replicas_[transfer.to];
  const std::uint32_t holders = from.ranks / from.contexts;
  const std::uint32_t of_share = std::max(holders, to.ranks);
  const std::uint32_t messages = of_share * from.contexts;
  const Bytes whole = std::int64_t{to.ranks} * transfer.tokens * to.token;
  const Bytes each = (whole + Bytes(messages - 1)) / std::int64_t{messages};
  const std::uint32_t sender = first_of_group(from, transfer.request);
  const std::uint32_t receiver = first_of_group(to, transfer.request);
  under_way_[started_] = {transfer, messages};
  for (std::uint32_t message = 0; message < messages; ++message) {
    const std::uint32_t context = message / of_share;
    const std::uint32_t i = message % of_share;
    route_.clear();
    const Duration latency =
        route_of(cluster_, sender + holder_of(from, context, i * holders / of_share),
                 receiver + i * to.ranks / of_share, route_);
    send(now, each, latency, route_);
  }
}

// On the way to the host it doesn't matter whose blocks they are: all groups send as many.
void NetworkKvTransport::start_copy(Time now, const KvTransfer& transfer) {
  const bool leaves = transfer.way == KvWay::kToHost;
  const ReplicaPlace& place = replicas_[transfer.to];
  const std::uint32_t chips = leaves ? place.ranks * place.groups : place.ranks;
  const std::uint32_t first = leaves ? place.first : first_of_group(place, transfer.request);
  const std::int64_t groups = leaves ? std::int64_t{place.groups} : 1;
  const Bytes each = (transfer.tokens * place.token + Bytes(groups - 1)) / groups;
  const Hosts& hosts = cluster_.hosts;
  under_way_[started_] = {transfer, chips};
  for (std::uint32_t i = 0; i < chips; ++i) {
    const HostPath& path = hosts.of_chip.at(first + i);
    send(now, each, hosts.spec.link_latency, leaves ? path.out : path.in);
  }
}

void NetworkKvTransport::send(Time now, Bytes bytes, Duration latency,
                              const std::vector<LinkId>& route) {
  uses_.clear();
  for (const LinkId link : route) uses_.push_back(cluster_.fabric.spread(link));
  const TransferId id(messages_++);
  transfer_of_[id] = started_;
  network_.start(now, id, {.bytes = bytes, .latency = latency, .uses = uses_});
}

void NetworkKvTransport::advance(Time now, std::vector<KvTransfer>& arrived) {
  while (const std::optional<Time> next = network_.next_event()) {
    if (*next > now) break;
    done_.clear();
    network_.advance(*next, done_);
    network_.settle(*next);
    for (const TransferId id : done_) {
      const auto message = transfer_of_.find(id);
      const auto transfer = under_way_.find(message->second);
      transfer_of_.erase(message);
      if (--transfer->second.messages > 0) continue;
      arrived.push_back(transfer->second.transfer);
      under_way_.erase(transfer);
    }
  }
}

}  // namespace stepsim
