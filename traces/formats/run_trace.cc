#include "traces/formats/run_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/quantity_text.h"
#include "traces/formats/collective_facts.h"
#include "traces/formats/communication_lanes.h"
#include "traces/formats/critical_ops.h"
#include "traces/formats/trace_arrows.h"
#include "traces/formats/trace_counters.h"
#include "traces/formats/trace_lanes.h"

namespace stepsim {
namespace {

class TraceWriter {
 public:
  TraceWriter(const OpGraph& graph, const Cluster& cluster, const SimulationResult& result,
              TraceDetail detail, TraceSink& sink)
      : graph_(graph),
        cluster_(cluster),
        result_(result),
        detail_(detail),
        sink_(sink),
        arrows_(graph, result),
        shares_(graph, cluster),
        facts_(graph, cluster),
        critical_(critical_ops(graph, result)),
        has_context_(
            std::ranges::any_of(graph.ranks, [](const RankData& rank) { return rank.cp > 0; })) {
    for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
      axes_.push_back(name_of(graph, static_cast<Axis>(axis)));
    }
  }

  TraceSummary write(const TraceNotes& notes) {
    for (const auto& [key, value] : notes.metadata) sink_.metadata(key, value);
    sink_.metadata("critical_path_from_s", exact_seconds(critical_.from.since_start));
    std::uint32_t next_thread = links_process() + 1;
    for (std::size_t i = 0; i < result_.recorded.size(); ++i) {
      write_rank(i, next_thread, notes);
      if (notes.progress) {
        notes.progress(static_cast<double>(i + 1) / static_cast<double>(result_.recorded.size()));
      }
    }
    write_links(graph_, cluster_, result_, links_process(), result_.recorded.size(), sink_);
    sink_.end();
    return sink_.summary();
  }

 private:
  // The process number of the links, after all ranks.
  std::uint32_t links_process() const {
    return process_of(RankId(static_cast<std::uint32_t>(graph_.ranks.size())));
  }

  std::string name_of_rank(RankId id) const {
    const RankData& rank = graph_.ranks[id.index()];
    return fmt::format("rank {} ({}, tp {}, {}dp {})", id.index(), name_of_stage(graph_, rank.pp),
                       rank.tp, has_context_ ? fmt::format("cp {}, ", rank.cp) : "", rank.dp);
  }

  void write_rank(std::size_t number, std::uint32_t& next_thread, const TraceNotes& notes) {
    const RecordedRank& recorded = result_.recorded[number];
    const Timeline& timeline = result_.timelines[recorded.timeline];
    const RankLayout layout = lay_out(graph_, recorded.rank, timeline, next_thread);
    const RankArrows arrows = arrows_.of(number);
    const TracedRank rank{graph_,        cluster_, result_,
                          recorded.rank, timeline, layout,
                          arrows,        axes_,    critical_.on_path[recorded.timeline]};
    write_names(rank, number);
    write_compute_lane(rank, detail_, shares_, sink_);
    write_communication(rank, facts_, sink_);
    write_memory(timeline, layout.process, sink_);
    write_in_flight(graph_, timeline, layout.process, notes.tokens_per_microbatch, sink_);
    if (notes.energy) write_watts(graph_, timeline, layout.process, *notes.energy, sink_);
  }

  void write_names(const TracedRank& rank, std::size_t number) {
    const std::uint32_t process = rank.layout.process;
    sink_.process(process, name_of_rank(rank.rank), number);
    std::size_t position = 0;
    for (const std::vector<TraceLane>& lanes : rank.layout.lanes) {
      for (const TraceLane& lane : lanes) {
        sink_.thread({process, lane.thread}, lane.name, position++);
      }
    }
  }

  const OpGraph& graph_;
  const Cluster& cluster_;
  const SimulationResult& result_;
  TraceDetail detail_;
  TraceSink& sink_;
  TraceArrows arrows_;
  KernelShares shares_;
  CollectiveFacts facts_;
  CriticalOps critical_;
  bool has_context_;
  std::vector<std::string> axes_;
};

}  // namespace

TraceSummary write_run_trace(const OpGraph& graph, const Cluster& cluster,
                             const SimulationResult& result, TraceDetail detail,
                             const TraceNotes& notes, TraceSink& sink) {
  return TraceWriter(graph, cluster, result, detail, sink).write(notes);
}

}  // namespace stepsim
