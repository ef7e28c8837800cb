#include "import/trace/kineto_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "import/trace/read_trace.h"
#include "import/trace/step_parts.h"
#include "sim/base/field_text.h"
#include "sim/base/quantity_text.h"

namespace stepsim {
namespace {

constexpr std::int64_t kReleases = 20'000;  // ns between the end of one op and what it releases
constexpr std::size_t kListedNames = 15;
constexpr std::size_t kMostLanes = 256;

Duration of_nanoseconds(std::int64_t nanoseconds) {
  return Duration(1000) * nanoseconds;
}

// Makes the jobs of ranks.
class JobMaker {
 public:
  JobMaker(const DeviceTrace& trace, std::uint32_t ranks, std::vector<std::string>& notes)
      : trace_(trace), notes_(notes) {
    job_.source = trace.is_simulated ? "stepsim" : "kineto";
    job_.ranks = ranks;
    job_.groups = {all_ranks(ranks)};
    job_.names = trace.names;
    gap_ = static_cast<std::uint32_t>(job_.names.size());
    job_.names.emplace_back("launch gap");
  }

  void add(const RankTrace& rank, const TraceStep& step) {
    rank_ = &rank;
    slices_ = slices_in(rank, step);
    choose_main_lane();
    job_.programs.emplace_back();
    last_.clear();
    nodes_.assign(slices_.size(), 0);
    for (std::size_t i = 0; i < slices_.size(); ++i) add_slice(i);
  }

  TraceJob finish() && {
    if (recorded_ > 0) {
      notes_.push_back(
          fmt::format("{} collectives whose size or ranks are not known here take their own "
                      "time, waiting included",
                      recorded_));
    }
    return std::move(job_);
  }

 private:
  void choose_main_lane() {
    std::map<std::uint32_t, std::int64_t> times;
    for (const TraceSlice* slice : slices_) {
      if (!communicates(slice->kind)) times[slice->lane] += slice->end - slice->start;
    }
    std::set<std::uint32_t> lanes;
    for (const TraceSlice* slice : slices_) lanes.insert(slice->lane);
    if (lanes.size() > kMostLanes) {
      throw ConfigError({Problem{"streams", fmt::format("a replay takes {} of a rank, there are {}",
                                                        kMostLanes, lanes.size())}});
    }
    const auto longest = std::ranges::max_element(
        times, [](const auto& a, const auto& b) { return a.second < b.second; });
    main_lane_ = longest == times.end() ? 0 : longest->first;
  }

  struct Last {
    std::size_t slice = 0;
    std::int64_t end = 0;
  };

  // The last op of another lane that had ended when the slice began, within the time in which it
  // may have released it.
  std::optional<Last> released_by(const TraceSlice& slice, std::int64_t free_since) const {
    std::optional<Last> best;
    for (const auto& [lane, ended] : ended_) {
      if (lane == slice.lane || ended.end > slice.start) continue;
      const bool is_main = communicates(slice.kind) && lane == main_lane_;
      const bool is_near = slice.start - ended.end <= kReleases && ended.end > free_since;
      if ((is_main || is_near) && (!best || ended.end > best->end)) best = ended;
    }
    return best;
  }

  // Ops end in another order than they start: those that had ended when `now` came.
  void note_ended(std::int64_t now) {
    for (auto& [lane, running] : last_) {
      for (const Last& op : running) {
        if (op.end > now) continue;
        Last& ended = ended_[lane];
        if (op.end >= ended.end) ended = op;
      }
      std::erase_if(running, [&](const Last& op) { return op.end <= now; });
    }
  }

  void add_slice(std::size_t index) {
    if (index == 0) ended_.clear();
    const TraceSlice& slice = *slices_[index];
    TraceRank& program = job_.programs.back();
    note_ended(slice.start);
    const auto own = ended_.find(slice.lane);
    const std::int64_t free_since = own == ended_.end() ? slices_[0]->start : own->second.end;
    const std::optional<Last> release = released_by(slice, free_since);
    std::vector<std::uint32_t> after;
    if (release) after.push_back(nodes_[release->slice]);
    const std::int64_t ready = std::max(free_since, release ? release->end : free_since);
    if (!communicates(slice.kind) && slice.lane == main_lane_ && slice.start > ready) {
      TraceNode gap = kernel_node(gap_, slice.lane, slice.start - ready);
      gap.kind = TraceNodeKind::kGap;
      program.add(gap, after);
      after.clear();
    }
    program.add(node_of(slice), after);
    nodes_[index] = static_cast<std::uint32_t>(program.nodes.size() - 1);
    last_[slice.lane].push_back({index, slice.end});
  }

