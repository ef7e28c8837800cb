#include "sim/run/collective_run.h"

#include <algorithm>
#include <utility>

namespace stepsim {
namespace {

// What `members` send together when each byte goes once to each place that needs it; an all-reduce
// as a reduce-scatter and an all-gather.
Bytes least_bytes(CollectiveOp op, Bytes bytes, std::int64_t members) {
  switch (op) {
    case CollectiveOp::kAllReduce:
      return 2 * (members - 1) * bytes;
    case CollectiveOp::kGather:
    case CollectiveOp::kScatter:
      return (members - 1) * bytes / members;
    case CollectiveOp::kBarrier:
      return Bytes(0);
    case CollectiveOp::kSendReceive:
    case CollectiveOp::kPermute:
      return members * bytes;
    default:
      return (members - 1) * bytes;
  }
}

}  // namespace

CollectiveRuns::CollectiveRuns(const OpGraph& graph, const Streams& streams, Transport& transport,
                               Granularity granularity, Fidelity fidelity)
    : graph_(graph),
      streams_(streams),
      transport_(transport),
      granularity_(granularity),
      fidelity_(fidelity),
      plans_(graph.collective_works.size()),
      groups_(graph.communicators.size()) {
  for (std::size_t c = 0; c < graph.communicators.size(); ++c) {
    for (const std::vector<RankId>& group : graph.communicators[c].groups) {
      groups_[c].emplace_back().posted.assign(group.size(), 0);
    }
  }
  for (std::size_t w = 0; w < plans_.size(); ++w) {
    plans_[w].resize(
        graph.communicators[graph.collective_works[w].communicator.index()].groups.size());
  }
}

const CollectivePlan& CollectiveRuns::plan_of(std::uint32_t work, std::uint32_t group) {
  std::unique_ptr<CollectivePlan>& plan = plans_[work][group];
  if (!plan) {
    plan = std::make_unique<CollectivePlan>(
        plan_collective(graph_, transport_, work, group, granularity_, fidelity_));
  }
  return *plan;
}

ChipShare CollectiveRuns::taken(std::uint32_t stream) {
  const std::uint32_t work = streams_.program_of(stream).ops[streams_.op(stream)].work;
  const Communicator& communicator =
      graph_.communicators[graph_.collective_works[work].communicator.index()];
  const std::uint32_t group = communicator.seat_of[streams_.rank_of(stream)].group;
  if (communicator.groups[group].size() == 1) return {};
  return plan_of(work, group).taken;
}

// --- Arrival -------------------------------------------------------------------------------------

void CollectiveRuns::post(std::uint32_t stream, Time now, Meetings& meetings) {
  const std::uint32_t work = streams_.program_of(stream).ops[streams_.op(stream)].work;
  const CommunicatorId communicator = graph_.collective_works[work].communicator;
  const Communicator::Seat seat =
      graph_.communicators[communicator.index()].seat_of[streams_.rank_of(stream)];
  GroupState& group = groups_[communicator.index()][seat.group];
  const std::uint32_t members = static_cast<std::uint32_t>(group.posted.size());
  if (members == 1) {  // a group of one costs nothing
    meetings.ends.push_back({stream, now, false});
    return;
  }
  const std::uint32_t number = group.posted[seat.member]++;
  while (group.first_open + group.open.size() <= number) {
    group.open.push_back(open_run(work, seat.group, stream));
  }
  const std::uint32_t index = *group.open[number - group.first_open];
  Run& run = runs_[index];
  if (run.work != work) check_agreement(run, stream);
  run.streams[seat.member] = stream;
  const bool later = run.arrived == 0 || now > run.last_at;
  if (later || streams_.rank_of(stream) < streams_.rank_of(run.last)) {
    run.last = stream;
    run.last_at = now;
  }
  ++run.arrived;
  if (!run.plan->at_once) begin_stepped(index, seat.member, now, meetings);
  if (runs_[index].arrived == members) all_posted(runs_[index], index, now, meetings);
}

std::uint32_t CollectiveRuns::open_run(std::uint32_t work, std::uint32_t group,
                                       std::uint32_t stream) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(runs_.size()));
    runs_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Run& run = runs_[index];
  run.plan = &plan_of(work, group);
  run.work = work;
  run.group = group;
  run.arrived = 0;
  run.done = 0;
  run.first = stream;
  const CommunicatorId communicator = graph_.collective_works[work].communicator;
  const std::size_t members = groups_[communicator.index()][group].posted.size();
  run.streams.assign(members, std::nullopt);
  if (!run.plan->at_once) {
    run.endpoints = run.plan->algorithm->endpoints();
    run.gated = run.plan->algorithm->gated();
    run.lanes.assign(std::size_t{run.endpoints} * run.plan->algorithm->lanes(), LaneState{});
    run.lanes_left.assign(members, run.plan->algorithm->lanes());
    run.early.clear();
    run.blocked.clear();
    for (std::uint32_t lane = 0; lane < run.plan->algorithm->lanes(); ++lane) {
      for (std::uint32_t member = 0; member < run.endpoints; ++member) {
        complete_rounds(run, lane, member);
      }
    }
  }
  return index;
}

