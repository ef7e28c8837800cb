#include "import/chakra/chakra_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "import/chakra/chakra_node.h"
#include "import/chakra/wire.h"

namespace stepsim {
namespace {

// Returns comm_type; nullopt for those that become messages.
std::optional<std::int64_t> chakra_type(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::kAllReduce:
      return 0;
    case CollectiveOp::kReduce:
      return 1;
    case CollectiveOp::kAllGather:
      return 2;
    case CollectiveOp::kGather:
      return 3;
    case CollectiveOp::kScatter:
      return 4;
    case CollectiveOp::kBroadcast:
      return 5;
    case CollectiveOp::kAllToAll:
      return 6;
    case CollectiveOp::kReduceScatter:
      return 7;
    case CollectiveOp::kBarrier:
      return 9;
    case CollectiveOp::kSendReceive:
    case CollectiveOp::kPermute:
      break;
  }
  return std::nullopt;
}

class RankExport {
 public:
  RankExport(const OpGraph& graph, const ChipSpec& chip, std::uint32_t rank)
      : graph_(graph),
        chip_(chip),
        rank_(rank),
        program_(graph.programs[graph.ranks[rank].program.index()]),
        nodes_(program_.ops.size()) {}

  std::string text() {
    std::string metadata;
    append_bytes(metadata, 1, kChakraSchema);
    append_message(metadata);
    number_nodes();
    append_groups();
    for (const Stream& stream : program_.streams) {
      for (std::uint32_t i = 0; i < stream.ops; ++i) append_op(stream, stream.first_op + i);
    }
    return std::move(text_);
  }

 private:
  using Ids = std::vector<std::uint64_t>;

  void append_message(const std::string& message) {
    append_varint(text_, message.size());
    text_ += message;
  }

  const CollectiveWork& collective(const Op& op) const { return graph_.collective_works[op.work]; }

  // Messages of a batch are a node each, permutations two; every other op is one node.
  std::uint32_t nodes_of(const Op& op) const {
    if (op.kind == OpKind::kMessages) return std::max(1U, op.work_count);
    if (op.kind == OpKind::kCollective && !chakra_type(collective(op).op)) return 2;
    return 1;
  }

  // The metadata node is 1.
  void number_nodes() {
    std::uint64_t next = 2;
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      for (std::uint32_t i = 0; i < nodes_of(program_.ops[op]); ++i) nodes_[op].push_back(next++);
    }
  }

  // A group is called by its communicator and its place there, from 1 on.
  std::string name_of_group(CommunicatorId communicator) const {
    std::size_t number = 1;
    for (std::uint32_t i = 0; i < communicator.index(); ++i) {
      number += graph_.communicators[i].groups.size();
    }
    return std::to_string(number + graph_.communicators[communicator.index()].seat_of[rank_].group);
  }

  const std::vector<RankId>& members(CommunicatorId communicator) const {
    const Communicator& found = graph_.communicators[communicator.index()];
    return found.groups[found.seat_of[rank_].group];
  }

  void append_groups() {
    std::map<std::string, CommunicatorId> used;
    for (const Op& op : program_.ops) {
      if (op.kind != OpKind::kCollective) continue;
      used.emplace(name_of_group(collective(op).communicator), collective(op).communicator);
    }
    std::string groups;
    for (const auto& [name, communicator] : used) {
      std::vector<std::uint32_t> ranks;
      for (const RankId member : members(communicator)) ranks.push_back(member.index());
      groups += fmt::format(R"({}{{"pg_name": "{}", "ranks": [{}]}})", groups.empty() ? "" : ", ",
                            name, fmt::join(ranks, ", "));
    }
    const std::string values = "['[" + groups + "]']";
    ChakraNode node;
    node.id = 1;
    node.name = "## process_group:init ##";
    node.type = ChakraType::kMetadata;
    node.input_values = values;
    append_message(chakra_message(node));
  }

