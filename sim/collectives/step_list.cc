#include "sim/collectives/step_list.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "sim/collectives/parts.h"

namespace stepsim {
namespace {

// Tables of (lane, round, member) are kept. This is far more than anybody writes by hand.
constexpr std::uint64_t kMostSlots = 1U << 26;

std::string below(std::uint64_t limit, std::uint64_t is) {
  return "must be below " + std::to_string(limit) + ", is " + std::to_string(is);
}

std::pair<std::uint32_t, std::uint32_t> lanes_and_rounds(const StepList& list) {
  std::uint32_t lanes = 1;
  std::uint32_t rounds = 0;
  for (const ListedStep& step : list.steps) {
    lanes = std::max(lanes, step.lane + 1);
    rounds = std::max(rounds, step.round + 1);
  }
  return {lanes, rounds};
}

void check_shards(const StepList& list, std::vector<Problem>& problems) {
  const std::uint64_t n = list.members;
  switch (list.op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
    case CollectiveOp::kSendReceive:
    case CollectiveOp::kPermute:
      if (list.shards == n) return;
      problems.push_back({"shards", "must be the " + std::to_string(n) + " members for " +
                                        std::string(name_of(list.op)) + ", is " +
                                        std::to_string(list.shards)});
      return;
    case CollectiveOp::kAllToAll:
      if (list.shards == n * n) return;
      problems.push_back({"shards", "must be the " + std::to_string(n * n) +
                                        " pairs of members for all-to-all (block = source * "
                                        "members + destination), is " +
                                        std::to_string(list.shards)});
      return;
    default:
      if (list.shards >= 1) return;
      problems.push_back({"shards", "must be at least 1, is 0"});
  }
}

}  // namespace

std::vector<Problem> check(const StepList& list) {
  std::vector<Problem> problems;
  if (list.members < 2) {
    problems.push_back({"members", "must be at least 2, is " + std::to_string(list.members)});
  }
  if (list.pieces < 1) problems.push_back({"pieces", "must be at least 1, is 0"});
  if (list.steps.empty()) problems.push_back({"steps", "must be given"});
  check_shards(list, problems);
  if (!list.shard_of.empty() && list.shard_of.size() != list.members) {
    problems.push_back({"shard_of", "must have an entry for each of the " +
                                        std::to_string(list.members) + " members, has " +
                                        std::to_string(list.shard_of.size())});
  }
  const auto [lanes, rounds] = lanes_and_rounds(list);
  if (std::uint64_t{lanes} * rounds * list.members > kMostSlots) {
    problems.push_back(
        {"steps", "must have at most " + std::to_string(kMostSlots) + " lanes x rounds x members"});
  }
  const std::uint64_t blocks = std::uint64_t{list.shards} * list.pieces;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> taken;
  for (std::size_t i = 0; i < list.steps.size(); ++i) {
    const ListedStep& step = list.steps[i];
    const std::string name = "steps[" + std::to_string(i) + "].";
    if (step.from >= list.members) {
      problems.push_back({name + "from", below(list.members, step.from)});
    }
    if (step.to >= list.members) problems.push_back({name + "to", below(list.members, step.to)});
    if (step.from == step.to) {
      problems.push_back(
          {name + "to", "must be another member than from, is " + std::to_string(step.to)});
    }
    if (step.blocks.empty() && list.op != CollectiveOp::kBarrier) {
      problems.push_back({name + "block", "must be given at least once"});
    }
    for (const std::uint32_t block : step.blocks) {
      if (block >= blocks) problems.push_back({name + "block", below(blocks, block)});
    }
    if (!taken.emplace(step.lane, step.round, step.from).second) {
      problems.push_back({name + "round",
                          "member " + std::to_string(step.from) + " sends twice in round " +
                              std::to_string(step.round) + " of lane " + std::to_string(step.lane) +
                              "; another lane sends at the same time"});
    }
    const auto check_gate = [&, lanes = lanes, rounds = rounds](const LaneGate& gate,
                                                                const std::string& field) {
      if (gate.lane >= lanes) problems.push_back({field + ".lane", below(lanes, gate.lane)});
      if (gate.round >= rounds) problems.push_back({field + ".round", below(rounds, gate.round)});
    };
    if (step.after) check_gate(*step.after, name + "after");
    for (std::size_t g = 0; g < step.also_after.size(); ++g) {
      check_gate(step.also_after[g], name + "also_after[" + std::to_string(g) + "]");
    }
  }
  return problems;
}

ListedSteps::ListedSteps(const CollectiveTask& task, const StepList& list)
    : task_(task), list_(list) {
  std::tie(lanes_, rounds_) = lanes_and_rounds(list);
  step_of_.resize(std::size_t{lanes_} * rounds_ * list.members);
  received_.assign(step_of_.size(), 0);
  for (std::uint32_t i = 0; i < list.steps.size(); ++i) {
    const ListedStep& step = list.steps[i];
    step_of_[slot(step.lane, step.round, step.from)] = i;
    ++received_[slot(step.lane, step.round, step.to)];
    gated_ = gated_ || step.after.has_value() || !step.also_after.empty();
  }
}

const ListedStep* ListedSteps::step(std::uint32_t lane, std::uint32_t round,
                                    std::uint32_t member) const {
  const std::optional<std::uint32_t> index = step_of_[slot(lane, round, member)];
  return index ? &list_.steps[*index] : nullptr;
}

Bytes ListedSteps::bytes_of(std::uint32_t block) const {
  const std::uint32_t shard = block % list_.shards;
  const std::uint32_t piece = block / list_.shards;
  if (task_.matrix != nullptr) {
    const Bytes whole = task_.matrix->between(shard / members(), shard % members());
    return Bytes(part(whole.value(), piece, list_.pieces));
  }
  const std::int64_t elements = task_.bytes.value() / task_.element.value();
  std::int64_t size = part(elements, shard, list_.shards);
  if (list_.op == CollectiveOp::kAllToAll) size = part(elements, shard % members(), members());
  if (list_.op == CollectiveOp::kSendReceive || list_.op == CollectiveOp::kPermute) {
    size = elements;
  }
  return Bytes(part(size, piece, list_.pieces) * task_.element.value());
}

std::optional<CollectiveMessage> ListedSteps::message(std::uint32_t lane, std::uint32_t round,
                                                      std::uint32_t member) const {
  const ListedStep* const listed = step(lane, round, member);
  if (listed == nullptr) return std::nullopt;
  CollectiveMessage result{.to = listed->to, .bytes = {}, .reduce = listed->reduce};
  for (const std::uint32_t block : listed->blocks) result.bytes += bytes_of(block);
  return result;
}

std::optional<LaneGate> ListedSteps::gate(std::uint32_t lane, std::uint32_t round,
                                          std::uint32_t member) const {
  const ListedStep* const listed = step(lane, round, member);
  return listed == nullptr || !listed->also_after.empty() ? std::nullopt : listed->after;
}

void ListedSteps::gates(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                        std::vector<LaneGate>& out) const {
  const ListedStep* const listed = step(lane, round, member);
  if (listed == nullptr) return;
  if (listed->after) out.push_back(*listed->after);
  out.insert(out.end(), listed->also_after.begin(), listed->also_after.end());
}

void ListedSteps::blocks(std::uint32_t lane, std::uint32_t round, std::uint32_t member,
                         std::vector<std::uint32_t>& out) const {
  const std::vector<std::uint32_t>& blocks = step(lane, round, member)->blocks;
  out.insert(out.end(), blocks.begin(), blocks.end());
}

}  // namespace stepsim
