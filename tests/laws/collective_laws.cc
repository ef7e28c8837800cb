#include "tests/laws/collective_laws.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "experiment/build_cluster.h"
#include "sim/hardware/group_links.h"
#include "sim/run/collectives/collective_task.h"
#include "tests/support/idle_collective.h"

namespace stepsim {
namespace {

constexpr double kRounding = 0.01;
constexpr double kNeighbours = 0.25;
constexpr double kAuto = 0.10;
constexpr double kGranularity = 0.30;
constexpr CollectiveOp kChecked[] = {CollectiveOp::kAllReduce,     CollectiveOp::kAllGather,
                                     CollectiveOp::kReduceScatter, CollectiveOp::kAllToAll,
                                     CollectiveOp::kBroadcast,     CollectiveOp::kReduce};

std::vector<std::uint32_t> first_chips(std::uint32_t members) {
  std::vector<std::uint32_t> chips(members);
  std::iota(chips.begin(), chips.end(), 0U);
  return chips;
}

class Laws {
 public:
  Laws(std::string name, const Cluster& cluster, const LawScope& scope)
      : name_(std::move(name)), cluster_(cluster), scope_(scope) {}

  LawReport check(const Cluster& faster) {
    for (const CollectiveOp op : kChecked) {
      std::map<std::int64_t, double> before;  // time of the members before, by bytes
      for (const std::uint32_t members : scope_.members) {
        if (op == CollectiveOp::kAllToAll && members > scope_.most_exchanging) continue;
        for (const AlgorithmChoice algorithm : algorithms(op, members))
          sizes(op, members, algorithm);
        automatic(op, members);
        ranks(op, members, before);
        neighbours(op, members);
        links(op, members, faster);
        if (members <= scope_.most_stepped) granularities(op, members);
      }
    }
    return std::move(report_);
  }

 private:
  struct Asked {
    CollectiveOp op;
    std::uint32_t members;
    std::int64_t bytes;
    AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
    Granularity granularity = Granularity::kPipelined;
    auto key() const { return std::tuple(op, members, bytes, algorithm, granularity); }
  };

  CollectiveWork work_of(const Asked& asked) const {
    return {.communicator = CommunicatorId(0),
            .op = asked.op,
            .bytes = Bytes(asked.bytes / 4 * 4),
            .type = DataType::kFp32,
            .algorithm = asked.algorithm};
  }

  static double run(const Cluster& cluster, const CollectiveWork& work, const Asked& asked) {
    const OpGraph graph = graph_of(cluster, work, first_chips(asked.members));
    return to_seconds(simulate(graph, cluster, {.granularity = asked.granularity}).end.since_start);
  }

  double time(const Asked& asked) {
    const auto [place, is_new] = times_.try_emplace(asked.key());
    if (is_new) place->second = run(cluster_, work_of(asked), asked);
    return place->second;
  }

  // The algorithms that the library has, and `auto`.
  std::set<AlgorithmChoice> algorithms(CollectiveOp op, std::uint32_t members) {
    std::set<AlgorithmChoice> all = {AlgorithmChoice::kAuto};
    const std::vector<std::uint32_t> chips = first_chips(members);
    const OpGraph graph = graph_of(cluster_, work_of({op, members, 1 << 20}), chips);
    const CollectiveTask task = task_of(graph, graph.collective_works[0]);
    for (const CollectiveWay& way :
         ways_of(cluster_.library, task, true, AlgorithmChoice::kAuto, describe(cluster_, chips),
                 links_of(cluster_, chips, DataType::kFp32))) {
      all.insert(way.algorithm);
    }
    return all;
  }

  void expect_at_most(const char* law, const Asked& asked, double limit, double found) {
    ++report_.checked;
    if (found <= limit * (1 + 1e-9)) return;
    report_.broken.push_back({law,
                              fmt::format("{} {} of {} B on {} {}", name_, name_of(asked.op),
                                          asked.bytes, asked.members, name_of(asked.algorithm)),
                              limit, found});
  }

  void sizes(CollectiveOp op, std::uint32_t members, AlgorithmChoice algorithm) {
    for (std::size_t i = 1; i < scope_.sizes.size(); ++i) {
      const Asked larger{op, members, scope_.sizes[i], algorithm};
      const double smaller = time({op, members, scope_.sizes[i - 1], algorithm});
      expect_at_most("size", larger, time(larger), smaller * (1 - kRounding));
    }
  }

