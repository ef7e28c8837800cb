#include "import/replay.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "sim/base/error.h"
#include "sim/program/program_builder.h"

namespace stepsim {
namespace {

constexpr Axis kCollectiveAxis{0};
constexpr Axis kMessageAxis{1};
constexpr Axis kHostAxis{2};

// Messages numbers sends and receives, so that equal (source, destination, tag) match in order.
class Messages {
 public:
  explicit Messages(bool is_rendezvous) : is_rendezvous_(is_rendezvous) {}

  Message message(std::uint32_t from, std::uint32_t to, const TraceNode& node) {
    const bool is_send = node.kind == TraceNodeKind::kSend;
    const auto next = static_cast<std::int32_t>(channels_.size());
    Channel& channel =
        channels_.try_emplace({from, to, node.tag}, Channel{.number = next}).first->second;
    Message message;
    message.is_send = is_send;
    message.eager = !is_rendezvous_;
    message.peer = node.peer;
    message.microbatch = is_send ? channel.sent++ : channel.received++;
    message.boundary = channel.number;
    message.bytes = node.bytes;
    return message;
  }

 private:
  struct Channel {
    std::int32_t number = 0;
    std::int32_t sent = 0;
    std::int32_t received = 0;
  };
  const bool is_rendezvous_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>, Channel> channels_;
};

// Tables are the parts of the graph that ranks share.
class Tables {
 public:
  Tables(const TraceJob& job, const ReplayOptions& options)
      : job_(job), options_(options), messages_(options.rendezvous) {
    graph_.names = job.names;
    graph_.axes = {"collectives", "messages", "host"};
    graph_.path_labels = {"kernels"};
    if (graph_.names.empty()) graph_.names.emplace_back("op");
    for (std::uint32_t group = 0; group < job.groups.size() && job.divisions.empty(); ++group) {
      add_group(group);
    }
    for (std::uint32_t division = 0; division < job.divisions.size(); ++division) {
      add_division(division);
    }
  }

  const TraceJob& job() const { return job_; }
  const ReplayOptions& options() const { return options_; }
  OpGraph& graph() { return graph_; }

  std::optional<std::uint32_t> member(std::uint32_t group, std::uint32_t rank) const {
    const auto found = members_[group].find(rank);
    if (found == members_[group].end()) return std::nullopt;
    return found->second;
  }
  std::uint32_t size_of_group(std::uint32_t group) const {
    return static_cast<std::uint32_t>(job_.groups[job_.first_group(group)].size());
  }

  std::uint32_t kernel(const TraceNode& node) {
    const bool has_work = node.flops > Flops(0) || node.bytes > Bytes(0);
    const bool by_chip = has_work && (options_.retimed || !node.time);
    const Duration time =
        by_chip ? roofline(node.flops, node.bytes, *options_.chip) : node.time.value_or(Duration());
    return number(kernels_, std::pair(time.count(), node.flops.value()), [&] {
      graph_.compute_works.push_back(
          {.kernels = {{.name = "replayed", .flops = node.flops, .recorded = time}}});
      return graph_.compute_works.size() - 1;
    });
  }

  std::uint32_t wait(Duration time) {
    return number(waits_, time.count(), [&] {
      HostWork work;
      work.action = HostAction::kOther;
      work.time = time;
      graph_.host_works.push_back(work);
      return graph_.host_works.size() - 1;
    });
  }

  std::uint32_t collective(const TraceNode& node, bool is_barrier) {
    const CollectiveOp op = is_barrier ? CollectiveOp::kBarrier : node.op;
    const Bytes bytes = is_barrier ? Bytes(0) : node.bytes;
    const auto key = std::tuple(node.group, op, bytes.value(), node.root);
    return number(collectives_, key, [&] {
      graph_.collective_works.push_back({.communicator = communicator_of_[node.group],
                                         .op = op,
                                         .bytes = bytes,
                                         .root = node.root});
      return graph_.collective_works.size() - 1;
    });
  }

