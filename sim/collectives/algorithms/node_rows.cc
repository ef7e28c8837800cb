#include "sim/collectives/algorithms/node_rows.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

std::vector<std::vector<std::uint32_t>> node_rows(const GroupShape& shape) {
  assert(shape.dimensions.size() > 1 || !shape.uneven_nodes.empty());
  std::vector<std::vector<std::uint32_t>> rows;
  std::size_t first = 0;
  while (first < shape.order.size()) {
    const std::size_t size =
        shape.uneven_nodes.empty() ? shape.node_size() : shape.uneven_nodes[rows.size()];
    const auto begin = shape.order.begin() + static_cast<std::ptrdiff_t>(first);
    rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
    first += size;
  }
  std::ranges::sort(rows, {}, [](const auto& row) { return *std::ranges::min_element(row); });
  return rows;
}

}  // namespace stepsim
