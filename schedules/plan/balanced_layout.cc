#include "schedules/plan/balanced_layout.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "schedules/plan/plan_schedule.h"
#include "workload/model_counts.h"

namespace stepsim {
namespace {

// Fills each part up to `most`, leaving one cost for each part behind it. Returns the sizes; the
// last part has what is left.
std::vector<std::int64_t> filled(std::span<const double> costs, std::int64_t parts, double most) {
  std::vector<std::int64_t> sizes;
  std::size_t next = 0;
  for (std::int64_t part = 0; part + 1 < parts; ++part) {
    const auto behind = static_cast<std::size_t>(parts - part - 1);
    double sum = costs[next];
    std::int64_t size = 1;
    while (++next + behind < costs.size() && sum + costs[next] <= most) {
      sum += costs[next];
      ++size;
    }
    sizes.push_back(size);
  }
  sizes.push_back(static_cast<std::int64_t>(costs.size() - next));
  return sizes;
}

double largest(std::span<const double> costs, const std::vector<std::int64_t>& sizes, double last) {
  double most = 0;
  auto at = costs.begin();
  for (std::size_t part = 0; part < sizes.size(); ++part) {
    const auto end = at + sizes[part];
    const double own = part + 1 == sizes.size() ? last : 0;
    most = std::max(most, std::accumulate(at, end, own));
    at = end;
  }
  return most;
}

}  // namespace

std::vector<std::int64_t> divide_evenly(std::span<const double> costs, std::int64_t parts,
                                        double last) {
  assert(parts >= 1 && static_cast<std::size_t>(parts) <= costs.size());
  double low = 0;
  double high = std::accumulate(costs.begin(), costs.end(), last);
  std::vector<std::int64_t> best = filled(costs, parts, high);
  double least = largest(costs, best, last);
  constexpr int kHalvings = 60;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double most = (low + high) / 2;
    std::vector<std::int64_t> sizes = filled(costs, parts, most);
    const double reached = largest(costs, sizes, last);
    (reached <= most ? high : low) = most;
    if (reached >= least) continue;
    least = reached;
    best = std::move(sizes);
  }
  return best;
}

std::vector<std::int64_t> balanced_layout(const ParallelPlan& plan, const ModelSpec& model) {
  const ForwardFlops flops = forward_flops(model, plan.sequence, plan.document_length);
  return divide_evenly(flops.layers, stages_of(plan), flops.head);
}

}  // namespace stepsim
