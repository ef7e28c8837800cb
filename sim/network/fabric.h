// Fabric is the network as the simulator sees it: nodes joined by one-way links. It is filled by
// the builders in topology/ and is read-only from then on.
//
// Groups are for adaptive routing. Where switches choose a port packet by packet, what is sent over
// one link of a stage is spread over all links of the stage, and a route names just one of them:
//
//     spine0   spine1   spine2      leaf0>spine0, leaf0>spine1 and leaf0>spine2 are a group.
//        |   /    ____/             So are spine0>leaf1, spine1>leaf1 and spine2>leaf1. A route
//     leaf0 ----                    from leaf0 to leaf1 names one link of each group.
//
// Fluid models replace the link by its group: `spread()`. A message over k equal paths takes 1/k of
// its rate from each link, so one number describes the whole group. Links of unequal bandwidth
// carry shares in proportion to it. Packets choose among `alternatives()`.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace stepsim {

enum class NodeKind : std::uint8_t { kChip, kSwitch, kHost, kNic };

struct Node {
  NodeKind kind;
  std::string name;  // unique in the fabric: "node3.gpu5", "leaf2.1", "chip4.0.7"
};

struct Link {
  NodeId from;
  NodeId to;
  Bandwidth bandwidth;  // one direction
  Duration latency;     // until the first byte arrives: cable and switch together
};

// LinkGroup is a set of links that share evenly all traffic over any of them.
struct LinkGroup {
  std::vector<LinkId> links;  // by the nodes that they leave, then by number
  Bandwidth bandwidth{};      // average over its links
  Duration latency{};         // latency of each
  std::uint32_t down = 0;     // number of its links that are down
};

// LinkUse is the share that a transfer takes of a link, or of each link of a group: at rate r,
// weight * r.
struct LinkUse {
  LinkId link;        // or a group: Fabric::link_id()
  double weight = 1;  // above 0; at most 1 but for Transfer::alone. A transfer names a link once
};

class Fabric {
 public:
  NodeId add(NodeKind kind, std::string name);

  // Adds one one-way link. REQUIRES: from and to were returned by add(); bandwidth > 0.
  LinkId connect_one_way(NodeId from, NodeId to, Bandwidth bandwidth, Duration latency);

  // Adds two links, one each way. Returns the one from a to b; the other one has the next id.
  LinkId connect(NodeId a, NodeId b, Bandwidth bandwidth, Duration latency);

  // Makes a group of links that packets are spread over; `down` further links of it are down.
  // REQUIRES: links of this fabric, at least one, of equal latency, in no other group.
  void add_group(std::vector<LinkId> links, std::uint32_t down = 0);

  const std::vector<Node>& nodes() const { return nodes_; }         // by NodeId
  const std::vector<Link>& links() const { return links_; }         // by LinkId
  const std::vector<LinkGroup>& groups() const { return groups_; }  // by LinkGroupId
  const Node& node(NodeId id) const { return nodes_[id.index()]; }
  const Link& link(LinkId id) const { return links_[id.index()]; }
  const LinkGroup& group(LinkGroupId id) const { return groups_[id.index()]; }

  std::string link_name(LinkId id) const;  // "node3.gpu5>node3.nvswitch"

  // Returns the links that lead from a chip straight to another chip, by number.
  std::span<const LinkId> links_to_chips(NodeId chip) const {
    if (chip.index() >= to_chips_.size()) return {};
    return to_chips_[chip.index()];
  }

  // Returns the group that a link belongs to.
  std::optional<LinkGroupId> group_of(LinkId id) const {
    if (id.index() >= group_of_.size() || !group_of_[id.index()]) return std::nullopt;
    return *group_of_[id.index()];
  }

  // Returns the id by which a group replaces a link. It follows the ids of all links, and is valid
  // as long as no link is added.
  LinkId link_id(LinkGroupId group) const {
    return LinkId(static_cast<std::uint32_t>(links_.size()) + group.index());
  }
  std::size_t links_and_groups() const { return links_.size() + groups_.size(); }

  // Returns the use of a message whose route names the link: the link itself, or its group.
  LinkUse spread(LinkId id) const {
    const auto group = group_of(id);
    if (!group) return {id, 1};
    return {link_id(*group), 1 / static_cast<double>(groups_[group->index()].links.size())};
  }

  // Returns the bandwidth of a link, or of a group's average link.
  Bandwidth bandwidth(LinkId id) const {
    if (id.index() < links_.size()) return links_[id.index()].bandwidth;
    return groups_[id.index() - links_.size()].bandwidth;
  }

  // Returns the rate of a message that has the link or group to itself: its bandwidth / weight.
  Bandwidth width(const LinkUse& use) const { return bandwidth(use.link) / use.weight; }

  // Returns the links of `group` that leave `node`, by number.
  std::span<const LinkId> alternatives(LinkGroupId group, NodeId node) const;

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<LinkGroup> groups_;
  std::vector<OptionalId<LinkGroupId>> group_of_;  // by LinkId; shorter where the last have none
  std::vector<std::vector<LinkId>> to_chips_;      // by NodeId; shorter where the last have none
};

// Returns the bytes that crossed one link. `used(id)`: bytes of the transfers that name that link
// or group. A transfer that names a link of a group names the group, too (Transfer), so the group's
// bytes include those of all its links.
template <typename Used>
double bytes_over(const Fabric& fabric, LinkId id, const Used& used) {
  const double alone = used(id);
  const auto group_id = fabric.group_of(id);
  if (!group_id) return alone;
  const LinkGroup& group = fabric.group(*group_id);
  double spread = used(fabric.link_id(*group_id));
  for (const LinkId link : group.links) {
    spread -= used(link) / static_cast<double>(group.links.size());
  }
  return alone + spread * (fabric.link(id).bandwidth.value() / group.bandwidth.value());
}

}  // namespace stepsim
