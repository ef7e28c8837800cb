#include "pages/run/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pages/run/run_drawings.h"
#include "traces/formats/compute_lane.h"
#include "traces/formats/critical_ops.h"

namespace stepsim {
namespace {

constexpr std::size_t kMostDrawnRanks = 32;
constexpr std::size_t kMostPasses = 12'000;    // of all ranks
constexpr std::int64_t kShownWaits = 1000;     // waits inside a pass from this part of the run on
constexpr std::int64_t kShownSpans = 1500;     // spaces between communication
constexpr std::int64_t kShownCritical = 3000;  // spaces on the critical path

// A list of texts, each once.
class TextIndex {
 public:
  std::size_t of(const std::string& text) {
    const auto [found, is_new] = index_.emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return found->second;
  }
  Json json() const { return texts_; }

 private:
  std::map<std::string, std::size_t> index_;
  std::vector<std::string> texts_;
};

struct DrawnSpan {
  Time from;
  Time to;
  Duration length() const { return to - from; }
};

struct DrawnPass {
  DrawnSpan span;
  std::string name;
  std::string phase;
  Duration computing{};
  std::map<std::string, Duration> waits{};  // by part of the breakdown
};

// By the words of a label: "block forward: qkv_projection".
std::string phase_of_label(std::string_view label) {
  constexpr std::array<std::string_view, 4> kPhases = {"recompute", "weight gradient", "forward",
                                                       "backward"};
  const std::string_view before = label.substr(0, label.find(':'));
  for (const std::string_view phase : kPhases) {
    if (before.ends_with(phase)) return std::string(phase);
  }
  return "other compute";
}

class DrawnRank {
 public:
  DrawnRank(const FinishedRun& run, std::size_t recorded, const std::vector<bool>& critical)
      : run_(run),
        rank_(run.result.recorded[recorded].rank),
        timeline_(run.result.timelines[run.result.recorded[recorded].timeline]),
        program_(run.graph.programs[run.graph.ranks[rank_.index()].program.index()]),
        critical_(critical) {}

  std::vector<DrawnPass> passes() const {
    std::vector<DrawnPass> passes;
    std::optional<std::string> open;  // what the ops of the last pass have in common
    std::size_t next_wait = 0;
    for (const TimelineOp& entry : timeline_.ops) {
      if (program_.ops[entry.op].kind != OpKind::kCompute) continue;
      const OpLabel& label = program_.labels[entry.op];
      const std::string& name = run_.graph.names[label.name];
      const std::string words =
          label.pass ? run_.graph.names[*label.pass] : name.substr(0, name.find(':'));
      const std::string key = fmt::format("{} {}", entry.step, words);
      if (open != key) {
        const bool fused = words.find(" + ") != std::string::npos;  // "F 7 + B 3"
        DrawnPass& pass = passes.emplace_back();
        pass.span = {entry.started, entry.ended};
        pass.name = words;
        pass.phase = fused ? "forward and backward" : phase_of_label(name);
        open = key;
      }
      DrawnPass& pass = passes.back();
      for (; next_wait < timeline_.waits.size() && timeline_.waits[next_wait].to <= entry.started;
           ++next_wait) {
        const TimelineWait& wait = timeline_.waits[next_wait];
        if (wait.from < pass.span.from) continue;
        pass.waits[part_of_breakdown(wait, run_.graph, rank_)] += wait.length();
      }
      pass.span.to = entry.ended;
      pass.computing += entry.ended - entry.started;
    }
    return passes;
  }

  // Gaps between passes, and the long ones inside them.
  Json gaps(const std::vector<DrawnPass>& passes, const DrawnTime& time, Duration shown,
            TextIndex& texts, TextIndex& parts) const {
    static const RankLayout kNoLayout;
    static const RankArrows kNoArrows;
    static const std::vector<std::string> kNoAxes;
    const TracedRank traced{run_.graph, run_.cluster, run_.result, rank_,    timeline_,
                            kNoLayout,  kNoArrows,    kNoAxes,     critical_};
    Json gaps = Json::array();
    auto pass = passes.begin();
    for (const TimelineWait& wait : timeline_.waits) {
      while (pass != passes.end() && pass->span.to <= wait.from) ++pass;
      const bool inside = pass != passes.end() && pass->span.from < wait.from;
      const std::int64_t ticks = time.ticks(wait.to) - time.ticks(wait.from);
      if (ticks == 0 || (inside && wait.length() < shown)) continue;
      gaps.push_back({time.ticks(wait.from), ticks, texts.of(text_of(wait, traced)),
                      parts.of(part_of_breakdown(wait, run_.graph, rank_))});
    }
    return gaps;
  }

  // When communication of an axis moves data.
  std::map<std::string, std::vector<DrawnSpan>> communication(Duration apart) const {
    std::map<std::string, std::vector<DrawnSpan>> by_axis;
    for (const TimelineOp& entry : timeline_.ops) {
      const Op& op = program_.ops[entry.op];
      if (op.kind == OpKind::kCompute || entry.ended == entry.moving) continue;
      by_axis[name_of(run_.graph, op.axis)].push_back({entry.moving, entry.ended});
    }
    for (auto& [axis, spans] : by_axis) spans = joined(std::move(spans), apart);
    return by_axis;
  }