  static TraceNode kernel_node(std::uint32_t name, std::uint32_t lane, std::int64_t nanoseconds) {
    TraceNode node;
    node.kind = TraceNodeKind::kKernel;
    node.name = name;
    node.lane = lane;
    node.time = of_nanoseconds(nanoseconds);
    return node;
  }

  TraceNode node_of(const TraceSlice& slice) {
    TraceNode node = kernel_node(slice.name, slice.lane, slice.end - slice.start);
    if (!communicates(slice.kind)) return node;
    const std::optional<CollectiveOp> op = collective_of(slice.kind);
    const std::optional<std::uint32_t> group = group_of(slice);
    if (!op || !group || *op == CollectiveOp::kSendReceive) {
      ++recorded_;
      return node;
    }
    node.kind = TraceNodeKind::kCollective;
    node.time.reset();
    node.op = *op;
    node.group = *group;
    node.bytes = Bytes(rank_->collectives[*slice.collective].bytes);
    return node;
  }

  // The job's group of a collective: its ranks as the trace names them, "[0, 1]", or all.
  std::optional<std::uint32_t> group_of(const TraceSlice& slice) {
    if (!slice.collective) return std::nullopt;
    const SliceCollective& collective = rank_->collectives[*slice.collective];
    if (collective.bytes == 0 || !collective.members) return std::nullopt;
    if (*collective.members == job_.ranks) return 0;
    if (trace_.ranks.size() != job_.ranks) return std::nullopt;
    const std::vector<std::uint32_t> ranks = ranks_in(trace_.names[collective.group]);
    if (ranks.size() != *collective.members) return std::nullopt;
    const auto found = std::ranges::find(job_.groups, ranks);
    if (found != job_.groups.end()) {
      return static_cast<std::uint32_t>(found - job_.groups.begin());
    }
    job_.groups.push_back(ranks);
    return static_cast<std::uint32_t>(job_.groups.size() - 1);
  }

  // Empty if the text is no list of different ranks of the job.
  std::vector<std::uint32_t> ranks_in(std::string_view text) const {
    if (!text.starts_with('[') || !text.ends_with(']')) return {};
    std::vector<std::uint32_t> ranks;
    for (std::string_view part : split_text(text.substr(1, text.size() - 2), ',')) {
      while (part.starts_with(' ')) part.remove_prefix(1);
      const auto rank = number_in<std::uint32_t>(part);
      if (!rank || *rank >= job_.ranks || std::ranges::find(ranks, *rank) != ranks.end()) return {};
      ranks.push_back(*rank);
    }
    return ranks;
  }

