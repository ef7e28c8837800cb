#include "tests/fuzz/random/random_cluster.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "proto/load_experiment.h"

namespace stepsim {
namespace {

Json random_bandwidth(Choices& choices) {
  return choices.pick({"50GB/s", "25GB/s", "100Gbps", "450GB/s", "900GB/s", "1GB/s", "33.3GB/s"});
}

Json random_latency(Choices& choices) {
  return choices.pick({"0.25us", "0s", "1us", "2ns", "10us"});
}

void add_routing(Choices& choices, Json& spec) {
  switch (choices.below(4)) {
    case 0:
    case 1:
      break;
    case 2:
      spec["routing"] = "adaptive";
      break;
    case 3:
      spec["routing"] = "ecmp";
      spec["routing_seed"] = choices.below(100);
      break;
  }
}

// RandomTopology is a topology and its size. `chips` is also the number of hosts that a network has
// places for.
struct RandomTopology {
  std::string kind;
  Json spec;
  std::int64_t chips = 1;
  std::int64_t node = 1;
  std::vector<RandomAxis> axes{};
};

RandomTopology random_torus(Choices& choices) {
  static constexpr std::string_view kAxes = "xyz";
  RandomTopology torus{.kind = "torus", .spec = {}};
  const std::uint64_t axes = 1 + choices.below(3);
  for (std::uint64_t axis = 0; axis < axes; ++axis) {
    const std::int64_t size = choices.pick({2, 4, 3, 1, 2, 4});
    const bool wraps = size >= 3 && choices.one_in(2);
    torus.spec["axes"].push_back({{"size", size}, {"wraps", wraps}});
    torus.axes.push_back({std::string(1, kAxes[axis]), size});
    torus.chips *= size;
  }
  torus.spec["link_bandwidth"] = random_bandwidth(choices);
  torus.spec["link_latency"] = random_latency(choices);
  return torus;
}

RandomTopology random_twisted_torus(Choices& choices) {
  std::vector<int> shape = choices.one_in(2) ? std::vector{2, 4, 4} : std::vector{2, 2, 4};
  std::rotate(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(choices.below(3)),
              shape.end());
  RandomTopology torus{.kind = "twisted_torus",
                       .spec = {{"shape", shape},
                                {"link_bandwidth", random_bandwidth(choices)},
                                {"link_latency", random_latency(choices)}},
                       .axes = {{"x", shape[0]}, {"y", shape[1]}, {"z", shape[2]}}};
  torus.chips = shape[0] * shape[1] * shape[2];
  return torus;
}

RandomTopology random_tpu_slice(Choices& choices) {
  const bool is_flat = choices.one_in(2);
  const std::vector<int> shape =
      is_flat ? choices.pick<std::vector<int>>({{2, 2}, {2, 4}, {4, 4}, {4, 8}})
              : choices.pick<std::vector<int>>({{2, 2, 1}, {2, 2, 2}, {2, 2, 4}, {2, 4, 4}});
  const std::string generation =
      is_flat ? choices.pick({"v5e", "v6e"}) : choices.pick({"v4", "v5p"});
  RandomTopology slice{
      .kind = "tpu_slice",
      .spec = {
          {"generation", generation}, {"shape", shape}, {"link_latency", random_latency(choices)}}};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    slice.axes.push_back({std::string(1, "xyz"[axis]), shape[axis]});
    slice.chips *= shape[axis];
  }
  return slice;
}

RandomTopology random_nvlink_domain(Choices& choices) {
  const std::int64_t gpus = choices.pick({8, 4, 2, 1, 6, 16, 3});
  Json spec = {{"gpus", gpus},
               {"gpu_bandwidth", random_bandwidth(choices)},
               {"link_latency", random_latency(choices)}};
  if (choices.one_in(3)) {
    spec["links_per_switch"] =
        choices.pick<std::vector<int>>({{2, 2}, {5, 4, 4, 5}, {1, 1, 1}, {3}});
    add_routing(choices, spec);
  }
  return {.kind = "nvlink_domain", .spec = std::move(spec), .chips = gpus, .node = gpus};
}

RandomTopology random_pcie_box(Choices& choices) {
  const std::int64_t of_switch = choices.pick({2, 1, 4});
  const std::int64_t sockets = choices.pick({2, 1});
  const std::int64_t gpus = of_switch * sockets * choices.between(1, 2);
  return {.kind = "pcie_box",
          .spec = {{"gpus", gpus},
                   {"gpus_per_switch", of_switch},
                   {"sockets", sockets},
                   {"gpu_bandwidth", random_bandwidth(choices)},
                   {"socket_bandwidth", random_bandwidth(choices)},
                   {"link_latency", random_latency(choices)}},
          .chips = gpus,
          .node = of_switch};
}

RandomTopology random_fat_tree(Choices& choices) {
  const std::int64_t ports = choices.pick({4, 6, 2, 8});
  const std::int64_t tiers = ports == 4 && choices.one_in(2) ? 3 : 2;
  Json spec = {{"switch_ports", ports},
               {"tiers", tiers},
               {"link_bandwidth", random_bandwidth(choices)},
               {"link_latency", random_latency(choices)}};
  if (choices.one_in(4)) spec["taper"] = choices.pick({2.0, 1.5, 4.0});
  add_routing(choices, spec);
  return {.kind = "fat_tree",
          .spec = std::move(spec),
          .chips = tiers == 2 ? ports * ports / 2 : ports * ports * ports / 4,
          .node = ports / 2};
}

RandomTopology random_leaf_spine(Choices& choices) {
  const std::int64_t leaves = choices.between(1, 4);
  const std::int64_t hosts = choices.pick({4, 2, 1, 8, 3});
  Json spec = {{"leaves", leaves},
               {"hosts_per_leaf", hosts},
               {"spines", choices.between(1, 4)},
               {"host_bandwidth", random_bandwidth(choices)},
               {"link_latency", random_latency(choices)}};
  if (choices.one_in(4)) spec["oversubscription"] = choices.pick({2.0, 3.0, 1.25});
  add_routing(choices, spec);
  return {.kind = "leaf_spine", .spec = std::move(spec), .chips = leaves * hosts, .node = hosts};
}

// Fields of the network of a SuperPOD, which has `rails` cards a node.
void add_rails(Choices& choices, Json& spec) {
  spec["nic_bandwidth"] = random_bandwidth(choices);
  spec["nodes_per_scalable_unit"] = choices.pick({32, 1, 2});
  if (choices.one_in(4)) spec["oversubscription"] = choices.pick({2.0, 1.5});
  add_routing(choices, spec);
}

RandomTopology random_rail_fabric(Choices& choices) {
  const std::int64_t nodes = choices.between(1, 4);
  const std::int64_t rails = choices.pick({4, 2, 8, 1});
  Json spec = {{"nodes", nodes}, {"rails", rails}, {"link_latency", random_latency(choices)}};
  add_rails(choices, spec);
  return {.kind = "rail_fabric", .spec = std::move(spec), .chips = nodes * rails, .node = rails};
}

RandomTopology random_superpod(Choices& choices) {
  const std::int64_t nodes = choices.between(1, 4);
  const std::int64_t gpus = choices.pick({4, 2, 8, 1});
  Json spec = {{"nodes", nodes},
               {"gpus_per_node", gpus},
               {"nvlink_bandwidth", random_bandwidth(choices)},
               {"nvlink_latency", random_latency(choices)},
               {"network_link_latency", random_latency(choices)}};
  add_rails(choices, spec);
  if (choices.one_in(4)) spec["cross_rail"] = "spine";
  return {.kind = "dgx_superpod", .spec = std::move(spec), .chips = nodes * gpus, .node = gpus};
}

RandomTopology random_dragonfly(Choices& choices) {
  const std::int64_t hosts = choices.between(1, 2);
  const std::int64_t routers = choices.between(1, 4);
  const std::int64_t global = choices.between(1, 2);
  const std::int64_t groups = choices.between(2, std::min<std::int64_t>(4, routers * global + 1));
  Json spec = {{"hosts_per_router", hosts},
               {"routers_per_group", routers},
               {"global_links_per_router", global},
               {"groups", groups},
               {"host_bandwidth", random_bandwidth(choices)},
               {"local_bandwidth", random_bandwidth(choices)},
               {"global_bandwidth", random_bandwidth(choices)},
               {"local_latency", random_latency(choices)},
               {"global_latency", random_latency(choices)}};
  if (choices.one_in(3)) {
    spec["routing"] = "valiant";
    spec["routing_seed"] = choices.below(100);
  }
  return {.kind = "dragonfly",
          .spec = std::move(spec),
          .chips = hosts * routers * groups,
          .node = hosts};
}

// A line of chips, some pairs of which have a second way, behind one another or around a switch.
RandomTopology random_graph(Choices& choices) {
  const std::int64_t chips = choices.pick({4, 2, 8, 3, 6});
  const auto name = [](std::int64_t chip) { return "c" + std::to_string(chip); };
  Json spec;
  const auto connect = [&](const std::string& from, const std::string& to) {
    spec["links"].push_back({{"from", from},
                             {"to", to},
                             {"bandwidth", random_bandwidth(choices)},
                             {"latency", random_latency(choices)}});
  };
  const bool has_hub = choices.one_in(2);
  for (std::int64_t chip = 0; chip < chips; ++chip) spec["nodes"].push_back({{"name", name(chip)}});
  if (has_hub) spec["nodes"].push_back({{"name", "hub"}, {"kind", "switch"}});
  for (std::int64_t chip = 0; chip < chips; ++chip) {
    if (has_hub) connect(name(chip), "hub");
    const bool is_cabled = !has_hub || choices.one_in(4);
    if (chip > 0 && is_cabled) connect(name(chip - 1), name(chip));
  }
  if (choices.one_in(2)) spec["metric"] = "latency";
  return {.kind = "explicit_graph", .spec = std::move(spec), .chips = chips, .node = chips};
}

RandomTopology random_fabric(Choices& choices, std::int64_t rails) {
  switch (choices.below(4)) {
    case 0: {
      Json spec = {{"rails", rails}, {"link_latency", random_latency(choices)}};
      add_rails(choices, spec);
      return {.kind = "rail_fabric", .spec = std::move(spec)};
    }
    case 1:
      return random_leaf_spine(choices);
    case 2:
      return random_fat_tree(choices);
    default:
      return random_dragonfly(choices);
  }
}

RandomTopology random_domain(Choices& choices) {
  switch (choices.below(3)) {
    case 0:
      return random_nvlink_domain(choices);
    case 1:
      return random_pcie_box(choices);
    default:
      return random_torus(choices);
  }
}

// Domains inside a network whose size follows from them.
RandomTopology random_composed(Choices& choices) {
  RandomTopology domain = random_domain(choices);
  const std::int64_t count = choices.between(2, std::max<std::int64_t>(2, 16 / domain.chips));
  const std::int64_t of_host =
      domain.kind != "nvlink_domain" && choices.one_in(2) ? domain.node : 1;
  RandomTopology fabric = random_fabric(choices, of_host > 1 ? 1 : domain.chips);
  for (const char* const size : {"nodes", "leaves", "switch_ports", "groups"}) {
    fabric.spec.erase(size);
  }
  Json tier = {{"name", "node"}, {"count", count}, {"fabric", {{fabric.kind, fabric.spec}}}};
  if (of_host > 1) {
    tier["chips_per_host"] = of_host;
    tier["host_bandwidth"] = random_bandwidth(choices);
  }
  if (choices.one_in(5)) tier["planes"] = 2;
  return {.kind = "composed",
          .spec = {{"domain", {{domain.kind, domain.spec}}}, {"tiers", Json::array({tier})}},
          .chips = domain.chips * count,
          .node = domain.node};
}

RandomTopology random_topology(Choices& choices) {
  static constexpr std::array kMakers = {random_superpod,  random_torus,      random_nvlink_domain,
                                         random_composed,  random_leaf_spine, random_fat_tree,
                                         random_dragonfly, random_graph,      random_rail_fabric,
                                         random_tpu_slice, random_pcie_box,   random_twisted_torus,
                                         random_superpod,  random_torus,      random_composed};
  return kMakers[choices.below(kMakers.size())](choices);
}

const ChipSpec& catalog_chip(const std::string& name) {
  static std::map<std::string, ChipSpec> chips;
  const auto known = chips.find(name);
  return known != chips.end() ? known->second : chips.emplace(name, load_chip(name)).first->second;
}

// A chip that reaches its peaks with every kernel, and has no host unless one is given.
void add_own_chip(Choices& choices, RandomCluster& cluster) {
  cluster.json["chip"] = {{"name", "made"},
                          {"peak",
                           {{{"type", "bf16"}, {"throughput", "100TFLOPS"}},
                            {{"type", "fp32"}, {"throughput", "20TFLOPS"}},
                            {{"type", "fp8"}, {"throughput", "200TFLOPS"}}}},
                          {"memory_bandwidth", "1TB/s"},
                          {"memory_capacity", choices.pick({"80GB", "1GB"})},
                          {"launch_overhead", choices.pick({"0s", "2us"})}};
  cluster.chip.name = "made";
  for (const DataType type : {DataType::kBf16, DataType::kFp32, DataType::kFp8}) {
    cluster.chip.set_peak(type, Throughput(1));
  }
  if (!choices.one_in(2)) return;
  cluster.has_host = true;
  cluster.json["host"] = {{"link_bandwidth", random_bandwidth(choices)},
                          {"memory_bandwidth", "300GB/s"},
                          {"memory_capacity", "1TB"},
                          {"chips", choices.between(1, 8)},
                          {"uplink_chips", 1}};
}

void add_chip(Choices& choices, RandomCluster& cluster) {
  if (choices.one_in(5)) return add_own_chip(choices, cluster);
  const std::string name = choices.pick({"h100-sxm", "tpu-v5e", "a100-sxm-80gb", "b200", "h800-sxm",
                                         "tpu-v5p", "v100-sxm-32gb", "gh200", "tpu-v4"});
  cluster.json["chip"] = {{"catalog", name}};
  cluster.chip = catalog_chip(name);
  cluster.has_host = true;
}

void add_library(Choices& choices, RandomCluster& cluster) {
  if (!choices.one_in(3)) return;
  cluster.json["library"] = {
      {"catalog", choices.pick({"ideal", "ideal", "nccl-2.29-hopper", "nccl-2.27-ampere",
                                "sglang-0.5-hopper", "vllm-0.24-hopper"})}};
}

}  // namespace

RandomCluster random_cluster(Choices& choices) {
  const RandomTopology topology = random_topology(choices);
  RandomCluster cluster{.json = Json::object(),
                        .chips = topology.chips,
                        .node = topology.node,
                        .axes = topology.axes};
  cluster.json["name"] = "random";
  add_chip(choices, cluster);
  cluster.json[topology.kind] = topology.spec;
  add_library(choices, cluster);
  if (choices.one_in(12)) cluster.json["switch_adders"] = "2TB/s";
  if (choices.one_in(12)) {
    cluster.json["faults"]["links"] = {{{"link", "*>*0"}, {"capacity", choices.pick({0.5, 0.25})}}};
  }
  return cluster;
}

}  // namespace stepsim
