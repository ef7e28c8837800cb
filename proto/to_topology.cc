#include <utility>

#include "proto/field_reader.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

std::string element(const std::string& path, const char* list, int number) {
  return path + list + "[" + std::to_string(number) + "].";
}

PathChoice to_path_choice(const FieldReader& fields) {
  PathChoice choice;
  fields.read("routing", choice.rule,
              {{"destination", PathRule::kDestination},
               {"ecmp", PathRule::kEcmp},
               {"adaptive", PathRule::kAdaptive}});
  fields.read("routing_seed", choice.seed);
  return choice;
}

CrossRail to_cross_rail(const FieldReader& fields) {
  CrossRail cross_rail = CrossRail::kPxn;
  fields.read("cross_rail", cross_rail, {{"pxn", CrossRail::kPxn}, {"spine", CrossRail::kSpine}});
  return cross_rail;
}

// One overload of read() a topology: fills the spec from the message of its kind. `path` is that of
// the message: "cluster.torus.".

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          DgxSuperPodSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.require("nodes", spec.nodes);
  fields.read("gpus_per_node", spec.gpus_per_node);
  fields.read("nodes_per_scalable_unit", spec.nodes_per_scalable_unit);
  fields.read("nvlink_bandwidth", spec.nvlink_bandwidth);
  fields.read("nvlink_latency", spec.nvlink_latency);
  fields.read("nic_bandwidth", spec.nic_bandwidth);
  fields.read("network_link_latency", spec.network_link_latency);
  fields.read("switch_ports", spec.switch_ports);
  fields.read("spines", spec.spines);
  fields.read("oversubscription", spec.oversubscription);
  spec.cross_rail = to_cross_rail(fields);
  spec.routing = to_path_choice(fields);
}

void read(const google::protobuf::Message& held, const std::string& path, ProblemList& problems,
          TorusSpec& spec) {
  const auto& message = static_cast<const file::Torus&>(held);
  const FieldReader fields(message, path, problems);
  for (int i = 0; i < message.axes_size(); ++i) {
    const FieldReader axis(message.axes(i), element(path, "axes", i), problems);
    TorusAxis& axis_spec = spec.axes.emplace_back();
    axis.require("size", axis_spec.size);
    axis.read("wraps", axis_spec.wraps);
  }
  fields.require("link_bandwidth", spec.link_bandwidth);
  fields.read("link_latency", spec.link_latency);
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          TwistedTorusSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("shape", spec.shape);
  fields.require("link_bandwidth", spec.link_bandwidth);
  fields.read("link_latency", spec.link_latency);
}