  const DeviceTrace& trace_;
  std::vector<std::string>& notes_;
  TraceJob job_;
  std::uint32_t gap_ = 0;
  const RankTrace* rank_ = nullptr;
  std::vector<const TraceSlice*> slices_;
  std::vector<std::uint32_t> nodes_;  // by slice
  std::uint32_t main_lane_ = 0;
  std::map<std::uint32_t, std::vector<Last>> last_;  // running, by lane
  std::map<std::uint32_t, Last> ended_;              // the last that has ended, by lane
  std::size_t recorded_ = 0;
};

struct NameSum {
  std::size_t count = 0;
  std::int64_t nanoseconds = 0;
};

void add_tables(const DeviceTrace& trace, const RankTrace& rank, const TraceStep& step,
                Imported& imported) {
  const StepParts parts = parts_of(rank, step, trace.knows_waits);
  std::string& text = imported.report;
  Json& kinds = imported.facts["by_kind"] = Json::array();
  text += fmt::format("step {} of rank {}: {}\n", step.name, rank.rank.value_or(0),
                      to_text(of_nanoseconds(step.end - step.begin)));
  for (std::size_t kind = 0; kind < kSliceKinds; ++kind) {
    if (parts.nanoseconds[kind] == 0 && parts.counts[kind] == 0) continue;
    const std::string name(name_of(static_cast<SliceKind>(kind)));
    const Duration time = of_nanoseconds(parts.nanoseconds[kind]);
    kinds.push_back({{"kind", name}, {"count", parts.counts[kind]}, {"time_s", to_seconds(time)}});
    text += fmt::format("  {:<16} {:>7} {:>14}\n", name, parts.counts[kind], to_text(time));
  }
  std::map<std::uint32_t, NameSum> lanes;
  std::map<std::uint32_t, NameSum> names;
  std::map<std::tuple<SliceKind, std::uint32_t, std::int64_t>, NameSum> collectives;
  const auto count = [](NameSum& sum, const TraceSlice& slice) {
    ++sum.count;
    sum.nanoseconds += slice.end - slice.start;
  };
  for (const TraceSlice* slice : slices_in(rank, step)) {
    count(lanes[slice->lane], *slice);
    count(names[slice->name], *slice);
    if (!slice->collective) continue;
    const SliceCollective& of = rank.collectives[*slice->collective];
    count(collectives[{slice->kind, of.members.value_or(0), of.bytes}], *slice);
  }
  Json& streams = imported.facts["streams"] = Json::array();
  for (const auto& [lane, sum] : lanes) {
    streams.push_back({{"stream", lane},
                       {"ops", sum.count},
                       {"busy_s", to_seconds(of_nanoseconds(sum.nanoseconds))}});
    text += fmt::format("  stream {:<9} {:>7} {:>14}\n", lane, sum.count,
                        to_text(of_nanoseconds(sum.nanoseconds)));
  }
  Json& listed = imported.facts["collectives_by_size"] = Json::array();
  for (const auto& [key, sum] : collectives) {
    const auto& [kind, members, bytes] = key;
    Json row = {{"op", std::string(name_of(kind))},
                {"bytes", bytes},
                {"count", sum.count},
                {"time_s", to_seconds(of_nanoseconds(sum.nanoseconds))},
                {"includes_waiting", !trace.knows_waits}};
    if (members > 0) row["ranks"] = members;
    listed.push_back(std::move(row));
  }
  std::vector<std::pair<std::uint32_t, NameSum>> longest(names.begin(), names.end());
  std::ranges::stable_sort(longest, [](const auto& a, const auto& b) {
    return a.second.nanoseconds > b.second.nanoseconds;
  });
  if (longest.size() > kListedNames) longest.resize(kListedNames);
  Json& kernels = imported.facts["longest_kernels"] = Json::array();
  for (const auto& [name, sum] : longest) {
    kernels.push_back({{"name", trace.names[name]},
                       {"count", sum.count},
                       {"time_s", to_seconds(of_nanoseconds(sum.nanoseconds))}});
    text += fmt::format("  {:>14} {:>6} x {}\n", to_text(of_nanoseconds(sum.nanoseconds)),
                        sum.count, shortened(trace.names[name], 70));
  }
}

Json steps_json(const RankTrace& rank) {
  Json steps = Json::array();
  for (const TraceStep& step : rank.steps) {
    steps.push_back(
        {{"name", step.name}, {"duration_s", to_seconds(of_nanoseconds(step.end - step.begin))}});
  }
  return steps;
}

}  // namespace

Imported import_kineto(const ImportRequest& request) {
  std::vector<Problem> problems;
  DeviceTrace trace = read_device_trace(request.files, problems);
  throw_if_any(problems);
  std::ranges::stable_sort(trace.ranks, {},
                           [](const RankTrace& rank) { return rank.rank.value_or(0); });
  const std::size_t step =
      request.step.value_or(static_cast<std::uint32_t>(usual_step(trace.ranks[0].steps)));
  for (const RankTrace& rank : trace.ranks) {
    if (step < rank.steps.size()) continue;
    problems.push_back({"--step", fmt::format("must be below {}, the number of steps, is {}",
                                              rank.steps.size(), step)});
    break;
  }
  const auto files = static_cast<std::uint32_t>(trace.ranks.size());
  if (request.ranks > 0 && files > 1 && request.ranks != files) {
    problems.push_back(
        {"--ranks",
         fmt::format("must be {}, the number of ranks of the files, is {}", files, request.ranks)});
  }
  throw_if_any(std::move(problems));
  Imported imported;
  imported.notes = trace.notes;
  imported.facts["steps"] = steps_json(trace.ranks[0]);
  add_tables(trace, trace.ranks[0], trace.ranks[0].steps[step], imported);
  JobMaker maker(trace, request.ranks > 0 ? request.ranks : files, imported.notes);
  for (const RankTrace& rank : trace.ranks) maker.add(rank, rank.steps[step]);
  imported.job = std::move(maker).finish();
  if (!trace.knows_waits) {
    imported.notes.emplace_back("times of collectives contain the wait for their slowest rank");
  }
  return imported;
}

}  // namespace stepsim
