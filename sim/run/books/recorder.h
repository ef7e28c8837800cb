// Recorder keeps the timelines of the requested ranks, and the bytes over each link in equal bins
// of time. The number of bins is bounded: when the run outgrows them, neighbours are merged and
// bins become twice as wide. So a recording costs O(links x bins) for any length of run.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/hardware/cluster.h"
#include "sim/network/network.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/communication_reports.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/streams.h"
#include "sim/run/simulation_options.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

class Recorder {
 public:
  static constexpr std::size_t kMostBins = 2000;
  static constexpr std::size_t kMostSamples = 16'000'000;  // over all links

  // In a folded job a simulated rank is recorded if it stands for one of the recorded ranks.
  // `fabric`: that of the cluster, or of the folded job.
  Recorder(const Job& job, const Streams& streams, const Cluster& cluster, const Fabric& fabric,
           const SimulationOptions& options);

  // Ranks are simulated ones.
  bool records(RankId rank) const { return timeline_of_[rank.index()].has_value(); }

  void started(RankStreamId stream, Time ready, Time now);  // before Streams::end()
  void ended(RankStreamId stream, Time moving, Time now);   // before Streams::end()
  void arrow(const Join& arrow);                            // both ops have started
  void memory(RankId rank, Time now, const MemoryBytes& balance);

  // Samples the links up to `now`. REQUIRES: the network's rates hold until then.
  void links_until(Time now, const Network& network);

  void finish(Time end, const Network& network, SimulationResult& result);

 private:
  // REQUIRES: records(rank).
  Timeline& timeline(RankId rank) { return timelines_[*timeline_of_[rank.index()]]; }
  void close_bin(const Network& network);
  void give_timelines(SimulationResult& result);
  void give_links(SimulationResult& result) const;
  // Returns the bytes that crossed a link of the cluster, of which `carried` has the simulated
  // ones.
  double over(LinkId link, const std::vector<double>& carried) const;

  const Job& job_;
  const Streams& streams_;
  const Fabric& cluster_fabric_;
  const bool shares_timelines_;
  std::vector<RankId> recorded_;                           // ranks of the graph, ascending
  std::vector<std::optional<std::uint32_t>> timeline_of_;  // by rank: in timelines_, if recorded
  std::vector<std::uint32_t> entry_of_;  // by stream: index of the running op in Timeline::ops
  std::vector<Timeline> timelines_;      // of simulated ranks
  std::vector<TimelineFlow> flows_;

  std::size_t links_ = 0;  // recorded links of the simulated fabric: all or none
  std::size_t most_bins_ = 0;
  Duration bin_width_{1'000'000};
  Time bin_end_;
  std::vector<std::vector<double>> carried_;  // by bin: bytes of every link since the start
};

}  // namespace stepsim
