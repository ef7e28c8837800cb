#include "import/chakra/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "import/chakra/chakra_node.h"
#include "import/chakra/wire.h"
#include "import/input_bytes.h"
#include "import/replay.h"
#include "proto/messages/json_value.h"
#include "sim/base/field_text.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostProblems = 20;
constexpr std::uint32_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostTime = std::numeric_limits<std::int64_t>::max() / 1'000'000;  // in us

// Groups numbers the groups that nodes name. The first is that of all ranks.
class Groups {
 public:
  explicit Groups(std::uint32_t ranks) : ranks_(ranks) { groups_.push_back(all_ranks(ranks)); }

  // Adds a group as `scope` names it: a rank, or "" for a file of all. Ranks may give different
  // groups one name. Equal ranks under different names are different groups.
  void add(const std::string& scope, const std::string& name, std::vector<std::uint32_t> ranks,
           const std::string& where, std::vector<Problem>& problems) {
    std::vector<std::uint32_t> sorted = ranks;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end() ||
        (!sorted.empty() && sorted.back() >= ranks_)) {
      problems.push_back({where, "group " + shortened(name) + " must have different ranks below " +
                                     std::to_string(ranks_)});
      return;
    }
    if (ranks.empty()) ranks = groups_[0];
    const auto [found, is_new] = known_.try_emplace({name, ranks}, 0U);
    if (is_new) {
      found->second = static_cast<std::uint32_t>(groups_.size());
      groups_.push_back(std::move(ranks));
    }
    numbers_[scope + ":" + name] = found->second;
    numbers_["any:" + name] = found->second;
  }

  // Returns nullopt for a group that nobody described.
  std::optional<std::uint32_t> find(const std::string& scope, std::string_view name) const {
    for (const std::string& at : {scope, std::string(), std::string("any")}) {
      const auto found = numbers_.find(at + ":" + std::string(name));
      if (found != numbers_.end()) return found->second;
    }
    if (name.empty() || name == "0") return 0;
    return std::nullopt;
  }

  const std::vector<std::uint32_t>& ranks_of(std::uint32_t group) const { return groups_[group]; }
  std::vector<std::vector<std::uint32_t>> take() && { return std::move(groups_); }

 private:
  const std::uint32_t ranks_;
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> known_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

std::vector<std::uint32_t> ranks_in(const Json& list) {
  std::vector<std::uint32_t> ranks;
  if (!list.is_array()) return ranks;
  for (const Json& rank : list) {
    const bool fits = rank.is_number_integer() && rank >= 0 && rank < kMostRanks;
    ranks.push_back(fits ? rank.get<std::uint32_t>() : std::numeric_limits<std::uint32_t>::max());
  }
  return ranks;
}

// Reads ['[{"pg_name": "1", "ranks": [0, 1]}]'], which is a text of JSON as Python prints a list
// that has it.
void add_groups_of_metadata(std::string_view values, const std::string& scope,
                            const std::string& where, Groups& groups,
                            std::vector<Problem>& problems) {
  const std::size_t begin = values.find("[{");
  const std::size_t end = values.rfind("}]");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return;
  const JsonOrProblem read = parse_json(values.substr(begin, end + 2 - begin));
  if (!read.value) {
    problems.push_back({where, "has groups that are no JSON: " + read.problem});
    return;
  }
  for (const Json& group : *read.value) {
    if (!group.is_object() || !group.contains("pg_name") || !group.contains("ranks")) continue;
    const Json& name = group["pg_name"];
    groups.add(scope, name.is_string() ? name.get<std::string>() : json_text(name),
               ranks_in(group["ranks"]), where, problems);
  }
}

// The groups of a comm_group.json: {"1": [0, 1]}.
void add_groups_of_file(const std::string& path, Groups& groups, std::vector<Problem>& problems) {
  const std::optional<std::string> text = read_bytes(path, problems);
  if (!text) return;
  const JsonOrProblem read = parse_json(*text);
  if (!read.value || !read.value->is_object()) {
    problems.push_back({path, "must be {\"1\": [0, 1], ...}" +
                                  (read.value ? std::string() : "; " + read.problem)});
    return;
  }
  for (const auto& [name, ranks] : read.value->items()) {
    groups.add("", name, ranks_in(ranks), path, problems);
  }
}

std::optional<CollectiveOp> collective_op(std::int64_t type) {
  static constexpr std::array kOps = {CollectiveOp::kAllReduce,     CollectiveOp::kReduce,
                                      CollectiveOp::kAllGather,     CollectiveOp::kGather,
                                      CollectiveOp::kScatter,       CollectiveOp::kBroadcast,
                                      CollectiveOp::kAllToAll,      CollectiveOp::kReduceScatter,
                                      CollectiveOp::kReduceScatter, CollectiveOp::kBarrier};
  if (type < 0 || type >= static_cast<std::int64_t>(kOps.size())) return std::nullopt;
  return kOps[static_cast<std::size_t>(type)];
}

