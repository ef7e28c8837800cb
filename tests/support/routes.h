// Helpers of the topology tests: routes by chip number and by names, and the rules that every route
// must obey.

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "topology/graph/built_topology.h"

namespace stepsim {

inline std::vector<LinkId> route(const BuiltTopology& built, std::uint32_t from, std::uint32_t to,
                                 std::uint64_t flow_key = 0) {
  std::vector<LinkId> links;
  built.router->route(built.places.chips[from], built.places.chips[to], flow_key, links);
  return links;
}

inline std::vector<std::string> route_names(const BuiltTopology& built, std::uint32_t from,
                                            std::uint32_t to) {
  std::vector<std::string> names;
  for (const LinkId link : route(built, from, to)) names.push_back(built.fabric.link_name(link));
  return names;
}

// Checks that the route starts at `from` and ends at `to`, that each link starts where the one
// before it ended, and that no link occurs twice.
inline void expect_path(const BuiltTopology& built, std::uint32_t from, std::uint32_t to,
                        std::uint64_t flow_key = 0) {
  NodeId here = built.places.chips[from];
  std::set<LinkId> seen;
  for (const LinkId link : route(built, from, to, flow_key)) {
    ASSERT_EQ(built.fabric.link(link).from, here) << built.fabric.link_name(link);
    EXPECT_TRUE(seen.insert(link).second) << built.fabric.link_name(link) << " twice";
    here = built.fabric.link(link).to;
  }
  EXPECT_EQ(here, built.places.chips[to]) << from << " to " << to;
}

}  // namespace stepsim
