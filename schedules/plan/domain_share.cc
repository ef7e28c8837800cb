#include "schedules/plan/domain_share.h"

#include <algorithm>

namespace stepsim {
namespace {

bool fit_each_other(std::int64_t a, std::int64_t b) {
  return a % b == 0 || b % a == 0;
}

// Returns strides and extents of the groups that communicate all at once, in ranks.
std::vector<std::int64_t> steps_of_groups(const Ranks& mesh) {
  std::vector<std::int64_t> steps;
  std::int64_t stride = 1;
  for (const PlanAxis axis : mesh.order) {
    const std::int64_t extent = stride * mesh.size_of(axis);
    if (axis != PlanAxis::kPipeline && extent > stride) {
      steps.push_back(stride);
      steps.push_back(extent);
    }
    stride = extent;
  }
  // Only the ranks of a stage that follow each other make blocks of experts.
  if (mesh.splits_ffn()) {
    steps.push_back(mesh.etp);
  } else if (mesh.order.back() == PlanAxis::kPipeline || mesh.pp == 1) {
    steps.push_back(mesh.etp);
    steps.push_back(mesh.etp * mesh.ep);
  }
  return steps;
}

}  // namespace

std::int64_t domain_share(const Ranks& mesh, const Places& places) {
  const std::int64_t domain = chips_per_node(places);
  if (mesh.chips_per_domain) return std::min(*mesh.chips_per_domain, domain);
  const std::int64_t ranks = mesh.ranks();
  if (!mesh.map.empty() || ranks <= domain) return domain;
  const std::int64_t domains = static_cast<std::int64_t>(places.chips.size()) / domain;
  const std::vector<std::int64_t> steps = steps_of_groups(mesh);
  for (std::int64_t share = domain; share * domains >= ranks; --share) {
    const bool is_even = std::ranges::all_of(
        steps, [share](std::int64_t step) { return fit_each_other(step, share); });
    if (is_even) return share;
  }
  return domain;
}

std::vector<std::uint32_t> place_by_domains(std::int64_t ranks, std::int64_t share,
                                            std::int64_t domain) {
  std::vector<std::uint32_t> chips;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    chips.push_back(static_cast<std::uint32_t>(rank / share * domain + rank % share));
  }
  return chips;
}

}  // namespace stepsim