void read(const google::protobuf::Message& held, const std::string& path, ProblemList& problems,
          TpuSliceSpec& spec) {
  const auto& message = static_cast<const file::TpuSlice&>(held);
  const FieldReader fields(message, path, problems);
  std::vector<std::pair<std::string, TpuGeneration>> generations;
  for (const TpuGeneration generation : kTpuGenerations) {
    generations.emplace_back(name_of(generation), generation);
  }
  if (!message.has_generation()) fields.add("generation", "must be given, as in v5p");
  fields.read("generation", spec.generation, generations);
  fields.read("shape", spec.shape);
  fields.read("twisted", spec.twisted);
  if (message.wraps_size() > 0) spec.wraps.emplace(message.wraps().begin(), message.wraps().end());
  fields.read("link_bandwidth", spec.link_bandwidth);
  fields.read("link_latency", spec.link_latency);
  fields.read("optical_latency", spec.optical_latency);
  if (message.has_hosts()) {
    const FieldReader of_hosts(message.hosts(), path + "hosts.", problems);
    TpuHosts& hosts = spec.hosts.emplace();
    of_hosts.read("bandwidth", hosts.bandwidth);
    of_hosts.read("latency", hosts.latency);
  }
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          NvlinkDomainSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("gpus", spec.gpus);
  fields.read("gpu_bandwidth", spec.gpu_bandwidth);
  fields.read("link_latency", spec.link_latency);
  fields.read("links_per_switch", spec.links_per_switch);
  fields.read("switch_ports", spec.switch_ports);
  spec.routing = to_path_choice(fields);
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          PcieBoxSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("gpus", spec.gpus);
  fields.read("gpus_per_switch", spec.gpus_per_switch);
  fields.read("sockets", spec.sockets);
  fields.read("gpu_bandwidth", spec.gpu_bandwidth);
  fields.read("socket_bandwidth", spec.socket_bandwidth);
  fields.read("link_latency", spec.link_latency);
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          FatTreeSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("switch_ports", spec.switch_ports);
  fields.read("tiers", spec.tiers);
  fields.read("taper", spec.taper);
  fields.require("link_bandwidth", spec.link_bandwidth);
  fields.read("link_latency", spec.link_latency);
  spec.routing = to_path_choice(fields);
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          LeafSpineSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("leaves", spec.leaves);
  fields.read("hosts_per_leaf", spec.hosts_per_leaf);
  fields.read("spines", spec.spines);
  fields.require("host_bandwidth", spec.host_bandwidth);
  fields.read("oversubscription", spec.oversubscription);
  fields.read("link_latency", spec.link_latency);
  fields.read("switch_ports", spec.switch_ports);
  spec.routing = to_path_choice(fields);
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          RailFabricSpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("nodes", spec.nodes);
  fields.read("rails", spec.rails);
  fields.read("nodes_per_scalable_unit", spec.nodes_per_scalable_unit);
  fields.read("nic_bandwidth", spec.nic_bandwidth);
  fields.read("link_latency", spec.link_latency);
  fields.read("switch_ports", spec.switch_ports);
  fields.read("spines", spec.spines);
  fields.read("oversubscription", spec.oversubscription);
  spec.routing = to_path_choice(fields);
}

void read(const google::protobuf::Message& message, const std::string& path, ProblemList& problems,
          DragonflySpec& spec) {
  const FieldReader fields(message, path, problems);
  fields.read("hosts_per_router", spec.hosts_per_router);
  fields.read("routers_per_group", spec.routers_per_group);
  fields.read("global_links_per_router", spec.global_links_per_router);
  fields.read("groups", spec.groups);
  fields.require("host_bandwidth", spec.host_bandwidth);
  fields.require("local_bandwidth", spec.local_bandwidth);
  fields.require("global_bandwidth", spec.global_bandwidth);
  fields.read("local_latency", spec.local_latency);
  fields.read("global_latency", spec.global_latency);
  fields.read("switch_ports", spec.switch_ports);
  fields.read("routing", spec.routing,
              {{"minimal", DragonflyRouting::kMinimal}, {"valiant", DragonflyRouting::kValiant}});
  fields.read("routing_seed", spec.routing_seed);
}

void read(const google::protobuf::Message& held, const std::string& path, ProblemList& problems,
          ExplicitGraphSpec& spec) {
  const auto& message = static_cast<const file::ExplicitGraph&>(held);
  for (int i = 0; i < message.nodes_size(); ++i) {
    const FieldReader fields(message.nodes(i), element(path, "nodes", i), problems);
    ExplicitNode& node = spec.nodes.emplace_back();
    fields.read("name", node.name);
    fields.read("kind", node.kind,
                {{"chip", NodeKind::kChip},
                 {"switch", NodeKind::kSwitch},
                 {"host", NodeKind::kHost},
                 {"nic", NodeKind::kNic}});
  }
  for (int i = 0; i < message.links_size(); ++i) {
    const FieldReader fields(message.links(i), element(path, "links", i), problems);
    ExplicitLink& link = spec.links.emplace_back();
    fields.read("from", link.from);
    fields.read("to", link.to);
    fields.require("bandwidth", link.bandwidth);
    fields.read("latency", link.latency);
    fields.read("one_way", link.one_way);
  }
  for (const file::ExplicitGraph::Route& route : message.routes()) {
    spec.routes.emplace_back(route.nodes().begin(), route.nodes().end());
  }
  for (int i = 0; i < message.levels_size(); ++i) {
    const FieldReader fields(message.levels(i), element(path, "levels", i), problems);
    ExplicitLevel& level = spec.levels.emplace_back();
    fields.read("name", level.name);
    fields.require("size", level.size);
  }
  const FieldReader fields(message, path, problems);
  fields.read("metric", spec.metric,
              {{"hops", PathMetric::kHops}, {"latency", PathMetric::kLatency}});
}

