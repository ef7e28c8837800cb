#include "sim/run/summary.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

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
  void add(Duration part, std::int64_t times) {
    whole_ += times * (part / count_);
    rest_ += times * (part.count() % count_);
  }
  Duration mean() const { return whole_ + Duration(static_cast<std::int64_t>(rest_ / count_)); }

 private:
  __extension__ using Sum = __int128;

  std::int64_t count_;
  Duration whole_;
  Sum rest_ = 0;
};

// Returns the bytes over each link of the fabric, groups included, and the sum over the links of
// each group that were named alone.
class RoutedOver {
 public:
  RoutedOver(const Fabric& fabric, const std::vector<ExactBytes>& bytes, const Quotient* quotient)
      : fabric_(fabric), bytes_(bytes), quotient_(quotient) {
    for (const LinkGroup& group : fabric.groups()) {
      ExactBytes sum;
      for (const LinkId link : group.links) sum += of(link);
      named_.push_back(sum.value());
    }
  }

  // As bytes_over() of the fabric, in O(1).
  double over(LinkId link) const {
    const double alone = of(link).value();
    const auto id = fabric_.group_of(link);
    if (!id) return alone;
    const LinkGroup& group = fabric_.group(*id);
    const double spread = of(fabric_.link_id(*id)).value() -
                          named_[id->index()] / static_cast<double>(group.links.size());
    return alone + spread * (fabric_.link(link).bandwidth.value() / group.bandwidth.value());
  }

 private:
  ExactBytes of(LinkId link) const {
    return bytes_[quotient_ == nullptr ? link.index() : quotient_->links.class_of[link.index()]];
  }

  const Fabric& fabric_;
  const std::vector<ExactBytes>& bytes_;
  const Quotient* quotient_;
  std::vector<double> named_;  // by group
};

double utilization(double bytes, const Fabric& fabric, LinkId link, Time end) {
  const double seconds = to_seconds(end.since_start);
  return seconds > 0 ? bytes / (fabric.link(link).bandwidth.value() * seconds) : 0;
}

}  // namespace

Breakdown mean_breakdown(const Job& job, const std::vector<Breakdown>& of_ranks, std::int64_t steps,
                         Duration step_time) {
  const std::int64_t count = static_cast<std::int64_t>(job.graph().ranks.size()) * steps;
  const auto mean_of = [&](auto part) {
    MeanOf sum(count);
    for (std::uint32_t rank = 0; rank < of_ranks.size(); ++rank) {
      sum.add(part(of_ranks[rank]), job.count(RankId(rank)));
    }
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

Flops flops_of_step(const OpGraph& graph, const ComputeRuns& compute) {
  std::vector<std::int64_t> ranks(graph.programs.size(), 0);
  for (const RankData& rank : graph.ranks) ++ranks[rank.program.index()];
  Flops flops;
  for (std::size_t program = 0; program < ranks.size(); ++program) {
    if (ranks[program] == 0) continue;
    Flops of_program;
    for (const Op& op : graph.programs[program].ops) {
      if (op.kind == OpKind::kCompute) of_program += compute.flops(ComputeWorkId(op.work));
    }
    flops += static_cast<double>(ranks[program]) * of_program;
  }
  return flops;
}

RankStreamId last_stream(const Job& job, const Streams& streams, const CriticalPath& path,
                         Time end) {
  const auto role = [&](RankStreamId stream) {
    const RankData& rank = job.ranks()[streams.rank_of(stream).index()];
    const Stream& of_program = streams.stream(stream);
    return std::tuple(rank.pp, rank.program, of_program.first_op + of_program.ops);
  };
  std::optional<RankStreamId> last;
  for (std::uint32_t number = 0; number < streams.count(); ++number) {
    const RankStreamId stream(number);
    if (!streams.ended_at_instant(stream, end)) continue;
    const bool precedes = !last || role(stream) < role(*last) ||
                          (role(stream) == role(*last) && path.compare_ended(stream, *last) < 0);
    if (precedes) last = stream;
  }
  return last.value_or(RankStreamId(0));
}

std::vector<LinkTotal> link_totals(const Cluster& cluster, const Transport& transport,
                                   const Quotient* quotient, Time end) {
  const Fabric& fabric = cluster.fabric;
  const RoutedOver routed(fabric, transport.routed_bytes(), quotient);
  const RoutedOver data(fabric, transport.data_bytes(), quotient);
  std::vector<LinkTotal> totals;
  totals.reserve(fabric.links().size());
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i) {
    const LinkId link(i);
    totals.push_back({.link = link,
                      .bytes = data.over(link),
                      .utilization = utilization(routed.over(link), fabric, link, end)});
  }
  return totals;
}

std::vector<LinkTotal> packet_totals(const Cluster& cluster, const Transport& transport,
                                     const Network& network, Time end) {
  const Fabric& fabric = cluster.fabric;
  std::vector<LinkTotal> totals = link_totals(cluster, transport, nullptr, end);
  for (const LinkGroup& group : fabric.groups()) {
    double data = 0;
    double all = 0;
    for (const LinkId link : group.links) {
      data += totals[link.index()].bytes;
      all += network.carried(link, end);
    }
    for (const LinkId link : group.links) {
      const double carried = network.carried(link, end);
      totals[link.index()].bytes = all > 0 ? carried * (data / all) : 0;
      totals[link.index()].utilization = utilization(carried, fabric, link, end);
    }
  }
  return totals;
}

std::vector<LinkTotal> sprayed_totals(const Fabric& fabric, const Network& network, Time end) {
  std::vector<LinkTotal> totals;
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i) {
    const LinkId link(i);
    const double carried = network.carried(link, end);
    totals.push_back(
        {.link = link, .bytes = carried, .utilization = utilization(carried, fabric, link, end)});
  }
  return totals;
}

}  // namespace stepsim
