#include "import/astra/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "import/input_bytes.h"
#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"
#include "sim/base/suggestion.h"

namespace stepsim {
namespace {

constexpr std::array<std::string_view, 4> kNetworkKeys = {"topology", "npus_count", "bandwidth",
                                                          "latency"};
constexpr std::size_t kMostDimensions = 8;
constexpr std::uint32_t kMostChips = 4096;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Returns the texts of "[ a, b ]"; nullopt if it is no such list.
std::optional<std::vector<std::string>> list_in(std::string_view text) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<std::string> values;
  for (const std::string_view value : split_text(text.substr(1, text.size() - 2), ',')) {
    values.emplace_back(trimmed(value));
  }
  return values;
}

using Lists = std::array<std::vector<std::string>, kNetworkKeys.size()>;

Lists lists_in(std::string_view text, const std::string& path, std::vector<Problem>& problems) {
  Lists lists;
  std::size_t number = 0;
  for (std::string_view line : split_text(text, '\n')) {
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    const std::string_view key = trimmed(line.substr(0, colon));
    const auto* const known = std::ranges::find(kNetworkKeys, key);
    const auto values =
        colon == std::string_view::npos ? std::nullopt : list_in(line.substr(colon + 1));
    if (known == kNetworkKeys.end() || !values) {
      problems.push_back(
          {fmt::format("{}:{}", short_name(path), number),
           "must be topology, npus_count, bandwidth or latency, with a list in [], is " +
               shortened(line)});
      continue;
    }
    lists[static_cast<std::size_t>(known - kNetworkKeys.begin())] = *values;
  }
  return lists;
}

std::optional<AstraDimension> dimension_of(const Lists& lists, std::size_t at,
                                           const std::string& path,
                                           std::vector<Problem>& problems) {
  static constexpr std::array<std::string_view, 3> kTopologies = {"Ring", "FullyConnected",
                                                                  "Switch"};
  const std::size_t before = problems.size();
  const auto refuse = [&](std::size_t key, std::string_view accepted) {
    problems.push_back({fmt::format("{}: {}[{}]", short_name(path), kNetworkKeys[key], at),
                        fmt::format("must be {}, is \"{}\"", accepted, shortened(lists[key][at]))});
  };
  AstraDimension dimension{.topology = lists[0][at]};
  if (std::ranges::find(kTopologies, lists[0][at]) == kTopologies.end()) {
    refuse(0, "Ring, FullyConnected or Switch");
  }
  const auto size = number_in<std::uint32_t>(lists[1][at]);
  if (!size || *size < 1 || *size > kMostChips) refuse(1, "a whole number, 1 to 4096");
  const auto bandwidth = number_in<double>(lists[2][at]);
  if (!bandwidth || !(*bandwidth > 0) || *bandwidth > 1e9) refuse(2, "a number above 0");
  const auto latency = number_in<double>(lists[3][at]);
  if (!latency || !(*latency >= 0) || *latency > 1e12) refuse(3, "a number of nanoseconds");
  if (problems.size() > before) return std::nullopt;
  dimension.size = *size;
  dimension.bandwidth = *bandwidth;
  dimension.latency_ns = *latency;
  return dimension;
}

}  // namespace

std::vector<AstraDimension> read_astra_network(const std::string& path,
                                               std::vector<Problem>& problems) {
  const std::optional<std::string> text = read_bytes(path, problems);
  if (!text) return {};
  const std::size_t before = problems.size();
  const Lists lists = lists_in(*text, path, problems);
  if (problems.size() > before) return {};
  const std::size_t count = lists[0].size();
  const bool is_even =
      std::ranges::all_of(lists, [&](const auto& list) { return list.size() == count; });
  if (!is_even || count == 0 || count > kMostDimensions) {
    problems.push_back({short_name(path),
                        "topology, npus_count, bandwidth and latency must be "
                        "lists of one length, 1 to 8"});
    return {};
  }
  std::vector<AstraDimension> dimensions;
  std::uint64_t chips = 1;
  for (std::size_t at = 0; at < count; ++at) {
    if (const auto dimension = dimension_of(lists, at, path, problems)) {
      dimensions.push_back(*dimension);
      chips *= dimension->size;
    }
    if (chips > kMostChips) {
      problems.push_back({short_name(path), "has more than 4,096 chips"});
      return {};
    }
  }
  return dimensions;
}

