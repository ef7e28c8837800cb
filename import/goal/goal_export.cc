#include "import/goal/goal_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/base/error.h"
#include "sim/collectives/choose_algorithm.h"
#include "sim/hardware/group_shape.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/collectives/collective_task.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostGoalOps = 20'000'000;
// Tags of messages between stages are below those of collectives.
constexpr std::int64_t kFirstCollectiveTag = 1LL << 40;

using Nodes = std::vector<std::uint32_t>;

[[noreturn]] void refuse_export(const std::string& why) {
  throw ConfigError({Problem{"--export", "goal " + why}});
}

// The algorithm of each collective in each group.
class Algorithms {
 public:
  Algorithms(const OpGraph& graph, const Cluster& cluster)
      : graph_(graph), plans_(graph, cluster, Granularity::kStepped, Fidelity::kFlow) {}

  const CollectiveAlgorithm& of(CollectiveWorkId work, GroupId group) {
    auto& known = known_[{work.index(), group.index()}];
    if (!known) known = make(work, group);
    return *known;
  }
  bool left_switches_out() const { return left_switches_out_; }

 private:
  std::unique_ptr<CollectiveAlgorithm> make(CollectiveWorkId work, GroupId group) {
    ChosenCollective chosen = plans_.chosen_for(work, group);
    if (chosen.algorithm->endpoints() == chosen.algorithm->members()) {
      return std::move(chosen.algorithm);
    }
    left_switches_out_ = true;
    auto by_messages = plans_.chosen_among_members(work, group);
    if (by_messages) return std::move(by_messages->algorithm);
    refuse_export(fmt::format("has no switches that add up, and no other algorithm does a {}",
                              name_of(graph_.collective_works[work.index()].op)));
  }

  const OpGraph& graph_;
  CollectivePlans plans_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<CollectiveAlgorithm>> known_;
  bool left_switches_out_ = false;
};

// What comes to a member in each round of each lane: found once for an algorithm.
class Arrivals {
 public:
  struct From {
    std::uint32_t member = 0;
    Bytes bytes{};
  };

  const std::vector<From>& of(const CollectiveAlgorithm& algorithm, std::uint32_t lane,
                              std::uint32_t round, std::uint32_t member) {
    auto& table = tables_[&algorithm];
    if (table.empty()) fill(algorithm, table);
    return table[(std::size_t{lane} * algorithm.rounds() + round) * algorithm.members() + member];
  }

 private:
  static void fill(const CollectiveAlgorithm& algorithm, std::vector<std::vector<From>>& table) {
    const std::uint32_t members = algorithm.members();
    const std::size_t size = std::size_t{algorithm.lanes()} * algorithm.rounds() * members;
    if (size > kMostGoalOps) {
      refuse_export("would have more than 20 million ops");
    }
    table.resize(std::max<std::size_t>(1, size));
    for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
      for (std::uint32_t round = 0; round < algorithm.rounds(); ++round) {
        const std::size_t first = (std::size_t{lane} * algorithm.rounds() + round) * members;
        for (std::uint32_t member = 0; member < members; ++member) {
          const auto message = algorithm.message(lane, round, member);
          if (message) table[first + message->to].push_back({member, message->bytes});
        }
      }
    }
  }

  std::map<const CollectiveAlgorithm*, std::vector<std::vector<From>>> tables_;
};

// GOAL's tags have 32 bits, so they are numbered as they come.
class Tags {
 public:
  std::uint32_t number(std::int64_t key) {
    return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::int64_t, std::uint32_t> numbers_;
};

class GoalRank {
 public:
  GoalRank(const OpGraph& graph, const Cluster& cluster, Algorithms& algorithms, Arrivals& arrivals,
           Tags& tags, std::uint32_t rank)
      : graph_(graph),
        cluster_(cluster),
        algorithms_(algorithms),
        arrivals_(arrivals),
        tags_(tags),
        rank_(rank),
        program_(graph.programs[graph.ranks[rank].program.index()]),
        ends_(program_.ops.size()) {}

  TraceRank build() {
    // Nodes must be written before those that wait for them, whatever stream they are on.
    std::vector<std::uint32_t> next(program_.streams.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < program_.streams.size(); ++s) {
        const Stream& stream = program_.streams[s];
        while (next[s] < stream.ops && is_free(stream.first_op + next[s])) {
          add(stream, stream.first_op + next[s]);
          ++next[s];
          moved = true;
        }
      }
    }
    return std::move(result_);
  }

