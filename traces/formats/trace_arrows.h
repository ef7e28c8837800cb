// TraceArrows finds the arrows of a run, and the ends of them that stand on one rank:
//
//   message     from a send to its receive
//   collective  from the last member that came to each one that waited for it
//   release     from what the compute stream waited for to the compute op that then started
//
// In a folded run an arrow between two timelines stands for those between all ranks that are
// alike: of each rank that is recorded, the peer in its own group is looked up. Memory is some
// bytes an arrow of a timeline, whatever the number of ranks.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/simulation_result.h"
#include "traces/formats/trace_sink.h"

namespace stepsim {

// The ends of arrows of one rank, by entry of its timeline.
class RankArrows {
 public:
  std::span<const TraceArrowEnd> of(std::size_t entry) const {
    return std::span(ends_).subspan(first_[entry], first_[entry + 1] - first_[entry]);
  }

 private:
  friend class TraceArrows;
  std::vector<TraceArrowEnd> ends_;
  std::vector<std::uint32_t> first_;  // by entry, and the end
};

class TraceArrows {
 public:
  // Both must outlive the object.
  TraceArrows(const OpGraph& graph, const SimulationResult& result);

  // `recorded`: a number in SimulationResult::recorded.
  RankArrows of(std::size_t recorded) const;

 private:
  struct Arrow {
    std::uint32_t from_timeline = 0;
    std::uint32_t from_entry = 0;
    std::uint32_t to_timeline = 0;
    std::uint32_t to_entry = 0;
    std::int64_t tail = 0;  // ns
    std::int64_t head = 0;
    std::string_view name;
  };
  struct Inward {
    std::uint32_t arrow = 0;
    std::uint32_t place = 0;  // among the arrows that lead to the timeline
  };
  struct End {
    std::uint32_t entry = 0;
    TraceArrowEnd end;
  };

  const Op& op_of(std::uint32_t timeline, std::uint32_t entry) const;
  void add_flow(const TimelineFlow& flow);
  void add_releases(std::uint32_t timeline);
  void add(const Arrow& arrow);
  bool alike(RankId a, RankId b) const;
  // Returns the rank that an arrow to `rank` comes from, and the ranks that it may lead to from
  // there.
  std::optional<RankId> source(const Arrow& arrow, RankId rank) const;
  std::vector<RankId> targets(const Arrow& arrow, RankId rank) const;
  std::uint64_t number(std::size_t recorded, std::uint32_t place) const {
    return first_number_[recorded] + place;
  }

  const OpGraph& graph_;
  const SimulationResult& result_;
  std::vector<Arrow> arrows_;
  std::vector<std::vector<std::uint32_t>> to_;          // by timeline: the arrows that lead there
  std::vector<std::vector<Inward>> from_;               // by timeline: those that begin there
  std::vector<std::optional<std::uint32_t>> recorded_;  // by rank: its number, if recorded
  std::vector<std::uint64_t> first_number_;             // by recorded rank: of arrows to it
};

}  // namespace stepsim
