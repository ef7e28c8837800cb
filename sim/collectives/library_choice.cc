#include "sim/collectives/library_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <vector>

#include "sim/collectives/algorithms/tree_packing.h"
#include "sim/collectives/auto_bids.h"

namespace stepsim {
namespace {

// NCCL's figures for the share of a rate that flags leave (src/graph/tuning.cc).
constexpr double kLlShare = 0.5;
constexpr double kLl128Share = 0.92;
constexpr double kTreeSimpleShare = 0.92;
constexpr double kTreeLlShare = 1 / 3.8;
constexpr double kTreeLl128ShareOfOneNode = 7.0 / 9.0;
constexpr double kTreeLl128Share = 120.0 / 128.0;
constexpr double kNvlsRatio = 5.0 / 6.0;
constexpr double kNetworkRingSimpleFactor = 1.9;  // latency of all-reduce rings over nodes
constexpr std::uint32_t kNvlsMembers = 5;         // measured with 5 and more, never with 4
constexpr std::uint32_t kMostInOneGroup = 128;    // members whose messages are simulated at once

constexpr std::size_t kNetwork = static_cast<std::size_t>(HopKind::kNetwork);

struct Way {
  LibraryPath path = LibraryPath::kRing;
  Protocol protocol = Protocol::kSimple;
  double seconds = 0;
};

// Returns 0 if there is no limit.
double seconds_of(Bytes bytes, std::optional<Bandwidth> rate) {
  return rate ? static_cast<double>(bytes.value()) / rate->value() : 0;
}

// In bytes/s; 0 if there is no such link.
double value_or_none(std::optional<Bandwidth> link) {
  return link.value_or(Bandwidth()).value();
}

std::string microseconds(double seconds) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f us", 1e6 * seconds);
  return buffer;
}

std::string name_of(const Way& way) {
  return std::string(name_of(way.path)) + " " + std::string(name_of(way.protocol));
}

// Tuner computes the time that NCCL itself expects for each path and protocol in a group.
class Tuner {
 public:
  Tuner(const CommunicationLibrary& library, const CollectiveTask& task, const GroupLinks& links,
        bool by_levels)
      : library_(library),
        tuner_(library.tuner),
        task_(task),
        links_(links),
        by_levels_(by_levels) {
    const double inside = tuner_.search_fraction * value_or_none(links.inside);
    const ProtocolTiming& simple = *library.find(LibraryPath::kRing, Protocol::kSimple);
    const double local = links.cards();
    const double network = simple.link_fraction[kNetwork] * value_or_none(links.network) * local;
    inside_ = inside;
    network_ = network;
    rate_ = links.nodes == 1 ? inside : links.inside ? std::min(inside, network) : network;
  }

  double expectation(const ProtocolTuning& tuning) const {
    const auto inside_hop = to_seconds(tuning.hop[static_cast<std::size_t>(library_.inside)]);
    const auto network_hop = to_seconds(tuning.hop[kNetwork]);
    const auto n = static_cast<double>(links_.members);
    const auto nodes = static_cast<double>(links_.nodes);
    double hops_s = 0;
    double ratio = 1;
    if (tuning.path == LibraryPath::kTree) {
      hops_s =
          2 * ((n / nodes - 1) * inside_hop + (std::bit_width(links_.nodes) - 1) * network_hop);
      ratio = 0.5;
    } else if (tuning.path == LibraryPath::kNvls) {
      hops_s = inside_hop;
      ratio = kNvlsRatio;
    } else if (tuning.path == LibraryPath::kNvlsTree) {
      hops_s = inside_hop + 2 * (std::bit_width(links_.nodes) - 1) * network_hop;
    } else {
      const double passes = task_.op == CollectiveOp::kAllReduce ? 2 : 1;
      const double hops = by_levels_ ? passes * (n / nodes + nodes - 2) : passes * (n - 1);
      const double across = by_levels_         ? passes * (nodes - 1)
                            : links_.nodes > 1 ? passes * nodes - (2 - passes)
                                               : 0;
      hops_s = (hops - across) * inside_hop + across * network_hop;
      if (links_.nodes > 1 && passes > 1 && tuning.protocol == Protocol::kSimple) {
        hops_s *= kNetworkRingSimpleFactor;
      }
      ratio = n / (passes * (n - 1));
    }
    const double rate = rate_of(tuning) * ratio;
    return to_seconds(tuning.base) + hops_s + static_cast<double>(task_.bytes.value()) / rate;
  }

