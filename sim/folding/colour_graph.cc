#include "sim/folding/colour_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "sim/base/random.h"

namespace stepsim {
namespace {

// Replaces colours by 0, 1, 2, ... in the order of the first vertex that has them.
std::uint32_t number_in_order(std::vector<std::uint32_t>& colours) {
  std::unordered_map<std::uint32_t, std::uint32_t> numbers;  // looked up, never iterated
  for (std::uint32_t& colour : colours) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    colour = numbers.try_emplace(colour, next).first->second;
  }
  return static_cast<std::uint32_t>(numbers.size());
}

// View is what a vertex sees: the label and the colour of each neighbour, sorted.
using View = std::vector<std::uint64_t>;

void look(const ColourGraph& graph, const std::vector<std::uint32_t>& colours, std::uint32_t vertex,
          View& view) {
  view.clear();
  for (std::uint32_t i = graph.begins[vertex]; i < graph.begins[vertex + 1]; ++i) {
    const ColourGraph::Half& half = graph.halves[i];
    view.push_back(std::uint64_t{half.label} << 32 | colours[half.other]);
  }
  std::ranges::sort(view);
}

class Refinement {
 public:
  explicit Refinement(const ColourGraph& graph) : graph_(graph), colours_(graph.first_colours) {
    count_ = number_in_order(colours_);
    members_.resize(count_);
    for (std::uint32_t vertex = 0; vertex < graph.size(); ++vertex) {
      members_[colours_[vertex]].push_back(vertex);
    }
    is_changed_.assign(graph.size(), 0);
    hashes_.resize(graph.size());
  }

  std::vector<std::uint32_t> run() {
    changed_.resize(graph_.size());
    std::iota(changed_.begin(), changed_.end(), 0U);
    do {
      while (!changed_.empty()) split_by_hashes();
    } while (split_by_views());
    number_in_order(colours_);
    return std::move(colours_);
  }

 private:
  // Splits the colours of the vertices whose view has changed.
  void split_by_hashes() {
    std::vector<std::uint32_t> touched;  // colours
    is_touched_.resize(count_, 0);
    for (const std::uint32_t vertex : changed_) {
      is_changed_[vertex] = 0;
      std::uint64_t sum = 0;
      for (std::uint32_t i = graph_.begins[vertex]; i < graph_.begins[vertex + 1]; ++i) {
        const ColourGraph::Half& half = graph_.halves[i];
        sum += mixed_bits(std::uint64_t{half.label} << 32 | colours_[half.other]);
      }
      hashes_[vertex] = sum;
      const std::uint32_t colour = colours_[vertex];
      if (std::exchange(is_touched_[colour], 1) == 0) touched.push_back(colour);
    }
    for (const std::uint32_t colour : touched) is_touched_[colour] = 0;
    std::ranges::sort(touched);
    changed_.clear();
    std::vector<std::uint32_t> moved;
    for (const std::uint32_t colour : touched) split(colour, moved);
    wake_neighbours(moved);
  }

  // Gives all but the largest part of a colour new colours.
  void split(std::uint32_t colour, std::vector<std::uint32_t>& moved) {
    std::vector<std::uint32_t>& members = members_[colour];
    const std::uint64_t first = hashes_[members.front()];
    const bool is_whole = std::ranges::all_of(
        members, [&](std::uint32_t vertex) { return hashes_[vertex] == first; });
    if (is_whole) return;
    std::vector<Part> parts = parts_by_hash(std::exchange(members, {}));
    std::ranges::sort(parts, {}, &Part::hash);
    const auto largest =
        std::ranges::max_element(parts, {}, [](const Part& part) { return part.members.size(); });
    members_[colour] = std::move(largest->members);
    for (Part& part : parts) {
      if (part.hash != largest->hash) add_colour(std::move(part.members), moved);
    }
  }

