#include "sim/network/flow_run.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace stepsim {
namespace {

struct Begin {
  Time at;
  std::uint32_t flow;

  friend bool operator>(const Begin& a, const Begin& b) {
    return std::tie(a.at, a.flow) > std::tie(b.at, b.flow);
  }
};

// Waiting holds the flows that each flow waits for, and those that wait for it.
class Waiting {
 public:
  explicit Waiting(const FlowList& list)
      : awaited_(list.dependences.empty() ? 0 : list.flows.size(), 0) {
    if (list.dependences.empty()) return;
    followers_begin_.assign(list.flows.size() + 1, 0);
    for (const auto& [flow, after] : list.dependences) {
      ++awaited_[flow];
      ++followers_begin_[after + 1];
    }
    for (std::size_t i = 1; i < followers_begin_.size(); ++i) {
      followers_begin_[i] += followers_begin_[i - 1];
    }
    followers_.resize(list.dependences.size());
    std::vector<std::uint32_t> next(followers_begin_.begin(), followers_begin_.end() - 1);
    for (const auto& [flow, after] : list.dependences) followers_[next[after]++] = flow;
  }

  bool waits(std::uint32_t flow) const { return !awaited_.empty() && awaited_[flow] > 0; }

  // Calls `released` with each flow that waited only for this one.
  template <typename Released>
  void end(std::uint32_t flow, Released released) {
    if (awaited_.empty()) return;
    for (std::uint32_t i = followers_begin_[flow]; i < followers_begin_[flow + 1]; ++i) {
      if (--awaited_[followers_[i]] == 0) released(followers_[i]);
    }
  }

 private:
  std::vector<std::uint32_t> awaited_;          // by flow; empty: no flow waits
  std::vector<std::uint32_t> followers_begin_;  // by flow, in followers_
  std::vector<std::uint32_t> followers_;
};

// Starts flows, each as one message over its route.
class Starter {
 public:
  Starter(const FlowList& list, const Fabric& fabric, Network& network)
      : list_(list), fabric_(fabric), network_(network) {}

  void start(Time now, std::uint32_t index) {
    const FlowList::Flow& flow = list_.flows[index];
    uses_.clear();
    Duration latency{};
    for (const LinkId link : list_.route(flow)) {
      uses_.push_back({link, 1});
      latency += fabric_.link(link).latency;
    }
    network_.start(now, TransferId(index), {flow.bytes, latency, uses_});
  }

 private:
  const FlowList& list_;
  const Fabric& fabric_;
  Network& network_;
  std::vector<LinkUse> uses_;
};

// Begins holds the flows that only wait for their start time.
class Begins {
 public:
  Begins(const FlowList& list, const Waiting& waiting) : list_(list) {
    first_.reserve(list.flows.size());
    for (std::uint32_t flow = 0; flow < list.flows.size(); ++flow) {
      if (!waiting.waits(flow)) first_.push_back({list.flows[flow].start, flow});
    }
    const auto earlier = [](const Begin& a, const Begin& b) { return b > a; };
    if (!std::is_sorted(first_.begin(), first_.end(), earlier)) {
      std::sort(first_.begin(), first_.end(), earlier);
    }
  }

  std::optional<Time> next() const {
    std::optional<Time> next;
    if (next_first_ < first_.size()) next = first_[next_first_].at;
    if (!later_.empty() && !(next && *next <= later_.top().at)) next = later_.top().at;
    return next;
  }

  void add(Time now, std::uint32_t flow) {
    if (list_.flows[flow].start > now) {
      later_.push({list_.flows[flow].start, flow});
    } else {
      beginning_.push_back(flow);
    }
  }