 private:
  double rate_of(const ProtocolTuning& tuning) const {
    const auto channels = static_cast<double>(tuner_.channels);
    const auto most = [&](const ByNodes& by_nodes, double count) {
      const std::optional<Bandwidth> rate = by_nodes.of(links_.nodes);
      return rate ? rate->value() * count : std::numeric_limits<double>::infinity();
    };
    switch (tuning.path) {
      case LibraryPath::kTree:
        switch (tuning.protocol) {
          case Protocol::kLl:
            return std::min(rate_ * kTreeLlShare, most(tuner_.ll_most, 1));
          case Protocol::kLl128:
            return std::min(
                rate_ * (links_.nodes == 1 ? kTreeLl128ShareOfOneNode : kTreeLl128Share),
                most(tuner_.tree_ll128_channel, channels));
          case Protocol::kSimple:
            break;
        }
        return std::min(rate_ * kTreeSimpleShare, most(tuner_.tree_channel, channels));
      case LibraryPath::kNvls:
        return rate_ * tuner_.nvls_efficiency * (channels - 1) / channels;
      case LibraryPath::kNvlsTree:
        // Two nodes hand each other all data once; a node of more hands it up and down.
        return std::min(inside_ * tuner_.nvls_efficiency * (channels - 1) / channels * kNvlsRatio,
                        links_.nodes == 2 ? network_ : network_ / 2);
      case LibraryPath::kRing:
      case LibraryPath::kMessages:
      case LibraryPath::kRelay:
        break;
    }
    switch (tuning.protocol) {
      case Protocol::kLl:
        return std::min(rate_ * kLlShare, most(tuner_.ll_most, 1));
      case Protocol::kLl128:
        return std::min(rate_ * kLl128Share, most(tuner_.ring_ll128_channel, channels));
      case Protocol::kSimple:
        break;
    }
    return rate_;
  }

