#include "import/slurm/slurm_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "import/cluster_file.h"
#include "import/input_bytes.h"
#include "proto/load_experiment.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"
#include "sim/base/small_letters.h"
#include "sim/base/suggestion.h"
#include "topology/graph/level_bandwidth.h"
#include "topology/topology.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostSlurmNames = 1U << 17;
constexpr std::size_t kMostSlurmProblems = 20;
const std::vector<std::string> kSlurmKeys = {"SwitchName", "Switches",  "Nodes",
                                             "LinkSpeed",  "BlockName", "BlockSizes"};

// HostList expands "gpu[001-004,9]-ib,login": nullopt if it is no such list, or too long.
class HostList {
 public:
  static std::optional<std::vector<std::string>> expand(std::string_view text) {
    std::vector<std::string> names;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      for (bool inside = false; end < text.size() && (inside || text[end] != ','); ++end) {
        inside = text[end] == '[' || (inside && text[end] != ']');
      }
      if (end == at || !add(text.substr(at, end - at), "", names)) return std::nullopt;
      at = end + 1;
    }
    if (names.empty() || text.back() == ',') return std::nullopt;
    return names;
  }

 private:
  // Expands the first bracket, then the rest.
  static bool add(std::string_view word, const std::string& before,
                  std::vector<std::string>& names) {
    const std::size_t open = word.find('[');
    const std::string front = before + std::string(word.substr(0, open));
    if (open == std::string_view::npos) {
      names.push_back(front);
      return names.size() <= kMostSlurmNames && word.find(']') == std::string_view::npos;
    }
    const std::size_t close = word.find(']', open);
    if (close == std::string_view::npos) return false;
    for (const std::string_view range : split_text(word.substr(open + 1, close - open - 1), ',')) {
      const std::size_t dash = range.find('-');
      const std::string_view first = range.substr(0, dash);
      const std::string_view last = dash == range.npos ? first : range.substr(dash + 1);
      const auto low = number_in<std::uint32_t>(first);
      const auto high = number_in<std::uint32_t>(last);
      if (!low || !high || *high < *low || *high - *low >= kMostSlurmNames) return false;
      for (std::uint32_t i = *low; i <= *high; ++i) {
        const std::string number = fmt::format("{:0{}}", i, first.size());
        if (!add(word.substr(close + 1), front + number, names)) return false;
      }
    }
    return true;
  }
};

// What a node has.
struct SlurmNode {
  std::uint32_t chips = 0;
  Bandwidth nvlink{};  // of a chip
  Duration nvlink_latency{};
  Bandwidth card{};  // of a chip
  Duration card_latency{};
};

class SlurmReader {
 public:
  SlurmReader(const ImportRequest& request, std::vector<Problem>& problems)
      : request_(request), path_(short_name(request.files[0])), problems_(problems) {}

  Imported read(std::string_view text) {
    std::string joined;
    std::size_t number = 0;
    for (std::string_view line : split_text(text, '\n')) {
      ++number;
      line = line.substr(0, line.find('#'));
      while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
      const bool goes_on = line.ends_with('\\');
      joined += std::string(goes_on ? line.substr(0, line.size() - 1) : line) + " ";
      if (goes_on) continue;
      place_ = fmt::format("{}:{}", path_, number);
      read_line(words_of(joined));
      joined.clear();
      if (problems_.size() > kMostSlurmProblems) return {};
    }
    place_ = path_;
    if (switches_.empty() && blocks_.empty() && problems_.empty()) {
      refuse("has neither SwitchName nor BlockName");
    }
    if (!switches_.empty() && !blocks_.empty()) refuse("has switches and blocks: Slurm uses one");
    if (!problems_.empty()) return {};
    const bool is_tree = blocks_.empty();
    read_nodes(is_tree);
    if (!problems_.empty()) return {};
    is_tree ? build_tree() : build_blocks();
    graph_.spec.routing = PathRule::kDestination;
    return imported_cluster(request_, std::move(about_), graph_.spec, problems_);
  }

 private:
  struct Switch {
    std::string place;
    std::vector<std::string> nodes{};
    std::vector<std::string> children{};
    std::vector<std::string> parents{};
  };

  void refuse(std::string message) { problems_.push_back({place_, std::move(message)}); }

  void read_line(const std::vector<std::string_view>& words) {
    if (words.empty()) return;
    std::map<std::string, std::string_view> values;
    for (const std::string_view word : words) {
      const std::size_t equals = word.find('=');
      const std::string key(word.substr(0, equals));
      const auto known = std::ranges::find(kSlurmKeys, in_small_letters(key), in_small_letters);
      if (equals == std::string_view::npos) {
        return refuse("must be KEY=VALUE .., is " + shortened(word) +
                      "; topology.yaml is not read");
      }
      if (known == kSlurmKeys.end()) {
        return refuse("must be one of " + comma_separated(kSlurmKeys) + ", is " + shortened(key) +
                      did_you_mean(key, kSlurmKeys));
      }
      if (!values.emplace(in_small_letters(key), word.substr(equals + 1)).second) {
        return refuse(*known + " is given twice");
      }
    }
    if (values.contains("linkspeed") && !has_speed_) {
      has_speed_ = true;
      about_.no_counterpart.emplace_back("LinkSpeed: Slurm does not use it either");
    }
    if (values.contains("blocksizes")) {
      about_.no_counterpart.emplace_back("BlockSizes: what Slurm gives a job at once");
    }
    if (values.contains("switchname")) return read_switch(values);
    if (values.contains("blockname")) return read_block(values);
    if (!values.contains("blocksizes"))
      refuse("must begin with SwitchName, BlockName or BlockSizes");
  }

