#include "topology/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "topology/graph/graph_measures.h"
#include "topology/graph/shortest_path.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

// Returns whether `text` matches `pattern`, in which each `*` stands for any characters.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::size_t> star;  // the last `*`, which stands for the text up to `taken`
  std::size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star) {
      p = *star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool names(const LinkFault& fault, const std::string& from, const std::string& to) {
  if (fault.link.find('>') != std::string::npos) return matches(fault.link, from + '>' + to);
  return matches(fault.link, from + '-' + to) || matches(fault.link, to + '-' + from);
}

// Damage holds the remaining share of each link's bandwidth: 0 if it is down.
struct Damage {
  std::vector<double> capacity;      // by LinkId
  std::vector<bool> names_anything;  // by fault
};

Damage damage_of(const Faults& faults, const Fabric& fabric) {
  Damage damage{std::vector<double>(fabric.links().size(), 1.0),
                std::vector<bool>(faults.links.size(), false)};
  for (std::size_t id = 0; id < fabric.links().size(); ++id) {
    const Link& link = fabric.links()[id];
    for (std::size_t i = 0; i < faults.links.size(); ++i) {
      const LinkFault& fault = faults.links[i];
      if (!names(fault, fabric.node(link.from).name, fabric.node(link.to).name)) continue;
      damage.names_anything[i] = true;
      const double left = fault.down ? 0.0 : fault.capacity.value_or(1.0);
      damage.capacity[id] = std::min(damage.capacity[id], left);
    }
  }
  return damage;
}

struct Remains {
  Fabric fabric;
  std::vector<std::optional<LinkId>> kept;  // by LinkId of the whole fabric
};

Remains remains_of(const Fabric& whole, const Damage& damage) {
  Remains remains;
  for (const Node& node : whole.nodes()) remains.fabric.add(node.kind, node.name);
  for (std::size_t id = 0; id < whole.links().size(); ++id) {
    const Link& link = whole.links()[id];
    const double left = damage.capacity[id];
    if (left > 0) {
      remains.kept.emplace_back(
          remains.fabric.connect_one_way(link.from, link.to, left * link.bandwidth, link.latency));
    } else {
      remains.kept.emplace_back();
    }
  }
  for (const LinkGroup& group : whole.groups()) {
    std::vector<LinkId> links;
    for (const LinkId id : group.links) {
      if (const auto kept = remains.kept[id.index()]) links.push_back(*kept);
    }
    const auto down = static_cast<std::uint32_t>(group.links.size() - links.size());
    if (!links.empty()) remains.fabric.add_group(std::move(links), down);
  }
  return remains;
}

class RouterRoundFaults : public Router {
 public:
  RouterRoundFaults(std::unique_ptr<Router> whole, const Remains& remains)
      : whole_(std::move(whole)),
        kept_(remains.kept),
        is_down_([this](LinkId link) { return !kept_[link.index()]; }),
        around_(remains.fabric, PathMetric::kSpareHosts) {}

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    const std::size_t first = out.size();
    whole_->route_around(from, to, flow_key, is_down_, out);
    for (std::size_t i = first; i < out.size(); ++i) {
      const std::optional<LinkId> kept = kept_[out[i].index()];
      if (!kept) {
        out.resize(first);
        [[maybe_unused]] const bool found = around_.append(from, to, out);
        assert(found);  // check() refuses faults that cut off a chip
        return;
      }
      out[i] = *kept;
    }
  }

 private:
  std::unique_ptr<Router> whole_;
  std::vector<std::optional<LinkId>> kept_;  // by LinkId of the whole fabric
  IsDown is_down_;
  ShortestPaths around_;
};

}  // namespace

std::vector<DamagedLink> damaged_links(const Faults& faults, const Fabric& whole) {
  std::vector<DamagedLink> damaged;
  for (std::size_t i = 0; i < faults.links.size(); ++i) {
    const Damage damage = damage_of({.links = {faults.links[i]}}, whole);
    for (std::uint32_t id = 0; id < damage.capacity.size(); ++id) {
      if (damage.capacity[id] < 1) damaged.push_back({LinkId(id), damage.capacity[id], i});
    }
  }
  std::ranges::sort(damaged, {}, [](const DamagedLink& one) {
    return std::tuple(one.link, one.capacity, one.fault);
  });
  const auto of_one_link = [](const DamagedLink& one, const DamagedLink& other) {
    return one.link == other.link;
  };
  damaged.erase(std::unique(damaged.begin(), damaged.end(), of_one_link), damaged.end());
  return damaged;
}

std::vector<Problem> check(const Faults& faults, const BuiltTopology& built) {
  if (faults.links.empty()) return {};
  SpecChecks checks;
  const Damage damage = damage_of(faults, built.fabric);
  for (std::size_t i = 0; i < faults.links.size(); ++i) {
    const LinkFault& fault = faults.links[i];
    const auto field = [i](const char* name) { return fmt::format("links[{}].{}", i, name); };
    if (!damage.names_anything[i]) {
      const std::string example =
          built.fabric.links().empty()
              ? "there is none"
              : fmt::format("links are named as in \"{}\"", built.fabric.link_name(LinkId(0)));
      checks.add(field("link"), fmt::format("names no link, is \"{}\"; {}", fault.link, example));
    }
    if (fault.down == fault.capacity.has_value()) {
      checks.add(field("capacity"), fault.down ? "must not be given for a link that is down"
                                               : "must be given, or else down");
    } else if (fault.capacity && !(*fault.capacity > 0 && *fault.capacity <= 1)) {
      checks.add(field("capacity"), fmt::format("must be over 0 and at most 1, is {}; a link "
                                                "without any is down",
                                                *fault.capacity));
    }
  }
  if (!checks.found_none()) return checks.problems();

  const Fabric left = remains_of(built.fabric, damage).fabric;
  if (const std::vector<NodeId> lost = chips_cut_off(left); !lost.empty()) {
    checks.add("links", "must leave every chip a path to all others; " + cut_off_text(left, lost));
  }
  return checks.problems();
}

BuiltTopology apply(const Faults& faults, BuiltTopology built) {
  if (faults.links.empty()) return built;
  Remains remains = remains_of(built.fabric, damage_of(faults, built.fabric));
  built.router = std::make_unique<RouterRoundFaults>(std::move(built.router), remains);
  built.fabric = std::move(remains.fabric);
  return built;
}

}  // namespace stepsim