  const CommunicationLibrary& library_;
  const LibraryTuner& tuner_;
  const CollectiveTask& task_;
  const GroupLinks& links_;
  bool by_levels_;      // inside nodes and across, not one ring through all members
  double inside_ = 0;   // of a node's links
  double network_ = 0;  // of all cards of a node
  double rate_ = 0;
};

std::optional<Bandwidth> lower(std::optional<Bandwidth> a, std::optional<Bandwidth> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// Returns the bytes on a link per byte of data.
double wire_ratio(std::optional<Bandwidth> link, double fraction, std::optional<Bandwidth> most) {
  if (!link) return 1;
  const Bandwidth rate = *lower(fraction * *link, most);
  return rate.value() > 0 ? std::max(1.0, link->value() / rate.value()) : 1;
}

// Share is the part of one member in a collective.
struct Share {
  Bytes bytes{};  // bytes of the collective
  Bytes part{};   // bytes of the member's shard
  Bytes sent{};   // bytes that the member sends
  std::uint32_t peers = 1;
  bool adds = false;
  bool copy_engines = false;
};

// Returns the number of open channels, which grows smoothly with the bytes. It is at least one if
// there are any.
double open_channels(const CommunicationLibrary& library, const ProtocolChannels& channels,
                     const Share& share, const GroupLinks& links) {
  if (share.copy_engines) return 0;
  std::int64_t most = channels.most;
  if (links.nodes > 1) {
    most = std::min(channels.network_most, channels.network * links.cards());
  }
  most = std::min(most, library.most_channels.value_or(most));
  const Bytes each = channels.bytes + std::int64_t{links.members} * channels.member_bytes;
  if (most == 0 || each == Bytes(0)) return static_cast<double>(most);
  const double opened =
      static_cast<double>(share.bytes.value()) / static_cast<double>(each.value());
  return std::clamp(opened, 1.0, static_cast<double>(most));
}

LibraryCost cost_of(const CommunicationLibrary& library, const ProtocolTiming& timing,
                    const Share& share, const GroupLinks& links) {
  LibraryCost cost;
  const auto x = static_cast<double>(share.part.value());
  const double fill =
      to_seconds(timing.fill) * x / (x + static_cast<double>(timing.fill_bytes.value()));
  cost.start = timing.start + duration_from_seconds(fill + seconds_of(share.part, timing.copy));
  if (timing.doubling > Duration(0) && share.peers > 1) {
    cost.start += duration_from_seconds(to_seconds(timing.doubling) *
                                        (std::log2(static_cast<double>(share.peers + 1)) - 1));
  }
  if (share.peers > 1) cost.start += std::int64_t{share.peers} * share.peers * timing.peers_squared;
  cost.hop = timing.hop;

  const ProtocolChannels& channels = timing.channels;
  const double open = open_channels(library, channels, share, links);
  std::optional<Bandwidth> most;  // the rate at which the chip can send
  if (open > 0) {
    const auto channel = lower(channels.rate, share.adds ? links.adder : std::nullopt);
    if (channel) most = open * *channel;
  }
  if (channels.accesses > 0 && links.memory) most = lower(most, *links.memory / channels.accesses);
  const auto local = static_cast<std::size_t>(library.inside);
  cost.wire[local] =
      wire_ratio(links.inside, timing.link_fraction[local], lower(timing.most, most));
  cost.wire[kNetwork] = wire_ratio(links.network, timing.link_fraction[kNetwork], most);

  // A node sends over the network with all its cards.
  std::optional<Bandwidth> rate;
  if (links.inside) rate = *links.inside / cost.wire[local];
  if (links.nodes > 1 && links.network) {
    rate = lower(rate, links.cards() / cost.wire[kNetwork] * *links.network);
  }
  const double busy = seconds_of(share.sent, rate);
  cost.channels = std::llround(open);
  if (busy > 0) {
    const double all = busy + to_seconds(cost.start);
    cost.memory = Bandwidth(channels.accesses * static_cast<double>(share.sent.value()) / all);
  }
  return cost;
}

bool reduces(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduceScatter ||
         op == CollectiveOp::kReduce;
}

// Returns whether the operation only copies from buffer to buffer.
bool can_use_copy_engines(CollectiveOp op) {
  return op == CollectiveOp::kAllGather || op == CollectiveOp::kAllToAll ||
         op == CollectiveOp::kGather || op == CollectiveOp::kScatter;
}

Share share_of(const CommunicationLibrary& library, const CollectiveTask& task, LibraryPath path,
               const GroupLinks& links) {
  Share share{.bytes = task.bytes, .adds = reduces(task.op)};
  const bool whole = task.op == CollectiveOp::kSendReceive || task.op == CollectiveOp::kPermute;
  const auto n = std::int64_t{links.members};
  share.peers = whole ? 1 : links.members - 1;
  share.part = whole ? task.bytes : task.bytes / n;
  const bool switched = path == LibraryPath::kNvls || path == LibraryPath::kNvlsTree;
  const bool once =
      whole || switched || task.op == CollectiveOp::kBroadcast || task.op == CollectiveOp::kReduce;
  const std::int64_t passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
  share.sent = once ? task.bytes : passes * (n - 1) * share.part;
  if (task.experts && task.experts->expert_chips > 0) {  // of the busiest member
    const std::int64_t chips = task.experts->expert_chips;
    share.peers = static_cast<std::uint32_t>(std::max(chips, n - chips));
    share.part = task.bytes / std::int64_t{share.peers};
    share.sent = task.bytes;
  }
  share.copy_engines = library.copy_engines && links.nodes == 1 && can_use_copy_engines(task.op);
  return share;
}

bool moves_messages(CollectiveOp op) {
  return op == CollectiveOp::kAllToAll || op == CollectiveOp::kGather ||
         op == CollectiveOp::kScatter || op == CollectiveOp::kSendReceive ||
         op == CollectiveOp::kPermute;
}

// What a group can take beside rings.
struct Possible {
  bool nvls = false;
  bool trees = false;
  bool nvls_trees = false;
  bool by_levels = false;
};

// Returns the paths and protocols that NCCL could take here, in its order.
std::vector<Way> ways(const CommunicationLibrary& library, const CollectiveTask& task,
                      const Possible& can, const GroupLinks& links) {
  const Tuner tuner(library, task, links, can.by_levels);
  const bool switched = task.op == CollectiveOp::kAllReduce && links.cards() >= kNvlsMembers &&
                        library.tuner.nvls_efficiency > 0;
  std::vector<Way> result;
  for (const ProtocolTuning& tuning : library.tuner.protocols) {
    if (tuning.path == LibraryPath::kNvls && !(switched && can.nvls && links.nodes == 1)) continue;
    if (tuning.path == LibraryPath::kNvlsTree && !(switched && can.nvls_trees)) continue;
    if (tuning.path == LibraryPath::kTree && !can.trees) continue;
    if (tuning.path == LibraryPath::kMessages || tuning.path == LibraryPath::kRelay) continue;
    result.push_back({tuning.path, tuning.protocol, tuner.expectation(tuning)});
  }
  return result;
}

std::string why_lowest(const CommunicationLibrary& library, const std::vector<Way>& all,
                       const Way& best) {
  std::string others;
  for (const Way& way : all) {
    if (way.path == best.path && way.protocol == best.protocol) continue;
    others +=
        (others.empty() ? ", before " : ", ") + name_of(way) + " " + microseconds(way.seconds);
  }
  return "the tuning of " + library.name + " expects " + name_of(best) + " to take " +
         microseconds(best.seconds) + others;
}

// Returns whether the library's rings are many, over all links between members that are linked
// directly. Trees over those links stand for them.
bool takes_trees(const GroupShape& shape) {
  return !shape.ways.empty() && (shape.dimensions.size() <= 1 || shape.is_torus());
}

// Returns the links of the group as the library's search for rings finds them: those of a member
// that is linked directly to others work together.
GroupLinks searched(const GroupLinks& links, const GroupShape& shape) {
  if (!takes_trees(shape)) return links;
  GroupLinks found = links;
  const Bandwidth ports = least_ports(shape.ways, links.members);
  if (found.inside) found.inside = ports;
  if (found.network) found.network = ports / links.cards();
  return found;
}

// Returns the algorithm that represents NCCL's ring. On a torus, and where chips are linked
// directly, it uses all of a chip's links, as the rings do that NCCL's search finds. Over a few
// nodes it is one ring per card, of the smallest node where they differ. Over many nodes it is
// level by level. That is faster by less than one part in the number of nodes, and quick to
// compute.
AlgorithmChoice ring_of(const GroupShape& shape, const GroupLinks& links) {
  if (!shape.dimensions.empty() && shape.is_torus() && shape.ways.empty()) {
    return AlgorithmChoice::kMultiAxis;
  }
  if (takes_trees(shape)) return AlgorithmChoice::kPackedTrees;
  const bool few = links.members <= kMostInRotatedRings;
  if (!shape.uneven_nodes.empty() && few) return AlgorithmChoice::kRotatedRings;
  if (shape.dimensions.size() <= 1) return AlgorithmChoice::kRing;
  const bool whole_nodes =
      links.nodes > 1 && few && shape.dimensions.front().size * links.nodes == links.members &&
      refusal(CollectiveOp::kAllReduce, AlgorithmChoice::kRotatedRings, shape).empty();
  return whole_nodes ? AlgorithmChoice::kRotatedRings : AlgorithmChoice::kHierarchical;
}

LibraryChoice by_messages(const CommunicationLibrary& library, const CollectiveTask& task,
                          const ChosenAlgorithm& chosen, bool free_choice,
                          const GroupLinks& links) {
  const bool shared = task.matrix != nullptr && task.matrix->sharing != NodeSharing::kNone;
  const ProtocolTiming* relay = library.find(LibraryPath::kRelay, Protocol::kSimple);
  if (shared && relay != nullptr) {
    return {
        .algorithm = chosen.choice,
        .cost =
            cost_of(library, *relay, share_of(library, task, LibraryPath::kRelay, links), links),
        .protocol = std::string(name_of(Protocol::kSimple)),
        .why = chosen.why + "; " + library.name + " has kernels for all-to-alls that nodes share"};
  }
  const Share share = share_of(library, task, LibraryPath::kMessages, links);
  const Protocol protocol =
      share.part <= library.tuner.messages_ll_up_to ? Protocol::kLl : Protocol::kSimple;
  // All messages are one group: no member waits for rounds of others.
  const bool one_group = free_choice && chosen.choice == AlgorithmChoice::kPairwise &&
                         links.members <= kMostInOneGroup;
  const AlgorithmChoice algorithm = one_group ? AlgorithmChoice::kDirect : chosen.choice;
  return {.algorithm = algorithm,
          .cost = cost_of(library, *library.find(LibraryPath::kMessages, protocol), share, links),
          .protocol = std::string(name_of(protocol)),
          .why = chosen.why + "; " + library.name + " sends messages of this size by " +
                 std::string(name_of(protocol))};
}

// Returns whether nothing is faster than the one switch between all members. Rings carry (n - 1) /
// n of the data over each link, twice for an all-reduce. The switch has to take in the data of all
// members.
bool is_best_in_switch(const CollectiveTask& task, bool floating, const GroupShape& shape,
                       const GroupLinks& links) {
  if (!links.nvls || links.nodes != 1) return false;
  if (!refusal(task.op, AlgorithmChoice::kNvls, shape).empty()) return false;
  const bool adds = task.op == CollectiveOp::kAllReduce || task.op == CollectiveOp::kReduce ||
                    task.op == CollectiveOp::kReduceScatter;
  if (!adds) return true;
  if (!floating) return false;
  const double n = links.members;
  const double passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
  return !links.switch_adders ||
         n / links.switch_adders->value() <= passes * (n - 1) / n / value_or_none(links.inside);
}

// Returns the library's own kernel for a small all-reduce in one node; nullopt if it has none.
std::optional<LibraryChoice> by_direct_kernel(const CommunicationLibrary& library,
                                              const CollectiveTask& task, bool floating,
                                              const GroupShape& shape, const GroupLinks& links) {
  const bool can = library.direct_all_reduce && task.op == CollectiveOp::kAllReduce && floating &&
                   links.nodes == 1 && task.bytes > Bytes(0) &&
                   refusal(task.op, AlgorithmChoice::kNvls, shape).empty();
  if (!can) return std::nullopt;
  const auto time = time_of_all_reduce(*library.direct_all_reduce, links.members, task.bytes);
  if (!time) return std::nullopt;
  const Duration moving = duration_from_seconds(seconds_of(task.bytes, links.inside));
  return LibraryChoice{
      .algorithm = AlgorithmChoice::kNvls,
      .cost = {.start = std::max(Duration(), *time - moving), .has_trips = true},
      .protocol = "direct",
      .why = library.name + " has a kernel of its own for all-reduces of this size in a node"};
}

// Tokens are those of the busiest member: it sends them, or receives them on a chip of experts.
ExchangedTokens exchanged_by(const ExpertHalf& half, const GroupLinks& links) {
  const std::int64_t chips = half.expert_chips > 0 ? half.expert_chips : links.members;
  const std::int64_t senders = half.expert_chips > 0 ? links.members - chips : chips;
  return {.tokens = std::max(half.tokens, (half.tokens * senders + chips - 1) / chips),
          .top_k = half.top_k,
          .experts = half.experts,
          .token_bytes = half.token_bytes,
          .units = links.units,
          .chips = chips};
}

// Returns the parts of an all-to-all's bytes that a member sends to others of its node and to other
// nodes. To experts on chips of their own it sends all of them; over nodes these are taken to be
// in other nodes.
struct SentBytes {
  double inside = 0;
  double leaving = 0;
};
SentBytes sent_bytes(const CollectiveTask& task, const GroupLinks& links) {
  const auto bytes = static_cast<double>(task.bytes.value());
  if (task.experts->expert_chips > 0) {
    return links.nodes > 1 ? SentBytes{.leaving = bytes} : SentBytes{.inside = bytes};
  }
  const double members = links.members;
  return {.inside = bytes * (links.cards() - 1) / members,
          .leaving = bytes * (members - links.cards()) / members};
}

double seconds_inside(const CollectiveTask& task, const GroupLinks& links) {
  return links.inside ? sent_bytes(task, links).inside / links.inside->value() : 0;
}

// Returns the library's kernel for half of an exchange of few tokens with experts; nullopt if it
// has none for as many, or none over nodes.
std::optional<LibraryChoice> by_exchange_kernel(const CommunicationLibrary& library,
                                                const CollectiveTask& task,
                                                const GroupLinks& links) {
  const ExpertHalf& half = *task.experts;
  const std::optional<TokenExchange>& kernel = half.combines ? library.combine : library.dispatch;
  if (!kernel || (kernel->up_to_tokens > 0 && half.tokens > kernel->up_to_tokens)) {
    return std::nullopt;
  }
  const bool over_nodes = links.nodes > 1;
  if (over_nodes && kernel->network_fraction == 0) return std::nullopt;
  const Duration time = time_of_exchange(*kernel, exchanged_by(half, links));
  LibraryChoice choice{
      .algorithm = AlgorithmChoice::kDirect,
      .cost = {.start = kernel->start + half.experts * kernel->expert_start,
               .has_trips = !over_nodes},
      .protocol = "direct",
      .why = library.name + " has a kernel of its own for exchanges of this size with experts"};
  const Duration sending = time - choice.cost.start;
  double moving = seconds_inside(task, links);
  if (over_nodes) {
    choice.cost.wire[kNetwork] = 1 / kernel->network_fraction;
    choice.cost.start += kernel->network_start;
    const double rate = value_or_none(links.network) * kernel->network_fraction;
    moving = std::max(moving, sent_bytes(task, links).leaving / rate);
  }
  choice.cost.start += std::max(Duration(), sending - duration_from_seconds(moving));
  return choice;
}

// Likewise of many tokens, among the chips of a node. The kernel holds units of the chip.
std::optional<LibraryChoice> by_bulk_kernel(const CommunicationLibrary& library,
                                            const CollectiveTask& task, const GroupLinks& links) {
  const ExpertHalf& half = *task.experts;
  const std::optional<BulkExchange>& kernel =
      half.combines ? library.bulk_combine : library.bulk_dispatch;
  if (!kernel || links.nodes > 1) return std::nullopt;
  const Duration time = time_of_exchange(*kernel, exchanged_by(half, links));
  const Duration moving = duration_from_seconds(seconds_inside(task, links));
  return LibraryChoice{
      .algorithm = AlgorithmChoice::kDirect,
      .cost = {.start = std::max(kernel->start, time - moving),
               .channels = std::min(kernel->units, links.units),
               .has_trips = true},
      .protocol = "bulk",
      .why = library.name + " has a kernel of its own for exchanges of many tokens with experts"};
}

}  // namespace

LibraryChoice choose_with_library(const CommunicationLibrary& library, const CollectiveTask& task,
                                  bool floating, AlgorithmChoice asked, const GroupShape& shape,
                                  const GroupLinks& given) {
  const GroupLinks links = is_ring_op(task.op) ? searched(given, shape) : given;
  ChosenAlgorithm chosen = resolve(task, asked, shape);
  if (library.ideal()) {
    if (asked == AlgorithmChoice::kAuto && is_best_in_switch(task, floating, shape, links)) {
      chosen = {AlgorithmChoice::kNvls,
                "the switch of the node adds and copies: one trip, and each link carries the data "
                "once"};
    }
    return {.algorithm = chosen.choice, .cost = {}, .protocol = {}, .why = std::move(chosen.why)};
  }
  if (asked == AlgorithmChoice::kAuto && task.experts) {
    auto exchange = by_exchange_kernel(library, task, links);
    if (!exchange) exchange = by_bulk_kernel(library, task, links);
    if (exchange) return *std::move(exchange);
  }
  if (moves_messages(task.op)) {
    return by_messages(library, task, chosen, asked == AlgorithmChoice::kAuto, links);
  }
  if (asked == AlgorithmChoice::kAuto) {
    auto direct = by_direct_kernel(library, task, floating, shape, links);
    if (direct) return *std::move(direct);
  }

  const bool free_choice = asked == AlgorithmChoice::kAuto && is_ring_op(task.op);
  const bool trees = free_choice && task.op == CollectiveOp::kAllReduce && links.nodes > 1 &&
                     shape.uneven_nodes.empty() && !takes_trees(shape) && !shape.has_torus_axis() &&
                     refusal(task.op, AlgorithmChoice::kDoubleBinaryTree, shape).empty();
  const AlgorithmChoice ring = ring_of(shape, links);
  const bool by_levels = ring == AlgorithmChoice::kHierarchical &&
                         (free_choice || asked == AlgorithmChoice::kHierarchical);
  // If the user asks for it by name, the time is that of sums in the switches.
  const bool nvls = (free_choice || asked == AlgorithmChoice::kNvls) && floating &&
                    refusal(task.op, AlgorithmChoice::kNvls, shape).empty();
  const bool asks_tree = asked == AlgorithmChoice::kNvlsTree;
  const bool nvls_trees = (free_choice || asks_tree) && floating && links.nvls && links.nodes > 1 &&
                          shape.uneven_nodes.empty() &&
                          refusal(task.op, AlgorithmChoice::kNvlsTree, shape).empty();
  std::vector<Way> all = ways(library, task, {nvls, trees, nvls_trees, by_levels}, links);
  const auto keep_only = [&all](LibraryPath path) {
    std::erase_if(all, [path](const Way& way) { return way.path != path; });
  };
  if (asked == AlgorithmChoice::kNvls && nvls) keep_only(LibraryPath::kNvls);
  if (asks_tree && nvls_trees) keep_only(LibraryPath::kNvlsTree);
  if (all.empty()) all.push_back({});  // nothing is tuned, so use Simple
  const Way best = *std::ranges::min_element(all, {}, &Way::seconds);
  if (free_choice) {
    chosen = {.choice = ring, .why = why_lowest(library, all, best)};
    if (best.path == LibraryPath::kTree) chosen.choice = AlgorithmChoice::kDoubleBinaryTree;
    if (best.path == LibraryPath::kNvls) chosen.choice = AlgorithmChoice::kNvls;
    if (best.path == LibraryPath::kNvlsTree) chosen.choice = AlgorithmChoice::kNvlsTree;
  } else {
    chosen.why += "; " + why_lowest(library, all, best);
  }
  return {.algorithm = chosen.choice,
          .cost = cost_of(library, *library.find(best.path, best.protocol),
                          share_of(library, task, best.path, links), links),
          .protocol = std::string(name_of(best.protocol)),
          .why = std::move(chosen.why)};
}

LibraryCost cost_of_message(const CommunicationLibrary& library, Bytes bytes, HopKind kind,
                            Bandwidth link) {
  if (library.ideal()) return {};
  const Protocol protocol =
      bytes <= library.tuner.messages_ll_up_to ? Protocol::kLl : Protocol::kSimple;
  GroupLinks links;
  (kind == HopKind::kNetwork ? links.network : links.inside) = link;
  return cost_of(library, *library.find(LibraryPath::kMessages, protocol),
                 {.bytes = bytes, .part = bytes, .sent = bytes}, links);
}

}  // namespace stepsim