AstraSystem read_astra_system(const std::string& path, std::vector<Problem>& problems) {
  AstraSystem system;
  const std::optional<std::string> text = read_bytes(path, problems);
  if (!text) return system;
  const JsonOrProblem read = parse_json(*text);
  if (!read.value || !read.value->is_object()) {
    problems.push_back({short_name(path), read.value ? "must be a JSON object" : read.problem});
    return system;
  }
  const auto number = [&](const Json& value, const std::string& key, double low, double high) {
    const bool fits =
        value.is_number() && value.get<double>() >= low && value.get<double>() <= high;
    if (!fits) {
      problems.push_back(
          {short_name(path) + ": " + key,
           fmt::format("must be a number, {} to {}, is {}", low, high, shown(value))});
    }
    return fits ? value.get<double>() : low;
  };
  for (const auto& [key, value] : read.value->items()) {
    if (key == "preferred-dataset-splits") {
      system.chunks = static_cast<std::int64_t>(number(value, key, 1, 1e6));
    } else if (key == "peak-perf") {
      system.peak_tflops = number(value, key, 1e-3, 1e9);
    } else if (key == "local-mem-bw") {
      system.memory_gb_per_s = number(value, key, 1e-3, 1e9);
    } else if (key == "roofline-enabled") {
      system.is_roofline = number(value, key, 0, 1) == 1;
    } else {
      system.notes.push_back("\"" + shortened(key) + "\" of the system has no counterpart");
    }
  }
  return system;
}

namespace {

void append_link(std::string& text, std::string_view from, std::string_view to,
                 const AstraDimension& dimension) {
  text += fmt::format(
      "    links {{ from: \"{}\" to: \"{}\" bandwidth: \"{:.0f}B/s\" latency: \"{}ns\" }}\n", from,
      to, dimension.bandwidth * 1073741824.0, dimension.latency_ns);
}

// The links of one dimension for the row of chips that begins at `first`.
void append_row(std::string& text, const AstraDimension& dimension, std::uint32_t first,
                std::uint32_t stride, std::string_view switch_name) {
  const auto chip = [&](std::uint32_t at) {
    return fmt::format("chip{}", first + (at % dimension.size) * stride);
  };
  for (std::uint32_t at = 0; at < dimension.size; ++at) {
    if (dimension.topology == "Switch") {
      append_link(text, chip(at), switch_name, dimension);
    } else if (dimension.topology == "Ring") {
      const bool is_double = dimension.size == 2 && at == 1;
      if (!is_double && dimension.size > 1) append_link(text, chip(at), chip(at + 1), dimension);
    } else {
      for (std::uint32_t other = at + 1; other < dimension.size; ++other) {
        append_link(text, chip(at), chip(other), dimension);
      }
    }
  }
}

std::string chip_text(const AstraSystem& system) {
  if (!system.peak_tflops || !system.memory_gb_per_s) {
    return "# The system file has no chip (peak-perf, local-mem-bw): this one stands in.\n"
           "chip { catalog: \"h100-sxm\" }\n";
  }
  return fmt::format(
      "# A chip of peak-perf and local-mem-bw; the rest is that of an H100.\n"
      "chip {{ catalog: \"h100-sxm\" name: \"astra\" peak {{ type: \"bf16\" throughput: "
      "\"{0}TFLOPS\" }} peak {{ type: \"fp32\" throughput: \"{0}TFLOPS\" }} "
      "memory_bandwidth: \"{1}GB/s\" }}\n",
      *system.peak_tflops, *system.memory_gb_per_s);
}

}  // namespace

