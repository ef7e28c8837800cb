// A network that is listed, node by node and link by link: for whatever no other topology says.
//
//     a ---- left ==== right ---- c         nodes: a, b, c, d (chips), left, right (switches)
//            /             \                links: a-left, b-left, left-right, ...
//          b                 d
//
//   ExplicitGraphSpec{.nodes = {{"a"}, {"b"}, {"hub", NodeKind::kSwitch}},
//                     .links = {{.from = "a", .to = "hub", .bandwidth = 50_GBps},
//                               {.from = "b", .to = "hub", .bandwidth = 50_GBps}}};
//
// Names are letters, digits, '.', '_' and '-'. Between two nodes there is one link each way at
// most; parallel cables are one link of their summed bandwidth. A link is both ways unless it says
// one_way.
//
// Chips are numbered in the order of the list, whatever stands between them.
//
// Routes are shortest paths (shortest_path.h: ties go to the link that is listed first), but for
// the pairs with a route of their own: all its nodes in order, from chip to chip. The flow key
// changes nothing. A path may lead through chips, as in a torus.
//
// Levels of Places: those that are given, innermost first, whose sizes multiply to the number of
// chips; else one level, "chip". All are switched levels: an algorithm for rings of a torus finds
// none here.

#pragma once

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"
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
};

struct ExplicitGraphSpec {
  std::vector<ExplicitNode> nodes{};
  std::vector<ExplicitLink> links{};
  std::vector<std::vector<std::string>> routes{};  // each the names of its nodes
  PathMetric metric = PathMetric::kHops;
  std::vector<ExplicitLevel> levels{};
};

// "links[3].to". Chips that don't reach each other are named where the lists hold no other problem.
// What files give: topology/kinds/explicit_graph_fields.cc.
const FieldTable<ExplicitGraphSpec>& explicit_graph_fields();

std::vector<Problem> check(const ExplicitGraphSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const ExplicitGraphSpec& spec);

}  // namespace stepsim