  std::vector<DrawnSpan> critical(Duration apart) const {
    std::vector<DrawnSpan> spans;
    for (std::size_t i = 0; i < timeline_.ops.size(); ++i) {
      const TimelineOp& entry = timeline_.ops[i];
      const bool computes = program_.ops[entry.op].kind == OpKind::kCompute;
      if (critical_[i]) spans.push_back({computes ? entry.started : entry.moving, entry.ended});
    }
    return joined(std::move(spans), apart);
  }

  std::string name() const {
    return fmt::format("{} (rank {})",
                       name_of_stage(run_.graph, run_.graph.ranks[rank_.index()].pp),
                       rank_.index());
  }

 private:
  // Joins spans that overlap, touch, or leave less than `apart` between them.
  static std::vector<DrawnSpan> joined(std::vector<DrawnSpan> spans, Duration apart) {
    std::ranges::sort(spans, {}, &DrawnSpan::from);
    std::vector<DrawnSpan> all;
    for (const DrawnSpan& span : spans) {
      if (all.empty() || span.from - all.back().to > apart) {
        all.push_back(span);
      } else {
        all.back().to = std::max(all.back().to, span.to);
      }
    }
    return all;
  }

  const FinishedRun& run_;
  RankId rank_;
  const Timeline& timeline_;
  const Program& program_;
  const std::vector<bool>& critical_;
};

// Joins neighbours until no more than `most` are left.
std::vector<DrawnPass> thinned(std::vector<DrawnPass> passes, std::size_t most, Duration whole) {
  if (passes.size() <= most) return passes;
  const Duration least = whole / static_cast<std::int64_t>(most);
  std::vector<DrawnPass> joined;
  std::string first;
  for (DrawnPass& pass : passes) {
    if (joined.empty() || joined.back().span.length() >= least) {
      first = pass.name;
      joined.push_back(std::move(pass));
      continue;
    }
    DrawnPass& last = joined.back();
    const Duration between = pass.span.from - last.span.to;
    if (between > Duration()) last.waits["between passes"] += between;
    last.span.to = pass.span.to;
    last.name = first + " to " + pass.name;
    if (last.phase != pass.phase) last.phase = "several passes";
    last.computing += pass.computing;
    for (const auto& [part, duration] : pass.waits) last.waits[part] += duration;
  }
  return joined;
}

Json spans_json(const std::vector<DrawnSpan>& spans, const DrawnTime& time) {
  Json list = Json::array();
  for (const DrawnSpan& span : spans) {
    list.push_back({time.ticks(span.from),
                    std::max<std::int64_t>(1, time.ticks(span.to) - time.ticks(span.from))});
  }
  return list;
}

}  // namespace

Json gantt(const FinishedRun& run) {
  const std::vector<std::size_t> ranks = drawn_ranks(run, kMostDrawnRanks);
  const Duration whole = run.result.end.since_start;
  const DrawnTime time(whole);
  const CriticalOps critical = critical_ops(run.graph, run.result);
  TextIndex texts;
  TextIndex phases;
  TextIndex parts;
  Json drawn = Json::array();
  for (const std::size_t recorded : ranks) {
    const DrawnRank rank(run, recorded, critical.on_path[run.result.recorded[recorded].timeline]);
    const std::vector<DrawnPass> passes = thinned(rank.passes(), kMostPasses / ranks.size(), whole);
    Json one = Json::object();
    one["name"] = rank.name();
    one["passes"] = Json::array();
    for (const DrawnPass& pass : passes) {
      Json waits = Json::array();
      for (const auto& [part, duration] : pass.waits) {
        if (time.ticks(duration) == 0) continue;
        waits.push_back(parts.of(part));
        waits.push_back(time.ticks(duration));
      }
      const std::int64_t begin = time.ticks(pass.span.from);
      one["passes"].push_back({begin, time.ticks(pass.span.to) - begin, texts.of(pass.name),
                               phases.of(pass.phase), time.ticks(pass.computing),
                               std::move(waits)});
    }
    one["gaps"] = rank.gaps(passes, time, whole / kShownWaits, texts, parts);
    one["critical"] = spans_json(rank.critical(whole / kShownCritical), time);
    one["communication"] = Json::array();
    for (const auto& [axis, spans] : rank.communication(whole / kShownSpans)) {
      one["communication"].push_back(Json{{"axis", axis}, {"spans", spans_json(spans, time)}});
    }
    drawn.push_back(std::move(one));
  }
  Json all = Json::object();
  all["tick_s"] = time.tick_s();
  all["end"] = time.ticks(run.result.end);
  all["critical_from"] = time.ticks(critical.from);
  all["texts"] = texts.json();
  all["phases"] = phases.json();
  all["parts"] = parts.json();
  all["ranks"] = std::move(drawn);
  return all;
}

}  // namespace stepsim
