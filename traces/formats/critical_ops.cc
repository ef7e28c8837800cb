#include "traces/formats/critical_ops.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace stepsim {
namespace {

struct Place {
  std::uint32_t timeline = 0;
  std::uint32_t entry = 0;
};

// Where the ops of a timeline stand in it, by step and op.
class Entries {
 public:
  explicit Entries(const Timeline& timeline) {
    for (std::uint32_t i = 0; i < timeline.ops.size(); ++i) {
      entry_of_[key(timeline.ops[i].step, timeline.ops[i].op)] = i;
    }
  }
  std::optional<std::uint32_t> of(std::uint32_t step, std::uint32_t op) const {
    const auto found = entry_of_.find(key(step, op));
    return found == entry_of_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static std::uint64_t key(std::uint32_t step, std::uint32_t op) {
    return std::uint64_t{step} << 32 | op;
  }
  std::unordered_map<std::uint64_t, std::uint32_t> entry_of_;  // looked up, never iterated
};

class Walk {
 public:
  Walk(const OpGraph& graph, const SimulationResult& result) : graph_(graph), result_(result) {
    for (const Timeline& timeline : result.timelines) {
      entries_.emplace_back(timeline);
      ops_.on_path.emplace_back(timeline.ops.size(), false);
    }
    for (const TimelineFlow& flow : result.flows) {
      const Place from{flow.from_timeline, flow.from_entry};
      const Place to{flow.to_timeline, flow.to_entry};
      peers_[key(to)].push_back(from);
      peers_[key(from)].push_back(to);
    }
  }

  CriticalOps walk() && {
    std::optional<Place> at = last();
    ops_.from = result_.end;
    while (at && !ops_.on_path[at->timeline][at->entry]) {
      ops_.on_path[at->timeline][at->entry] = true;
      ops_.from = entry(*at).started;
      at = cause(*at);
    }
    return std::move(ops_);
  }

 private:
  static std::uint64_t key(Place place) {
    return std::uint64_t{place.timeline} << 32 | place.entry;
  }
  const TimelineOp& entry(Place place) const {
    return result_.timelines[place.timeline].ops[place.entry];
  }
  const Program& program_of(std::uint32_t timeline) const {
    const RankId rank = result_.timelines[timeline].rank;
    return graph_.programs[graph_.ranks[rank.index()].program.index()];
  }

  std::optional<Place> last() const {
    std::optional<Place> found;
    for (std::uint32_t t = 0; t < result_.timelines.size(); ++t) {
      const std::vector<TimelineOp>& ops = result_.timelines[t].ops;
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].ended == result_.end && (!found || ops[i].started > entry(*found).started)) {
          found = Place{t, i};
        }
      }
    }
    return found;
  }

  std::optional<Place> cause(Place place) const {
    const TimelineOp& op = entry(place);
    if (op.started == op.moving) return releaser(place, op.ready);
    const auto peers = peers_.find(key(place));
    if (peers == peers_.end()) return std::nullopt;
    for (const Place peer : peers->second) {  // the last one to post
      if (entry(peer).started == op.moving) return releaser(peer, entry(peer).ready);
    }
    return std::nullopt;
  }

  // Returns the op that ended at `at` among those that the op waited for, the longest of several.
  std::optional<Place> releaser(Place place, Time at) const {
    const Program& program = program_of(place.timeline);
    const TimelineOp& op = entry(place);
    std::optional<Place> found;
    const auto consider = [&](std::uint32_t step, std::uint32_t candidate) {
      const auto i = entries_[place.timeline].of(step, candidate);
      if (!i) return;
      const Place there{place.timeline, *i};
      if (entry(there).ended != at) return;
      if (!found || entry(there).started < entry(*found).started) found = there;
    };
    const Stream& own =
        *std::prev(std::ranges::upper_bound(program.streams, op.op, {}, &Stream::first_op));
    if (op.op > own.first_op) {
      consider(op.step, op.op - 1);
    } else if (op.step > 0) {
      consider(op.step - 1, own.first_op + own.ops - 1);
    }
    for (const Dependency& dependency : program.dependencies_of(OpId(op.op))) {
      if (dependency.previous_step && op.step == 0) continue;
      consider(dependency.previous_step ? op.step - 1 : op.step,
               program.streams[dependency.stream.index()].first_op + dependency.position);
    }
    return found;
  }

  const OpGraph& graph_;
  const SimulationResult& result_;
  std::vector<Entries> entries_;
  std::unordered_map<std::uint64_t, std::vector<Place>> peers_;  // looked up, never iterated
  CriticalOps ops_;
};

}  // namespace

CriticalOps critical_ops(const OpGraph& graph, const SimulationResult& result) {
  return Walk(graph, result).walk();
}

}  // namespace stepsim
