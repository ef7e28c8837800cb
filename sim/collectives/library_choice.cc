#include "sim/collectives/library_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "sim/collectives/algorithms/trees/tree_packing.h"
#include "sim/collectives/choose_algorithm.h"

namespace stepsim {
namespace {

constexpr std::uint32_t kNvlsMembers = 5;  // of a node: measured with 5 and more, never with 4

constexpr std::size_t kNetwork = static_cast<std::size_t>(HopKind::kNetwork);

// Returns 0 if there is no limit.
double seconds_of(Bytes bytes, std::optional<Bandwidth> rate) {
  return rate ? static_cast<double>(bytes.value()) / rate->value() : 0;
}

// In bytes/s; 0 if there is no such link.
double value_or_none(std::optional<Bandwidth> link) {
  return link.value_or(Bandwidth()).value();
}

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
  Bytes piped{};  // bytes of which the pipeline fills
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
    most = std::min(channels.network_most, channels.network * links.cards);
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
  const auto x = static_cast<double>(share.piped.value());
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
    rate = lower(rate, links.cards / cost.wire[kNetwork] * *links.network);
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
  // From a root or to it nobody has a shard of its own.
  if (task.op == CollectiveOp::kBroadcast || task.op == CollectiveOp::kReduce)
    share.part = Bytes(0);
  // In a switch or along a tree all bytes pass each member.
  share.piped = switched || path == LibraryPath::kTree ? task.bytes : share.part;
  const std::int64_t passes = task.op == CollectiveOp::kAllReduce ? 2 : 1;
  share.sent = once ? task.bytes : passes * (n - 1) * share.part;
  if (task.experts && task.experts->expert_chips > 0) {  // of the busiest member
    const std::int64_t chips = task.experts->expert_chips;
    share.peers = static_cast<std::uint32_t>(std::max(chips, n - chips));
    share.part = task.bytes / std::int64_t{share.peers};
    share.piped = share.part;
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

// Appends the algorithm by every protocol that the library takes for a path and so many bytes.
void add_protocols(const CommunicationLibrary& library, const CollectiveTask& task,
                   AlgorithmChoice algorithm, LibraryPath path, const GroupLinks& links,
                   std::vector<CollectiveWay>& ways) {
  for (const ProtocolTiming& timing : library.timings) {
    if (timing.path != path || !timing.takes(task.bytes)) continue;
    ways.push_back({.algorithm = algorithm,
                    .cost = cost_of(library, timing, share_of(library, task, path, links), links),
                    .protocol = std::string(name_of(timing.protocol)),
                    .why = {}});
  }
}

bool has(const CommunicationLibrary& library, LibraryPath path) {
  return std::ranges::any_of(library.timings,
                             [path](const ProtocolTiming& timing) { return timing.path == path; });
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
  if (found.network) found.network = ports / links.cards;
  return found;
}

// Returns the algorithm that represents the library's ring. On a torus, and where chips are linked
// directly, it uses all of a chip's links, as the rings do that NCCL's search finds. Over nodes it
// is one for each card of the smallest node, else one in the order of the ranks.
AlgorithmChoice ring_of(const GroupShape& shape, const GroupLinks& links) {
  if (!shape.dimensions.empty() && shape.is_torus() && shape.ways.empty()) {
    return AlgorithmChoice::kMultiAxis;
  }
  if (takes_trees(shape)) return AlgorithmChoice::kPackedTrees;
  const bool over_nodes = links.nodes > 1 && links.nodes < links.members;
  const bool can = refusal(CollectiveOp::kAllReduce, AlgorithmChoice::kRotatedRings, shape).empty();
  return over_nodes && can ? AlgorithmChoice::kRotatedRings : AlgorithmChoice::kRing;
}

// Returns the kind of kernel that runs an algorithm. What the library has no kernel for is timed as
// a ring.
LibraryPath path_of(const CommunicationLibrary& library, const CollectiveTask& task,
                    AlgorithmChoice algorithm, bool floating, const GroupLinks& links) {
  if (moves_messages(task.op)) {
    const bool shared = task.matrix != nullptr && task.matrix->sharing != NodeSharing::kNone;
    return shared && has(library, LibraryPath::kRelay) ? LibraryPath::kRelay
                                                       : LibraryPath::kMessages;
  }
  const auto if_there = [&](LibraryPath path) {
    return has(library, path) ? path : LibraryPath::kRing;
  };
  if (algorithm == AlgorithmChoice::kNvls && floating) return if_there(LibraryPath::kNvls);
  if (algorithm == AlgorithmChoice::kNvlsTree && floating) return if_there(LibraryPath::kNvlsTree);
  const bool tree = algorithm == AlgorithmChoice::kDoubleBinaryTree && links.nodes > 1;
  return tree ? if_there(LibraryPath::kTree) : LibraryPath::kRing;
}

// Returns the algorithms that the library has for the task.
std::vector<AlgorithmChoice> algorithms_of(const CommunicationLibrary& library,
                                           const CollectiveTask& task, bool floating,
                                           const GroupShape& shape, const GroupLinks& links) {
  if (!is_ring_op(task.op)) return weighed_algorithms(task, shape);
  std::vector<AlgorithmChoice> all = {ring_of(shape, links)};
  if (task.op != CollectiveOp::kAllReduce || !shape.uneven_nodes.empty()) return all;
  const auto add = [&](AlgorithmChoice algorithm, LibraryPath path, bool can) {
    if (can && has(library, path) && refusal(task.op, algorithm, shape).empty()) {
      all.push_back(algorithm);
    }
  };
  const bool adds = floating && links.nvls && links.of_node >= kNvlsMembers;
  const bool on_switches = !takes_trees(shape) && !shape.has_torus_axis();
  add(AlgorithmChoice::kDoubleBinaryTree, LibraryPath::kTree, links.nodes > 1 && on_switches);
  add(AlgorithmChoice::kNvls, LibraryPath::kNvls, adds && links.nodes == 1);
  add(AlgorithmChoice::kNvlsTree, LibraryPath::kNvlsTree, adds && links.nodes > 1);
  return all;
}

// Returns whether the one switch between all members can do the task.
bool runs_in_switch(const CollectiveTask& task, bool floating, const GroupShape& shape,
                    const GroupLinks& links) {
  return links.nvls && links.nodes == 1 && (floating || !reduces(task.op)) &&
         refusal(task.op, AlgorithmChoice::kNvls, shape).empty();
}

// Returns the library's own kernel for a small all-reduce in one node; nullopt if it has none.
std::optional<CollectiveWay> by_direct_kernel(const CommunicationLibrary& library,
                                              const CollectiveTask& task, bool floating,
                                              const GroupShape& shape, const GroupLinks& links) {
  const bool can = library.direct_all_reduce && task.op == CollectiveOp::kAllReduce && floating &&
                   links.nodes == 1 && task.bytes > Bytes(0) &&
                   refusal(task.op, AlgorithmChoice::kNvls, shape).empty();
  if (!can) return std::nullopt;
  const auto time = time_of_all_reduce(*library.direct_all_reduce, links.members, task.bytes);
  if (!time) return std::nullopt;
  const Duration moving = duration_from_seconds(seconds_of(task.bytes, links.inside));
  return CollectiveWay{
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
struct BytesOfCard {
  double inside = 0;
  double leaving = 0;
};
BytesOfCard sent_bytes(const CollectiveTask& task, const GroupLinks& links) {
  const auto bytes = static_cast<double>(task.bytes.value());
  if (task.experts->expert_chips > 0) {
    return links.nodes > 1 ? BytesOfCard{.leaving = bytes} : BytesOfCard{.inside = bytes};
  }
  const double members = links.members;
  return {.inside = bytes * (links.of_node - 1) / members,
          .leaving = bytes * (members - links.of_node) / members};
}

double seconds_inside(const CollectiveTask& task, const GroupLinks& links) {
  return links.inside ? sent_bytes(task, links).inside / links.inside->value() : 0;
}

// Returns the library's kernel for half of an exchange of few tokens with experts; nullopt if it
// has none for as many, or none over nodes.
std::optional<CollectiveWay> by_exchange_kernel(const CommunicationLibrary& library,
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
  CollectiveWay choice{
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
std::optional<CollectiveWay> by_bulk_kernel(const CommunicationLibrary& library,
                                            const CollectiveTask& task, const GroupLinks& links) {
  const ExpertHalf& half = *task.experts;
  const std::optional<BulkExchange>& kernel =
      half.combines ? library.bulk_combine : library.bulk_dispatch;
  if (!kernel || links.nodes > 1) return std::nullopt;
  const Duration time = time_of_exchange(*kernel, exchanged_by(half, links));
  const Duration moving = duration_from_seconds(seconds_inside(task, links));
  return CollectiveWay{
      .algorithm = AlgorithmChoice::kDirect,
      .cost = {.start = std::max(kernel->start, time - moving),
               .channels = std::min(kernel->units, links.units),
               .has_trips = true},
      .protocol = "bulk",
      .why = library.name + " has a kernel of its own for exchanges of many tokens with experts"};
}

}  // namespace

std::vector<CollectiveWay> ways_of(const CommunicationLibrary& library, const CollectiveTask& task,
                                   bool floating, AlgorithmChoice asked, const GroupShape& shape,
                                   const GroupLinks& given) {
  const GroupLinks links = is_ring_op(task.op) ? searched(given, shape) : given;
  const bool is_free = asked == AlgorithmChoice::kAuto;
  std::vector<CollectiveWay> ways;
  if (library.ideal()) {
    std::vector<AlgorithmChoice> algorithms = {asked};
    if (is_free) {
      algorithms = weighed_algorithms(task, shape);
      // Where chips are linked directly rounds over different links look as if they overlapped.
      // Trees that keep all links at work do.
      std::stable_partition(algorithms.begin(), algorithms.end(), [](AlgorithmChoice algorithm) {
        return algorithm == AlgorithmChoice::kPackedTrees;
      });
      if (runs_in_switch(task, floating, shape, links)) {
        algorithms.insert(algorithms.begin(), AlgorithmChoice::kNvls);
      }
    }
    for (const AlgorithmChoice algorithm : algorithms) {
      ways.push_back({.algorithm = algorithm, .cost = {}, .protocol = {}, .why = {}});
    }
    return ways;
  }
  if (is_free && task.experts) {
    auto exchange = by_exchange_kernel(library, task, links);
    if (!exchange) exchange = by_bulk_kernel(library, task, links);
    if (exchange) return {*std::move(exchange)};
  }
  if (is_free) {
    auto direct = by_direct_kernel(library, task, floating, shape, links);
    if (direct) return {*std::move(direct)};
  }
  const std::vector<AlgorithmChoice> algorithms =
      is_free ? algorithms_of(library, task, floating, shape, links) : std::vector{asked};
  for (const AlgorithmChoice algorithm : algorithms) {
    add_protocols(library, task, algorithm, path_of(library, task, algorithm, floating, links),
                  links, ways);
  }
  return ways;
}

LibraryCost cost_of_message(const CommunicationLibrary& library, Bytes bytes, HopKind kind,
                            Bandwidth link) {
  if (library.ideal()) return {};
  GroupLinks links;
  (kind == HopKind::kNetwork ? links.network : links.inside) = link;
  const auto of_kind = static_cast<std::size_t>(kind);
  std::optional<LibraryCost> best;
  double least = 0;
  for (const ProtocolTiming& timing : library.timings) {
    if (timing.path != LibraryPath::kMessages || !timing.takes(bytes)) continue;
    const LibraryCost cost = cost_of(
        library, timing, {.bytes = bytes, .part = bytes, .piped = bytes, .sent = bytes}, links);
    const double seconds =
        to_seconds(cost.start + cost.hop[of_kind]) + cost.wire[of_kind] * seconds_of(bytes, link);
    if (best && seconds >= least) continue;
    best = cost;
    least = seconds;
  }
  return *best;
}

}  // namespace stepsim