  std::uint32_t message(std::uint32_t rank, const TraceNode& node) {
    const bool is_send = node.kind == TraceNodeKind::kSend;
    Message message =
        messages_.message(is_send ? rank : node.peer, is_send ? node.peer : rank, node);
    message.communicator = CommunicatorId(0);
    graph_.messages.push_back(message);
    return static_cast<std::uint32_t>(graph_.messages.size() - 1);
  }

 private:
  template <class Key, class Make>
  std::uint32_t number(std::map<Key, std::uint32_t>& known, const Key& key, Make make) {
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
    const auto made = static_cast<std::uint32_t>(make());
    known.emplace(key, made);
    return made;
  }

  // Groups without a common rank share a communicator, which has a seat for every rank of the job.
  void add_group(std::size_t group) {
    const std::size_t communicator = communicator_for(group);
    communicator_of_.emplace_back(static_cast<std::uint32_t>(communicator));
    members_.emplace_back();
    join(communicator, group);
  }

  void add_division(std::size_t division) {
    const std::size_t communicator = new_communicator(division);
    communicator_of_.emplace_back(static_cast<std::uint32_t>(communicator));
    members_.emplace_back();
    for (const std::uint32_t group : job_.divisions[division]) join(communicator, group);
  }

  void join(std::size_t communicator, std::size_t group) {
    Communicator& joined = graph_.communicators[communicator];
    const auto number = static_cast<std::uint32_t>(joined.groups.size());
    joined.groups.emplace_back();
    for (const std::uint32_t rank : job_.groups[group]) {
      const auto member = static_cast<std::uint32_t>(joined.groups.back().size());
      joined.groups.back().emplace_back(rank);
      joined.seat_of[rank] = {number, member};
      seated_[communicator][rank] = true;
      members_.back().emplace(rank, member);
    }
  }

  // Tries the last ones. The first, of all ranks, is full.
  std::size_t communicator_for(std::size_t group) {
    constexpr std::size_t kTried = 16;
    const std::size_t count = graph_.communicators.size();
    for (std::size_t i = count; i-- > 1 && count - i <= kTried;) {
      const bool is_free = std::ranges::none_of(
          job_.groups[group], [&](std::uint32_t rank) { return seated_[i][rank]; });
      if (!is_free) continue;
      std::string& name = graph_.communicators[i].name;
      if (graph_.communicators[i].groups.size() == 1) name += " and others";
      return i;
    }
    return new_communicator(group);
  }

  std::size_t new_communicator(std::size_t group) {
    Communicator communicator{.name = group == 0 ? "all" : "group " + std::to_string(group),
                              .axis = kCollectiveAxis,
                              .groups = {},
                              .seat_of = {}};
    communicator.seat_of.resize(job_.ranks);
    graph_.communicators.push_back(std::move(communicator));
    seated_.emplace_back(job_.ranks, false);
    return graph_.communicators.size() - 1;
  }

