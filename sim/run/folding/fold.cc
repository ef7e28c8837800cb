#include "sim/run/folding/fold.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/folding/colour_graph.h"
#include "sim/hardware/chip_route.h"
#include "sim/hardware/group_links.h"
#include "sim/run/folding/interner.h"

namespace stepsim {
namespace {

enum class Vertex : std::uint8_t { kRank, kGroup, kMessage, kHost, kLink };
enum class Joint : std::uint8_t { kMember, kLoad, kSender, kReceiver, kRoute, kHost, kOut, kIn };

// Folding is worth it if it saves at least a quarter of the ranks.
bool is_worth_it(std::size_t classes, std::size_t ranks) {
  return 4 * classes <= 3 * ranks;
}

class Drawing {
 public:
  Drawing(const OpGraph& graph, const Cluster& cluster, CollectivePlans& plans)
      : graph_(graph),
        cluster_(cluster),
        plans_(plans),
        link_vertices_(cluster.fabric.links_and_groups()),
        place_of_loads_(cluster.fabric.links_and_groups()) {}

  // Returns nullopt if messages of a rank could not be told apart.
  std::optional<Quotient> quotient() {
    add_ranks();
    find_works();
    group_vertices_.resize(graph_.communicators.size());
    for (std::uint32_t c = 0; c < graph_.communicators.size(); ++c) add_groups(c);
    find_messages();
    add_messages();
    if (cluster_.hosts.count > 0) add_hosts();
    const ColourGraph drawn = std::move(builder_).build();
    colours_ = refine(drawn);
    return tells_messages_apart() ? std::optional(classes()) : std::nullopt;
  }

 private:
  using OptionalVertex = std::optional<std::uint32_t>;

  // What programs do on each communicator.
  struct Work {
    CollectiveWorkId work;
    std::uint32_t pattern = 0;
  };
  struct Peer {  // the other side of messages, as programs name it
    std::uint32_t communicator = 0;
    std::uint32_t member = 0;
    bool is_send = false;
    friend auto operator<=>(const Peer&, const Peer&) = default;
  };
  // The labels of the edges of a group's collectives: by different list of edges, and edge.
  struct EdgeLabels {
    std::uint32_t edges = 0;
    std::vector<std::uint64_t> labels;
    std::vector<Work> works;
  };

  template <typename Kind>
  std::uint32_t number_of(Kind kind, std::initializer_list<std::uint64_t> values) {
    list_.assign(1, static_cast<std::uint64_t>(kind));
    list_.insert(list_.end(), values);
    return (std::is_same_v<Kind, Vertex> ? colour_numbers_ : label_numbers_).number_of(list_);
  }

  void add_ranks() {
    for (const RankData& rank : graph_.ranks) {
      builder_.add_vertex(number_of(Vertex::kRank, {rank.program.index(), rank.pp,
                                                    std::bit_cast<std::uint64_t>(rank.slowdown)}));
    }
    member_label_ = number_of(Joint::kMember, {});
  }

  // Lists the works of each program by communicator.
  void find_works() {
    works_.resize(graph_.programs.size());
    for (std::size_t p = 0; p < works_.size(); ++p) {
      std::vector<bool> known(graph_.collective_works.size(), false);
      works_[p].resize(graph_.communicators.size());
      for (const Op& op : graph_.programs[p].ops) {
        if (op.kind != OpKind::kCollective || known[op.work]) continue;
        known[op.work] = true;
        works_[p][graph_.collective_works[op.work].communicator.index()].emplace_back(op.work);
      }
      for (std::vector<CollectiveWorkId>& of_communicator : works_[p]) {
        std::ranges::sort(of_communicator);
      }
    }
  }

  // Groups of communicators with the same groups are one vertex.
  void add_groups(std::uint32_t communicator) {
    const auto& groups = graph_.communicators[communicator].groups;
    std::vector<std::uint32_t> alike;
    for (std::uint32_t c = communicator; c < graph_.communicators.size(); ++c) {
      if (group_vertices_[c].empty() && graph_.communicators[c].groups == groups) {
        alike.push_back(c);
      }
    }
    if (alike.empty() || alike.front() != communicator) return;
    std::vector<OptionalVertex> vertices(groups.size());
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
      if (groups[group].size() > 1) vertices[group] = add_group(alike, GroupId(group));
    }
    for (const std::uint32_t c : alike) group_vertices_[c] = vertices;
  }