 private:
  std::uint32_t op_of(const Dependency& dependency) const {
    return program_.streams[dependency.stream.index()].first_op + dependency.position;
  }

  bool is_free(std::uint32_t number) const {
    return std::ranges::all_of(program_.dependencies_of(OpId(number)), [this](const Dependency& d) {
      return d.previous_step || ends_[op_of(d)].has_value();
    });
  }

  Nodes waits_of(const Stream& stream, std::uint32_t number) const {
    std::set<std::uint32_t> waits;
    if (number > stream.first_op)
      waits.insert(ends_[number - 1]->begin(), ends_[number - 1]->end());
    for (const Dependency& dependency : program_.dependencies_of(OpId(number))) {
      if (dependency.previous_step) continue;
      const Nodes& ends = *ends_[op_of(dependency)];
      waits.insert(ends.begin(), ends.end());
    }
    return {waits.begin(), waits.end()};
  }

  std::uint32_t add_node(TraceNode node, const Nodes& after) {
    if (result_.nodes.size() >= kMostGoalOps) {
      refuse_export("would have more than 20 million ops");
    }
    result_.add(node, after);
    return static_cast<std::uint32_t>(result_.nodes.size() - 1);
  }

  void add(const Stream& stream, std::uint32_t number) {
    const Op& op = program_.ops[number];
    const Nodes waits = waits_of(stream, number);
    switch (op.kind) {
      case OpKind::kCompute: {
        Duration time{};
        for (const Kernel& kernel : graph_.compute_works[op.work].kernels) {
          time += time_of(kernel, cluster_.chip).total;
        }
        ends_[number] =
            Nodes{add_node({.kind = TraceNodeKind::kKernel, .lane = 0, .time = time}, waits)};
        return;
      }
      case OpKind::kHost:
        ends_[number] = Nodes{add_node(
            {.kind = TraceNodeKind::kOther, .time = graph_.host_works[op.work].time}, waits)};
        return;
      case OpKind::kMessages:
        add_messages(op, number, waits);
        return;
      case OpKind::kCollective:
        add_collective(CollectiveWorkId(op.work), number, waits);
    }
  }

  const std::vector<RankId>& members(CommunicatorId communicator) const {
    const Communicator& found = graph_.communicators[communicator.index()];
    return found.groups[found.seat_of[rank_].group];
  }

  std::uint32_t message(bool is_send, std::uint32_t peer, Bytes bytes, std::int64_t tag,
                        const Nodes& after) {
    TraceNode node;
    node.kind = is_send ? TraceNodeKind::kSend : TraceNodeKind::kReceive;
    node.peer = peer;
    node.tag = tags_.number(tag);
    node.bytes = std::max(Bytes(1), bytes);
    return add_node(node, after);
  }