  const TraceJob& job_;
  const ReplayOptions& options_;
  OpGraph graph_;
  std::vector<std::unordered_map<std::uint32_t, std::uint32_t>> members_;  // by group
  std::vector<CommunicatorId> communicator_of_;                            // by group
  std::vector<std::vector<bool>> seated_;                                  // ranks, by communicator
  std::map<std::pair<std::int64_t, double>, std::uint32_t> kernels_;
  std::map<std::int64_t, std::uint32_t> waits_;
  std::map<std::tuple<std::uint32_t, CollectiveOp, std::int64_t, std::uint32_t>, std::uint32_t>
      collectives_;
  Messages messages_;
};

// A node that is in no order: it waits for itself, or for others that do.
std::string stuck_node(const TraceRank& rank, const std::vector<std::uint32_t>& order) {
  std::vector<bool> is_placed(rank.nodes.size());
  for (const std::uint32_t node : order) is_placed[node] = true;
  const auto stuck = std::ranges::find(is_placed, false) - is_placed.begin();
  return std::to_string(stuck);
}

std::uint32_t main_lane(const TraceRank& rank) {
  std::map<std::uint32_t, Duration> times;
  for (const TraceNode& node : rank.nodes) {
    if (node.kind != TraceNodeKind::kKernel) continue;
    times[node.lane.value_or(0)] += node.time.value_or(Duration(1));
  }
  const auto longest = std::ranges::max_element(
      times, [](const auto& a, const auto& b) { return a.second < b.second; });
  return longest == times.end() ? 0 : longest->first;
}

class RankReplay {
 public:
  RankReplay(Tables& tables, const TraceRank& rank, std::uint32_t number)
      : tables_(tables),
        rank_(rank),
        number_(number),
        main_lane_(main_lane(rank)),
        builder_("rank " + std::to_string(number)),
        compute_(builder_.add_stream("compute", true)),
        ends_(rank.nodes.size()) {}

  Program build(std::vector<Problem>& problems) {
    const std::vector<std::uint32_t> order = order_of(rank_);
    if (order.size() != rank_.nodes.size()) {
      refuse(problems, "node " + stuck_node(rank_, order) +
                           " waits for nodes that wait for it, so it never starts");
      return {};
    }
    for (const std::uint32_t node : order) add(node, problems);
    return std::move(builder_).build();
  }

 private:
  enum class Purpose : std::uint8_t { kHost, kJoin, kLane, kGroup, kSendTo, kReceiveFrom };
  static constexpr std::size_t kMostHandedOn = 16;
  static constexpr std::size_t kMostStreams = 4096;

  void refuse(std::vector<Problem>& problems, std::string message) const {
    problems.push_back({"rank " + std::to_string(number_), std::move(message)});
  }

  StreamId stream(Purpose purpose, std::uint32_t which) {
    const auto found = streams_.find({purpose, which});
    if (found != streams_.end()) return found->second;
    if (streams_.size() == kMostStreams) {
      throw ConfigError({{"rank " + std::to_string(number_),
                          "has more than 4,096 lanes, groups and peers; a replay takes fewer"}});
    }
    static constexpr std::array<std::string_view, 6> kNames = {
        "host", "join", "lane ", "group ", "send to ", "receive from "};
    std::string name(kNames[static_cast<std::size_t>(purpose)]);
    if (purpose > Purpose::kJoin) name += std::to_string(which);
    return streams_.emplace(std::pair(purpose, which), builder_.add_stream(std::move(name)))
        .first->second;
  }

  // The last op of each stream that a node has to wait for.
  std::vector<OpRef> waits_of(std::uint32_t node) const {
    std::vector<OpRef> waits;
    for (const std::uint32_t before : rank_.dependencies_of(node)) {
      for (const OpRef op : ends_[before]) merge(waits, op);
    }
    return waits;
  }
  static void merge(std::vector<OpRef>& waits, OpRef op) {
    const auto same = std::ranges::find(waits, op.stream.index(),
                                        [](const OpRef& other) { return other.stream.index(); });
    if (same == waits.end()) {
      waits.push_back(op);
    } else {
      same->position = std::max(same->position, op.position);
    }
  }

  OpRef add_op(StreamId stream, OpKind kind, Axis axis, std::uint32_t work, const TraceNode& node,
               std::vector<OpRef> waits) {
    OpDraft op{.stream = stream, .kind = kind, .axis = axis, .work = work};
    op.label.name = node.name;
    for (const OpRef wait : waits) op.dependencies.push_back(after(wait));
    return builder_.add(op);
  }

