#include "import/ns3/ns3_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "import/cluster_file.h"
#include "import/input_bytes.h"
#include "proto/catalog/measured_tables.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::int64_t kMostNs3Nodes = 1 << 21;
constexpr std::int64_t kMostNs3Links = 1 << 23;
constexpr std::size_t kMostNs3Problems = 20;

struct Ns3Unit {
  std::string_view name;
  double value;
};

// Units of ns-3's DataRate, in bytes a second, and of its Time, in seconds (ns-3 manual).
constexpr std::array<Ns3Unit, 4> kRateUnits = {
    {{"bps", 0.125}, {"b/s", 0.125}, {"Bps", 1}, {"B/s", 1}}};
constexpr std::array<Ns3Unit, 9> kRatePrefixes = {{{"Gi", 1073741824},
                                                   {"Mi", 1048576},
                                                   {"Ki", 1024},
                                                   {"T", 1e12},
                                                   {"G", 1e9},
                                                   {"M", 1e6},
                                                   {"k", 1e3},
                                                   {"K", 1e3},
                                                   {"", 1}}};
constexpr std::array<Ns3Unit, 6> kTimeUnits = {
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}, {"", 1}}};

std::optional<double> value_in_units(std::string_view text, std::span<const Ns3Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.+-eE"), text.size());
  const auto number = number_in<double>(text.substr(0, digits));
  const auto unit = std::ranges::find(units, text.substr(digits), &Ns3Unit::name);
  if (!number || unit == units.end() || !std::isfinite(*number)) return std::nullopt;
  return *number * unit->value;
}

std::optional<double> bytes_a_second(std::string_view text) {
  for (const Ns3Unit& unit : kRateUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto value =
        value_in_units(text.substr(0, text.size() - unit.name.size()), kRatePrefixes);
    if (value && *value > 0 && *value < 1e18) return *value * unit.value;
  }
  return std::nullopt;
}

class Ns3Reader {
 public:
  Ns3Reader(const ImportRequest& request, std::vector<Problem>& problems)
      : request_(request), path_(short_name(request.files[0])), problems_(problems) {}

  Imported read(std::string_view text) {
    split(text);
    if (lines_.size() < 2) {
      refuse(1,
             "must be numbers of nodes, switches and links, then the ids of the switches, then "
             "a link a line");
      return {};
    }
    if (!read_header() || !read_switches()) return {};
    const auto links = static_cast<std::int64_t>(lines_.size()) - 2;
    for (std::int64_t i = 0; i < std::min(links, links_); ++i) {
      if (problems_.size() < kMostNs3Problems) read_link(lines_[static_cast<std::size_t>(i) + 2]);
    }
    if (links > links_) {
      about_.no_counterpart.push_back(fmt::format(
          "{} lines behind the links that the header counts: ns-3 skips them too", links - links_));
    }
    if (links < links_) {
      refuse(lines_[0].number,
             fmt::format("must have the number of links, {}, is {}", links, links_));
    }
    if (errors_ > 0) {
      about_.no_counterpart.push_back(
          fmt::format("error rates of {} links: packets are not lost here", errors_));
    }
    about_.assumed.emplace_back(
        "switches choose among equal paths by a hash of the flow (routing: ecmp), as ns-3's do");
    graph_.spec.routing = PathRule::kEcmp;
    return imported_cluster(request_, std::move(about_), graph_.spec, problems_);
  }

 private:
  struct Line {
    std::size_t number = 0;
    std::vector<std::string_view> words;
  };

  void split(std::string_view text) {
    std::size_t number = 0;
    for (const std::string_view line : split_text(text, '\n')) {
      ++number;
      std::vector<std::string_view> words = words_of(line.substr(0, line.find('#')));
      // A file without switches has an empty second line.
      if (!words.empty() || lines_.size() == 1) lines_.push_back({number, std::move(words)});
    }
    while (!lines_.empty() && lines_.back().words.empty()) lines_.pop_back();
  }

  void refuse(std::size_t line, std::string message) {
    problems_.push_back({fmt::format("{}:{}", path_, line), std::move(message)});
  }
  std::int64_t number(const Line& line, std::size_t at, std::int64_t low, std::int64_t high,
                      std::string_view what) {
    return number_between(line.words[at], low, high, fmt::format("{}:{}", path_, line.number), what,
                          problems_);
  }

  bool read_header() {
    const Line& line = lines_[0];
    const std::size_t words = line.words.size();
    if (words != 3 && words != 6) {
      refuse(line.number, fmt::format("must be \"nodes switches links\" or \"nodes gpus_per_server "
                                      "nvswitches switches links gpu_type\", has {} words",
                                      words));
      return false;
    }
    const std::size_t before = problems_.size();
    nodes_ = number(line, 0, 1, kMostNs3Nodes, "nodes");
    if (words == 3) {
      switches_ = number(line, 1, 0, nodes_, "switches");
    } else {
      per_server_ = number(line, 1, 1, nodes_, "gpus_per_server");
      nvswitches_ = number(line, 2, 0, nodes_, "nvswitches");
      switches_ = nvswitches_ + number(line, 3, 0, nodes_, "switches");
      find_chip(line.words[5]);
    }
    links_ = number(line, words == 3 ? 2 : 4, 0, kMostNs3Links, "links");
    return problems_.size() == before;
  }