  std::optional<std::uint32_t> add_group(const std::vector<std::uint32_t>& communicators,
                                         GroupId group) {
    const std::vector<RankId>& members =
        graph_.communicators[communicators.front()].groups[group.index()];
    find_works_of(communicators, group, members);
    if (group_works_.empty()) return std::nullopt;
    list_.assign(
        {static_cast<std::uint64_t>(Vertex::kGroup), communicators.front(), members.size()});
    std::vector<std::uint64_t> colour = list_;
    for (const EdgeLabels& edges : edge_labels()) {
      plans_.find_ways(edges.edges, CommunicatorId(communicators.front()), group, ways_);
      for (const Work& work : edges.works) {
        colour.push_back(work.work.index());
        colour.push_back(work.pattern);
        colour.push_back(
            static_cast<std::uint64_t>(plans_.latency_of(work.pattern, ways_.latencies).count()));
      }
      for (const EdgeWays::Part& part : ways_.parts) {
        // The library adds to what an edge carries by the kind of its route, but not in adders.
        const auto kind =
            part.of_adder ? kHopKinds : static_cast<std::size_t>(ways_.kinds[part.edge]);
        add_load(part.use.link, (kHopKinds + 1) * edges.labels[part.edge] + kind);
      }
    }
    const std::uint32_t vertex = builder_.add_vertex(colour_numbers_.number_of(colour));
    for (const RankId rank : members) builder_.add_edge(vertex, rank.index(), member_label_);
    add_loads(vertex);
    return vertex;
  }

  // Sets group_works_: all works that members run, in order of communicators and works.
  void find_works_of(const std::vector<std::uint32_t>& communicators, GroupId group,
                     const std::vector<RankId>& members) {
    programs_.clear();
    for (const RankId rank : members) {
      const std::uint32_t program = graph_.ranks[rank.index()].program.index();
      if (programs_.empty() || programs_.back() != program) programs_.push_back(program);
    }
    std::ranges::sort(programs_);
    programs_.erase(std::unique(programs_.begin(), programs_.end()), programs_.end());
    group_works_.clear();
    for (const std::uint32_t communicator : communicators) {
      const auto begin = static_cast<std::ptrdiff_t>(group_works_.size());
      for (const std::uint32_t program : programs_) {
        for (const CollectiveWorkId work : works_[program][communicator]) {
          group_works_.push_back({.work = work});
        }
      }
      const auto first = group_works_.begin() + begin;
      std::sort(first, group_works_.end(),
                [](const Work& a, const Work& b) { return a.work < b.work; });
      const auto rest = std::unique(first, group_works_.end(),
                                    [](const Work& a, const Work& b) { return a.work == b.work; });
      group_works_.erase(rest, group_works_.end());
    }
    for (Work& work : group_works_) work.pattern = plans_.pattern_of(work.work, group);
  }

  // Returns the labels of group_works_, which many groups share.
  const std::vector<EdgeLabels>& edge_labels() {
    list_.clear();
    for (const Work& work : group_works_) {
      list_.push_back(work.work.index());
      list_.push_back(work.pattern);
    }
    const std::uint32_t number = profiles_.number_of(list_);
    if (number < edge_labels_.size()) return edge_labels_[number];
    std::vector<EdgeLabels>& all = edge_labels_.emplace_back();
    for (const Work& work : group_works_) {
      const std::uint32_t edges = plans_.pattern(work.pattern).edges;
      auto found = std::ranges::find(all, edges, &EdgeLabels::edges);
      if (found == all.end()) {
        all.push_back({.edges = edges, .labels = {}, .works = {}});
        found = std::prev(all.end());
      }
      found->works.push_back(work);
    }
    for (EdgeLabels& of : all) {
      for (std::size_t edge = 0; edge < plans_.edges(of.edges).size(); ++edge) {
        list_.assign(1, of.edges);
        for (const Work& work : of.works) {
          list_.push_back(work.work.index());
          list_.push_back(work.pattern);
          list_.push_back(
              static_cast<std::uint64_t>(plans_.pattern(work.pattern).bytes[edge].value()));
        }
        of.labels.push_back(edge_numbers_.number_of(list_));
      }
    }
    return all;
  }

  // Notes what crosses a link.
  void add_load(LinkId link, std::uint64_t label) {
    std::optional<std::uint32_t>& place = place_of_loads_[link.index()];
    if (!place) {
      place = loaded_links_++;
      if (loaded_links_ > loads_.size()) loads_.emplace_back();
      loads_[*place].link = link;
    }
    loads_[*place].labels.push_back(label);
  }

  // Joins the vertex to the links with loads, each by everything that crosses it, and clears them.
  void add_loads(std::uint32_t vertex) {
    for (LinkLoads& loads : std::span(loads_).first(loaded_links_)) {
      std::ranges::sort(loads.labels);
      list_.assign(1, static_cast<std::uint64_t>(Joint::kLoad));
      list_.insert(list_.end(), loads.labels.begin(), loads.labels.end());
      loads.labels.clear();
      place_of_loads_[loads.link.index()].reset();
      const std::uint32_t label = label_numbers_.number_of(list_);  // vertex_of() uses list_ too
      builder_.add_edge(vertex, vertex_of(loads.link), label);
    }
    loaded_links_ = 0;
  }