// What is counted over all nodes and said once.
struct Counts {
  std::size_t unsized = 0;           // collectives without type or size
  std::size_t inferred = 0;          // messages whose peer is the other one of their group
  std::size_t parents = 0;           // ctrl_deps on nodes that the converter has left out
  std::vector<std::string> loops{};  // files whose ctrl_deps go round in a circle
  std::size_t metadata = 0;
  std::size_t memory = 0;
};

struct Framed {
  std::string_view metadata;
  std::vector<std::string_view> nodes;
};

// Cuts a file into its messages.
std::optional<Framed> cut(std::string_view text, const std::string& path,
                          std::vector<Problem>& problems) {
  const auto refuse = [&](std::size_t at, const std::string& what) {
    problems.push_back(
        {path, what + ", at byte " + std::to_string(at) + " of " + std::to_string(text.size())});
    return std::nullopt;
  };
  if (text.empty()) return refuse(0, "is empty");
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[') &&
      text.find('"') < first + 64) {
    problems.push_back(
        {path,
         "is JSON, not the protobuf of Chakra: a host trace of PyTorch has no times of the "
         "device; chakra_trace_link and chakra_converter make .et files of it"});
    return std::nullopt;
  }
  Framed framed;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    const std::optional<std::uint64_t> length = read_varint(text, at);
    if (!length) return refuse(begin, "has a length that is cut off");
    if (*length > text.size() - at) {
      return refuse(begin, "ends inside message " + std::to_string(framed.nodes.size()));
    }
    const std::string_view message = text.substr(at, static_cast<std::size_t>(*length));
    at += message.size();
    if (begin == 0) {
      framed.metadata = message;
    } else {
      if (message.empty()) return refuse(begin, "has a message without content");
      framed.nodes.push_back(message);
    }
  }
  return framed;
}

std::string schema_of(std::string_view metadata) {
  WireReader wire(metadata);
  std::string schema;
  while (wire.next()) {
    if (wire.field() == 1 && schema.empty()) schema = wire.bytes();
    if (wire.field() != 2) continue;
    WireReader attribute(wire.bytes());
    bool is_schema = false;
    while (attribute.next()) {
      if (attribute.field() == 1) is_schema = attribute.bytes() == "schema";
      if (attribute.field() == 29 && is_schema) schema = attribute.bytes();
    }
  }
  return shortened(schema);
}

// Reads the nodes of one rank.
class RankReader {
 public:
  RankReader(std::string path, std::uint32_t rank, Groups& groups, TraceNames& names,
             Counts& counts, std::vector<Problem>& problems)
      : path_(std::move(path)),
        rank_(rank),
        groups_(groups),
        names_(names),
        counts_(counts),
        problems_(problems) {}

  // Groups are described by nodes, which may stand behind those that use them.
  void read_groups(const Framed& framed) {
    for (const std::string_view message : framed.nodes) {
      if (message.find("pg_name") == std::string_view::npos) continue;
      if (!read_chakra_node(message, node_).empty() || node_.type != ChakraType::kMetadata)
        continue;
      add_groups_of_metadata(node_.input_values, std::to_string(rank_), where(), groups_,
                             problems_);
    }
  }

  TraceRank read(const Framed& framed) {
    NodesById by_id;
    by_id.reserve(framed.nodes.size());
    for (std::uint32_t i = 0; i < framed.nodes.size(); ++i) {
      const std::string problem = read_chakra_node(framed.nodes[i], node_);
      if (!problem.empty()) refuse("message " + std::to_string(i + 1) + " " + problem);
      by_id.emplace_back(node_.id, i);
    }
    std::ranges::sort(by_id);
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(by_id.begin(), by_id.end(), same);
    if (twice != by_id.end()) refuse("has two nodes of id " + std::to_string(twice->first));
    index_.reserve(by_id.size());
    for (const auto& [id, message] : by_id) index_.emplace(id, index_.size());
    TraceRank rank = read_nodes(framed, by_id);
    if (!problems_.empty() || order_of(rank).size() == rank.nodes.size()) return rank;
    counts_.loops.push_back(short_name(path_));
    waits_for_control_ = false;
    return read_nodes(framed, by_id);
  }

 private:
  using NodesById = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

  TraceRank read_nodes(const Framed& framed, const NodesById& by_id) {
    const Counts before = counts_;
    TraceRank rank;
    rank.nodes.reserve(by_id.size());
    for (const auto& [id, message] : by_id) {
      read_chakra_node(framed.nodes[message], node_);
      add(rank);
      if (problems_.size() > kMostProblems) break;
    }
    if (!waits_for_control_) counts_ = before;
    return rank;
  }