  std::vector<std::string> names_in(std::string_view text, const char* key) {
    auto names = HostList::expand(text);
    if (!names) {
      refuse(
          fmt::format("{} must be names such as gpu[001-004],gpu9, is {}", key, shortened(text)));
    }
    return names.value_or(std::vector<std::string>{});
  }

  void read_switch(const std::map<std::string, std::string_view>& values) {
    Switch made{.place = place_};
    if (values.contains("nodes")) made.nodes = names_in(values.at("nodes"), "Nodes");
    if (values.contains("switches")) made.children = names_in(values.at("switches"), "Switches");
    if (made.nodes.empty() == made.children.empty() && problems_.empty()) {
      refuse("must have Nodes or Switches, and not both");
    }
    for (const std::string& name : names_in(values.at("switchname"), "SwitchName")) {
      if (!switches_.emplace(name, made).second) refuse("switch " + name + " is given twice");
      order_.push_back(name);
    }
    add_nodes(made.nodes);
  }

  void read_block(const std::map<std::string, std::string_view>& values) {
    if (!values.contains("nodes")) return refuse("must have Nodes");
    const std::string name(values.at("blockname"));
    std::vector<std::string> nodes = names_in(values.at("nodes"), "Nodes");
    add_nodes(nodes);
    if (!blocks_.emplace(name, std::move(nodes)).second) {
      return refuse("block " + shortened(name) + " is given twice");
    }
    order_.push_back(name);
  }

  void add_nodes(const std::vector<std::string>& nodes) {
    for (const std::string& node : nodes) {
      if (nodes_.size() > kMostSlurmNames) return refuse("has more than 131,072 nodes");
      if (!places_.emplace(node, place_).second) {
        return refuse("node " + node + " is in " + places_[node] + " too: in one place, please");
      }
      nodes_.push_back(node);
    }
  }

  // Takes what a node has from those of a cluster of the catalog.
  void read_nodes(bool is_tree) {
    const std::string name = !request_.cluster.empty() ? request_.cluster
                             : is_tree                 ? "dgx-h100-16"
                                                       : "gb200-nvl72-144";
    const ClusterSpec spec = load_cluster(name);
    const BuiltTopology built = build_topology(spec.topology, spec.faults);
    const std::vector<LevelBandwidth> levels = bandwidth_by_level(built);
    if (levels.size() < 2 || levels[1].group_chips < 2 ||
        !(levels[1].out_of_group > Bandwidth(0))) {
      return problems_.push_back({"--cluster",
                                  "must have several nodes of several chips, as "
                                  "dgx-h100-16 has; is " +
                                      name});
    }
    // Compute trays of an NVLink domain of 72 have four chips.
    node_.chips = is_tree ? levels[1].group_chips : 4;
    if (request_.ranks > 0) {
      if (request_.ranks % nodes_.size() != 0) {
        return problems_.push_back(
            {"--ranks", fmt::format("must be a multiple of the {} nodes, is {}", nodes_.size(),
                                    request_.ranks)});
      }
      node_.chips = static_cast<std::uint32_t>(request_.ranks / nodes_.size());
    }
    node_.nvlink = levels[0].to_peers;
    node_.card = levels[1].out_of_group / static_cast<double>(levels[1].group_chips);
    read_latencies(built);
    about_.chip = spec.chip.name;
    about_.assumed.push_back(
        fmt::format("nodes as those of {}: {} chips {}, NVLink {}, a card of {} a chip; --cluster "
                    "C gives others, "
                    "--ranks N the number of chips in all",
                    name, node_.chips, spec.chip.name, to_text(node_.nvlink), to_text(node_.card)));
  }

  void read_latencies(const BuiltTopology& built) {
    Bandwidth widest;
    Bandwidth narrowest(std::numeric_limits<double>::max());
    for (const Link& link : built.fabric.links()) {
      if (link.from != built.places.chips[0]) continue;
      if (link.bandwidth > widest) node_.nvlink_latency = link.latency;
      if (link.bandwidth < narrowest) node_.card_latency = link.latency;
      widest = std::max(widest, link.bandwidth);
      narrowest = std::min(narrowest, link.bandwidth);
    }
  }

  std::string chip(const std::string& node, std::uint32_t i) const {
    return fmt::format("{}.gpu{}", node, i);
  }

