// Graphs of chips that are linked directly, as files list them: explicit_graph.

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.h"
#include "topology/kinds/explicit_graph.h"

namespace stepsim {

inline constexpr Bandwidth kLinkedWidth(25e9);     // of one link, one way
inline constexpr Duration kLinkedTrip(1'000'000);  // 1 us

// A list of chips, "c0" to the last, and of links between them.
class LinkedChips {
 public:
  explicit LinkedChips(std::uint32_t chips) {
    for (std::uint32_t chip = 0; chip < chips; ++chip) spec_.nodes.push_back({name(chip)});
  }
  static std::string name(std::uint32_t chip) { return "c" + std::to_string(chip); }

  void link(std::uint32_t a, std::uint32_t b, double widths = 1) {
    spec_.links.push_back({.from = name(a),
                           .to = name(b),
                           .bandwidth = widths * kLinkedWidth,
                           .latency = kLinkedTrip});
  }
  // Links the chips of a line of `size` that begins at `first`, `stride` numbers apart.
  void line(std::uint32_t first, std::uint32_t size, std::uint32_t stride, bool wraps,
            double widths = 1) {
    for (std::uint32_t at = 0; at + 1 < size; ++at) {
      link(first + at * stride, first + (at + 1) * stride, widths);
    }
    if (wraps && size > 2) link(first + (size - 1) * stride, first, widths);
  }
  void hub(const std::string& hub_name, const std::vector<std::uint32_t>& chips) {
    spec_.nodes.push_back({hub_name, NodeKind::kSwitch});
    for (const std::uint32_t chip : chips) {
      spec_.links.push_back(
          {.from = name(chip), .to = hub_name, .bandwidth = kLinkedWidth, .latency = kLinkedTrip});
    }
  }
  ExplicitGraphSpec& spec() { return spec_; }

 private:
  ExplicitGraphSpec spec_;
};

// A torus or mesh, numbered along its axes; `widths` by axis.
inline ExplicitGraphSpec linked_grid(const std::vector<std::uint32_t>& sizes,
                                     const std::vector<bool>& wraps,
                                     const std::vector<double>& widths = {}) {
  std::uint32_t chips = 1;
  for (const std::uint32_t size : sizes) chips *= size;
  LinkedChips graph(chips);
  std::uint32_t stride = 1;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    for (std::uint32_t chip = 0; chip < chips; ++chip) {
      if (chip / stride % sizes[axis] != 0) continue;
      graph.line(chip, sizes[axis], stride, wraps[axis], widths.empty() ? 1 : widths[axis]);
    }
    stride *= sizes[axis];
  }
  return std::move(graph.spec());
}

// The same graph with its chips, and its links, listed in another order.
inline ExplicitGraphSpec listed_otherwise(ExplicitGraphSpec spec, unsigned seed) {
  std::mt19937 random(seed);
  const auto mix = [&](auto& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random() % i]);
  };
  mix(spec.nodes);
  mix(spec.links);
  for (ExplicitLink& link : spec.links) {
    if (random() % 2 == 0) std::swap(link.from, link.to);
  }
  return spec;
}

inline ExplicitGraphSpec hypercube(std::uint32_t dimensions) {
  LinkedChips graph(1U << dimensions);
  for (std::uint32_t chip = 0; chip < 1U << dimensions; ++chip) {
    for (std::uint32_t bit = 0; bit < dimensions; ++bit) {
      if ((chip >> bit & 1U) == 0) graph.link(chip, chip | 1U << bit);
    }
  }
  return std::move(graph.spec());
}

// Chip i is linked to those `steps` numbers on.
inline ExplicitGraphSpec circulant(std::uint32_t chips, const std::vector<std::uint32_t>& steps) {
  LinkedChips graph(chips);
  for (const std::uint32_t step : steps) {
    for (std::uint32_t chip = 0; chip < chips; ++chip) {
      if (2 * step == chips && chip >= step) continue;
      graph.link(chip, (chip + step) % chips);
    }
  }
  return std::move(graph.spec());
}

inline ExplicitGraphSpec fully_linked(std::uint32_t chips) {
  LinkedChips graph(chips);
  for (std::uint32_t a = 0; a < chips; ++a) {
    for (std::uint32_t b = a + 1; b < chips; ++b) graph.link(a, b);
  }
  return std::move(graph.spec());
}

inline ExplicitGraphSpec petersen() {
  LinkedChips graph(10);
  for (std::uint32_t i = 0; i < 5; ++i) {
    graph.link(i, (i + 1) % 5);
    graph.link(i, 5 + i);
    graph.link(5 + i, 5 + (i + 2) % 5);
  }
  return std::move(graph.spec());
}

// DGX-1 with V100: eight GPUs of six NVLinks, some pairs with two (github.com/astra-sim/astra-sim,
// issues 299 and 270; NVIDIA DGX-1 with Tesla V100, white paper WP-08437-002, figure 4).
inline ExplicitGraphSpec dgx1() {
  LinkedChips graph(8);
  const std::vector<std::vector<std::uint32_t>> links = {
      {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
      {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& link : links) graph.link(link[0], link[1], link[2]);
  return std::move(graph.spec());
}

// HammingMesh (Hoefler and others 2022): boards of a x b chips, X x Y of them. The ends of each
// row and column of a board are cabled to the switch of that row or column.
inline ExplicitGraphSpec hamming_mesh(std::uint32_t a, std::uint32_t b, std::uint32_t boards_x,
                                      std::uint32_t boards_y) {
  const std::uint32_t width = a * boards_x;
  const std::uint32_t height = b * boards_y;
  LinkedChips graph(width * height);
  const auto row = [&](const std::string& name, std::uint32_t first, std::uint32_t size,
                       std::uint32_t stride, std::uint32_t of_board) {
    std::vector<std::uint32_t> ends;
    for (std::uint32_t at = 0; at < size; at += of_board) {
      graph.line(first + at * stride, of_board, stride, false);
      ends.push_back(first + at * stride);
      ends.push_back(first + (at + of_board - 1) * stride);
    }
    graph.hub(name, ends);
  };
  for (std::uint32_t y = 0; y < height; ++y) row("row" + std::to_string(y), y * width, width, 1, a);
  for (std::uint32_t x = 0; x < width; ++x) row("col" + std::to_string(x), x, height, width, b);
  return std::move(graph.spec());
}

// Two fully linked groups of eight, joined by `bridges` links.
inline ExplicitGraphSpec two_groups(std::uint32_t bridges) {
  LinkedChips graph(16);
  for (const std::uint32_t first : {0U, 8U}) {
    for (std::uint32_t a = 0; a < 8; ++a) {
      for (std::uint32_t b = a + 1; b < 8; ++b) graph.link(first + a, first + b);
    }
  }
  for (std::uint32_t i = 0; i < bridges; ++i) graph.link(i, 8 + i);
  return std::move(graph.spec());
}

}  // namespace stepsim
