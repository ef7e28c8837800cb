// refine() finds which vertices of a graph look alike. It is the core of folding: vertices are
// ranks, groups of ranks, messages, links and hosts, and what looks alike behaves alike
// (docs/folding.md).
//
// Edges have labels. A colouring is equitable if vertices of one colour began with the same colour
// and have, label by label, the same number of neighbours of each colour. The coarsest equitable
// colouring is unique.
//
//   ColourGraphBuilder builder;
//   builder.add_vertex(7);                 // its first colour: any number
//   builder.add_edge(a, b, label);         // seen from both ends
//   const std::vector<std::uint32_t> colours = refine(std::move(builder).build());
//
// refine() hashes what each vertex sees, round by round, of vertices whose neighbours changed their
// colour; at the end it compares what the vertices of a colour see in full, and splits those that
// only hash alike. So the result is equitable whatever the hashes are. O(E log V) for E edges in
// all but made-up cases.

#pragma once

#include <cstdint>
#include <vector>

namespace stepsim {

struct ColourGraph {
  struct Half {  // one end's view of an edge
    std::uint32_t other = 0;
    std::uint32_t label = 0;
  };
  std::vector<std::uint32_t> first_colours;  // by vertex
  std::vector<std::uint32_t> begins;         // by vertex, and the end: in halves
  std::vector<Half> halves;

  std::uint32_t size() const { return static_cast<std::uint32_t>(first_colours.size()); }
};

class ColourGraphBuilder {
 public:
  // Returns its number: they are given in order, from 0.
  std::uint32_t add_vertex(std::uint32_t colour) {
    first_colours_.push_back(colour);
    return static_cast<std::uint32_t>(first_colours_.size() - 1);
  }
  void add_edge(std::uint32_t a, std::uint32_t b, std::uint32_t label) {
    edges_.push_back({a, b, label});
  }
  std::uint32_t vertices() const { return static_cast<std::uint32_t>(first_colours_.size()); }

  // O(edges). Throws std::length_error above 2^32 halves of edges.
  ColourGraph build() &&;

 private:
  struct Edge {
    std::uint32_t a;
    std::uint32_t b;
    std::uint32_t label;
  };
  std::vector<std::uint32_t> first_colours_;
  std::vector<Edge> edges_;
};

// Returns the colour of each vertex in the coarsest equitable colouring. Colours are numbered from
// 0 in the order of the first vertex that has them.
std::vector<std::uint32_t> refine(const ColourGraph& graph);

// Returns whether a colouring is equitable and keeps first colours apart. O(E log E).
bool is_equitable(const ColourGraph& graph, const std::vector<std::uint32_t>& colours);

}  // namespace stepsim