  void add_node(const std::string& node, const std::string& fabric, const std::string& leaf) {
    for (std::uint32_t i = 0; i < node_.chips; ++i) {
      graph_.node(chip(node, i), NodeKind::kChip);
      if (!fabric.empty()) graph_.cable(chip(node, i), fabric, node_.nvlink, node_.nvlink_latency);
      graph_.from_card(chip(node, i), leaf, node_.card, node_.card_latency);
    }
  }

  void build_tree() {
    for (const std::string& name : order_) {
      for (const std::string& child : switches_.at(name).children) {
        const auto found = switches_.find(child);
        if (found == switches_.end()) {
          problems_.push_back({switches_.at(name).place, "there is no switch " + child});
        } else {
          found->second.parents.push_back(name);
        }
      }
    }
    if (!problems_.empty()) return;
    std::size_t leaves = 0;
    bool is_even = true;
    const std::size_t per_leaf = first_leaf();
    for (const std::string& name : order_) {
      graph_.node(name, NodeKind::kSwitch);
      const std::vector<std::string>& nodes = switches_.at(name).nodes;
      if (!nodes.empty()) ++leaves;
      is_even = is_even && (nodes.empty() || nodes.size() == per_leaf);
      for (const std::string& node : nodes) {
        const std::string fabric = node_.chips > 1 ? node + ".nvswitch" : "";
        if (!fabric.empty()) graph_.node(fabric, NodeKind::kSwitch);
        add_node(node, fabric, name);
      }
    }
    for (const std::string& name : order_) add_uplinks(name);
    about_.assumed.emplace_back(
        "every card leads to the node's leaf, and switches have as much bandwidth up as down, "
        "shared "
        "by the switches above (routing: destination)");
    add_levels(is_even ? per_leaf : nodes_.size(), is_even ? leaves : 1);
  }

  std::size_t first_leaf() const {
    for (const std::string& name : order_) {
      if (!switches_.at(name).nodes.empty()) return switches_.at(name).nodes.size();
    }
    return 0;
  }

  void add_uplinks(const std::string& name) {
    const std::vector<std::string>& parents = switches_.at(name).parents;
    if (parents.empty()) return;
    const double below = chips_below(name, 0);
    for (const std::string& parent : parents) {
      graph_.cable(name, parent, below / static_cast<double>(parents.size()) * node_.card,
                   node_.card_latency);
    }
  }

  // A switch with several above it counts for its share with each.
  double chips_below(const std::string& name, int depth) {
    if (const auto known = below_.find(name); known != below_.end()) return known->second;
    const Switch& at = switches_.at(name);
    double chips = static_cast<double>(at.nodes.size()) * node_.chips;
    if (depth > 64) {
      problems_.push_back({at.place, "switch " + name + " is above itself"});
      return 1;
    }
    for (const std::string& child : at.children) {
      if (!problems_.empty()) break;
      chips +=
          chips_below(child, depth + 1) / static_cast<double>(switches_.at(child).parents.size());
    }
    return below_[name] = std::max(chips, 1e-3);
  }

  void build_blocks() {
    graph_.node("network", NodeKind::kSwitch);
    bool is_even = true;
    for (const std::string& name : order_) {
      const std::vector<std::string>& nodes = blocks_.at(name);
      is_even = is_even && nodes.size() == blocks_.at(order_[0]).size();
      graph_.node(name + ".nvswitch", NodeKind::kSwitch);
      for (const std::string& node : nodes) add_node(node, name + ".nvswitch", "network");
    }
    about_.assumed.emplace_back("a block is an NVLink domain; all cards meet in one switch");
    if (!is_even) return;
    const std::size_t nodes = blocks_.at(order_[0]).size();
    graph_.spec.levels = {{"gpu", static_cast<int>(nodes * node_.chips), LevelMembers::kChip},
                          {"block", static_cast<int>(order_.size()), LevelMembers::kNode}};
  }

  void add_levels(std::size_t nodes, std::size_t leaves) {
    graph_.spec.levels = {{"gpu", static_cast<int>(node_.chips), LevelMembers::kChip},
                          {"node", static_cast<int>(nodes), LevelMembers::kNode}};
    if (leaves > 1) {
      graph_.spec.levels.push_back({"leaf", static_cast<int>(leaves), LevelMembers::kLeaf});
    }
  }

  const ImportRequest& request_;
  const std::string path_;
  std::vector<Problem>& problems_;
  std::string place_;
  std::vector<std::string> order_;  // switches or blocks, as in the file
  std::map<std::string, Switch> switches_;
  std::map<std::string, std::vector<std::string>> blocks_;
  std::vector<std::string> nodes_;
  std::map<std::string, std::string> places_;  // by node
  std::map<std::string, double> below_;
  bool has_speed_ = false;
  SlurmNode node_;
  GraphMaker graph_;
  ClusterAbout about_;
};

}  // namespace

Imported import_slurm_topology(const ImportRequest& request) {
  return read_network<SlurmReader>(request, InputKind::kText);
}

}  // namespace stepsim
