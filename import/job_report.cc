#include <fmt/format.h>

#include <array>
#include <map>

#include "import/importer.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

struct JobSums {
  std::array<std::size_t, kTraceNodeKinds> nodes{};  // by kind
  Duration kernels{};
  Duration gaps{};
  Flops flops;
  struct Collective {
    std::size_t count = 0;
    double bytes = 0;
  };
  std::map<CollectiveOp, Collective> collectives;
  double message_bytes = 0;
};

// Sums over all programs; one that stands for several ranks counts once.
JobSums sums_of(const TraceJob& job) {
  JobSums sums;
  for (const TraceRank& program : job.programs) {
    for (const TraceNode& node : program.nodes) {
      ++sums.nodes[static_cast<std::size_t>(node.kind)];
      const auto bytes = static_cast<double>(node.bytes.value());
      if (node.kind == TraceNodeKind::kKernel) {
        sums.kernels += node.time.value_or(Duration());
        sums.flops = sums.flops + node.flops;
      } else if (node.kind == TraceNodeKind::kGap) {
        sums.gaps += node.time.value_or(Duration());
      } else if (node.kind == TraceNodeKind::kCollective) {
        JobSums::Collective& of_op = sums.collectives[node.op];
        ++of_op.count;
        of_op.bytes += bytes;
      } else if (node.kind == TraceNodeKind::kSend) {
        sums.message_bytes += bytes;
      }
    }
  }
  return sums;
}

}  // namespace

std::string job_report(const TraceJob& job) {
  const JobSums sums = sums_of(job);
  std::string text = fmt::format("{}: {} ranks, {} nodes, {} groups\n", job.source, job.ranks,
                                 job.nodes(), job.groups.size());
  for (std::size_t kind = 0; kind < sums.nodes.size(); ++kind) {
    if (sums.nodes[kind] == 0) continue;
    text +=
        fmt::format("  {:<12} {:>10}", name_of(static_cast<TraceNodeKind>(kind)), sums.nodes[kind]);
    const auto one = static_cast<TraceNodeKind>(kind);
    if (one == TraceNodeKind::kKernel || one == TraceNodeKind::kGap) {
      const bool is_gap = one == TraceNodeKind::kGap;
      text += fmt::format("   {} in all", to_text(is_gap ? sums.gaps : sums.kernels));
    }
    text += "\n";
  }
  for (const auto& [op, of_op] : sums.collectives) {
    text += fmt::format("    {:<16} {:>6}   {:.6g} bytes\n", name_of(op), of_op.count, of_op.bytes);
  }
  return text;
}

Json job_facts(const TraceJob& job) {
  const JobSums sums = sums_of(job);
  Json facts = Json::object();
  facts["source"] = job.source;
  facts["ranks"] = job.ranks;
  facts["nodes"] = job.nodes();
  facts["groups"] = job.groups.size();
  Json& kinds = facts["nodes_by_kind"] = Json::object();
  for (std::size_t kind = 0; kind < sums.nodes.size(); ++kind) {
    kinds[std::string(name_of(static_cast<TraceNodeKind>(kind)))] = sums.nodes[kind];
  }
  facts["kernel_time_s"] = to_seconds(sums.kernels);
  facts["gap_time_s"] = to_seconds(sums.gaps);
  facts["flops"] = sums.flops.value();
  Json& collectives = facts["collectives"] = Json::array();
  for (const auto& [op, of_op] : sums.collectives) {
    collectives.push_back(
        {{"op", std::string(name_of(op))}, {"count", of_op.count}, {"bytes", of_op.bytes}});
  }
  facts["message_bytes"] = sums.message_bytes;
  return facts;
}

}  // namespace stepsim
