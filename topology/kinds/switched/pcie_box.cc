#include "topology/kinds/switched/pcie_box.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "topology/graph/host_exits.h"
#include "topology/graph/levels.h"
#include "topology/kinds/spec_checks.h"

namespace stepsim {
namespace {

constexpr int kTwoSockets = 2;

class PcieBoxRouter : public Router, public HostExits {
 public:
  // Ids of upward links. The downward link has the next id.
  struct Tables {
    std::uint32_t gpus_per_switch = 1;
    std::uint32_t switches_per_socket = 1;
    std::vector<LinkId> gpu_up;
    std::vector<LinkId> switch_up;
    std::vector<LinkId> across;  // by socket: to the other socket
    std::vector<NodeId> sockets;
  };

  explicit PcieBoxRouter(Tables tables) : tables_(std::move(tables)) {}

  void route(NodeId from, NodeId to, std::uint64_t /*flow_key*/,
             std::vector<LinkId>& out) const override {
    if (from == to) return;
    const std::uint32_t switch_from = from.index() / tables_.gpus_per_switch;
    const std::uint32_t switch_to = to.index() / tables_.gpus_per_switch;
    out.push_back(tables_.gpu_up[from.index()]);
    if (switch_from != switch_to) {
      out.push_back(tables_.switch_up[switch_from]);
      const std::uint32_t socket_from = switch_from / tables_.switches_per_socket;
      if (socket_from != switch_to / tables_.switches_per_socket) {
        out.push_back(tables_.across[socket_from]);
      }
      out.push_back(down(tables_.switch_up[switch_to]));
    }
    out.push_back(down(tables_.gpu_up[to.index()]));
  }

  NodeId exit_of(NodeId chip) const override { return tables_.sockets[socket_of(chip)]; }

  void route_out(NodeId chip, NodeId exit, std::vector<LinkId>& out) const override {
    out.push_back(tables_.gpu_up[chip.index()]);
    out.push_back(tables_.switch_up[chip.index() / tables_.gpus_per_switch]);
    if (exit != exit_of(chip)) out.push_back(tables_.across[socket_of(chip)]);
  }

  void route_in(NodeId exit, NodeId chip, std::vector<LinkId>& out) const override {
    if (exit != exit_of(chip)) out.push_back(tables_.across[1 - socket_of(chip)]);
    out.push_back(down(tables_.switch_up[chip.index() / tables_.gpus_per_switch]));
    out.push_back(down(tables_.gpu_up[chip.index()]));
  }

 private:
  std::uint32_t socket_of(NodeId chip) const {
    return chip.index() / tables_.gpus_per_switch / tables_.switches_per_socket;
  }
  static LinkId down(LinkId up) { return LinkId(up.index() + 1); }

  Tables tables_;
};

}  // namespace

std::vector<Problem> check(const PcieBoxSpec& spec) {
  SpecChecks checks(pcie_box_fields(), spec);
  if (checks.found_none() && spec.gpus % (spec.gpus_per_switch * spec.sockets) != 0) {
    checks.add("gpus", fmt::format("must be a multiple of {} ({} a switch, as many on each of {} "
                                   "sockets), is {}",
                                   spec.gpus_per_switch * spec.sockets, spec.gpus_per_switch,
                                   spec.sockets, spec.gpus));
  }
  return checks.problems();
}

BuiltTopology build(const PcieBoxSpec& spec) {
  assert(check(spec).empty());
  BuiltTopology built;
  PcieBoxRouter::Tables tables;
  tables.gpus_per_switch = static_cast<std::uint32_t>(spec.gpus_per_switch);
  const int switches = spec.gpus / spec.gpus_per_switch;
  const int switches_per_socket = switches / spec.sockets;
  tables.switches_per_socket = static_cast<std::uint32_t>(switches_per_socket);

  for (int gpu = 0; gpu < spec.gpus; ++gpu) {
    built.places.chips.push_back(built.fabric.add(NodeKind::kChip, fmt::format("gpu{}", gpu)));
  }
  std::vector<NodeId> sockets;
  for (int socket = 0; socket < spec.sockets; ++socket) {
    sockets.push_back(built.fabric.add(NodeKind::kHost, fmt::format("socket{}", socket)));
  }
  tables.sockets = sockets;
  for (int number = 0; number < switches; ++number) {
    const NodeId pcie_switch = built.fabric.add(NodeKind::kSwitch, fmt::format("switch{}", number));
    for (int gpu = 0; gpu < spec.gpus_per_switch; ++gpu) {
      const int chip = number * spec.gpus_per_switch + gpu;
      tables.gpu_up.push_back(
          built.fabric.connect(built.places.chips[static_cast<std::size_t>(chip)], pcie_switch,
                               spec.gpu_bandwidth, spec.link_latency));
    }
    tables.switch_up.push_back(built.fabric.connect(
        pcie_switch, sockets[static_cast<std::size_t>(number / switches_per_socket)],
        spec.gpu_bandwidth, spec.link_latency));
  }
  if (spec.sockets == kTwoSockets) {
    const LinkId across =
        built.fabric.connect(sockets[0], sockets[1], spec.socket_bandwidth, spec.link_latency);
    tables.across = {across, LinkId(across.index() + 1)};
  }
  built.places.levels = levels_of_first(
      {{.name = "gpu", .size = tables.gpus_per_switch, .members = LevelMembers::kChip},
       {.name = "pcie_switch",
        .size = tables.switches_per_socket,
        .members = LevelMembers::kPackage},
       {.name = "socket",
        .size = static_cast<std::uint32_t>(spec.sockets),
        .members = LevelMembers::kPackage}},
      static_cast<std::uint32_t>(spec.gpus));
  built.router = std::make_unique<PcieBoxRouter>(std::move(tables));
  return built;
}

}  // namespace stepsim
