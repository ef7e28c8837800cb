// Communication: V / W, then one cause after the other (traffic_costs.h), summed over the step.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "books/collective_forms/group_levels.h"
#include "experiment/explained/explain_parts.h"
#include "experiment/explained/traffic_costs.h"
#include "schedules/plan/axis.h"
#include "sim/base/quantity_text.h"
#include "sim/hardware/group_shape.h"

namespace stepsim {
namespace {

std::vector<std::uint32_t> chips_of(const OpGraph& graph, const std::vector<RankId>& ranks) {
  std::vector<std::uint32_t> chips;
  for (const RankId rank : ranks) chips.push_back(graph.ranks[rank.index()].chip);
  return chips;
}

// Sums over the collectives of one communicator.
struct Sums {
  std::map<CollectiveOp, double> counts;
  double bytes = 0;
  TrafficCosts costs;
  double simulated = 0;
  double waiting = 0;
  std::optional<std::size_t> ranks{};  // of a group; messages have none
  Axis axis = Axis::kOther;
};

class Collector {
 public:
  explicit Collector(const FinishedRun& run) : run_(run), model_(run.graph, run.cluster) {}

  void add(const ExplainedRole& role) {
    const OpGraph& graph = run_.graph;
    const Program& program = graph.programs[role.program];
    for (const TimelineOp& entry : role.timeline->ops) {
      if (entry.step + 1 != run_.result.steps) continue;
      const Op& op = program.ops[entry.op];
      const double moving = role.share * to_seconds(entry.ended - entry.moving);
      const double waiting = role.share * to_seconds(entry.moving - entry.started);
      if (op.kind == OpKind::kCollective) {
        add_collective(CollectiveWorkId(op.work), op.axis, role, moving, waiting);
      } else if (op.kind == OpKind::kMessages && op.axis == Axis::kPipeline) {
        add_messages(op, role, moving, waiting);
      }
    }
  }

  std::vector<ExplainedTraffic> take() const {
    std::vector<ExplainedTraffic> all;
    for (const auto& [communicator, sums] : sums_) {
      const Communicator& of = run_.graph.communicators[communicator];
      all.push_back(explained(of.name, sums));
      all.back().in_background = of.in_background;
    }
    if (messages_.simulated > 0) all.push_back(explained("pipeline messages", messages_));
    return all;
  }

 private:
  void add_collective(CollectiveWorkId id, Axis axis, const ExplainedRole& role, double moving,
                      double waiting) {
    const CollectiveWork& work = run_.graph.collective_works[id.index()];
    const Communicator& communicator = run_.graph.communicators[work.communicator.index()];
    const GroupId group(communicator.seat_of[role.timeline->rank.index()].group);
    const std::vector<RankId>& members = communicator.groups[group.index()];
    if (members.size() < 2) return;
    TrafficCosts costs = model_.collective(id, group);
    costs.add_rest(moving / role.share, TrafficCause::kEarly, TrafficCause::kOthers);
    Sums& sums = sums_[work.communicator.index()];
    sums.axis = axis;
    sums.ranks = members.size();
    sums.costs.algorithm = costs.algorithm;
    sums.counts[work.op] += role.share;
    sums.bytes += role.share * static_cast<double>(work.bytes.value());
    sums.costs.add(costs, role.share);
    sums.simulated += moving;
    sums.waiting += waiting;
  }

  // Ranks of the messages that a rank sends; those that it receives are counted where they leave.
  void add_messages(const Op& op, const ExplainedRole& role, double moving, double waiting) {
    const OpGraph& graph = run_.graph;
    const double count = op.work_count;
    for (std::uint32_t i = 0; i < op.work_count; ++i) {
      const Message& message = graph.messages[op.work + i];
      if (!message.is_send) continue;
      const Communicator& communicator = graph.communicators[message.communicator.index()];
      const std::uint32_t rank = role.timeline->rank.index();
      const RankId peer = communicator.groups[communicator.seat_of[rank].group][message.peer];
      TrafficCosts costs =
          model_.message(message.bytes, graph.ranks[rank].chip, graph.ranks[peer.index()].chip);
      costs.add_rest(moving / role.share, TrafficCause::kEarly, TrafficCause::kOthers);
      costs.of(TrafficCause::kBatch) = (1 / count - 1) * moving / role.share;
      messages_.axis = op.axis;
      messages_.counts[CollectiveOp::kSendReceive] += role.share;
      messages_.bytes += role.share * static_cast<double>(message.bytes.value());
      messages_.costs.add(costs, role.share);
      messages_.simulated += moving / count;
      messages_.waiting += waiting / count;
    }
  }

  static ExplainedTraffic explained(const std::string& name, const Sums& sums) {
    std::string what;
    for (const auto& [op, count] : sums.counts) {
      what += fmt::format("{}{:.4g} {}", what.empty() ? "" : ", ", count,
                          op == CollectiveOp::kSendReceive ? "send" : name_of(op));
      if (count != 1) what += 's';
    }
    ExplainedTraffic traffic{
        .name = name,
        .axis = std::string(name_of(sums.axis)),
        .text = fmt::format(
            "{} of {} in all{}", what, to_text(Bytes(static_cast<std::int64_t>(sums.bytes))),
            sums.ranks
                ? fmt::format(" in groups of {}, {}", *sums.ranks, name_of(sums.costs.algorithm))
                : ""),
        .predicted = sums.costs.ideal,
        .simulated = sums.simulated,
        .waiting = sums.waiting,
        .causes = {}};
    const double scale = std::max(sums.simulated, sums.costs.ideal);
    for (const TrafficCauseRow& row : traffic_causes()) {
      add_cause(traffic.causes, std::string(row.text),
                sums.costs.by_cause[static_cast<std::size_t>(row.cause)], scale);
    }
    return traffic;
  }

  const FinishedRun& run_;
  TrafficModel model_;
  std::map<std::uint32_t, Sums> sums_;  // by communicator
  Sums messages_;
};

}  // namespace

std::vector<ExplainedTraffic> explain_traffic(const FinishedRun& run,
                                              const std::vector<ExplainedRole>& roles) {
  Collector collector(run);
  for (const ExplainedRole& role : roles) collector.add(role);
  return collector.take();
}

double group_bandwidth(const FinishedRun& run, const Communicator& communicator) {
  for (const std::vector<RankId>& group : communicator.groups) {
    if (group.size() < 2) continue;
    const std::vector<std::uint32_t> chips = chips_of(run.graph, group);
    return bandwidth_of(formula_group(run.cluster, chips, describe(run.cluster, chips)));
  }
  return 0;
}

const Communicator* find_communicator(const OpGraph& graph, Axis axis) {
  const auto largest = [](const Communicator& communicator) {
    std::size_t size = 0;
    for (const auto& group : communicator.groups) size = std::max(size, group.size());
    return size;
  };
  const Communicator* found = nullptr;
  for (const Communicator& communicator : graph.communicators) {
    if (communicator.axis != axis || largest(communicator) < 2) continue;
    if (found == nullptr || largest(communicator) > largest(*found)) found = &communicator;
  }
  return found;
}

}  // namespace stepsim
