#include "sim/run/summary.h"

#include <algorithm>
#include <functional>
#include <string>

namespace stepsim {
namespace {

void give_rest_to_largest(const std::vector<Duration*>& parts, Duration total) {
  Duration sum{};
  for (const Duration* part : parts) sum += *part;
  **std::ranges::max_element(parts, {}, [](const Duration* part) { return *part; }) += total - sum;
}

// MeanOf sums whole shares first and remainders apart: the sum over all ranks may pass the longest
// Duration.
class MeanOf {
 public:
  explicit MeanOf(std::int64_t count) : count_(count) {}
  void add(Duration part) {
    whole_ += part / count_;
    rest_ += part.count() % count_;
  }
  Duration mean() const { return whole_ + Duration(rest_ / count_); }

 private:
  std::int64_t count_;
  Duration whole_;
  std::int64_t rest_ = 0;
};

}  // namespace

Breakdown mean_breakdown(const std::vector<Breakdown>& of_ranks, std::int64_t steps,
                         Duration step_time) {
  const std::int64_t count = static_cast<std::int64_t>(of_ranks.size()) * steps;
  const auto mean_of = [&](auto part) {
    MeanOf sum(count);
    for (const Breakdown& of_rank : of_ranks) sum.add(part(of_rank));
    return sum.mean();
  };
  Breakdown mean{.compute = mean_of([](const Breakdown& b) { return b.compute; }),
                 .bubble = mean_of([](const Breakdown& b) { return b.bubble; }),
                 .idle = mean_of([](const Breakdown& b) { return b.idle; }),
                 .launch = mean_of([](const Breakdown& b) { return b.launch; })};
  std::vector<Duration*> parts = {&mean.compute, &mean.bubble, &mean.idle, &mean.launch};
  for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
    Duration& exposed = mean.exposed_communication[axis];
    exposed = mean_of([axis](const Breakdown& b) { return b.exposed_communication[axis]; });
    parts.push_back(&exposed);
  }
  give_rest_to_largest(parts, step_time);
  return mean;
}

std::vector<PathPart> path_of_step(const OpGraph& graph, const std::vector<Duration>& parts,
                                   std::int64_t steps, Duration step_time) {
  const std::size_t labels = graph.path_labels.size();
  std::vector<PathPart> path;
  const auto label_of = [&](std::size_t i) -> std::string {
    if (i < labels) return graph.path_labels[i];
    return i == labels + kMostAxes ? "launch" : name_of(graph, static_cast<Axis>(i - labels));
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    path.push_back({.label = label_of(i), .duration = parts[i] / steps});
  }
  std::vector<Duration*> durations;
  for (PathPart& part : path) durations.push_back(&part.duration);
  give_rest_to_largest(durations, step_time);
  std::erase_if(path, [](const PathPart& part) { return part.duration == Duration::zero(); });
  std::ranges::stable_sort(path, std::ranges::greater{}, &PathPart::duration);
  return path;
}

RankId peak_rank(const std::vector<MemoryPeak>& peaks) {
  const auto largest = std::ranges::max_element(peaks, {}, &MemoryPeak::bytes);
  return RankId(static_cast<std::uint32_t>(largest - peaks.begin()));
}

std::vector<LinkTotal> link_totals(const Cluster& cluster, const Network& network,
                                   const Transport& transport, bool sprayed, Time end) {
  std::vector<LinkTotal> totals;
  const double seconds = to_seconds(end.since_start);
  for (std::uint32_t i = 0; i < cluster.fabric.links().size(); ++i) {
    const LinkId link(i);
    const double carried = network.carried(link, end);
    const double capacity = cluster.fabric.link(link).bandwidth.value();
    totals.push_back({.link = link,
                      .bytes = sprayed ? carried : transport.data_of(link, carried),
                      .utilization = seconds > 0 ? carried / (capacity * seconds) : 0});
  }
  return totals;
}

}  // namespace stepsim
