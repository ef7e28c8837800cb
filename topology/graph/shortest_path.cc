#include "topology/graph/shortest_path.h"

#include <optional>
#include <queue>
#include <utility>

namespace stepsim {
namespace {

constexpr std::uint64_t kHop = 4096;  // of Cost::second, beside chips that are passed

std::int64_t price_of(const Link& link, const Fabric& fabric, PathMetric metric) {
  const auto is_host = [&fabric](NodeId node) { return fabric.node(node).kind == NodeKind::kHost; };
  switch (metric) {
    case PathMetric::kHops:
      break;
    case PathMetric::kLatency:
      return link.latency.count();
    case PathMetric::kSpareHosts:
      return is_host(link.from) || is_host(link.to) ? 1 : 0;
  }
  return 0;
}

}  // namespace

// Table holds the next link on the way to one destination, by node.
class ShortestPaths::Table {
 public:
  explicit Table(std::size_t nodes) : next_(nodes) {}

  void offer(NodeId node, LinkId link) {
    OptionalId<LinkId>& next = next_[node.index()];
    if (!next || link < *next) next = link;
  }

  OptionalId<LinkId> next(NodeId node) const { return next_[node.index()]; }

  void keep(std::vector<std::optional<Cost>> costs) { costs_ = std::move(costs); }
  const std::optional<Cost>& cost(NodeId node) const { return costs_[node.index()]; }

 private:
  std::vector<std::optional<Cost>> costs_;  // to the destination; only with a choice
  std::vector<OptionalId<LinkId>> next_;
};

ShortestPaths::ShortestPaths(const Fabric& fabric, PathMetric metric,
                             std::optional<PathChoice> choice)
    : nodes_(fabric.nodes().size()),
      choice_(choice),
      links_(fabric.links()),
      arriving_(nodes_),
      tables_(nodes_) {
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    arriving_[links_[link].to.index()].emplace_back(link);
    prices_.push_back(price_of(links_[link], fabric, metric));
  }
  if (!choice_) return;
  leaving_.resize(nodes_);
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    leaving_[links_[link].from.index()].emplace_back(link);
  }
  for (const Node& node : fabric.nodes()) is_chip_.push_back(node.kind == NodeKind::kChip);
}

ShortestPaths::~ShortestPaths() = default;

// Dijkstra's algorithm from the destination, against the direction of the links.
const ShortestPaths::Table& ShortestPaths::table_to(NodeId to) const {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<const Table>& slot = tables_[to.index()];
  if (slot) return *slot;

  std::vector<std::optional<Cost>> costs(nodes_);
  using Reached = std::pair<Cost, std::uint32_t>;
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  costs[to.index()] = Cost{};
  queue.emplace(Cost{}, to.index());
  while (!queue.empty()) {
    const auto [cost, node] = queue.top();
    queue.pop();
    if (cost != *costs[node]) continue;  // a better path was found since
    for (const LinkId id : arriving_[node]) {
      const Link& link = links_[id.index()];
      const Cost longer = through(id, cost);
      std::optional<Cost>& known = costs[link.from.index()];
      if (known && *known <= longer) continue;
      known = longer;
      queue.emplace(longer, link.from.index());
    }
  }

  auto table = std::make_unique<Table>(nodes_);
  for (std::uint32_t id = 0; id < links_.size(); ++id) {
    const Link& link = links_[id];
    const std::optional<Cost>& rest = costs[link.to.index()];
    if (rest && link.from != to && costs[link.from.index()] == through(LinkId(id), *rest)) {
      table->offer(link.from, LinkId(id));
    }
  }
  if (choice_) table->keep(std::move(costs));
  slot = std::move(table);
  return *slot;
}

// Returns the cost of a link and the rest of the path behind it.
ShortestPaths::Cost ShortestPaths::through(LinkId link, const Cost& rest) const {
  const Cost longer{rest.first + prices_[link.index()], rest.second + kHop};
  const bool passes_chip = choice_ && rest != Cost{} && is_chip_[links_[link.index()].to.index()];
  return passes_chip ? Cost{longer.first, longer.second + 1} : longer;
}

// Returns the links out of a node that begin a shortest path.
std::vector<LinkId> ShortestPaths::ways(const Table& table, NodeId at) const {
  std::vector<LinkId> equal;
  for (const LinkId id : leaving_[at.index()]) {
    const std::optional<Cost>& rest = table.cost(links_[id.index()].to);
    if (rest && through(id, *rest) == *table.cost(at)) equal.push_back(id);
  }
  return equal;
}

bool ShortestPaths::append(NodeId from, NodeId to, std::vector<LinkId>& out,
                           std::uint64_t flow_key) const {
  if (from == to) return true;
  const Table& table = table_to(to);
  if (!table.next(from)) return false;
  const Flow flow{.from = from.index(), .to = to.index(), .key = flow_key};
  std::uint32_t number = to.index();
  for (std::uint32_t stage = 0; choice_ && from != to; ++stage) {
    const std::vector<LinkId> equal = ways(table, from);
    const auto paths = static_cast<std::uint32_t>(equal.size());
    out.push_back(equal[choose(*choice_, flow, number, stage, paths)]);
    number /= paths;
    from = links_[out.back().index()].to;
  }
  while (from != to) {
    const LinkId link = *table.next(from);
    out.push_back(link);
    from = links_[link.index()].to;
  }
  return true;
}

}  // namespace stepsim