  std::string where() const { return short_name(path_) + ": node " + std::to_string(node_.id); }
  void refuse(const std::string& message) {
    if (problems_.size() <= kMostProblems) problems_.push_back({short_name(path_), message});
  }
  void refuse_node(const std::string& message) {
    refuse("node " + std::to_string(node_.id) + " (" + shortened(node_.name, 40) + ") " + message);
  }

  bool wait_for(std::uint64_t id) {
    const auto found = index_.find(id);
    if (found == index_.end()) return false;
    after_.push_back(static_cast<std::uint32_t>(found->second));
    return true;
  }

  void add(TraceRank& rank) {
    after_.clear();
    for (const std::uint64_t id : node_.after) {
      if (!wait_for(id)) {
        refuse_node("waits for node " + std::to_string(id) + ", which does not exist");
      }
    }
    for (const std::uint64_t id : node_.control) {
      if (waits_for_control_ && !wait_for(id)) ++counts_.parents;
    }
    TraceNode node;
    node.name = names_.number(shortened(node_.name, 120));
    if (node_.stream && *node_.stream >= 0 && !node_.is_on_host) {
      node.lane = static_cast<std::uint32_t>(*node_.stream & 0x7fffffff);
    }
    switch (node_.type) {
      case ChakraType::kInvalid:
      case ChakraType::kMetadata:
        ++counts_.metadata;
        break;
      case ChakraType::kMemoryLoad:
      case ChakraType::kMemoryStore:
        ++counts_.memory;
        [[fallthrough]];
      case ChakraType::kCompute:
        fill_compute(node);
        break;
      case ChakraType::kSend:
      case ChakraType::kReceive:
        fill_message(node);
        break;
      case ChakraType::kCollective:
        fill_collective(node);
    }
    rank.add(node, after_);
  }

  std::optional<Duration> given_time() {
    if (node_.picoseconds && *node_.picoseconds >= 0) return Duration(*node_.picoseconds);
    if (node_.duration_micros == 0) return std::nullopt;
    if (node_.duration_micros > static_cast<std::uint64_t>(kMostTime)) {
      refuse_node("takes more than 106 days");
      return std::nullopt;
    }
    return Duration(static_cast<std::int64_t>(node_.duration_micros) * 1'000'000);
  }

  void fill_compute(TraceNode& node) {
    const bool is_memory = node_.type != ChakraType::kCompute;
    node.kind = node_.is_on_host ? TraceNodeKind::kOther : TraceNodeKind::kKernel;
    node.time = given_time();
    node.flops = Flops(static_cast<double>(std::max<std::int64_t>(0, node_.flops.value_or(0))));
    node.bytes = Bytes(std::max<std::int64_t>(0, node_.tensor_bytes.value_or(0)));
    if (is_memory) node.flops = Flops();
    if (!node.time && node.flops == Flops() && node.bytes == Bytes()) node.time = Duration();
  }

  // What a trace made from PyTorch has of a collective on the host is its launch.
  void fill_collective(TraceNode& node) {
    if (!node_.collective || !node_.bytes) {
      node.kind = node_.is_on_host ? TraceNodeKind::kOther : TraceNodeKind::kNothing;
      node.time = given_time();
      if (!node_.is_on_host) ++counts_.unsized;
      return;
    }
    const std::optional<CollectiveOp> op = collective_op(*node_.collective);
    const std::optional<std::uint32_t> group = groups_.find(std::to_string(rank_), node_.group);
    if (!op) {
      return refuse_node("has comm_type " + std::to_string(*node_.collective) +
                         "; there are 0 to 9");
    }
    if (!group) {
      return refuse_node("names group \"" + shortened(node_.group) +
                         "\", which neither a metadata node nor --groups describes");
    }
    node.kind = TraceNodeKind::kCollective;
    node.op = *op;
    node.group = *group;
    node.bytes = larger_buffer(*op, *group);
  }

  Bytes larger_buffer(CollectiveOp op, std::uint32_t group) {
    if (op == CollectiveOp::kBarrier) return Bytes(0);
    const bool is_shard = op == CollectiveOp::kAllGather || op == CollectiveOp::kGather;
    const auto members = static_cast<std::int64_t>(groups_.ranks_of(group).size());
    const std::int64_t most = kMostCollectiveBytes.value() / (is_shard ? members : 1);
    if (*node_.bytes < 0 || *node_.bytes > most) {
      refuse_node("has comm_size " + std::to_string(*node_.bytes) + "; must be 0 to " +
                  std::to_string(most));
      return Bytes(0);
    }
    return Bytes(*node_.bytes * (is_shard ? members : 1));
  }

