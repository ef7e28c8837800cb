#include "sim/hardware/hosts.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "sim/hardware/host_fields.h"

namespace stepsim {

std::vector<Problem> check(const HostSpec& spec) {
  if (!spec.given()) return {};
  std::vector<Problem> problems = host_fields().problems(spec);
  if (spec.chips >= 1 && spec.uplink_chips >= 1 && spec.chips % spec.uplink_chips != 0) {
    problems.push_back({"uplink_chips", "must divide the host's chips (" +
                                            std::to_string(spec.chips) + "), is " +
                                            std::to_string(spec.uplink_chips)});
  }
  if (!(spec.memory_bandwidth.value() > 0)) {
    problems.push_back({"memory_bandwidth", "must be given and positive, as in \"400GB/s\""});
  }
  if (spec.memory_capacity <= Bytes(0)) {
    problems.push_back({"memory_capacity", "must be given and positive, as in \"2TB\""});
  }
  return problems;
}

Hosts add_hosts(const HostSpec& spec, const Places& places, Fabric& fabric) {
  assert(check(spec).empty());
  Hosts hosts{.spec = spec};
  if (!spec.given()) return hosts;
  const Bandwidth link = *spec.link_bandwidth;
  const Bandwidth up = spec.uplink_bandwidth.value_or(link);
  NodeId host;
  NodeId uplink;
  LinkId memory;
  LinkId uplink_out;
  for (std::size_t chip = 0; chip < places.chips.size(); ++chip) {
    const auto number = static_cast<std::int64_t>(chip);
    if (number % spec.chips == 0) {
      host = fabric.add(NodeKind::kHost, "host" + std::to_string(hosts.count));
      memory = fabric.connect_one_way(host, host, spec.memory_bandwidth, {});
      ++hosts.count;
    }
    const std::string& name = fabric.node(host).name;
    const std::int64_t group = number % spec.chips / spec.uplink_chips;
    if (spec.uplink_chips > 1 && number % spec.uplink_chips == 0) {
      uplink = fabric.add(NodeKind::kHost, name + ".uplink" + std::to_string(group));
      uplink_out = fabric.connect(uplink, host, up, {});
    }
    const NodeId end = spec.uplink_chips > 1 ? uplink : host;
    const LinkId out = fabric.connect(places.chips[chip], end, link, spec.link_latency);
    const auto back = [](LinkId there) { return LinkId(there.index() + 1); };
    HostPath path{.host = HostId(hosts.count - 1), .out = {out}, .in = {memory}, .memory = memory};
    if (spec.uplink_chips > 1) {
      path.out.push_back(uplink_out);
      path.in.push_back(back(uplink_out));
    }
    path.out.push_back(memory);
    path.in.push_back(back(out));
    hosts.of_chip.push_back(std::move(path));
  }
  return hosts;
}

}  // namespace stepsim
