#include "pages/run/cluster_drawing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "experiment/damaged_links.h"
#include "pages/run/run_drawings.h"
#include "sim/hardware/group_links.h"
#include "traces/formats/link_kinds.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostCells = 2'048;  // of a row
constexpr std::size_t kMostJoined = 128;   // cells of rows whose links are drawn
constexpr std::size_t kMostJoins = 3'000;
constexpr std::size_t kMostColumnsDrawn = 64;

// Hops from the nearest chip, by NodeId.
std::vector<std::uint32_t> heights_of(const Cluster& cluster) {
  const std::vector<Node>& nodes = cluster.fabric.nodes();
  std::vector<std::vector<std::uint32_t>> next(nodes.size());
  for (const Link& link : cluster.fabric.links()) {
    next[link.from.index()].push_back(link.to.index());
    next[link.to.index()].push_back(link.from.index());
  }
  constexpr std::uint32_t kFar = ~0U;
  std::vector<std::uint32_t> heights(nodes.size(), kFar);
  std::queue<std::uint32_t> reached;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node].kind != NodeKind::kChip) continue;
    heights[node] = 0;
    reached.push(node);
  }
  for (; !reached.empty(); reached.pop()) {
    for (const std::uint32_t node : next[reached.front()]) {
      if (heights[node] != kFar) continue;
      heights[node] = heights[reached.front()] + 1;
      reached.push(node);
    }
  }
  return heights;
}

// A kind of node.
struct DrawnRow {
  std::string kind;
  std::uint32_t height = 0;
  std::vector<std::uint32_t> nodes{};  // NodeIds, ascending
  std::size_t together = 1;            // nodes in a cell
};

std::vector<DrawnRow> rows_of(const Cluster& cluster) {
  const std::vector<std::string> kinds = node_kinds(cluster.fabric);
  const std::vector<std::uint32_t> heights = heights_of(cluster);
  std::map<std::string, DrawnRow> by_kind;
  for (std::uint32_t node = 0; node < kinds.size(); ++node) {
    const auto [found, is_new] = by_kind.emplace(kinds[node], DrawnRow{});
    DrawnRow& row = found->second;
    row.height = is_new ? heights[node] : std::min(row.height, heights[node]);
    row.nodes.push_back(node);
  }
  std::vector<DrawnRow> rows;
  for (auto& [kind, row] : by_kind) {
    row.kind = kind;
    row.together = (row.nodes.size() + kMostCells - 1) / kMostCells;
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, [](const DrawnRow& a, const DrawnRow& b) {
    return a.height != b.height ? a.height > b.height : a.nodes.size() < b.nodes.size();
  });
  return rows;
}

struct CellPlace {
  double column = 0;
  std::size_t line = 0;
};

class ClusterDrawing {
 public:
  explicit ClusterDrawing(const FinishedRun& run)
      : run_(run),
        fabric_(run.cluster.fabric),
        places_(run.cluster.places),
        rows_(rows_of(run.cluster)) {
    load_.resize(fabric_.nodes().size(), 0);
    link_load_.resize(fabric_.links().size(), 0);
    for (const LinkTotal& total : run.result.links) {
      if (total.link.index() >= fabric_.links().size()) continue;
      link_load_[total.link.index()] = total.utilization;
      const Link& link = fabric_.link(total.link);
      for (const NodeId node : {link.from, link.to}) {
        load_[node.index()] = std::max(load_[node.index()], total.utilization);
      }
    }
    chip_of_.resize(fabric_.nodes().size(), 0);
    for (std::uint32_t chip = 0; chip < places_.chips.size(); ++chip) {
      chip_of_[places_.chips[chip].index()] = chip;
    }
    is_torus_ = !places_.levels.empty() && places_.levels.front().kind == LevelKind::kTorusAxis;
    columns_ = is_torus_ ? torus_columns() : switched_columns();
  }

  Json json() const {
    Json rows = Json::array();
    for (const DrawnRow& row : rows_) rows.push_back(row_json(row));
    Json all = Json::object();
    all["columns"] = columns_;
    all["rows"] = std::move(rows);
    const std::vector<std::pair<std::size_t, std::size_t>> cells = cells_of_nodes();
    all["joins"] = joins(cells);
    all["faults"] = faults(cells);
    all["slow"] = slow_chips(cells);
    return all;
  }

 private:
  bool are_chips(const DrawnRow& row) const {
    return fabric_.nodes()[row.nodes.front()].kind == NodeKind::kChip;
  }

  std::size_t level_size(std::size_t level) const {
    return level < places_.levels.size() ? places_.levels[level].size : 1;
  }
  // Planes beside each other, one column apart.
  std::size_t torus_columns() const {
    std::size_t planes = 1;
    for (std::size_t i = 2; i < places_.levels.size(); ++i) planes *= level_size(i);
    return planes * (level_size(0) + 1) - 1;
  }
  // Nodes or racks, if they aren't too many.
  std::size_t switched_columns() const {
    const std::size_t domain = std::max<std::size_t>(chips_per_node(places_), 1);
    const std::size_t domains = std::max<std::size_t>(places_.chips.size() / domain, 1);
    return domains == 1 ? std::min(places_.chips.size(), kMostColumnsDrawn)
                        : std::min(domains, kMostColumnsDrawn);
  }