  Ids waits_of(const Stream& stream, std::uint32_t op) const {
    Ids ids;
    if (op > stream.first_op) ids = nodes_[op - 1];
    for (const Dependency& dependency : program_.dependencies_of(OpId(op))) {
      if (dependency.previous_step) continue;
      const Stream& other = program_.streams[dependency.stream.index()];
      const Ids& before = nodes_[other.first_op + dependency.position];
      ids.insert(ids.end(), before.begin(), before.end());
    }
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  void append_op(const Stream& stream, std::uint32_t number) {
    const Op& op = program_.ops[number];
    ChakraNode node;
    node.after = waits_of(stream, number);
    const std::string& name = graph_.names[program_.labels[number].name];
    node.name = name;
    switch (op.kind) {
      case OpKind::kCompute:
        fill_compute(op, node);
        break;
      case OpKind::kCollective:
        if (!chakra_type(collective(op).op)) return append_permutation(op, number, node);
        fill_collective(op, node);
        break;
      case OpKind::kMessages:
        return append_messages(op, number, node);
      case OpKind::kHost:
        fill_host(graph_.host_works[op.work], node);
    }
    append_node(node, number, 0);
  }

  void append_node(ChakraNode& node, std::uint32_t op, std::size_t part) {
    node.id = nodes_[op][part];
    append_message(chakra_message(node));
  }

  static void set_time(Duration time, ChakraNode& node) {
    node.duration_micros = static_cast<std::uint64_t>((time.count() + 999'999) / 1'000'000);
    node.picoseconds = time.count();
  }

  void fill_compute(const Op& op, ChakraNode& node) const {
    Duration time{};
    Flops flops;
    Bytes bytes;
    for (const Kernel& kernel : graph_.compute_works[op.work].kernels) {
      time += time_of(kernel, chip_).total;
      flops += kernel.flops;
      bytes += kernel.read + kernel.written;
    }
    node.type = ChakraType::kCompute;
    set_time(time, node);
    node.flops = static_cast<std::int64_t>(std::min(flops.value(), 9e18));
    node.tensor_bytes = bytes.value();
  }

  void fill_collective(const Op& op, ChakraNode& node) {
    const CollectiveWork& work = collective(op);
    const bool is_shard = work.op == CollectiveOp::kAllGather || work.op == CollectiveOp::kGather;
    const auto count = static_cast<std::int64_t>(members(work.communicator).size());
    node.type = ChakraType::kCollective;
    node.collective = chakra_type(work.op);
    node.bytes = work.bytes.value() / (is_shard ? count : 1);
    group_ = name_of_group(work.communicator);
    node.group = group_;
  }

  static void fill_host(const HostWork& work, ChakraNode& node) {
    if (work.action == HostAction::kOther) {
      node.type = ChakraType::kCompute;
      node.is_on_host = true;
      return set_time(work.time, node);
    }
    node.type =
        work.action == HostAction::kCopyIn ? ChakraType::kMemoryLoad : ChakraType::kMemoryStore;
    node.tensor_bytes = work.bytes.value();
  }

  void set_peer(bool is_send, std::uint32_t peer, Bytes bytes, std::int64_t tag,
                ChakraNode& node) const {
    node.type = is_send ? ChakraType::kSend : ChakraType::kReceive;
    node.source = is_send ? rank_ : peer;
    node.destination = is_send ? peer : rank_;
    node.bytes = bytes.value();
    node.tag = tag;
  }

  void append_messages(const Op& op, std::uint32_t number, ChakraNode& node) {
    for (std::uint32_t i = 0; i < op.work_count; ++i) {
      const Message& message = graph_.messages[op.work + i];
      const std::int64_t kind = std::int64_t{message.boundary} * 4 + static_cast<int>(message.kind);
      set_peer(message.is_send, members(message.communicator)[message.peer].index(), message.bytes,
               kind * 65536 + message.microbatch.value_or(0), node);
      append_node(node, number, i);
    }
    if (op.work_count == 0) append_node(node, number, 0);
  }

  void append_permutation(const Op& op, std::uint32_t number, ChakraNode& node) {
    const CollectiveWork& work = collective(op);
    const std::vector<RankId>& ranks = members(work.communicator);
    const auto count = static_cast<std::uint32_t>(ranks.size());
    const Communicator& communicator = graph_.communicators[work.communicator.index()];
    const std::uint32_t me = communicator.seat_of[rank_].member;
    std::uint32_t to = (me + work.shift) % count;
    std::uint32_t from = (me + count - work.shift % count) % count;
    if (work.permutation) {
      const auto& permutation = graph_.permutations[*work.permutation];
      to = permutation[me];
      from = static_cast<std::uint32_t>(std::ranges::find(permutation, me) - permutation.begin());
    }
    const std::int64_t tag = 1'000'000'000 + work.communicator.index();
    set_peer(true, ranks[to].index(), work.bytes, tag, node);
    append_node(node, number, 0);
    set_peer(false, ranks[from].index(), work.bytes, tag, node);
    append_node(node, number, 1);
  }

  const OpGraph& graph_;
  const ChipSpec& chip_;
  const std::uint32_t rank_;
  const Program& program_;
  std::vector<Ids> nodes_;  // ids of the nodes of each op
  std::string group_;       // which a node's group points into
  std::string text_;
};

}  // namespace

std::string chakra_file(const OpGraph& graph, const ChipSpec& chip, std::uint32_t rank) {
  return RankExport(graph, chip, rank).text();
}

std::vector<std::string> chakra_losses(const OpGraph& graph) {
  std::vector<std::string> losses;
  const bool has_matrix =
      std::ranges::any_of(graph.collective_works,
                          [](const CollectiveWork& work) { return work.byte_matrix.has_value(); });
  if (has_matrix) {
    losses.emplace_back("uneven all-to-alls are written as even ones of their largest buffer");
  }
  const bool has_previous = std::ranges::any_of(graph.programs, [](const Program& program) {
    return std::ranges::any_of(program.dependencies, &Dependency::previous_step);
  });
  if (has_previous) losses.emplace_back("nothing waits for the step before");
  if (!graph.host_works.empty()) {
    losses.emplace_back("copies to the host are loads and stores of the chip's memory");
  }
  if (graph.host) losses.emplace_back("launches by the host are left out");
  return losses;
}

}  // namespace stepsim