  void find_chip(std::string_view type) {
    const std::vector<Hardware> table = load_hardware();
    const Hardware* const found = find_hardware(table, type);
    if (found != nullptr && !found->chip.empty()) {
      about_.chip = found->chip;
      about_.assumed.push_back(
          fmt::format("chip {} for {}; --chip C gives another", found->chip, shortened(type)));
    } else if (request_.chip.empty()) {
      refuse(lines_[0].number,
             fmt::format("gpu_type must be a chip of the catalog, is {}; --chip C "
                         "says which stands for it",
                         shortened(type)));
    }
  }

  bool read_switches() {
    const Line& line = lines_[1];
    names_.resize(static_cast<std::size_t>(nodes_));
    const std::size_t before = problems_.size();
    if (static_cast<std::int64_t>(line.words.size()) != switches_) {
      refuse(line.number,
             fmt::format("must be the ids of {} switches, has {}", switches_, line.words.size()));
      return false;
    }
    for (std::size_t i = 0; i < line.words.size(); ++i) {
      const auto id = static_cast<std::size_t>(number(line, i, 0, nodes_ - 1, "a switch"));
      if (problems_.size() > before) return false;
      if (!names_[id].empty()) refuse(line.number, fmt::format("has the switch {} twice", id));
      const bool is_nvswitch = static_cast<std::int64_t>(i) < nvswitches_;
      names_[id] = fmt::format("{}{}", is_nvswitch ? "nvswitch" : "switch", id);
      kinds_.insert(id);
    }
    std::int64_t chips = 0;
    for (std::size_t id = 0; id < names_.size(); ++id) {
      if (names_[id].empty()) names_[id] = fmt::format("gpu{}", chips++);
      graph_.node(names_[id], kinds_.contains(id) ? NodeKind::kSwitch : NodeKind::kChip);
    }
    if (per_server_ > 0) add_levels(chips);
    return problems_.size() == before;
  }

  void add_levels(std::int64_t chips) {
    if (chips % per_server_ != 0) {
      return refuse(lines_[0].number, fmt::format("gpus_per_server must divide the {} GPUs, is {}",
                                                  chips, per_server_));
    }
    graph_.spec.levels = {{"gpu", static_cast<int>(per_server_), LevelMembers::kChip},
                          {"node", static_cast<int>(chips / per_server_), LevelMembers::kNode}};
  }

  void read_link(const Line& line) {
    if (line.words.size() != 4 && line.words.size() != 5) {
      return refuse(
          line.number,
          fmt::format("must be \"source destination rate delay error_rate\", has {} words",
                      line.words.size()));
    }
    const std::size_t before = problems_.size();
    const auto from = static_cast<std::size_t>(number(line, 0, 0, nodes_ - 1, "source"));
    const auto to = static_cast<std::size_t>(number(line, 1, 0, nodes_ - 1, "destination"));
    const auto rate = bytes_a_second(line.words[2]);
    const auto delay = value_in_units(line.words[3], kTimeUnits);
    const auto error = number_in<double>(line.words.size() == 5 ? line.words[4] : "0");
    if (!rate) refuse(line.number, "rate must be as in 400Gbps, is " + shortened(line.words[2]));
    if (!delay || *delay < 0 || *delay > 1) {
      refuse(line.number,
             "delay must be as in 0.0005ms, at most 1s, is " + shortened(line.words[3]));
    }
    if (!error || !(*error >= 0) || *error > 1) {
      refuse(line.number, "error_rate must be 0 to 1, is " + shortened(line.words.back()));
    }
    if (problems_.size() > before) return;
    if (*error > 0) ++errors_;
    const Duration latency(static_cast<std::int64_t>(std::llround(*delay * 1e12)));
    const std::size_t chip = kinds_.contains(from) ? to : from;
    const std::size_t other = chip == from ? to : from;
    if (per_server_ > 0 && !kinds_.contains(chip) && is_network(other)) {
      return graph_.from_card(names_[chip], names_[other], Bandwidth(*rate), latency);
    }
    graph_.cable(names_[from], names_[to], Bandwidth(*rate), latency);
  }

  bool is_network(std::size_t id) const {
    return kinds_.contains(id) && !names_[id].starts_with("nvswitch");
  }

  const ImportRequest& request_;
  const std::string path_;
  std::vector<Problem>& problems_;
  std::vector<Line> lines_;
  std::int64_t nodes_ = 0;
  std::int64_t per_server_ = 0;  // 0: not said
  std::int64_t nvswitches_ = 0;
  std::int64_t switches_ = 0;  // all
  std::int64_t links_ = 0;
  std::size_t errors_ = 0;
  std::vector<std::string> names_;  // by id
  std::set<std::size_t> kinds_;     // ids of switches
  GraphMaker graph_;
  ClusterAbout about_;
};

}  // namespace

Imported import_ns3_topology(const ImportRequest& request) {
  return read_network<Ns3Reader>(request, InputKind::kTable);
}

}  // namespace stepsim