  CellPlace place_of(const DrawnRow& row, std::size_t cell, std::size_t cells) const {
    if (are_chips(row) && is_torus_ && row.together == 1) {
      const std::uint32_t chip = chip_of_[row.nodes[cell]];
      const std::size_t plane = chip / (level_size(0) * level_size(1));
      return {static_cast<double>(places_.coordinate(chip, 0) + plane * (level_size(0) + 1)),
              level_size(1) > 1 ? places_.coordinate(chip, 1) : 0};
    }
    if (cells <= columns_) {  // spread over the width
      const double width = static_cast<double>(columns_) / static_cast<double>(cells);
      return {(static_cast<double>(cell) + 0.5) * width - 0.5, 0};
    }
    const std::size_t lines = (cells + columns_ - 1) / columns_;
    return {static_cast<double>(cell / lines), cell % lines};
  }

  Json row_json(const DrawnRow& row) const {
    const std::size_t cells = (row.nodes.size() + row.together - 1) / row.together;
    std::size_t lines = 1;
    Json list = Json::array();
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::size_t first = cell * row.together;
      const std::size_t last = std::min(first + row.together, row.nodes.size());
      double load = 0;
      for (std::size_t i = first; i < last; ++i) load = std::max(load, load_[row.nodes[i]]);
      const CellPlace place = place_of(row, cell, cells);
      lines = std::max(lines, place.line + 1);
      list.push_back({rounded(place.column), place.line, fabric_.nodes()[row.nodes[first]].name,
                      rounded(load)});
    }
    Json json = Json::object();
    json["kind"] = row.kind;
    json["chips"] = are_chips(row);
    json["count"] = row.nodes.size();
    json["together"] = row.together;
    json["lines"] = lines;
    json["cells"] = std::move(list);
    return json;
  }

  using CellOf = std::vector<std::pair<std::size_t, std::size_t>>;  // row and cell by NodeId

  CellOf cells_of_nodes() const {
    CellOf cell_of(fabric_.nodes().size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::size_t i = 0; i < rows_[row].nodes.size(); ++i) {
        cell_of[rows_[row].nodes[i]] = {row, i / rows_[row].together};
      }
    }
    return cell_of;
  }

  // Both directions of a link as one: the worse of them.
  Json faults(const CellOf& cell_of) const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> capacities;
    for (const DamagedEnds& ends : damaged_ends(run_.experiment.cluster)) {
      const auto key = std::minmax(ends.from.index(), ends.to.index());
      double& capacity = capacities.try_emplace(key, 1).first->second;
      capacity = std::min(capacity, ends.capacity);
    }
    Json list = Json::array();
    for (const auto& [ends, capacity] : capacities) {
      const auto [from, to] = ends;
      list.push_back({cell_of[from].first, cell_of[from].second, cell_of[to].first,
                      cell_of[to].second,
                      fabric_.nodes()[from].name + " to " + fabric_.nodes()[to].name, capacity});
    }
    return list;
  }

  // The chips of stragglers.
  Json slow_chips(const CellOf& cell_of) const {
    Json list = Json::array();
    for (std::uint32_t rank = 0; rank < run_.graph.ranks.size(); ++rank) {
      const RankData& data = run_.graph.ranks[rank];
      if (data.slowdown <= 1) continue;
      const auto [row, cell] = cell_of[places_.chips[data.chip].index()];
      list.push_back({row, cell, rank, data.slowdown});
    }
    return list;
  }

  // Links between rows that are short enough, both directions as one.
  Json joins(const CellOf& cell_of) const {
    const auto is_drawn = [this](std::size_t row) {
      return rows_[row].nodes.size() <= kMostJoined && rows_[row].together == 1;
    };
    std::map<std::pair<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>>,
             double>
        loads;
    for (std::size_t i = 0; i < fabric_.links().size(); ++i) {
      auto from = cell_of[fabric_.links()[i].from.index()];
      auto to = cell_of[fabric_.links()[i].to.index()];
      if (!is_drawn(from.first) || !is_drawn(to.first) || from.first == to.first) continue;
      if (to < from) std::swap(from, to);
      double& load = loads[{from, to}];
      load = std::max(load, link_load_[i]);
    }
    Json list = Json::array();
    if (loads.size() > kMostJoins) return list;
    for (const auto& [ends, load] : loads) {
      list.push_back({ends.first.first, ends.first.second, ends.second.first, ends.second.second,
                      rounded(load)});
    }
    return list;
  }

  const FinishedRun& run_;
  const Fabric& fabric_;
  const Places& places_;
  std::vector<DrawnRow> rows_;
  std::vector<double> load_;       // by NodeId: of its busiest link
  std::vector<double> link_load_;  // by LinkId
  std::vector<std::uint32_t> chip_of_;
  bool is_torus_ = false;
  std::size_t columns_ = 1;
};

}  // namespace

Json cluster_drawing(const FinishedRun& run) {
  return ClusterDrawing(run).json();
}

}  // namespace stepsim
