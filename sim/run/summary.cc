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

}  // namespace

Breakdown mean_breakdown(const std::vector<Breakdown>& of_ranks, std::int64_t steps,
                         Duration step_time) {
  Breakdown mean;
  for (const Breakdown& of_rank : of_ranks) {
    mean.compute += of_rank.compute;
    mean.bubble += of_rank.bubble;
    mean.idle += of_rank.idle;
    for (std::size_t axis = 0; axis < kMostAxes; ++axis) {
      mean.exposed_communication[axis] += of_rank.exposed_communication[axis];
    }
  }
  std::vector<Duration*> parts = {&mean.compute, &mean.bubble, &mean.idle};
  for (Duration& part : mean.exposed_communication) parts.push_back(&part);
  const std::int64_t count = static_cast<std::int64_t>(of_ranks.size()) * steps;
  for (Duration* part : parts) *part /= count;
  give_rest_to_largest(parts, step_time);
  return mean;
}

std::vector<PathPart> path_of_step(const OpGraph& graph, const std::vector<std::int64_t>& parts,
                                   std::int64_t steps, Duration step_time) {
  const std::size_t labels = graph.path_labels.size();
  std::vector<PathPart> path;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    path.push_back(
        {.label = i < labels ? graph.path_labels[i] : name_of(graph, static_cast<Axis>(i - labels)),
         .duration = Duration(parts[i] / steps)});
  }
  std::vector<Duration*> durations;
  for (PathPart& part : path) durations.push_back(&part.duration);
  give_rest_to_largest(durations, step_time);
  std::erase_if(path, [](const PathPart& part) { return part.duration.count() == 0; });
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