  std::uint32_t vertex_of(LinkId link) {
    OptionalVertex& vertex = link_vertices_[link.index()];
    if (!vertex) {
      const Fabric& fabric = cluster_.fabric;
      const std::size_t links = fabric.links().size();
      const std::uint64_t shared =
          link.index() < links ? 0 : fabric.groups()[link.index() - links].links.size();
      vertex = builder_.add_vertex(number_of(
          Vertex::kLink, {std::bit_cast<std::uint64_t>(fabric.bandwidth(link).value()), shared}));
    }
    return *vertex;
  }

  void find_messages() {
    peers_.resize(graph_.programs.size());
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      std::set<Peer> peers;
      for (const Op& op : graph_.programs[p].ops) {
        if (op.kind != OpKind::kMessages) continue;
        for (std::uint32_t m = op.work; m < op.work + op.work_count; ++m) {
          const Message& message = graph_.messages[m];
          peers.insert({message.communicator.index(), message.peer, message.is_send});
        }
      }
      peers_[p].assign(peers.begin(), peers.end());
    }
  }

  RankId rank_of(const Peer& peer, std::uint32_t rank) const {
    const Communicator& communicator = graph_.communicators[peer.communicator];
    return communicator.groups[communicator.seat_of[rank].group][peer.member];
  }

  void add_messages() {
    const std::uint32_t on_route = number_of(Joint::kRoute, {});
    std::vector<LinkId> route;
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      const RankData& data = graph_.ranks[rank];
      for (const Peer& peer : peers_[data.program.index()]) {
        if (!peer.is_send) continue;
        const RankId to = rank_of(peer, rank);
        route.clear();
        const Duration latency =
            route_of(cluster_, data.chip, graph_.ranks[to.index()].chip, route);
        const std::uint32_t per_node = chips_per_node_;
        const bool in_node = data.chip / per_node == graph_.ranks[to.index()].chip / per_node;
        const std::uint32_t vertex = builder_.add_vertex(
            number_of(Vertex::kMessage, {static_cast<std::uint64_t>(latency.count()), in_node}));
        builder_.add_edge(vertex, rank,
                          number_of(Joint::kSender, {peer.communicator, peer.member}));
        builder_.add_edge(vertex, to.index(),
                          number_of(Joint::kReceiver, {peer.communicator, peer.member}));
        for (const LinkId link : route) {
          builder_.add_edge(vertex, vertex_of(cluster_.fabric.spread(link).link), on_route);
        }
      }
    }
  }

  void add_hosts() {
    const Hosts& hosts = cluster_.hosts;
    const std::uint32_t colour = number_of(Vertex::kHost, {});
    for (std::uint32_t host = 0; host < hosts.count; ++host) {
      host_vertices_.push_back(builder_.add_vertex(colour));
    }
    const std::uint32_t on_host = number_of(Joint::kHost, {});
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      const HostPath& path = hosts.of_chip[graph_.ranks[rank].chip];
      builder_.add_edge(rank, host_vertices_[path.host.index()], on_host);
      const auto join = [&](Joint way, const std::vector<LinkId>& links) {
        for (std::size_t place = 0; place < links.size(); ++place) {
          const std::uint32_t label = number_of(way, {place});
          builder_.add_edge(rank, vertex_of(links[place]), label);
        }
      };
      join(Joint::kOut, path.out);
      join(Joint::kIn, path.in);
    }
  }

  // Messages match by simulated ranks, so a rank may not send to, or receive from, two ranks alike.
  bool tells_messages_apart() const {
    std::vector<bool> known(colours_.size(), false);
    for (std::uint32_t rank = 0; rank < graph_.ranks.size(); ++rank) {
      if (known[colours_[rank]]) continue;
      known[colours_[rank]] = true;
      std::set<std::tuple<bool, std::uint32_t, RankId>> others;
      for (const Peer& peer : peers_[graph_.ranks[rank].program.index()]) {
        const RankId other = rank_of(peer, rank);
        others.emplace(peer.is_send, colours_[other.index()], other);
      }
      for (auto next = others.begin(), last = next; next != others.end(); last = next++) {
        if (last != next && std::get<0>(*last) == std::get<0>(*next) &&
            std::get<1>(*last) == std::get<1>(*next)) {
          return false;
        }
      }
    }
    return true;
  }

  Quotient classes() const {
    const auto ranks = static_cast<std::ptrdiff_t>(graph_.ranks.size());
    Quotient result{.ranks = classes_of<RankId>({colours_.begin(), colours_.begin() + ranks}),
                    .groups = {},
                    .links = {},
                    .hosts = {}};
    for (std::size_t c = 0; c < graph_.communicators.size(); ++c) {
      result.groups.push_back(classes_of_groups(c));
    }
    const auto unused = static_cast<std::uint32_t>(colours_.size());
    std::vector<std::uint32_t> links;
    for (const OptionalVertex& vertex : link_vertices_) {
      links.push_back(vertex ? colours_[*vertex] : unused);
    }
    result.links = classes_of<LinkId>(links);
    std::vector<std::uint32_t> hosts;
    for (const std::uint32_t vertex : host_vertices_) hosts.push_back(colours_[vertex]);
    result.hosts = classes_of<HostId>(hosts);
    return result;
  }

  // A group that runs no collective, or has one member, goes by the colours of its members.
  Classes<GroupId> classes_of_groups(std::size_t communicator) const {
    const auto& groups = graph_.communicators[communicator].groups;
    const auto others = static_cast<std::uint32_t>(colours_.size());
    std::vector<std::uint32_t> colours;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const OptionalVertex& vertex = group_vertices_[communicator][group];
      colours.push_back(vertex ? colours_[*vertex]
                               : others + colours_[groups[group].front().index()]);
    }
    return classes_of<GroupId>(colours);
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  CollectivePlans& plans_;
  const std::uint32_t chips_per_node_ = chips_per_node(cluster_.places);
  ColourGraphBuilder builder_;
  Interner colour_numbers_;
  Interner label_numbers_;
  Interner edge_numbers_;
  Interner profiles_;
  std::uint32_t member_label_ = 0;
  std::vector<std::vector<std::vector<CollectiveWorkId>>> works_;  // by program and communicator
  std::vector<std::vector<Peer>> peers_;                           // by program
  std::deque<std::vector<EdgeLabels>> edge_labels_;                // by profile
  std::vector<std::vector<OptionalVertex>> group_vertices_;        // by communicator and group
  std::vector<OptionalVertex> link_vertices_;  // by link, then by group of links
  std::vector<std::uint32_t> host_vertices_;
  std::vector<std::uint32_t> colours_;  // by vertex; ranks first

  std::vector<std::uint64_t> list_;  // scratch, as everything below
  std::vector<std::uint32_t> programs_;
  std::vector<Work> group_works_;  // of one group
  EdgeWays ways_;
  // What crosses each link of one group, in the order in which links were met.
  struct LinkLoads {
    LinkId link;
    std::vector<std::uint64_t> labels;
  };
  std::vector<LinkLoads> loads_;  // the first `loaded_links_` are in use
  std::uint32_t loaded_links_ = 0;
  std::vector<std::optional<std::uint32_t>> place_of_loads_;  // by link, then by group of links
};