  void add(std::uint32_t number, std::vector<Problem>& problems) {
    const TraceNode& node = rank_.nodes[number];
    std::vector<OpRef> waits = waits_of(number);
    switch (node.kind) {
      case TraceNodeKind::kNothing:
        add_nothing(node, number, waits);
        return;
      case TraceNodeKind::kKernel:
        ends_[number] = {add_kernel(node, waits)};
        return;
      case TraceNodeKind::kGap:
        ends_[number] = {add_gap(node, waits)};
        return;
      case TraceNodeKind::kOther:
        ends_[number] = {add_op(stream(Purpose::kHost, 0), OpKind::kHost, kHostAxis,
                                tables_.wait(node.time.value_or(Duration())), node, waits)};
        return;
      case TraceNodeKind::kCollective:
        add_collective(number, waits, problems);
        return;
      case TraceNodeKind::kSend:
      case TraceNodeKind::kReceive:
        add_message(number, waits, problems);
    }
  }

  // Hands on what it waits for. A node that joins very many streams becomes an op, so that those
  // behind it don't each keep all of them; such ops follow one another.
  void add_nothing(const TraceNode& node, std::uint32_t number, std::vector<OpRef>& waits) {
    if (waits.size() > kMostHandedOn) {
      waits = {add_op(stream(Purpose::kJoin, 0), OpKind::kHost, kHostAxis, tables_.wait(Duration()),
                      node, waits)};
    }
    ends_[number] = std::move(waits);
  }

  // Kernels and collectives of one lane follow one another.
  void follow_lane(const TraceNode& node, std::vector<OpRef>& waits) const {
    if (!node.lane) return;
    const auto last = last_of_lane_.find(*node.lane);
    if (last != last_of_lane_.end()) merge(waits, last->second);
  }

  OpRef add_kernel(const TraceNode& node, std::vector<OpRef>& waits) {
    follow_lane(node, waits);
    const std::uint32_t lane = node.lane.value_or(main_lane_);
    const std::uint32_t work = tables_.kernel(node);
    OpRef op;
    if (lane == main_lane_) {
      op = add_op(compute_, OpKind::kCompute, Axis{}, work, node, waits);
    } else {
      const Duration time = *tables_.graph().compute_works[work].kernels[0].recorded;
      op = add_op(stream(Purpose::kLane, lane), OpKind::kHost, kHostAxis, tables_.wait(time), node,
                  waits);
    }
    if (node.lane) last_of_lane_.insert_or_assign(lane, op);
    return op;
  }

  // The host launches; what follows on the lane waits for it.
  OpRef add_gap(const TraceNode& node, std::vector<OpRef>& waits) {
    follow_lane(node, waits);
    const OpRef op = add_op(stream(Purpose::kHost, 0), OpKind::kHost, kHostAxis,
                            tables_.wait(node.time.value_or(Duration())), node, waits);
    if (node.lane) last_of_lane_.insert_or_assign(*node.lane, op);
    return op;
  }

  void add_collective(std::uint32_t number, std::vector<OpRef>& waits,
                      std::vector<Problem>& problems) {
    const TraceNode& node = rank_.nodes[number];
    if (!tables_.member(node.group, number_)) {
      refuse(problems, "node " + std::to_string(number) + " is a collective of group " +
                           std::to_string(node.group) + ", which does not have this rank");
      return;
    }
    follow_lane(node, waits);
    const std::uint32_t members = tables_.size_of_group(node.group);
    const auto& given_time = tables_.options().collective_time;
    if (given_time && last_collective_) merge(waits, *last_collective_);
    if (members == 1) {
      ends_[number] = std::move(waits);
      return;
    }
    OpRef op = add_op(stream(Purpose::kGroup, node.group), OpKind::kCollective, kCollectiveAxis,
                      tables_.collective(node, bool(given_time)), node, waits);
    if (given_time) {
      op = add_op(stream(Purpose::kGroup, node.group), OpKind::kHost, kCollectiveAxis,
                  tables_.wait(given_time(node, members)), node, {op});
    }
    last_collective_ = op;
    if (node.lane) last_of_lane_.insert_or_assign(*node.lane, op);
    ends_[number] = {op};
  }