  // The vertices of a colour with one hash.
  struct Part {
    std::uint64_t hash = 0;
    std::vector<std::uint32_t> members;  // ascending
  };
  std::vector<Part> parts_by_hash(const std::vector<std::uint32_t>& vertices) const {
    std::vector<Part> parts;
    std::unordered_map<std::uint64_t, std::size_t> places;  // by hash; looked up only
    std::size_t place = 0;                                  // of the vertex before
    for (const std::uint32_t vertex : vertices) {
      const std::uint64_t hash = hashes_[vertex];
      if (parts.empty() || parts[place].hash != hash) {
        place = places.try_emplace(hash, parts.size()).first->second;
        if (place == parts.size()) parts.push_back({.hash = hash, .members = {}});
      }
      parts[place].members.push_back(vertex);
    }
    return parts;
  }

  void add_colour(std::vector<std::uint32_t> members, std::vector<std::uint32_t>& moved) {
    for (const std::uint32_t vertex : members) colours_[vertex] = count_;
    moved.insert(moved.end(), members.begin(), members.end());
    members_.push_back(std::move(members));
    ++count_;
  }

  void wake_neighbours(const std::vector<std::uint32_t>& moved) {
    for (const std::uint32_t vertex : moved) {
      for (std::uint32_t i = graph_.begins[vertex]; i < graph_.begins[vertex + 1]; ++i) {
        const std::uint32_t other = graph_.halves[i].other;
        if (std::exchange(is_changed_[other], 1) == 0) changed_.push_back(other);
      }
    }
  }

  // Splits what only hashes alike. Returns whether there was any.
  bool split_by_views() {
    std::vector<std::uint32_t> moved;
    View first;
    View view;
    const std::uint32_t before = count_;
    for (std::uint32_t colour = 0; colour < before; ++colour) {
      look(graph_, colours_, members_[colour].front(), first);
      std::vector<std::uint32_t> others;
      for (const std::uint32_t vertex : members_[colour]) {
        look(graph_, colours_, vertex, view);
        if (view != first) others.push_back(vertex);
      }
      if (others.empty()) continue;
      std::erase_if(members_[colour], [&](std::uint32_t vertex) {
        return std::ranges::binary_search(others, vertex);
      });
      add_colour(std::move(others), moved);
    }
    wake_neighbours(moved);
    return count_ != before;
  }

  const ColourGraph& graph_;
  std::vector<std::uint32_t> colours_;
  std::uint32_t count_ = 0;
  std::vector<std::vector<std::uint32_t>> members_;  // by colour, ascending
  std::vector<std::uint64_t> hashes_;                // by vertex
  std::vector<std::uint32_t> changed_;               // vertices to look at again
  std::vector<std::uint8_t> is_changed_;
  std::vector<std::uint8_t> is_touched_;  // by colour
};

}  // namespace

ColourGraph ColourGraphBuilder::build() && {
  if (edges_.size() > std::numeric_limits<std::uint32_t>::max() / 2) {
    throw std::length_error("a graph may have up to 2^31 edges");
  }
  ColourGraph graph{.first_colours = std::move(first_colours_), .begins = {}, .halves = {}};
  graph.begins.assign(graph.first_colours.size() + 1, 0);
  for (const Edge& edge : edges_) {
    ++graph.begins[edge.a + 1];
    ++graph.begins[edge.b + 1];
  }
  std::partial_sum(graph.begins.begin(), graph.begins.end(), graph.begins.begin());
  graph.halves.resize(2 * edges_.size());
  std::vector<std::uint32_t> next(graph.begins.begin(), graph.begins.end() - 1);
  for (const Edge& edge : edges_) {
    graph.halves[next[edge.a]++] = {edge.b, edge.label};
    graph.halves[next[edge.b]++] = {edge.a, edge.label};
  }
  edges_.clear();
  return graph;
}

std::vector<std::uint32_t> refine(const ColourGraph& graph) {
  return Refinement(graph).run();
}

bool is_equitable(const ColourGraph& graph, const std::vector<std::uint32_t>& colours) {
  std::unordered_map<std::uint32_t, std::uint32_t> first_of;  // by colour; looked up only
  View view;
  View first;
  for (std::uint32_t vertex = 0; vertex < graph.size(); ++vertex) {
    const std::uint32_t like = first_of.try_emplace(colours[vertex], vertex).first->second;
    if (graph.first_colours[like] != graph.first_colours[vertex]) return false;
    look(graph, colours, like, first);
    look(graph, colours, vertex, view);
    if (view != first) return false;
  }
  return true;
}

}  // namespace stepsim