// Returns why a job can't be folded whatever its ranks are; empty if it can.
std::string obstacle(const OpGraph& graph, const SimulationOptions& options) {
  if (options.fidelity == Fidelity::kPacket) return "packets are ordered by what sends them";
  if (options.granularity == Granularity::kStepped) return "collectives are stepped";
  if (graph.jitter.deviation != 0) return "jitter makes every rank different";
  return "";
}

std::size_t different(const OpGraph& graph, bool with_variation) {
  std::set<std::tuple<ProgramId, std::uint32_t, double>> all;
  for (const RankData& rank : graph.ranks) {
    all.emplace(rank.program, rank.pp, with_variation ? rank.slowdown : 1);
  }
  return all.size();
}

}  // namespace

Fold fold(const OpGraph& graph, const Cluster& cluster, const SimulationOptions& options,
          CollectivePlans& plans) {
  Fold result;
  FoldStatistics& statistics = result.statistics;
  statistics.ranks = statistics.classes = graph.ranks.size();
  statistics.why_not = obstacle(graph, options);
  if (!statistics.why_not.empty()) return result;
  result.quotient = Drawing(graph, cluster, plans).quotient();
  if (!result.quotient) {
    statistics.why_not = "a rank has messages with several ranks that are alike";
    return result;
  }
  statistics.roles = different(graph, false);
  statistics.variations = different(graph, true) - statistics.roles;
  statistics.classes = result.quotient->ranks.size();
  if (is_worth_it(statistics.classes, graph.ranks.size())) return result;
  result.quotient.reset();
  statistics.why_not = "too few ranks are alike";
  statistics.classes = graph.ranks.size();
  return result;
}

Fabric folded_fabric(const Fabric& fabric, const Classes<LinkId>& links) {
  Fabric folded;
  const NodeId node = folded.add(NodeKind::kSwitch, "links alike");
  for (const LinkId link : links.representatives) {
    folded.connect_one_way(node, node, fabric.bandwidth(link), {});
  }
  return folded;
}

}  // namespace stepsim
