// A network listed node by node and link by link, for everything that no other topology describes.
//
//     a ---- left ==== right ---- c         nodes: a, b, c, d (chips), left, right (switches)
//            /             \                links: a-left, b-left, left-right, ...
//          b                 d
//
//   ExplicitGraphSpec{.nodes = {{"a"}, {"b"}, {"hub", NodeKind::kSwitch}},
//                     .links = {{.from = "a", .to = "hub", .bandwidth = 50_GBps},
//                               {.from = "b", .to = "hub", .bandwidth = 50_GBps}}};
//
// Names are letters, digits, '.', '_' and '-'. Between two nodes there is at most one link each
// way; parallel cables are one link with their total bandwidth. A link goes both ways unless it
// says one_way.
//
// Chips are numbered in the order of the list; other nodes between them do not count.
//
// Routes are shortest paths (shortest_path.h: ties go to the link that is listed first; see below
// for tori), or with `routing` to the path of several equal ones that the destination's number or a
// hash of the flow chooses, as switches do (path_choice.h; not kAdaptive). Pairs with a route of
// their own use it; it lists all its nodes in order, from chip to chip. Without `routing` the flow
// key changes nothing. A path may lead through chips, as in a torus.
//
// Levels of Places: those that are given, innermost first; their sizes multiply to the number of
// chips. If none are given there is one level, "chip".
//
// What the members of a level are (`kind`) decides which chips make a node. Where no level says it,
// the links do: the first block of a level is a node if its chips reach each other over wider links
// than they reach others, and so are all chips together if no route between them passes two
// switches. Otherwise every chip is a node of its own. The names of levels decide nothing.
//
// A torus or mesh is recognised whatever the names and numbers of its chips (find_grid.h), and then
// collectives and routes are those of torus.h: routes in dimension order, but with metric
// "latency". Levels that are its axes become torus axes; chips numbered along its axes have levels
// x, y, z, w if none are given. Where numbers or levels do not follow the axes, Places::grid has
// them. On other graphs whose chips are linked directly collectives pack trees
// (sim/hardware/member_ways.h).

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/network/places.h"
#include "topology/graph/built_topology.h"
#include "topology/graph/path_choice.h"
#include "topology/graph/shortest_path.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct ExplicitNode {
  std::string name;
  NodeKind kind = NodeKind::kChip;
};

struct ExplicitLink {
  std::string from;
  std::string to;
  Bandwidth bandwidth{};  // one way. No default
  Duration latency{};     // 0 unless given
  bool one_way = false;
};

struct ExplicitLevel {
  std::string name;
  int size = 1;
  std::optional<LevelMembers> kind{};  // what its members are; unset: derived from the links
};

struct ExplicitGraphSpec {
  std::vector<ExplicitNode> nodes{};
  std::vector<ExplicitLink> links{};
  std::vector<std::vector<std::string>> routes{};  // each is the names of its nodes
  PathMetric metric = PathMetric::kHops;
  std::vector<ExplicitLevel> levels{};
  std::optional<PathRule> routing{};  // unset: ties go to the link that is listed first
  std::uint64_t routing_seed = 0;
};

// Returns problems such as "links[3].to". It names chips that cannot reach each other once the
// lists have no other problem. The fields in files: topology/kinds/explicit_graph_fields.cc.
const FieldTable<ExplicitGraphSpec>& explicit_graph_fields();

std::vector<Problem> check(const ExplicitGraphSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const ExplicitGraphSpec& spec);

}  // namespace stepsim
