#include "schedules/plan/balanced_layout.h"

#include <algorithm>
#include <cassert>
#include <limits>
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

// Returns the smallest possible largest sum.
double least_largest(std::span<const double> costs, std::int64_t parts, double last) {
  double low = 0;
  double high = std::accumulate(costs.begin(), costs.end(), last);
  double least = largest(costs, filled(costs, parts, high), last);
  constexpr int kHalvings = 60;
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double most = (low + high) / 2;
    const double reached = largest(costs, filled(costs, parts, most), last);
    (reached <= most ? high : low) = most;
    least = std::min(least, reached);
  }
  return least;
}

bool are_alike(std::span<const double> costs) {
  return std::ranges::all_of(costs, [&](double cost) { return cost == costs.front(); });
}

PipelineSchedule shape_of(const ParallelPlan& plan) {
  PipelineSchedule shape{.microbatches = 1,
                         .chunks = static_cast<std::int32_t>(chunks_of(plan.pipeline)),
                         .placement = placement_of(plan.pipeline)};
  shape.ranks.resize(static_cast<std::size_t>(plan.mesh.pp));
  return shape;
}

// Divides layers that are all alike: first over ranks, then over the chunks of each. `head`: in
// layers.
std::vector<std::int64_t> divided_over_ranks(const ParallelPlan& plan, std::int64_t layers,
                                             double head) {
  const PipelineSchedule shape = shape_of(plan);
  const std::int32_t last_stage = stage_count(shape) - 1;
  const std::int32_t last_rank = rank_of(shape, 0, last_stage);
  // Each chunk has a layer; the others are divided, the rank with the head as the last part.
  const std::int64_t others = layers - stage_count(shape);
  const std::vector<double> one_each(static_cast<std::size_t>(others + plan.mesh.pp), 1.0);
  std::vector<std::int64_t> of_rank = divide_evenly(one_each, plan.mesh.pp, head);
  for (std::int64_t& rank : of_rank) rank += shape.chunks - 1;
  std::rotate(of_rank.begin() + last_rank, of_rank.end() - 1, of_rank.end());
  std::vector<std::int64_t> layout(static_cast<std::size_t>(stage_count(shape)));
  for (std::int32_t rank = 0; rank < shape.size(); ++rank) {
    const std::int64_t all = of_rank[static_cast<std::size_t>(rank)];
    const std::vector<double> own(static_cast<std::size_t>(all), 1.0);
    const std::vector<std::int64_t> chunks =
        divide_evenly(own, shape.chunks, rank == last_rank ? head : 0);
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      layout[static_cast<std::size_t>(stage_of(shape, rank, chunk))] =
          chunks[static_cast<std::size_t>(chunk)];
    }
  }
  return layout;
}

}  // namespace

std::vector<std::int64_t> divide_evenly(std::span<const double> costs, std::int64_t parts,
                                        double last) {
  assert(parts >= 1 && static_cast<std::size_t>(parts) <= costs.size());
  constexpr double kRounding = 1 + 1e-12;  // sums in another order
  const double most = least_largest(costs, parts, last) * kRounding;
  const std::size_t all = costs.size();
  const auto count = static_cast<std::size_t>(parts);
  std::vector<double> before(all + 1, 0);
  std::partial_sum(costs.begin(), costs.end(), before.begin() + 1);
  // least[part][end]: the least sum of squares of the parts up to this one if it ends there.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(count + 1, std::vector<double>(all + 1, kNone));
  std::vector<std::vector<std::size_t>> begins(count + 1, std::vector<std::size_t>(all + 1, 0));
  least[0][0] = 0;
  for (std::size_t part = 1; part <= count; ++part) {
    const double own = part == count ? last : 0;
    for (std::size_t end = part; end + (count - part) <= all; ++end) {
      // Shorter parts come first, so the shortest of equally good ones would stay.
      for (std::size_t begin = end; begin-- > part - 1;) {
        const double sum = before[end] - before[begin] + own;
        if (sum > most) break;
        const double squares = least[part - 1][begin] + sum * sum;
        if (squares > least[part][end] * kRounding) continue;
        least[part][end] = std::min(squares, least[part][end]);
        begins[part][end] = begin;
      }
    }
  }
  std::vector<std::int64_t> sizes(count);
  for (std::size_t part = count, end = all; part > 0; end = begins[part--][end]) {
    sizes[part - 1] = static_cast<std::int64_t>(end - begins[part][end]);
  }
  return sizes;
}

std::vector<std::int64_t> even_layout(const ParallelPlan& plan, const ModelSpec& model) {
  assert(model.layers >= stages_of(plan));
  const std::int64_t stages = stages_of(plan);
  std::vector<std::int64_t> layout(static_cast<std::size_t>(stages), model.layers / stages);
  for (std::int64_t i = 0; i < model.layers % stages; ++i) {
    ++layout[static_cast<std::size_t>(stages - 2 - i)];
  }
  return layout;
}

std::vector<std::int64_t> balanced_layout(const ParallelPlan& plan, const ModelSpec& model) {
  const ForwardFlops flops = forward_flops(model, plan.batch.sequence, plan.batch.document_length);
  if (are_alike(flops.layers) && chunks_of(plan.pipeline) > 1 && stages_of(plan) > plan.mesh.pp) {
    return divided_over_ranks(plan, model.layers, flops.head / flops.layers.front());
  }
  return divide_evenly(flops.layers, stages_of(plan), flops.head);
}

}  // namespace stepsim