  void add_messages(const Op& op, std::uint32_t number, const Nodes& waits) {
    ends_[number] = op.work_count == 0 ? waits : Nodes{};
    for (std::uint32_t i = 0; i < op.work_count; ++i) {
      const Message& one = graph_.messages[op.work + i];
      const std::int64_t kind = std::int64_t{one.boundary} * 4 + static_cast<int>(one.kind);
      const std::uint32_t peer = members(one.communicator)[one.peer].index();
      ends_[number]->push_back(message(one.is_send, peer, one.bytes,
                                       kind * 65'536 + one.microbatch.value_or(65'535), waits));
    }
  }

  // The nodes of a round of a lane that sends of later rounds wait for.
  struct Round {
    std::optional<std::uint32_t> sent{};
    Nodes received{};
  };

  void add_collective(CollectiveWorkId work, std::uint32_t number, const Nodes& waits) {
    const CommunicatorId communicator = graph_.collective_works[work.index()].communicator;
    const std::vector<RankId>& ranks = members(communicator);
    // The n-th collective of a communicator has the same number on all members.
    const std::int64_t instance = instances_[communicator.index()]++;
    if (ranks.size() < 2) {
      ends_[number] = waits;
      return;
    }
    const Communicator& found = graph_.communicators[communicator.index()];
    const std::uint32_t me = found.seat_of[rank_].member;
    const CollectiveAlgorithm& algorithm =
        algorithms_.of(work, GroupId(found.seat_of[rank_].group));
    const std::uint32_t lanes = algorithm.lanes();
    const std::uint32_t rounds = algorithm.rounds();
    const std::int64_t first_tag = kFirstCollectiveTag +
                                   (std::int64_t{communicator.index()} << 32) +
                                   instance * std::int64_t{lanes} * rounds;
    std::vector<std::vector<Round>> done(lanes, std::vector<Round>(rounds));
    std::vector<std::optional<std::uint32_t>> sent(lanes);  // the last of each lane
    std::vector<Nodes> open(lanes);                         // received, and nothing waits for it
    // Lanes go on as far as the rounds that their gates name are written.
    std::vector<std::uint32_t> next(lanes, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        for (; next[lane] < rounds && gate_is_open(algorithm, lane, next[lane], me, next);
             ++next[lane], moved = true) {
          const std::uint32_t round = next[lane];
          const std::int64_t tag = first_tag + std::int64_t{lane} * rounds + round;
          Round& here = done[lane][round];
          if (const auto out = algorithm.message(lane, round, me)) {
            Nodes after = open[lane];
            if (sent[lane]) after.push_back(*sent[lane]);
            if (after.empty()) after = waits;
            add_gate(algorithm, lane, round, me, done, after);
            std::ranges::sort(after);
            after.erase(std::unique(after.begin(), after.end()), after.end());
            here.sent = message(true, ranks[out->to].index(), out->bytes, tag, after);
            sent[lane] = here.sent;
            open[lane].clear();
          }
          for (const Arrivals::From& from : arrivals_.of(algorithm, lane, round, me)) {
            here.received.push_back(
                message(false, ranks[from.member].index(), from.bytes, tag, waits));
          }
          open[lane].insert(open[lane].end(), here.received.begin(), here.received.end());
        }
      }
    }
    Nodes ends;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      if (sent[lane]) ends.push_back(*sent[lane]);
      ends.insert(ends.end(), open[lane].begin(), open[lane].end());
    }
    ends_[number] = ends.empty() ? waits : std::move(ends);
  }

  static bool gate_is_open(const CollectiveAlgorithm& algorithm, std::uint32_t lane,
                           std::uint32_t round, std::uint32_t me,
                           const std::vector<std::uint32_t>& next) {
    if (!algorithm.gated()) return true;
    std::vector<LaneGate> gates;
    algorithm.gates(lane, round, me, gates);
    return std::ranges::all_of(gates,
                               [&](const LaneGate& gate) { return gate.round < next[gate.lane]; });
  }

  // A gate waits for both directions of a round of another lane.
  static void add_gate(const CollectiveAlgorithm& algorithm, std::uint32_t lane,
                       std::uint32_t round, std::uint32_t me,
                       const std::vector<std::vector<Round>>& done, Nodes& after) {
    if (!algorithm.gated()) return;
    std::vector<LaneGate> gates;
    algorithm.gates(lane, round, me, gates);
    for (const LaneGate& gate : gates) {
      const Round& before = done[gate.lane][gate.round];
      if (before.sent) after.push_back(*before.sent);
      after.insert(after.end(), before.received.begin(), before.received.end());
    }
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  Algorithms& algorithms_;
  Arrivals& arrivals_;
  Tags& tags_;
  const std::uint32_t rank_;
  const Program& program_;
  std::vector<std::optional<Nodes>> ends_;  // of each op, once it is written
  std::map<std::uint32_t, std::int64_t> instances_;
  TraceRank result_;
};

}  // namespace

GoalExport export_goal(const OpGraph& graph, const Cluster& cluster) {
  GoalExport made;
  made.job.source = "stepsim";
  made.job.ranks = static_cast<std::uint32_t>(graph.ranks.size());
  made.job.groups = {all_ranks(made.job.ranks)};
  made.job.names = {"op"};
  Algorithms algorithms(graph, cluster);
  Arrivals arrivals;
  Tags tags;
  std::size_t nodes = 0;
  for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank) {
    made.job.programs.push_back(GoalRank(graph, cluster, algorithms, arrivals, tags, rank).build());
    nodes += made.job.programs.back().nodes.size();
    if (nodes > kMostGoalOps) {
      refuse_export("would have more than 20 million ops");
    }
  }
  if (algorithms.left_switches_out()) {
    made.losses.emplace_back("collectives of switches that add up are those of the chips");
  }
  const bool has_previous = std::ranges::any_of(graph.programs, [](const Program& program) {
    return std::ranges::any_of(program.dependencies, &Dependency::previous_step);
  });
  if (has_previous) made.losses.emplace_back("nothing waits for the step before");
  if (!graph.host_works.empty()) made.losses.emplace_back("copies to the host take no time");
  if (graph.host) made.losses.emplace_back("launches by the host are left out");
  if (!cluster.library.ideal()) {
    made.losses.emplace_back("what the library adds to each message is left out");
  }
  return made;
}

}  // namespace stepsim