  void add_message(std::uint32_t number, std::vector<OpRef>& waits,
                   std::vector<Problem>& problems) {
    const TraceNode& node = rank_.nodes[number];
    const bool is_send = node.kind == TraceNodeKind::kSend;
    if (node.peer >= tables_.job().ranks) {
      refuse(problems, "node " + std::to_string(number) +
                           (is_send ? " sends to" : " receives from") + " rank " +
                           std::to_string(node.peer) + ", which does not exist");
      return;
    }
    if (node.peer == number_) {
      ends_[number] = std::move(waits);
      return;
    }
    const StreamId on = stream(is_send ? Purpose::kSendTo : Purpose::kReceiveFrom, node.peer);
    ends_[number] = {
        add_op(on, OpKind::kMessages, kMessageAxis, tables_.message(number_, node), node, waits)};
  }

  Tables& tables_;
  const TraceRank& rank_;
  const std::uint32_t number_;
  const std::uint32_t main_lane_;
  ProgramBuilder builder_;
  StreamId compute_;
  std::vector<std::vector<OpRef>> ends_;  // by node: what follows it waits for these
  std::map<std::pair<Purpose, std::uint32_t>, StreamId> streams_;
  std::map<std::uint32_t, OpRef> last_of_lane_;
  std::optional<OpRef> last_collective_;
};

bool has_messages(const TraceRank& rank) {
  return std::ranges::any_of(rank.nodes, [](const TraceNode& node) {
    return node.kind == TraceNodeKind::kSend || node.kind == TraceNodeKind::kReceive;
  });
}

}  // namespace

std::vector<std::uint32_t> order_of(const TraceRank& rank) {
  const std::size_t count = rank.nodes.size();
  std::vector<std::uint32_t> missing(count, 0);
  std::vector<std::uint32_t> first(count + 1, 0);
  for (const std::uint32_t before : rank.dependencies) ++first[before + 1];
  for (std::size_t node = 0; node < count; ++node) first[node + 1] += first[node];
  std::vector<std::uint32_t> followers(rank.dependencies.size());
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (std::uint32_t node = 0; node < count; ++node) {
    for (const std::uint32_t before : rank.dependencies_of(node)) {
      followers[at[before]++] = node;
      ++missing[node];
    }
  }
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t node = 0; node < count; ++node) {
    if (missing[node] == 0) ready.push(node);
  }
  std::vector<std::uint32_t> order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (std::uint32_t i = first[node]; i < first[node + 1]; ++i) {
      if (--missing[followers[i]] == 0) ready.push(followers[i]);
    }
  }
  return order;
}

Duration roofline(Flops flops, Bytes bytes, const ChipSpec& chip) {
  Throughput peak = chip.peak_of(DataType::kBf16);
  if (!(peak > Throughput(0))) peak = chip.peak_of(DataType::kFp32);
  return std::max(flops > Flops(0) ? flops / peak : Duration(),
                  bytes > Bytes(0) ? bytes / chip.memory_bandwidth : Duration());
}

OpGraph replay(const TraceJob& job, const ReplayOptions& options) {
  std::vector<Problem> problems;
  Tables tables(job, options);
  if (job.programs.size() == 1 && job.ranks > 1 && has_messages(job.programs[0])) {
    problems.push_back({"--ranks", "one file can't stand for several ranks: it sends or receives"});
    throw ConfigError(std::move(problems));
  }
  for (std::uint32_t rank = 0; rank < job.programs.size(); ++rank) {
    tables.graph().programs.push_back(RankReplay(tables, job.programs[rank], rank).build(problems));
  }
  throw_if_any(std::move(problems));
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
    const std::uint32_t program = job.programs.size() == 1 ? 0 : rank;
    tables.graph().ranks.push_back({.program = ProgramId(program), .chip = rank});
  }
  return std::move(tables.graph());
}

}  // namespace stepsim
