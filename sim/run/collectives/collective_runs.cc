#include "sim/run/collectives/collective_runs.h"

#include <algorithm>

#include "sim/run/ops/mismatch_error.h"

namespace stepsim {
namespace {

// Returns the bytes that `members` send together if each byte goes once to each place that needs
// it. An all-reduce counts as a reduce-scatter and an all-gather.
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

CollectiveRuns::CollectiveRuns(const Job& job, const Streams& streams, const LastCause& last_cause,
                               Transport& transport, CollectivePlans& plans)
    : job_(job),
      graph_(job.graph()),
      streams_(streams),
      last_cause_(last_cause),
      transport_(transport),
      group_plans_(plans),
      plans_(job.graph().collective_works.size()),
      groups_(job.communicators().size()) {
  for (std::uint32_t c = 0; c < groups_.size(); ++c) {
    for (const std::vector<RankId>& group : job.communicators()[c].groups) {
      const GroupId number(static_cast<std::uint32_t>(groups_[c].size()));
      groups_[c].push_back({.members = job.members(CommunicatorId(c), number),
                            .posted = std::vector<std::uint32_t>(group.size(), 0),
                            .open = {}});
    }
  }
  for (std::uint32_t w = 0; w < plans_.size(); ++w) {
    plans_[w].resize(communicator_of(CollectiveWorkId(w)).groups.size());
  }
}

CollectiveRuns::Plan& CollectiveRuns::plan_of(CollectiveWorkId work, GroupId group) {
  std::unique_ptr<Plan>& plan = plans_[work.index()][group.index()];
  if (plan) return *plan;
  const CommunicatorId communicator = work_of(work).communicator;
  plan = std::make_unique<Plan>();
  plan->members = job_.members(communicator, group);
  plan->count = job_.count(communicator, group);
  plan->of_group = group_plans_.plan_of(work, job_.representative(communicator, group));
  if (plan->of_group.at_once) {
    plan->links = transport_.fold().fold(plan->of_group.uses, plan->count);
  }
  return *plan;
}

void CollectiveRuns::book_transfers() {
  for (const auto& of_work : plans_) {
    for (const auto& plan : of_work) {
      if (plan && plan->transfers > 0) book(*plan, plan->transfers);
    }
  }
}

void CollectiveRuns::book_repeats() {
  for (const auto& of_work : plans_) {
    for (const auto& plan : of_work) {
      if (plan && plan->repeated > 0) book(*plan, plan->repeated);
    }
  }
}

CollectiveRuns::Past CollectiveRuns::past() const {
  Past past{.transfers = {}, .sent = sent_, .asked = asked_};
  for (const auto& of_work : plans_) {
    std::vector<std::uint64_t>& transfers = past.transfers.emplace_back();
    for (const auto& plan : of_work) transfers.push_back(plan ? plan->transfers : 0);
  }
  return past;
}

void CollectiveRuns::repeat(std::uint64_t times, const Past& past) {
  for (std::size_t work = 0; work < plans_.size(); ++work) {
    for (std::size_t group = 0; group < plans_[work].size(); ++group) {
      Plan* const plan = plans_[work][group].get();
      if (plan == nullptr) continue;
      plan->repeated += times * (plan->transfers - past.transfers[work][group]);
    }
  }
  const auto count = static_cast<std::int64_t>(times);
  for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
    sent_[axis] += count * (sent_[axis] - past.sent[axis]);
    asked_[axis] += count * (asked_[axis] - past.asked[axis]);
  }
}

void CollectiveRuns::book(const Plan& plan, std::uint64_t transfers) {
  const std::vector<LinkUse>& uses = plan.of_group.uses;
  std::vector<ExactBytes> routed;
  for (const LinkUse& use : uses) routed.push_back(ExactBytes::of(plan.of_group.bytes, use.weight));
  std::vector<ExactBytes> data = plan.of_group.data.empty() ? routed : plan.of_group.data;
  if (transport_.fold().folds()) {
    routed = transport_.fold().fold(uses, routed, plan.count);
    data = transport_.fold().fold(uses, data, plan.count);
  }
  for (std::size_t i = 0; i < plan.links.uses.size(); ++i) {
    transport_.book(plan.links.uses[i].link, transfers * routed[i], transfers * data[i]);
  }
}

ChipShare CollectiveRuns::taken(RankStreamId stream) {
  const CollectiveWorkId work = posted_work(stream);
  const Communicator& communicator = communicator_of(work);
  const std::uint32_t group = communicator.seat_of[streams_.rank_of(stream).index()].group;
  if (state_of(work, GroupId(group)).members == 1) return {};
  return plan_of(work, GroupId(group)).of_group.taken;
}

// --- Arrival -------------------------------------------------------------------------------------

void CollectiveRuns::post(RankStreamId stream, Time now, CommunicationReports& reports) {
  const CollectiveWorkId work = posted_work(stream);
  const Communicator::Seat seat = communicator_of(work).seat_of[streams_.rank_of(stream).index()];
  GroupState& group = state_of(work, GroupId(seat.group));
  const auto members = static_cast<std::uint32_t>(group.posted.size());
  if (group.members == 1) {  // a group of one costs nothing
    reports.ends.push_back({.stream = stream, .moving = now});
    return;
  }
  const std::uint32_t number = group.posted[seat.member]++;
  const CollectiveRunId id = run_of(work, GroupId(seat.group), number, stream);
  Run& run = runs_[id.index()];
  if (run.work != work) check_agreement(run, stream);
  run.streams[seat.member] = stream;
  const bool later = run.arrived == 0 || now > run.last_at;
  if (later || last_cause_.precedes(stream, run.last)) {
    run.last = stream;
    run.last_at = now;
  }
  ++run.arrived;
  if (!run.plan->of_group.at_once) {
    run.stepped.post(MemberId(seat.member), now, progress_);
    carry_on(id, now, reports);
  }
  if (run.arrived == members) all_posted(id, now, reports);
}

// Returns the run of this number in its group. Opens it if nobody has posted it yet.
CollectiveRunId CollectiveRuns::run_of(CollectiveWorkId work, GroupId group, std::uint32_t number,
                                       RankStreamId stream) {
  GroupState& state = state_of(work, group);
  while (state.first_open + state.open.size() <= number) {
    state.open.emplace_back(open_run(work, group, stream));
  }
  return *state.open[number - state.first_open];
}

CollectiveRunId CollectiveRuns::open_run(CollectiveWorkId work, GroupId group,
                                         RankStreamId stream) {
  if (free_.empty()) {
    free_.emplace_back(static_cast<std::uint32_t>(runs_.size()));
    runs_.emplace_back();
  }
  const CollectiveRunId id = free_.back();
  free_.pop_back();
  Run& run = runs_[id.index()];
  run.plan = &plan_of(work, group);
  run.work = work;
  run.group = group;
  run.arrived = 0;
  run.done = 0;
  run.first = stream;
  const std::size_t members = state_of(work, group).posted.size();
  run.streams.assign(members, std::nullopt);
  if (!run.plan->of_group.at_once) {
    run.stepped.open(*run.plan->of_group.algorithm, static_cast<std::uint32_t>(members),
                     transport_.by_packets());
  }
  return id;
}

std::string CollectiveRuns::describe(RankStreamId stream, CollectiveWorkId work) const {
  const CollectiveWork& collective = work_of(work);
  return "rank " + std::to_string(streams_.rank_of(stream).index()) + " issues " +
         std::string(name_of(collective.op)) + " of " + std::to_string(collective.bytes.value()) +
         " bytes of " + std::string(name_of(collective.type)) + " (" +
         std::string(name_of(collective.algorithm)) + ") in op " +
         std::to_string(streams_.position(stream)) + " of stream '" + streams_.stream(stream).name +
         "'";
}

void CollectiveRuns::check_agreement(const Run& run, RankStreamId stream) const {
  const CollectiveWorkId work = posted_work(stream);
  if (work_of(work) == work_of(run.work)) return;
  throw MismatchError("members of communicator '" + communicator_of(work).name +
                      "' issue different collectives: " + describe(run.first, run.work) + ", but " +
                      describe(stream, work));
}

void CollectiveRuns::all_posted(CollectiveRunId id, Time now, CommunicationReports& reports) {
  const Run& run = runs_[id.index()];
  const bool at_once = run.plan->of_group.at_once;
  // A member that only had to send may have ended before the last one came.
  for (std::uint32_t member = 0; member < run.streams.size(); ++member) {
    const RankStreamId stream = *run.streams[member];
    if (stream == run.last || (!at_once && run.stepped.has_ended(MemberId(member)))) continue;
    reports.joins.push_back({.stream = stream, .from = run.last});
    reports.arrows.push_back({.stream = stream, .from = run.last});
  }
  const CollectiveWork& work = work_of(run.work);
  Bytes& asked = asked_[static_cast<std::size_t>(communicator_of(run.work).axis)];
  if (!work.byte_matrix) {
    asked += std::int64_t{run.plan->count} *
             least_bytes(work.op, work.bytes, std::int64_t{run.plan->members});
  } else if (at_once) {
    asked += std::int64_t{run.plan->count} * run.plan->of_group.sent;
  }
  if (at_once) start_at_once(id, now);
}

void CollectiveRuns::start_at_once(CollectiveRunId id, Time now) {
  const Run& run = runs_[id.index()];
  Plan& plan = *run.plan;
  ++plan.transfers;
  sent_[static_cast<std::size_t>(communicator_of(run.work).axis)] +=
      std::int64_t{plan.count} * plan.of_group.sent;
  transport_.start(now,
                   {.bytes = plan.of_group.bytes,
                    .latency = plan.of_group.latency,
                    .uses = plan.links.uses,
                    .alone = plan.links.alone},
                   CollectiveTransfer{.run = id});
}

void CollectiveRuns::arrived(const CollectiveTransfer& transfer, Time now,
                             CommunicationReports& reports) {
  Run& run = runs_[transfer.run.index()];
  if (!run.plan->of_group.at_once) {
    run.stepped.arrived(transfer, now, progress_);
    carry_on(transfer.run, now, reports);
    return;
  }
  const auto members = static_cast<std::uint32_t>(run.streams.size());
  for (std::uint32_t member = 0; member < members; ++member) {
    end_member(transfer.run, MemberId(member), now, reports);
  }
}

void CollectiveRuns::end_member(CollectiveRunId id, MemberId member, Time now,
                                CommunicationReports& reports) {
  Run& run = runs_[id.index()];
  const RankStreamId stream = *run.streams[member.index()];
  const bool all_there = run.arrived == run.streams.size();
  reports.ends.push_back(
      {.stream = stream,
       .moving = all_there ? run.last_at : std::min(now, streams_.started_at(stream)),
       .waited_for_other_stage = stage_of(stream) != stage_of(run.last),
       .last = run.last});
  if (++run.done == run.streams.size()) retire(id);
}

void CollectiveRuns::retire(CollectiveRunId id) {
  const Run& run = runs_[id.index()];
  GroupState& group = state_of(run.work, run.group);
  // Collectives of a group may end out of order only in their last members, so the numbering is
  // kept.
  std::ranges::find(group.open, std::optional(id))->reset();
  while (!group.open.empty() && !group.open.front()) {
    group.open.pop_front();
    ++group.first_open;
  }
  free_.push_back(id);
}

// --- Stepped -------------------------------------------------------------------------------------

// Does what the stepped collective has just found possible.
void CollectiveRuns::carry_on(CollectiveRunId id, Time now, CommunicationReports& reports) {
  for (const SteppedCollective::Send& one : progress_.sends) send(id, one, now);
  for (const MemberId member : progress_.ended) end_member(id, member, now, reports);
  progress_.clear();
}

void CollectiveRuns::send(CollectiveRunId id, const SteppedCollective::Send& send, Time now) {
  const Run& run = runs_[id.index()];
  const Communicator& communicator = communicator_of(run.work);
  const std::vector<RankId>& ranks = communicator.groups[run.group.index()];
  const auto axis = static_cast<std::size_t>(communicator.axis);
  const CollectiveMessage& message = send.message;
  const std::uint32_t from = send.from.index();
  const bool is_member = from < run.streams.size();
  if (is_member) {
    sent_[axis] += message.bytes;
    if (work_of(run.work).byte_matrix) asked_[axis] += message.bytes;
  }
  const CollectiveTransfer owner{.run = id,
                                 .lane = send.lane,
                                 .round = send.round,
                                 .from = send.from,
                                 .to = MemberId(message.to)};
  const TransferOrder order =
      is_member ? TransferOrder::of_collective(*run.streams[from], send.lane, send.round)
                : TransferOrder::of_switch(send.from, send.lane, send.round);
  const auto chip_of = [&](std::uint32_t of) { return job_.ranks()[ranks[of].index()].chip; };
  const LibraryCost& cost = run.plan->of_group.cost;
  if (message.link) {
    const HopKind kind =
        message.in_node ? transport_.cluster().library.inside
                        : transport_.hop_kind(chip_of(0), job_.ranks()[ranks.back().index()].chip);
    transport_.send(now, Transport::SwitchMessage{*message.link, kind, message.bytes, owner, order},
                    cost, send.begins, send.waited);
    return;
  }
  transport_.send(
      now, Transport::Message{chip_of(from), chip_of(message.to), message.bytes, owner, order},
      cost, send.begins, send.waited);
}

// --- Report --------------------------------------------------------------------------------------

std::string CollectiveRuns::waits_for(RankStreamId stream, std::vector<RankId>& ranks) const {
  const CommunicatorId id = work_of(posted_work(stream)).communicator;
  const Communicator& communicator = job_.communicators()[id.index()];
  const Communicator::Seat seat = communicator.seat_of[streams_.rank_of(stream).index()];
  const std::vector<std::uint32_t>& posted = groups_[id.index()][seat.group].posted;
  std::string text;
  for (std::size_t member = 0; member < posted.size(); ++member) {
    if (posted[member] >= posted[seat.member]) continue;
    const RankId rank = communicator.groups[seat.group][member];
    ranks.push_back(rank);
    text += (text.empty() ? "rank " : ", ") + std::to_string(rank.index());
  }
  return text.empty() ? "its data" : text + " to join " + communicator.name;
}

}  // namespace stepsim
