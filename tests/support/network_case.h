// Reads the cases of tests/reference/network and replays them through a network. The README there
// says what they mean.

#pragma once

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/network/fabric.h"
#include "sim/network/flow_run.h"
#include "sim/network/network.h"
#include "tests/support/reference_folder.h"

namespace stepsim::network_case {

inline constexpr double kPicosecond = 1e-12;

struct Flow {
  std::string name;
  Time start;
  Transfer transfer;
  std::vector<LinkUse> route;
  std::vector<std::uint32_t> after;  // flows that this one waits for
  std::size_t depth = 0;             // flows on the longest chain before it
  double expected_finish_s = 0;
  Time expected_finish;  // exact; packet cases only
  bool is_compared = false;
};

struct PacketRules {
  Bytes packet_bytes;
  std::optional<Bytes> header_bytes;  // of cut-through switching; unset: store and forward
  std::uint64_t packet_hops = 0;
};

struct Case {
  Fabric fabric;
  std::vector<Flow> flows;
  double tolerance = 0;  // relative
  double makespan_s = 0;
  double amplification = 1;  // how much chains of flows amplify small changes
  bool is_ill_conditioned = false;
  std::optional<PacketRules> packets;
};

inline std::filesystem::path cases_folder() {
  return reference_folder() / "network" / "cases";
}

// gzopen reads plain files too.
inline std::string read(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path.string());
  std::string text;
  std::vector<char> block(1 << 16);
  int size = 0;
  while ((size = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  gzclose(file);
  return text;
}

inline Duration to_picoseconds(double seconds) {
  return Duration(std::llround(seconds / kPicosecond));
}

// "start_ps" if it is there (packet cases), else "start_s".
inline Duration read_time(const nlohmann::json& object, const std::string& name) {
  const auto exact = object.find(name + "_ps");
  if (exact != object.end()) return Duration(exact->get<std::int64_t>());
  return to_picoseconds(object.at(name + "_s"));
}

inline Case load(const std::filesystem::path& path) {
  const nlohmann::json json = nlohmann::json::parse(read(path));
  Case result;
  std::map<std::string, NodeId> nodes;
  const auto node = [&](const std::string& name) {
    const auto found = nodes.find(name);
    if (found != nodes.end()) return found->second;
    return nodes.emplace(name, result.fabric.add(NodeKind::kSwitch, name)).first->second;
  };
  std::map<std::string, LinkId> links;
  for (const auto& link : json.at("links")) {
    links[link.at("id")] = result.fabric.connect_one_way(node(link.at("from")), node(link.at("to")),
                                                         Bandwidth(link.at("capacity_Bps")),
                                                         read_time(link, "latency"));
  }
  std::map<std::string, std::size_t> indices;
  for (const auto& json_flow : json.at("flows")) {
    Flow flow;
    flow.name = json_flow.at("id");
    flow.start = Time{read_time(json_flow, "start")};
    flow.transfer.bytes = Bytes(json_flow.at("bytes"));
    flow.transfer.latency = Duration::zero();
    for (const auto& name : json_flow.at("route")) {
      const LinkId link = links.at(name);
      flow.route.push_back({link, 1});
      flow.transfer.latency += result.fabric.link(link).latency;
    }
    indices[flow.name] = result.flows.size();
    result.flows.push_back(std::move(flow));
  }
  // Predecessors stand before their followers in these files, so depths are known in time.
  for (const auto& json_flow : json.at("flows")) {
    const std::size_t index = indices.at(json_flow.at("id"));
    for (const auto& name : json_flow.at("after")) {
      const std::size_t before = indices.at(name);
      if (before >= index) throw std::runtime_error("flow waits for a later one");
      result.flows[index].after.push_back(static_cast<std::uint32_t>(before));
      result.flows[index].depth =
          std::max(result.flows[index].depth, result.flows[before].depth + 1);
    }
  }
  for (const auto& expected : json.at("expect")) {
    Flow& flow = result.flows[indices.at(expected.at("flow"))];
    flow.expected_finish_s = expected.at("finish_s");
    flow.expected_finish = Time{read_time(expected, "finish")};
    flow.is_compared = true;
  }
  result.tolerance = json.at("tolerance_rel");
  const nlohmann::json& summary = json.at("expect_summary");
  result.makespan_s = summary.contains("makespan_s") ? summary.at("makespan_s").get<double>()
                                                     : to_seconds(read_time(summary, "makespan"));
  result.is_ill_conditioned = json.contains("expect_ill_conditioned");
  if (json.contains("conditioning")) {
    result.amplification = std::max(1.0, json.at("conditioning").at("amplification").get<double>());
  }
  if (json.contains("packet_bytes")) {
    result.packets = PacketRules{.packet_bytes = Bytes(json.at("packet_bytes")),
                                 .header_bytes = {},
                                 .packet_hops = summary.at("packet_hops")};
    if (json.at("switching") == "cut_through") {
      result.packets->header_bytes = Bytes(json.at("header_bytes"));
    }
  }
  return result;
}

inline std::vector<Time> run_flows(const Case& input, Network& network) {
  FlowList list;
  for (std::uint32_t i = 0; i < input.flows.size(); ++i) {
    const Flow& flow = input.flows[i];
    std::vector<LinkId> route;
    for (const LinkUse& use : flow.route) route.push_back(use.link);
    list.add(flow.start, flow.transfer.bytes, route);
    for (const std::uint32_t before : flow.after) list.dependences.push_back({i, before});
  }
  return stepsim::run_flows(list, input.fabric, network).finish;
}

// Packet cases start with p.
inline std::vector<std::string> case_names(bool of_packets) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(cases_folder())) {
    const std::string name = entry.path().filename().string();
    if ((name.front() == 'p') == of_packets) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}
inline std::vector<std::string> flow_case_names() {
  return case_names(false);
}
inline std::vector<std::string> packet_case_names() {
  return case_names(true);
}

}  // namespace stepsim::network_case