std::string astra_cluster(const std::vector<AstraDimension>& dimensions,
                          const AstraSystem& system) {
  std::uint32_t chips = 1;
  for (const AstraDimension& dimension : dimensions) chips *= dimension.size;
  std::string text = "name: \"astra\"\n" + chip_text(system) +
                     "library { catalog: \"ideal\" }\nexplicit_graph {\n";
  for (std::uint32_t chip = 0; chip < chips; ++chip) {
    text += fmt::format("    nodes {{ name: \"chip{}\" kind: \"chip\" }}\n", chip);
  }
  std::string links;
  std::uint32_t stride = 1;
  for (std::size_t at = 0; at < dimensions.size(); ++at) {
    const AstraDimension& dimension = dimensions[at];
    for (std::uint32_t first = 0; first < chips; ++first) {
      if (first / stride % dimension.size != 0) continue;
      const std::string name = fmt::format("switch{}.{}", at, first);
      if (dimension.topology == "Switch") {
        text += fmt::format("    nodes {{ name: \"{}\" kind: \"switch\" }}\n", name);
      }
      append_row(links, dimension, first, stride, name);
    }
    stride *= dimension.size;
  }
  text += links;
  for (std::size_t at = 0; at < dimensions.size(); ++at) {
    text +=
        fmt::format("    levels {{ name: \"dimension{}\" size: {} }}\n", at, dimensions[at].size);
  }
  return text + "}\n";
}

Duration astra_time(const TraceNode& node, std::uint32_t members, const AstraDimension& ring,
                    const AstraSystem& system) {
  constexpr std::int64_t kBus = 10;
  const std::int64_t turns = members - 1;
  const double bytes = std::floor(static_cast<double>(node.bytes.value()) /
                                  static_cast<double>(system.chunks * std::int64_t{members}));
  const double bytes_per_ns = ring.bandwidth * 1073741824.0 / 1e9;
  const auto message = static_cast<std::int64_t>(ring.latency_ns + bytes / bytes_per_ns);
  std::int64_t chunk = kBus;
  // Gigabytes a second are bytes a nanosecond.
  const double memory = system.memory_gb_per_s.value_or(0);
  const std::int64_t reduction = memory > 0 ? 3 * static_cast<std::int64_t>(bytes / memory) : 0;
  if (node.op != CollectiveOp::kAllGather) chunk += turns * (message + reduction + kBus);
  if (node.op != CollectiveOp::kReduceScatter) chunk += turns * (message + kBus);
  return Duration(1000) * (system.chunks * chunk);
}

void check_astra_times(const TraceJob& job, const std::vector<AstraDimension>& dimensions,
                       const AstraSystem& system, std::vector<Problem>& problems) {
  if (dimensions.size() != 1 || dimensions[0].topology != "Ring") {
    problems.push_back({"--compat", "astra has times for a Ring of one dimension alone"});
    return;
  }
  if (dimensions[0].size != job.ranks) {
    problems.push_back(
        {"--astra-network", fmt::format("npus_count must be {}, the number of ranks, is {}",
                                        job.ranks, dimensions[0].size)});
  }
  for (std::size_t rank = 0; rank < job.programs.size(); ++rank) {
    for (const TraceNode& node : job.programs[rank].nodes) {
      const bool is_collective = node.kind == TraceNodeKind::kCollective;
      const bool is_message =
          node.kind == TraceNodeKind::kSend || node.kind == TraceNodeKind::kReceive;
      if (is_message || (is_collective && (!is_ring_op(node.op) || node.group != 0))) {
        problems.push_back({fmt::format("rank {}", rank),
                            "--compat astra has times for all-reduce, all-gather and "
                            "reduce-scatter of all ranks; " +
                                shortened(job.names[node.name]) + " is none"});
        return;
      }
      if (is_collective && node.op != CollectiveOp::kAllGather && !system.memory_gb_per_s) {
        problems.push_back({"--astra-system",
                            "must have local-mem-bw: reductions take their time "
                            "from it"});
        return;
      }
    }
  }
}

}  // namespace stepsim
