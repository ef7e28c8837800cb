#include "serving/engines/engine_table.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace stepsim {

EngineOptions reserving_defaults(std::int64_t sequences) {
  EngineOptions options;
  options.batching.sequences = sequences;
  options.cache.block = 1;
  options.cache.prefix_cache = false;
  return options;
}

std::span<const EngineRow> engine_table() {
  static const std::vector<EngineRow> kRows = [] {
    std::vector<EngineRow> rows;
    for (EngineRow (*const engine)() : kEngines) rows.push_back(engine());
    return rows;
  }();
  return kRows;
}

const EngineRow* find_engine(std::string_view name) {
  const std::span<const EngineRow> rows = engine_table();
  const auto row = std::ranges::find(rows, name, &EngineRow::name);
  return row == rows.end() ? nullptr : &*row;
}

}  // namespace stepsim