  // Returns all flows that begin now, in order. The result is valid until the next call.
  std::span<const std::uint32_t> take(Time now) {
    taken_.clear();
    std::swap(taken_, beginning_);
    for (; next_first_ < first_.size() && first_[next_first_].at == now; ++next_first_) {
      taken_.push_back(first_[next_first_].flow);
    }
    for (; !later_.empty() && later_.top().at == now; later_.pop()) {
      taken_.push_back(later_.top().flow);
    }
    if (!std::is_sorted(taken_.begin(), taken_.end())) std::sort(taken_.begin(), taken_.end());
    return taken_;
  }

 private:
  const FlowList& list_;
  std::vector<Begin> first_;  // flows that wait for no other, in order
  std::size_t next_first_ = 0;
  std::priority_queue<Begin, std::vector<Begin>, std::greater<>> later_;  // flows that waited
  std::vector<std::uint32_t> beginning_;                                  // now, in no order
  std::vector<std::uint32_t> taken_;
};

}  // namespace

void FlowList::add(Time start, Bytes bytes, std::span<const LinkId> route) {
  flows.push_back({start, bytes, static_cast<std::uint32_t>(route_links.size()),
                   static_cast<std::uint32_t>(route.size())});
  route_links.insert(route_links.end(), route.begin(), route.end());
}

FlowRun run_flows(const FlowList& list, const Fabric& fabric, Network& network) {
  Waiting waiting(list);
  Begins begins(list, waiting);
  Starter starter(list, fabric, network);
  FlowRun result{.finish = std::vector<Time>(list.flows.size(), FlowRun::kNotEnded), .blocked = {}};
  std::vector<TransferId> done;
  std::size_t ended = 0;
  for (;;) {
    const std::optional<Time> event = network.next_event();
    const std::optional<Time> begin = begins.next();
    if (!event && !begin) break;
    const bool is_event = event && !(begin && *begin < *event);
    const Time now = is_event ? *event : *begin;
    if (is_event) {
      ++result.events;
      done.clear();
      network.advance(now, done);
      ended += done.size();
      for (const TransferId id : done) {
        result.finish[id.index()] = now;
        waiting.end(id.index(), [&](std::uint32_t flow) { begins.add(now, flow); });
      }
    }
    const std::span<const std::uint32_t> beginning = begins.take(now);
    for (const std::uint32_t flow : beginning) starter.start(now, flow);
    result.events += beginning.size();
    network.settle(now);
  }
  if (ended != list.flows.size()) result.blocked = network.blocked_report();
  if (ended != list.flows.size() && result.blocked.empty()) {
    throw std::logic_error("a flow never ended");
  }
  return result;
}

std::vector<std::vector<std::uint32_t>> find_cycles(const FlowList& list) {
  Waiting waiting(list);
  std::vector<std::uint32_t> free;
  for (std::uint32_t flow = 0; flow < list.flows.size(); ++flow) {
    if (!waiting.waits(flow)) free.push_back(flow);
  }
  for (std::size_t i = 0; i < free.size(); ++i) {
    waiting.end(free[i], [&](std::uint32_t flow) { free.push_back(flow); });
  }
  if (free.size() == list.flows.size()) return {};
  // Every flow that is left waits for another one that is left. Following one such link from each
  // flow leads into a cycle or onto a path that was followed before.
  std::vector<std::optional<std::uint32_t>> blocker(list.flows.size());
  for (const auto& [flow, after] : list.dependences) {
    if (waiting.waits(flow) && waiting.waits(after)) blocker[flow] = after;
  }
  std::vector<std::vector<std::uint32_t>> cycles;
  std::vector<std::optional<std::uint32_t>> walk_of(list.flows.size());
  for (std::uint32_t first = 0; first < list.flows.size(); ++first) {
    if (!blocker[first] || walk_of[first]) continue;
    std::uint32_t flow = first;
    for (; !walk_of[flow]; flow = *blocker[flow]) walk_of[flow] = first;
    if (walk_of[flow] != first) continue;
    std::vector<std::uint32_t> cycle{flow};
    for (std::uint32_t i = *blocker[flow]; i != flow; i = *blocker[i]) cycle.push_back(i);
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace stepsim