std::string CollectiveRuns::describe(std::uint32_t stream, std::uint32_t work) const {
  const CollectiveWork& collective = graph_.collective_works[work];
  return "rank " + std::to_string(streams_.rank_of(stream)) + " issues " +
         std::string(name_of(collective.op)) + " of " + std::to_string(collective.bytes.value()) +
         " bytes of " + std::string(name_of(collective.type)) + " (" +
         std::string(name_of(collective.algorithm)) + ") in op " +
         std::to_string(streams_.position(stream)) + " of stream '" +
         streams_.program_of(stream).streams[streams_.local(stream)].name + "'";
}

void CollectiveRuns::check_agreement(const Run& run, std::uint32_t stream) const {
  const std::uint32_t work = streams_.program_of(stream).ops[streams_.op(stream)].work;
  if (graph_.collective_works[work] == graph_.collective_works[run.work]) return;
  throw MismatchError(
      "members of communicator '" +
      graph_.communicators[graph_.collective_works[work].communicator.index()].name +
      "' issue different collectives: " + describe(run.first, run.work) + ", but " +
      describe(stream, work));
}

void CollectiveRuns::all_posted(Run& run, std::uint32_t index, Time now, Meetings& meetings) {
  // A member that only had to send may have ended before the last one came.
  const bool stepped = !run.plan->at_once;
  for (std::size_t member = 0; member < run.streams.size(); ++member) {
    const std::uint32_t stream = *run.streams[member];
    if (stream == run.last || (stepped && run.lanes_left[member] == 0)) continue;
    meetings.joins.push_back({.stream = stream, .from = run.last});
    meetings.arrows.push_back({.stream = stream, .from = run.last});
  }
  const CollectiveWork& work = graph_.collective_works[run.work];
  const auto asked_of =
      static_cast<std::size_t>(graph_.communicators[work.communicator.index()].axis);
  if (!work.byte_matrix) {
    asked_[asked_of] +=
        least_bytes(work.op, work.bytes, static_cast<std::int64_t>(run.streams.size()));
  } else if (!stepped) {
    asked_[asked_of] += run.plan->sent;
  }
  if (!stepped) {
    const CollectivePlan& plan = *run.plan;
    const CollectiveWork& collective = graph_.collective_works[run.work];
    const Axis axis = graph_.communicators[collective.communicator.index()].axis;
    sent_[static_cast<std::size_t>(axis)] += plan.sent;
    transport_.start(now, {.bytes = plan.bytes, .latency = plan.latency, .uses = plan.uses},
                     {.collective = true, .index = index}, plan.data);
  }
}

void CollectiveRuns::arrived(const TransferOwner& owner, Time now, Meetings& meetings) {
  if (runs_[owner.index].plan->at_once) {
    const auto members = static_cast<std::uint32_t>(runs_[owner.index].streams.size());
    for (std::uint32_t member = 0; member < members; ++member) {
      end_member(owner.index, member, now, meetings);
    }
    return;
  }
  Run& run = runs_[owner.index];
  LaneState& sender = lane_state(run, owner.lane, owner.from);
  sender.sending = false;
  ++sender.sent;
  received(owner.index, owner.lane, owner.round, owner.to);
  go_on(owner.index, owner.lane, owner.from, now, meetings);
  if (owner.to != owner.from) go_on(owner.index, owner.lane, owner.to, now, meetings);
}