  void automatic(CollectiveOp op, std::uint32_t members) {
    for (const std::int64_t bytes : scope_.sizes) {
      const double found = time({op, members, bytes});
      for (const AlgorithmChoice algorithm : algorithms(op, members)) {
        const Asked other{op, members, bytes, algorithm};
        expect_at_most("auto", other, (1 + kAuto) * time(other), found);
      }
    }
  }

  void ranks(CollectiveOp op, std::uint32_t members, std::map<std::int64_t, double>& before) {
    for (const std::int64_t bytes : scope_.sizes) {
      const Asked asked{op, members, bytes};
      const double now = time(asked);
      const bool measured_so =
          op == CollectiveOp::kAllToAll && members <= chips_per_node(cluster_.places);
      if (before.contains(bytes) && !measured_so) {
        expect_at_most("ranks", asked, now, before[bytes] * (1 - kRounding));
      }
      before[bytes] = now;
    }
  }

  void neighbours(CollectiveOp op, std::uint32_t members) {
    for (const std::int64_t bytes : scope_.sizes) {
      const Asked asked{op, members, bytes};
      const Asked larger{op, members, bytes + bytes / 10};
      if (is_switched_between(asked.bytes, larger.bytes)) continue;
      expect_at_most("neighbours", larger, (1 + kNeighbours) * time(asked), time(larger));
    }
  }

  // The library leaves a protocol there, which measured times show (`most_bytes`).
  bool is_switched_between(std::int64_t smaller, std::int64_t larger) const {
    return std::ranges::any_of(cluster_.library.timings, [&](const ProtocolTiming& timing) {
      return timing.takes(Bytes(smaller)) && !timing.takes(Bytes(larger));
    });
  }

  void links(CollectiveOp op, std::uint32_t members, const Cluster& faster) {
    for (const std::int64_t bytes : scope_.sizes) {
      const Asked asked{op, members, bytes};
      expect_at_most("link", asked, (1 + kRounding) * time(asked),
                     run(faster, work_of(asked), asked));
    }
  }

  // Other algorithms have rounds or phases on different links, one after another when stepped.
  static bool in_a_pipeline(AlgorithmChoice algorithm) {
    return algorithm == AlgorithmChoice::kRing || algorithm == AlgorithmChoice::kRotatedRings ||
           algorithm == AlgorithmChoice::kChain ||
           algorithm == AlgorithmChoice::kDoubleBinaryTree || algorithm == AlgorithmChoice::kNvls ||
           algorithm == AlgorithmChoice::kNvlsTree || algorithm == AlgorithmChoice::kDirect;
  }

  void granularities(CollectiveOp op, std::uint32_t members) {
    for (const std::int64_t bytes : scope_.sizes) {
      for (const AlgorithmChoice algorithm : algorithms(op, members)) {
        if (!in_a_pipeline(algorithm)) continue;
        const Asked asked{op, members, bytes, algorithm};
        Asked stepped = asked;
        stepped.granularity = Granularity::kStepped;
        expect_at_most("granularity", asked, (1 + kGranularity) * time(asked), time(stepped));
      }
    }
  }

  std::string name_;
  const Cluster& cluster_;
  const LawScope& scope_;
  LawReport report_;
  std::map<std::tuple<CollectiveOp, std::uint32_t, std::int64_t, AlgorithmChoice, Granularity>,
           double>
      times_;
};

// Returns the cluster with every link twice as fast.
Cluster doubled(const ClusterSpec& spec) {
  BuiltTopology built = build_topology(spec.topology, spec.faults);
  Fabric fabric;
  for (const Node& node : built.fabric.nodes()) fabric.add(node.kind, node.name);
  for (const Link& link : built.fabric.links()) {
    fabric.connect_one_way(link.from, link.to, 2 * link.bandwidth, link.latency);
  }
  for (const LinkGroup& group : built.fabric.groups()) fabric.add_group(group.links, group.down);
  built.fabric = std::move(fabric);
  return build_cluster(spec, std::move(built), false);
}

}  // namespace

LawReport check_collective_laws(const std::string& name, const ClusterSpec& spec,
                                const LawScope& scope) {
  const Cluster cluster = build_cluster(spec);
  LawScope fitting = scope;
  std::erase_if(fitting.members,
                [&](std::uint32_t n) { return n > cluster.places.chips.size() || n < 2; });
  return Laws(name, cluster, fitting).check(doubled(spec));
}

}  // namespace stepsim