// The topology that a Cluster or a Block holds, if it is none that is composed. Its field has the
// name of the kind's row in kTopologyKinds.
std::optional<BlockSpec> to_held_block(const google::protobuf::Message& holder,
                                       const std::string& path, ProblemList& problems) {
  const google::protobuf::Reflection& reflection = *holder.GetReflection();
  const google::protobuf::FieldDescriptor* held = reflection.GetOneofFieldDescriptor(
      holder, holder.GetDescriptor()->FindOneofByName("topology"));
  std::optional<BlockSpec> block;
  if (held != nullptr) block = block_named(held->name());
  if (!block) return std::nullopt;
  const google::protobuf::Message& message = reflection.GetMessage(holder, held);
  std::visit([&](auto& spec) { read(message, path + held->name() + ".", problems, spec); }, *block);
  return block;
}

// "dgx_superpod, torus, ..."
std::string topologies_of(const google::protobuf::Descriptor& holder) {
  std::string names;
  const google::protobuf::OneofDescriptor& topologies = *holder.FindOneofByName("topology");
  for (int i = 0; i < topologies.field_count(); ++i) {
    names += (i == 0 ? "" : ", ") + topologies.field(i)->name();
  }
  return names;
}

// A field that must hold a block; a stand-in where it holds none.
BlockSpec to_required_block(const file::Block& block, const std::string& path,
                            ProblemList& problems) {
  auto spec = to_held_block(block, path + ".", problems);
  if (!spec) problems.add(path, "must be a topology: " + topologies_of(*block.GetDescriptor()));
  return std::move(spec).value_or(PcieBoxSpec{});
}

TierSpec to_tier(const file::Composed::Tier& message, const std::string& path,
                 ProblemList& problems) {
  const FieldReader fields(message, path, problems);
  TierSpec spec;
  fields.read("name", spec.name);
  fields.require("count", spec.count);
  if (message.has_fabric()) {
    spec.fabric = to_required_block(message.fabric(), path + "fabric", problems);
  }
  fields.read("chips_per_host", spec.chips_per_host);
  fields.read("host_bandwidth", spec.host_bandwidth);
  fields.read("host_latency", spec.host_latency);
  spec.cross_rail = to_cross_rail(fields);
  fields.read("planes", spec.planes);
  return spec;
}

ComposedSpec to_composed(const file::Composed& message, const std::string& path,
                         ProblemList& problems) {
  ComposedSpec spec = {.domain = to_required_block(message.domain(), path + "domain", problems)};
  for (int i = 0; i < message.tiers_size(); ++i) {
    spec.tiers.push_back(to_tier(message.tiers(i), element(path, "tiers", i), problems));
  }
  return spec;
}

}  // namespace

std::optional<TopologySpec> to_topology(const file::Cluster& cluster, ProblemList& problems) {
  if (cluster.has_composed()) return to_composed(cluster.composed(), "cluster.composed.", problems);
  const std::optional<BlockSpec> block = to_held_block(cluster, "cluster.", problems);
  if (!block) return std::nullopt;
  return std::visit([](const auto& chosen) { return TopologySpec(chosen); }, *block);
}

Faults to_faults(const file::Cluster& cluster, ProblemList& problems) {
  Faults faults;
  const auto& links = cluster.faults().links();
  for (int i = 0; i < links.size(); ++i) {
    const FieldReader fields(links[i], element("cluster.faults.", "links", i), problems);
    LinkFault& fault = faults.links.emplace_back();
    fields.read("link", fault.link);
    fields.read("capacity", fault.capacity);
    fields.read("down", fault.down);
  }
  return faults;
}

std::string topology_names() {
  return topologies_of(*file::Cluster::descriptor());
}

}  // namespace stepsim