void CollectiveRuns::end_member(std::uint32_t index, std::uint32_t member, Time now,
                                Meetings& meetings) {
  Run& run = runs_[index];
  const std::uint32_t stream = *run.streams[member];
  const bool all_there = run.arrived == run.streams.size();
  const std::uint32_t stage = graph_.ranks[streams_.rank_of(stream)].pp;
  const std::uint32_t last_stage = graph_.ranks[streams_.rank_of(run.last)].pp;
  meetings.ends.push_back(
      {.stream = stream,
       .moving = all_there ? run.last_at : std::min(now, streams_.started_at(stream)),
       .waited_for_other_stage = stage != last_stage});
  if (++run.done == run.streams.size()) retire(index);
}

void CollectiveRuns::retire(std::uint32_t index) {
  const Run& run = runs_[index];
  GroupState& group = groups_[graph_.collective_works[run.work].communicator.index()][run.group];
  // Collectives of a group may end out of order only in their last members: keep the numbering.
  const auto place = std::ranges::find(group.open, index);
  place->reset();
  while (!group.open.empty() && !group.open.front()) {
    group.open.pop_front();
    ++group.first_open;
  }
  free_.push_back(index);
}

// --- Stepped -------------------------------------------------------------------------------------

void CollectiveRuns::begin_stepped(std::uint32_t index, std::uint32_t member, Time now,
                                   Meetings& meetings) {
  const std::uint32_t lanes = runs_[index].plan->algorithm->lanes();
  for (std::uint32_t lane = 0; lane < lanes; ++lane) go_on(index, lane, member, now, meetings);
  std::vector<Blocked> waiting;
  std::erase_if(runs_[index].blocked, [&](const Blocked& blocked) {
    if (blocked.to != member) return false;
    waiting.push_back(blocked);
    return true;
  });
  for (const Blocked& blocked : waiting) {
    lane_state(runs_[index], blocked.lane, blocked.member).sending = false;
    go_on(index, blocked.lane, blocked.member, now, meetings);
  }
}

CollectiveRuns::LaneState& CollectiveRuns::lane_state(Run& run, std::uint32_t lane,
                                                      std::uint32_t member) {
  return run.lanes[std::size_t{lane} * run.endpoints + member];
}

// Where lanes wait for each other, what one has done may let the others of the member go on.
void CollectiveRuns::go_on(std::uint32_t index, std::uint32_t lane, std::uint32_t member, Time now,
                           Meetings& meetings) {
  if (!runs_[index].gated) {
    go_on_in_lane(index, lane, member, now, meetings);
    return;
  }
  const CollectiveAlgorithm& algorithm = *runs_[index].plan->algorithm;
  auto [first, last] = algorithm.lanes_behind(lane);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::uint32_t any = first; any < last; ++any) {
      if (!go_on_in_lane(index, any, member, now, meetings)) continue;
      moved = true;
      const auto [first_behind, last_behind] = algorithm.lanes_behind(any);
      first = std::min(first, first_behind);
      last = std::max(last, last_behind);
    }
  }
}

// Sends the next message of a member in a lane if it may be sent; ends the member when its last
// lane is done. True if it went over rounds in which the member sends nothing.
bool CollectiveRuns::go_on_in_lane(std::uint32_t index, std::uint32_t lane, std::uint32_t member,
                                   Time now, Meetings& meetings) {
  Run& run = runs_[index];
  const CollectiveAlgorithm& algorithm = *run.plan->algorithm;
  const std::size_t members = run.streams.size();
  LaneState& state = lane_state(run, lane, member);
  if (state.sending || (member < members && !run.streams[member])) return false;
  const std::uint32_t before = state.sent;
  while (state.sent < algorithm.rounds() && state.received >= state.sent) {
    const auto message = algorithm.message(lane, state.sent, member);
    if (!message) {
      ++state.sent;
      continue;
    }
    if (run.gated) {
      const auto gate = algorithm.gate(lane, state.sent, member);
      if (gate) {
        const LaneState& other = lane_state(run, gate->lane, member);
        if (other.sent <= gate->round || other.received <= gate->round) {
          return state.sent != before;
        }
      }
    }
    state.sending = true;
    if (message->to < members && !run.streams[message->to]) {
      run.blocked.push_back({lane, member, message->to});
    } else {
      send(index, lane, member, *message, now);
    }
    return state.sent != before;
  }
  if (state.sent == algorithm.rounds() && state.received == algorithm.rounds()) {
    state.sending = true;  // nothing more to do in this lane
    if (member < members && --run.lanes_left[member] == 0) {
      end_member(index, member, now, meetings);
    }
  }
  return state.sent != before;
}

