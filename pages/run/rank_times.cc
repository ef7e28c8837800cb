#include "pages/run/rank_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "pages/run/run_drawings.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostColumns = 128;

struct NamedPart {
  std::string name;
  std::vector<double> by_rank;  // seconds of a step
};

std::vector<NamedPart> parts_of(const FinishedRun& run) {
  const SimulationResult& result = run.result;
  const double scale = to_seconds(result.step_time) / to_seconds(result.window);
  std::vector<NamedPart> parts;
  const auto add = [&](std::string name, auto get) {
    NamedPart part{std::move(name), {}};
    bool any = false;
    for (const Breakdown& breakdown : result.breakdowns) {
      const double seconds = to_seconds(get(breakdown)) * scale;
      any = any || seconds > 0;
      part.by_rank.push_back(seconds);
    }
    if (any) parts.push_back(std::move(part));
  };
  add("compute", [](const Breakdown& b) { return b.compute; });
  for (std::size_t i = 0; i < run.graph.axes.size(); ++i) {
    add("exposed " + run.graph.axes[i],
        [i](const Breakdown& b) { return b.exposed_communication[i]; });
  }
  add("bubble", [](const Breakdown& b) { return b.bubble; });
  add("idle", [](const Breakdown& b) { return b.idle; });
  add("launch", [](const Breakdown& b) { return b.launch; });
  return parts;
}

// The cells of a table of ranks: which of them each rank belongs to.
struct RankCells {
  std::vector<std::vector<std::vector<std::uint32_t>>> ranks;  // by row and column
  std::vector<std::string> names;                              // of rows
  std::size_t columns = 0;
};

std::string row_name(const OpGraph& graph, std::size_t first, std::size_t last) {
  return first == last ? name_of_stage(graph, static_cast<std::uint32_t>(first))
                       : fmt::format("stages {} to {}", first, last);
}

RankCells cells_of(const FinishedRun& run, std::size_t most_columns) {
  std::size_t stages = 1;
  for (const RankData& rank : run.graph.ranks) {
    stages = std::max<std::size_t>(stages, std::size_t{rank.pp} + 1);
  }
  const std::size_t rows = std::min(stages, kMostRows);
  std::vector<std::vector<std::uint32_t>> in_row(rows);
  std::vector<std::size_t> first_stage(rows, stages);
  std::vector<std::size_t> last_stage(rows, 0);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::size_t row = stage * rows / stages;
    first_stage[row] = std::min(first_stage[row], stage);
    last_stage[row] = std::max(last_stage[row], stage);
  }
  for (std::uint32_t rank = 0; rank < run.graph.ranks.size(); ++rank) {
    in_row[run.graph.ranks[rank].pp * rows / stages].push_back(rank);
  }
  RankCells cells;
  for (const auto& row : in_row) cells.columns = std::max(cells.columns, row.size());
  cells.columns = std::min(cells.columns, most_columns);
  for (std::size_t row = 0; row < rows; ++row) {
    cells.names.push_back(row_name(run.graph, first_stage[row], last_stage[row]));
    auto& columns = cells.ranks.emplace_back(cells.columns);
    for (std::size_t i = 0; i < in_row[row].size(); ++i) {
      const std::size_t most = std::max(cells.columns, in_row[row].size());
      columns[i * cells.columns / most].push_back(in_row[row][i]);
    }
  }
  return cells;
}

Json mean_of(const NamedPart& part, const std::vector<std::uint32_t>& ranks) {
  if (ranks.empty()) return nullptr;
  double sum = 0;
  for (const std::uint32_t rank : ranks) sum += part.by_rank[rank];
  return rounded(sum / static_cast<double>(ranks.size()));
}

}  // namespace

Json stage_times(const FinishedRun& run) {
  const RankCells cells = cells_of(run, 1);
  Json stages = Json::object();
  stages["names"] = cells.names;
  stages["parts"] = Json::array();
  for (const NamedPart& part : parts_of(run)) {
    Json values = Json::array();
    for (const auto& row : cells.ranks) values.push_back(mean_of(part, row.front()));
    stages["parts"].push_back(Json{{"name", part.name}, {"values", std::move(values)}});
  }
  return stages;
}

Json rank_times(const FinishedRun& run) {
  const RankCells cells = cells_of(run, kMostColumns);
  Json ranks = Json::object();
  ranks["rows"] = cells.names;
  ranks["columns"] = cells.columns;
  std::size_t together = 1;
  Json firsts = Json::array();
  for (const auto& row : cells.ranks) {
    Json first = Json::array();
    for (const auto& cell : row) {
      together = std::max(together, cell.size());
      first.push_back(cell.empty() ? Json() : Json(cell.front()));
    }
    firsts.push_back(std::move(first));
  }
  ranks["first"] = std::move(firsts);
  ranks["together"] = together;
  ranks["slow"] = Json::array();
  for (std::size_t row = 0; row < cells.ranks.size(); ++row) {
    for (std::size_t column = 0; column < cells.ranks[row].size(); ++column) {
      for (const std::uint32_t rank : cells.ranks[row][column]) {
        const double slowdown = run.graph.ranks[rank].slowdown;
        if (slowdown > 1) ranks["slow"].push_back({row, column, rank, slowdown});
      }
    }
  }
  ranks["parts"] = Json::array();
  for (const NamedPart& part : parts_of(run)) {
    Json rows = Json::array();
    for (const auto& row : cells.ranks) {
      Json values = Json::array();
      for (const auto& cell : row) values.push_back(mean_of(part, cell));
      rows.push_back(std::move(values));
    }
    ranks["parts"].push_back(Json{{"name", part.name}, {"values", std::move(rows)}});
  }
  return ranks;
}

}  // namespace stepsim
