#include "sim/run/books/recorder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace stepsim {

Recorder::Recorder(const Job& job, const Streams& streams, const Cluster& cluster,
                   const Fabric& fabric, const SimulationOptions& options)
    : job_(job),
      streams_(streams),
      cluster_fabric_(cluster.fabric),
      shares_timelines_(options.share_timelines && job.quotient() != nullptr),
      recorded_(options.recorded_ranks),
      timeline_of_(job.ranks().size()),
      entry_of_(streams.count()),
      links_(options.record_links ? fabric.links().size() : 0),
      bin_end_{bin_width_} {
  std::ranges::sort(recorded_);
  recorded_.erase(std::unique(recorded_.begin(), recorded_.end()), recorded_.end());
  for (const RankId recorded : recorded_) {
    const RankId rank = job.simulated(recorded);
    if (records(rank)) continue;
    timelines_.push_back({.rank = rank, .ops = {}, .memory = {}});
    timeline_of_[rank.index()] = 0;
  }
  std::ranges::sort(timelines_, {}, &Timeline::rank);
  for (std::uint32_t t = 0; t < timelines_.size(); ++t) {
    const std::uint32_t rank = timelines_[t].rank.index();
    timeline_of_[rank] = t;
    timelines_[t].memory.push_back({.at = Time{}, .bytes = job.program(RankId(rank)).resident});
  }
  if (links_ > 0) {
    most_bins_ = std::clamp<std::size_t>(kMostSamples / links_, 16, kMostBins) / 2 * 2;
  }
}

void Recorder::started(RankStreamId stream, Time ready, Time now) {
  std::vector<TimelineOp>& ops = timeline(streams_.rank_of(stream)).ops;
  entry_of_[stream.index()] = static_cast<std::uint32_t>(ops.size());
  ops.push_back({.op = streams_.op_id(stream).index(),
                 .step = streams_.step(stream),
                 .ready = ready,
                 .started = now,
                 .moving = now,
                 .ended = now});
}

void Recorder::ended(RankStreamId stream, Time moving, Time now) {
  TimelineOp& op = timeline(streams_.rank_of(stream)).ops[entry_of_[stream.index()]];
  op.moving = std::clamp(moving, op.started, now);
  op.ended = now;
}

void Recorder::arrow(const Join& arrow) {
  const auto from = timeline_of_[streams_.rank_of(arrow.from).index()];
  const auto to = timeline_of_[streams_.rank_of(arrow.stream).index()];
  if (!from || !to) return;
  flows_.push_back({.from_timeline = *from,
                    .from_entry = entry_of_[arrow.from.index()],
                    .to_timeline = *to,
                    .to_entry = entry_of_[arrow.stream.index()]});
}

void Recorder::memory(RankId rank, Time now, const MemoryBytes& balance) {
  std::vector<MemorySample>& samples = timeline(rank).memory;
  if (samples.back().at == now) {
    samples.back().bytes = balance;
  } else {
    samples.push_back({.at = now, .bytes = balance});
  }
}

void Recorder::links_until(Time now, const Network& network) {
  if (links_ == 0) return;
  while (bin_end_ <= now) close_bin(network);
}

void Recorder::close_bin(const Network& network) {
  if (carried_.size() == most_bins_) {
    for (std::size_t bin = 0; 2 * bin + 1 < carried_.size(); ++bin) {
      carried_[bin] = std::move(carried_[2 * bin + 1]);
    }
    carried_.resize(most_bins_ / 2);
    bin_width_ = 2 * bin_width_;
    bin_end_ = Time{bin_width_ * static_cast<std::int64_t>(carried_.size() + 1)};
    return;
  }
  std::vector<double>& bin = carried_.emplace_back(links_);
  for (std::size_t link = 0; link < links_; ++link) {
    bin[link] = network.carried(LinkId(static_cast<std::uint32_t>(link)), bin_end_);
  }
  bin_end_ = bin_end_ + bin_width_;
}

void Recorder::give_timelines(SimulationResult& result) {
  if (shares_timelines_) {
    for (Timeline& timeline : timelines_) timeline.rank = job_.representative(timeline.rank);
    result.timelines = std::move(timelines_);
  }
  for (const RankId rank : recorded_) {
    const std::uint32_t simulated = *timeline_of_[job_.simulated(rank).index()];
    if (shares_timelines_) {
      result.recorded.push_back({rank, simulated});
      continue;
    }
    result.recorded.push_back({rank, static_cast<std::uint32_t>(result.timelines.size())});
    result.timelines.push_back(timelines_[simulated]);
    result.timelines.back().rank = rank;
  }
  result.flows = std::move(flows_);
  if (job_.quotient() != nullptr) result.class_of_rank = job_.quotient()->ranks.class_of;
}

double Recorder::over(LinkId link, const std::vector<double>& carried) const {
  if (job_.quotient() == nullptr) return carried[link.index()];
  const std::vector<std::uint32_t>& class_of = job_.quotient()->links.class_of;
  return bytes_over(cluster_fabric_, link,
                    [&](LinkId used) { return carried[class_of[used.index()]]; });
}

// Links alike, in groups alike, have one series.
void Recorder::give_links(SimulationResult& result) const {
  std::map<std::pair<std::uint32_t, std::optional<std::uint32_t>>, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < cluster_fabric_.links().size(); ++i) {
    const LinkId link(i);
    std::pair<std::uint32_t, std::optional<std::uint32_t>> alike{i, std::nullopt};
    if (job_.quotient() != nullptr) {
      const std::vector<std::uint32_t>& class_of = job_.quotient()->links.class_of;
      alike.first = class_of[i];
      const auto group = cluster_fabric_.group_of(link);
      if (group) alike.second = class_of[cluster_fabric_.link_id(*group).index()];
    }
    const auto next = static_cast<std::uint32_t>(result.link_series.size());
    const auto [place, is_new] = numbers.try_emplace(alike, next);
    result.series_of_link.push_back(place->second);
    if (!is_new) continue;
    LinkSeries& series = result.link_series.emplace_back(LinkSeries{.link = link, .bytes = {}});
    double before = 0;
    for (const std::vector<double>& bin : carried_) {
      const double carried = over(link, bin);
      series.bytes.push_back(carried - before);
      before = carried;
    }
  }
}

void Recorder::finish(Time end, const Network& network, SimulationResult& result) {
  give_timelines(result);
  if (links_ == 0) return;
  result.bin_width = bin_width_;
  std::vector<double> last(links_);
  for (std::size_t link = 0; link < links_; ++link) {
    last[link] = network.carried(LinkId(static_cast<std::uint32_t>(link)), end);
  }
  if (end + bin_width_ > bin_end_) carried_.push_back(std::move(last));
  give_links(result);
}

}  // namespace stepsim
