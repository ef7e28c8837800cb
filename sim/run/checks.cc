#include "sim/run/checks.h"

#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepsim {
namespace {

bool is_at_chip(const Fabric& fabric, LinkId id) {
  const Link& link = fabric.link(id);
  return fabric.node(link.from).kind == NodeKind::kChip ||
         fabric.node(link.to).kind == NodeKind::kChip;
}

}  // namespace

void check_streams(const Streams& streams) {
  if (streams.ops_ended() != streams.ops_total()) {
    throw std::logic_error("check failed: " + std::to_string(streams.ops_ended()) + " of " +
                           std::to_string(streams.ops_total()) + " ops ended");
  }
  if (streams.overlaps() != 0) {
    throw std::logic_error("check failed: a stream did two things at once, " +
                           std::to_string(streams.overlaps()) + " times");
  }
}

void check_links(const Fabric& fabric, const std::vector<ExactBytes>& routed,
                 const Network& network, Time end, bool has_groups) {
  const auto check = [&](double expected, double carried, std::string_view what, LinkId link) {
    if (std::abs(carried - expected) > 1e-9 * expected + 1e-3) {
      throw std::logic_error("check failed: " + std::to_string(expected) +
                             " bytes were routed over " + std::string(what) +
                             fabric.link_name(link) + ", but its rate adds up to " +
                             std::to_string(carried));
    }
  };
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i) {
    if (fabric.group_of(LinkId(i))) continue;
    check(routed[i].value(), network.carried(LinkId(i), end), "link ", LinkId(i));
  }
  for (std::uint32_t g = 0; g < fabric.groups().size(); ++g) {
    const std::vector<LinkId>& links = fabric.groups()[g].links;
    const LinkId group = fabric.link_id(LinkGroupId(g));
    const auto count = static_cast<double>(links.size());
    double carried = 0;
    if (has_groups) {
      carried = count * network.carried(group, end);
    } else {
      for (const LinkId link : links) carried += network.carried(link, end);
    }
    check(count * routed[group.index()].value(), carried, "the group of link ", links.front());
  }
}

void check_sprayed_links(const Fabric& fabric, const std::vector<ExactBytes>& routed,
                         const Network& network, Time end) {
  double expected = 0;
  double carried = 0;
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i) {
    if (!is_at_chip(fabric, LinkId(i))) continue;
    expected += routed[i].value();
    carried += network.carried(LinkId(i), end);
  }
  if (std::abs(carried - expected) > 1e-9 * expected + 1e-3) {
    throw std::logic_error("check failed: " + std::to_string(expected) +
                           " bytes were routed over the links of chips, but they carried " +
                           std::to_string(carried));
  }
}

void check_planned_bytes(const OpGraph& graph, const std::array<Bytes, kMostAxes>& asked,
                         std::uint32_t steps) {
  if (!graph.planned_bytes) return;
  for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
    if (std::int64_t{steps} * (*graph.planned_bytes)[axis] != asked[axis]) {
      throw std::logic_error("check failed: the plan says " +
                             std::to_string((*graph.planned_bytes)[axis].value()) + " bytes for " +
                             name_of(graph, static_cast<Axis>(axis)) + " a step, but " +
                             std::to_string(asked[axis].value()) + " were asked for in " +
                             std::to_string(steps) + " steps");
    }
  }
}

void check_memory(const Job& job, const MemoryLedger& memory) {
  for (std::uint32_t rank = 0; rank < job.ranks().size(); ++rank) {
    const MemoryBytes& resident = job.program(RankId(rank)).resident;
    for (std::size_t category = 0; category < kMemoryCategories; ++category) {
      if (memory.balance(RankId(rank))[category] != resident[category]) {
        throw std::logic_error(
            "check failed: rank " + std::to_string(job.representative(RankId(rank)).index()) +
            " ends with " +
            std::to_string((memory.balance(RankId(rank))[category] - resident[category]).value()) +
            " bytes of " + std::string(name_of(static_cast<MemoryCategory>(category))) +
            " that nobody freed");
      }
    }
  }
}

void check_path(const std::vector<Duration>& parts, Duration window) {
  const Duration sum = std::accumulate(parts.begin(), parts.end(), Duration());
  if (sum != window) {
    throw std::logic_error("check failed: the critical path adds up to " +
                           std::to_string(sum.count()) + " ps of " +
                           std::to_string(window.count()));
  }
}

void check_breakdowns(const std::vector<Breakdown>& breakdowns, Duration window) {
  for (std::size_t rank = 0; rank < breakdowns.size(); ++rank) {
    if (breakdowns[rank].sum() != window) {
      throw std::logic_error("check failed: the breakdown of simulated rank " +
                             std::to_string(rank) + " adds up to " +
                             std::to_string(breakdowns[rank].sum().count()) + " ps of " +
                             std::to_string(window.count()));
    }
  }
}

}  // namespace stepsim