void CollectiveRuns::send(std::uint32_t index, std::uint32_t lane, std::uint32_t member,
                          const CollectiveMessage& message, Time now) {
  const Run& run = runs_[index];
  const CollectiveWork& collective = graph_.collective_works[run.work];
  const Communicator& communicator = graph_.communicators[collective.communicator.index()];
  const std::vector<RankId>& ranks = communicator.groups[run.group];
  const std::uint32_t round = run.lanes[std::size_t{lane} * run.endpoints + member].sent;
  const bool is_member = member < run.streams.size();
  if (is_member) sent_[static_cast<std::size_t>(communicator.axis)] += message.bytes;
  if (is_member && collective.byte_matrix) {
    asked_[static_cast<std::size_t>(communicator.axis)] += message.bytes;
  }
  const std::uint32_t stream = is_member ? *run.streams[member] : UINT32_MAX - member;
  const TransferOwner owner{.collective = true,
                            .index = index,
                            .lane = lane,
                            .round = round,
                            .from = member,
                            .to = message.to,
                            .order = std::uint64_t{stream & 0xffffff} << 40 |
                                     std::uint64_t{lane & 0xfffff} << 20 | (round & 0xfffff)};
  const auto chip_of = [&](std::uint32_t of) { return graph_.ranks[ranks[of].index()].chip; };
  const LibraryCost& cost = run.plan->cost;
  if (message.link) {
    const HopKind kind =
        message.in_node ? transport_.cluster().library.inside
                        : transport_.hop_kind(chip_of(0), graph_.ranks[ranks.back().index()].chip);
    transport_.send_over(now, *message.link, message.bytes, kind, owner, cost, round == 0);
    return;
  }
  transport_.send(now, chip_of(member), chip_of(message.to), message.bytes, owner, cost,
                  round == 0);
}

void CollectiveRuns::received(std::uint32_t index, std::uint32_t lane, std::uint32_t round,
                              std::uint32_t member) {
  Run& run = runs_[index];
  LaneState& state = lane_state(run, lane, member);
  if (round != state.received) {
    run.early.push_back({lane, member, round});
    ++state.early;
    return;
  }
  ++state.arrived;
  complete_rounds(run, lane, member);
}

// Goes over the rounds of which everything has arrived, up to one that still waits.
void CollectiveRuns::complete_rounds(Run& run, std::uint32_t lane, std::uint32_t member) {
  const CollectiveAlgorithm& algorithm = *run.plan->algorithm;
  LaneState& state = lane_state(run, lane, member);
  while (state.received < algorithm.rounds()) {
    if (state.arrived < algorithm.receives(lane, state.received, member)) return;
    ++state.received;
    state.arrived = 0;
    if (state.early == 0) continue;
    const std::size_t found = std::erase_if(run.early, [&](const Early& early) {
      return early.lane == lane && early.member == member && early.round == state.received;
    });
    state.arrived = static_cast<std::uint32_t>(found);
    state.early -= state.arrived;
  }
}

// --- Report --------------------------------------------------------------------------------------

std::string CollectiveRuns::waits_for(std::uint32_t stream,
                                      std::vector<std::uint32_t>& ranks) const {
  const std::uint32_t work = streams_.program_of(stream).ops[streams_.op(stream)].work;
  const CommunicatorId communicator = graph_.collective_works[work].communicator;
  const std::uint32_t self = streams_.rank_of(stream);
  const Communicator& names = graph_.communicators[communicator.index()];
  const Communicator::Seat seat = names.seat_of[self];
  const GroupState& group = groups_[communicator.index()][seat.group];
  std::string text;
  for (std::size_t member = 0; member < group.posted.size(); ++member) {
    if (group.posted[member] < group.posted[seat.member]) {
      const std::uint32_t rank = names.groups[seat.group][member].index();
      ranks.push_back(rank);
      text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
    }
  }
  return text.empty() ? "its data" : text + " to join " + names.name;
}

}  // namespace stepsim
