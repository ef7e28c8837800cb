#include "topology/kinds/switched/nvlink_domain.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr int kMostLinks = 1024;                // links from a GPU to one switch
constexpr std::size_t kMostGpuLinks = 1 << 24;  // of all GPUs to all switches

class NvlinkRouter : public Router {
 public:
  // switch_of_link lists the switch of each link of a GPU, in order. gpu_up is indexed [gpu *
  // switches + switch]; the downward link has the next id.
  NvlinkRouter(PathChoice choice, std::vector<std::uint32_t> switch_of_link,
               std::vector<LinkId> gpu_up, std::uint32_t switches)
      : choice_(choice),
        switch_of_link_(std::move(switch_of_link)),
        gpu_up_(std::move(gpu_up)),
        switches_(switches) {}

  void route(NodeId from, NodeId to, std::uint64_t flow_key,
             std::vector<LinkId>& out) const override {
    if (from == to) return;
    const Flow flow = {.from = from.index(), .to = to.index(), .key = flow_key};
    append_over(flow, switch_of_link_, out);
  }

  // If links are down, a GPU's links are only those to switches that both ends reach.
  void route_around(NodeId from, NodeId to, std::uint64_t flow_key, const IsDown& is_down,
                    std::vector<LinkId>& out) const override {
    if (from == to) return;
    const Flow flow = {.from = from.index(), .to = to.index(), .key = flow_key};
    std::vector<std::uint32_t> open;
    for (const std::uint32_t over : switch_of_link_) {
      if (!is_down(up(flow.from, over)) && !is_down(down(flow.to, over))) open.push_back(over);
    }
    append_over(flow, open.empty() ? switch_of_link_ : open, out);
  }

 private:
  LinkId up(std::uint32_t gpu, std::uint32_t over) const { return gpu_up_[gpu * switches_ + over]; }
  LinkId down(std::uint32_t gpu, std::uint32_t over) const {
    return LinkId(up(gpu, over).index() + 1);
  }

  // Appends the route over the switch of one of these links.
  void append_over(const Flow& flow, const std::vector<std::uint32_t>& switch_of_link,
                   std::vector<LinkId>& out) const {
    const auto links = static_cast<std::uint32_t>(switch_of_link.size());
    const std::uint32_t over = switch_of_link[choose(choice_, flow, flow.to, 0, links)];
    out.push_back(up(flow.from, over));
    out.push_back(down(flow.to, over));
  }

  PathChoice choice_;
  std::vector<std::uint32_t> switch_of_link_;
  std::vector<LinkId> gpu_up_;
  std::uint32_t switches_;
};

// A crossbar is a single switch with one wide link to each GPU.
std::vector<int> links_per_switch(const NvlinkDomainSpec& spec) {
  return spec.links_per_switch.empty() ? std::vector<int>{1} : spec.links_per_switch;
}

}  // namespace

std::vector<Problem> check(const NvlinkDomainSpec& spec) {
  SpecChecks checks(nvlink_domain_fields(), spec);
  for (std::size_t i = 0; i < spec.links_per_switch.size(); ++i) {
    const std::string field = fmt::format("links_per_switch[{}]", i);
    const int links = spec.links_per_switch[i];
    if (links < 1 || links > kMostLinks) {
      checks.add(field, fmt::format("must be 1 to {}, is {}", kMostLinks, links));
    }
    if (spec.switch_ports && checks.found_none() && spec.gpus * links > *spec.switch_ports) {
      checks.add(field, fmt::format("{} GPUs with {} links each need {} ports, a switch has {}",
                                    spec.gpus, links, spec.gpus * links, *spec.switch_ports));
    }
  }
  if (checks.found_none() &&
      spec.links_per_switch.size() * static_cast<std::size_t>(spec.gpus) > kMostGpuLinks) {
    checks.add("links_per_switch",
               fmt::format("must make at most {} links from GPUs to switches, {} switches of {} "
                           "GPUs make too many",
                           kMostGpuLinks, spec.links_per_switch.size(), spec.gpus));
  }
  return checks.problems();
}

BuiltTopology build(const NvlinkDomainSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology built;
  for (int gpu = 0; gpu < spec.gpus; ++gpu) {
    built.places.chips.push_back(built.fabric.add(NodeKind::kChip, fmt::format("gpu{}", gpu)));
  }
  const std::vector<int> links = links_per_switch(spec);
  std::vector<NodeId> switches;
  std::vector<std::uint32_t> switch_of_link;
  for (std::uint32_t over = 0; over < links.size(); ++over) {
    switches.push_back(built.fabric.add(NodeKind::kSwitch, spec.links_per_switch.empty()
                                                               ? "nvswitch"
                                                               : fmt::format("nvswitch{}", over)));
    switch_of_link.insert(switch_of_link.end(), static_cast<std::size_t>(links[over]), over);
  }
  const Bandwidth link_bandwidth = spec.gpu_bandwidth / static_cast<double>(switch_of_link.size());
  std::vector<LinkId> gpu_up;
  for (const NodeId gpu : built.places.chips) {
    for (std::size_t over = 0; over < switches.size(); ++over) {
      gpu_up.push_back(built.fabric.connect(gpu, switches[over],
                                            static_cast<double>(links[over]) * link_bandwidth,
                                            spec.link_latency));
    }
  }
  if (spec.routing.rule == PathRule::kAdaptive && switches.size() > 1) {
    for (std::size_t gpu = 0; gpu < built.places.chips.size(); ++gpu) {
      std::vector<LinkId> up;
      std::vector<LinkId> down;
      for (std::size_t over = 0; over < switches.size(); ++over) {
        up.push_back(gpu_up[gpu * switches.size() + over]);
        down.emplace_back(up.back().index() + 1);
      }
      built.fabric.add_group(std::move(up));
      built.fabric.add_group(std::move(down));
    }
  }
  built.places.levels = {{.name = "gpu",
                          .size = static_cast<std::uint32_t>(spec.gpus),
                          .members = LevelMembers::kChip}};
  built.router =
      std::make_unique<NvlinkRouter>(spec.routing, std::move(switch_of_link), std::move(gpu_up),
                                     static_cast<std::uint32_t>(switches.size()));
  return built;
}

}  // namespace stepsim