  void fill_message(TraceNode& node) {
    const bool is_send = node_.type == ChakraType::kSend;
    node.kind = is_send ? TraceNodeKind::kSend : TraceNodeKind::kReceive;
    const std::optional<std::int64_t> peer = is_send ? node_.destination : node_.source;
    node.tag = node_.tag.value_or(0);
    if (!node_.bytes || *node_.bytes < 0 || *node_.bytes > kMostCollectiveBytes.value()) {
      return refuse_node("needs a comm_size of 0 to 16 TiB");
    }
    node.bytes = Bytes(*node_.bytes);
    if (peer && *peer >= 0 && *peer < kMostRanks) {
      node.peer = static_cast<std::uint32_t>(*peer);
    } else if (!peer && infer_peer(node)) {
      ++counts_.inferred;
    } else {
      refuse_node(std::string("needs ") + (is_send ? "comm_dst" : "comm_src") +
                  ", or a pg_name of two ranks");
    }
  }

  // Of a group of two, the peer is the other one.
  bool infer_peer(TraceNode& node) const {
    const std::optional<std::uint32_t> group = groups_.find(std::to_string(rank_), node_.group);
    if (!group) return false;
    const std::vector<std::uint32_t>& ranks = groups_.ranks_of(*group);
    if (ranks.size() != 2 || std::ranges::find(ranks, rank_) == ranks.end()) return false;
    node.peer = ranks[0] == rank_ ? ranks[1] : ranks[0];
    return true;
  }

  const std::string path_;
  const std::uint32_t rank_;
  Groups& groups_;
  TraceNames& names_;
  Counts& counts_;
  std::vector<Problem>& problems_;
  ChakraNode node_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  std::vector<std::uint32_t> after_;
  bool waits_for_control_ = true;
};

void add_notes(const Counts& counts, std::vector<std::string>& notes) {
  const auto note = [&](std::size_t count, std::string_view what) {
    if (count > 0) notes.push_back(fmt::format("{} {}", count, what));
  };
  note(counts.unsized, "collectives without comm_type or comm_size take no time");
  note(counts.inferred, "messages without a peer go to the other rank of their group");
  note(counts.parents, "ctrl_deps name nodes that are not in the file: nothing waits for them");
  if (!counts.loops.empty()) {
    notes.push_back(
        "ctrl_deps and data_deps together go round in a circle, so ctrl_deps don't count: " +
        counts.loops.front() +
        (counts.loops.size() > 1 ? fmt::format(" and {} more", counts.loops.size() - 1) : ""));
  }
  note(counts.metadata, "nodes of metadata take no time");
  note(counts.memory,
       "loads and stores run on the chip, at the bandwidth of its memory if they "
       "have no time of their own");
}

struct TextOfRank {
  std::string path;
  std::string text;
};

ImportedJob read_texts(const std::vector<TextOfRank>& texts, const ChakraOptions& options,
                       std::vector<Problem>& problems) {
  ImportedJob read;
  read.job.source = "chakra";
  read.job.ranks = std::max<std::uint32_t>(options.ranks, static_cast<std::uint32_t>(texts.size()));
  Groups groups(read.job.ranks);
  TraceNames names(read.job.names);
  Counts counts;
  std::vector<Framed> all;
  for (const TextOfRank& text : texts) {
    const std::optional<Framed> framed = cut(text.text, short_name(text.path), problems);
    all.push_back(framed.value_or(Framed{}));
    if (framed && read.schema.empty()) read.schema = schema_of(framed->metadata);
    if (problems.size() > kMostProblems) return read;
  }
  if (!options.groups.empty()) add_groups_of_file(options.groups, groups, problems);
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    RankReader(texts[rank].path, rank, groups, names, counts, problems).read_groups(all[rank]);
  }
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    RankReader reader(texts[rank].path, rank, groups, names, counts, problems);
    read.job.programs.push_back(reader.read(all[rank]));
    if (problems.size() > kMostProblems) break;
  }
  read.job.groups = std::move(groups).take();
  add_notes(counts, read.notes);
  return read;
}

}  // namespace

ImportedJob read_chakra(const std::vector<std::string>& files, const ChakraOptions& options,
                        std::vector<Problem>& problems) {
  std::vector<TextOfRank> texts;
  for (const std::string& file : files) {
    std::optional<std::string> text = read_bytes(file, problems);
    if (text) texts.push_back({file, std::move(*text)});
  }
  if (!problems.empty()) return {};
  if (options.ranks > 0 && files.size() > 1 && options.ranks != files.size()) {
    problems.push_back({"--ranks", fmt::format("must be {}, the number of files, is {}",
                                               files.size(), options.ranks)});
    return {};
  }
  return read_texts(texts, options, problems);
}

ImportedJob read_chakra_text(std::string_view text, std::vector<Problem>& problems) {
  return read_texts({{"trace.0.et", std::string(text)}}, {}, problems);
}

}  // namespace stepsim
