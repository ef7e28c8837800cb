#include "schedules/plan/parallel_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "schedules/plan/domain_share.h"

namespace stepsim {

std::string_view name_of(PlanAxis axis) {
  constexpr std::array<std::string_view, kPlanAxes> kNames = {"tp", "cp", "dp", "pp"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Recompute recompute) {
  constexpr std::array<std::string_view, kRecomputes> kNames = {
      "none", "selective", "matmuls", "alternate", "alternate_matmuls", "all_but", "full"};
  return kNames[static_cast<std::size_t>(recompute)];
}

std::string_view name_of(RecomputeModule module) {
  constexpr std::array<std::string_view, kRecomputeModules> kNames = {
      "attention", "norm", "activation", "latent_up", "mlp", "shared_experts", "experts", "hyper"};
  return kNames[static_cast<std::size_t>(module)];
}

std::string_view name_of(KeptResult result) {
  constexpr std::array<std::string_view, kKeptResults> kNames = {"qkv", "attention", "out", "up",
                                                                 "down"};
  return kNames[static_cast<std::size_t>(result)];
}

std::string_view name_of(Optimizer optimizer) {
  constexpr std::array<std::string_view, kOptimizers> kNames = {"adam", "none", "muon"};
  return kNames[static_cast<std::size_t>(optimizer)];
}

std::string_view name_of(VisionTraining training) {
  constexpr std::array<std::string_view, kVisionTrainings> kNames = {"all", "projector", "none"};
  return kNames[static_cast<std::size_t>(training)];
}

std::string_view name_of(ContextMode mode) {
  constexpr std::array<std::string_view, kContextModes> kNames = {"ring", "zigzag_ring",
                                                                  "all_gather", "ulysses"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::string_view name_of(Inference inference) {
  constexpr std::array<std::string_view, kInferences> kNames = {"none", "prefill", "decode"};
  return kNames[static_cast<std::size_t>(inference)];
}

std::string_view name_of(CudaGraphs graphs) {
  constexpr std::array<std::string_view, kCudaGraphs> kNames = {"none", "blocks", "step"};
  return kNames[static_cast<std::size_t>(graphs)];
}

std::string_view name_of(MemoryFigure figure) {
  constexpr std::array<std::string_view, kMemoryFigures> kNames = {"allocated", "reserved",
                                                                   "device"};
  return kNames[static_cast<std::size_t>(figure)];
}

ParallelPlan with_recompute_habits(ParallelPlan plan, const ModelSpec& model) {
  RecomputePlan& recompute = plan.recomputing;
  if (plan.habits.recomputes_as_needed && recompute.kind == Recompute::kFull &&
      recompute.block == 1 && model.experts.routed == 0) {
    // No backward reads the result of a block's last matmul, whose place is the next block's input.
    recompute.kind = Recompute::kAllBut;
    recompute.keep = {KeptResult::kDown};
  }
  if (plan.habits.recomputes_cudnn && recompute.kind == Recompute::kAlternate &&
      plan.kernels.attention_library == AttentionLibrary::kCudnn) {
    recompute.kind = Recompute::kAlternateMatmuls;
  }
  return plan;
}

std::string_view name_of(Dispatch dispatch) {
  constexpr std::array<std::string_view, kDispatches> kNames = {"all_to_all", "two_level", "auto"};
  return kNames[static_cast<std::size_t>(dispatch)];
}

std::int64_t Ranks::size_of(PlanAxis axis) const {
  switch (axis) {
    case PlanAxis::kTensor:
      return tp;
    case PlanAxis::kContext:
      return cp;
    case PlanAxis::kData:
      return dp;
    case PlanAxis::kPipeline:
      return pp;
  }
  return 1;
}

std::int64_t Ranks::size_of(ExpertAxis axis) const {
  switch (axis) {
    case ExpertAxis::kExpertTensor:
      return etp;
    case ExpertAxis::kExpert:
      return ep;
    case ExpertAxis::kExpertData:
      return edp();
  }
  return 1;
}

std::int64_t coordinate(const Ranks& mesh, std::int64_t rank, PlanAxis axis) {
  for (const PlanAxis inner : mesh.order) {
    if (inner == axis) return rank % mesh.size_of(axis);
    rank /= mesh.size_of(inner);
  }
  return 0;
}

std::int64_t number_in_stage(const Ranks& mesh, std::int64_t rank) {
  std::int64_t number = 0;
  std::int64_t stride = 1;
  for (const PlanAxis axis : mesh.order) {
    if (axis == PlanAxis::kPipeline) continue;
    number += coordinate(mesh, rank, axis) * stride;
    stride *= mesh.size_of(axis);
  }
  return number;
}

std::int64_t coordinate(const Ranks& mesh, std::int64_t rank, ExpertAxis axis) {
  const std::int64_t number = number_in_stage(mesh, rank);
  switch (axis) {
    case ExpertAxis::kExpertTensor:
      return number % mesh.etp;
    case ExpertAxis::kExpert:
      return number / mesh.etp % mesh.ep;
    case ExpertAxis::kExpertData:
      return number / (mesh.etp * mesh.ep);
  }
  return 0;
}

std::vector<std::uint32_t> place_ranks(const Ranks& mesh, const Places& places) {
  const std::int64_t domain = chips_per_node(places);
  const std::int64_t share = domain_share(mesh, places);
  if (share < domain) return place_by_domains(mesh.ranks(), share, domain);
  // Finds the levels of each axis, innermost first. Axes that are not mapped share the remaining
  // levels, in the plan's order, as one axis.
  std::vector<std::size_t> free_levels;
  std::vector<std::vector<std::size_t>> levels_of(kPlanAxes);
  for (std::size_t level = 0; level < places.levels.size(); ++level) {
    bool mapped = false;
    for (const AxisMapping& mapping : mesh.map) {
      mapped = mapped || std::ranges::count(mapping.levels, places.levels[level].name) > 0;
    }
    if (!mapped) free_levels.push_back(level);
  }
  std::vector<bool> is_mapped(kPlanAxes, false);
  for (const AxisMapping& mapping : mesh.map) {
    is_mapped[static_cast<std::size_t>(mapping.axis)] = true;
    for (const std::string& name : mapping.levels) {
      levels_of[static_cast<std::size_t>(mapping.axis)].push_back(*places.find(name));
    }
  }
  std::vector<std::uint32_t> stride(places.levels.size(), 1);
  for (std::size_t level = 1; level < stride.size(); ++level) {
    stride[level] = stride[level - 1] * places.levels[level - 1].size;
  }

  std::vector<std::uint32_t> chips;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    std::uint32_t chip = 0;
    auto lay = [&](std::int64_t at, const std::vector<std::size_t>& levels) {
      for (const std::size_t level : levels) {
        const std::uint32_t size = places.levels[level].size;
        chip += static_cast<std::uint32_t>(at % size) * stride[level];
        at /= size;
      }
    };
    if (rank >= mesh.mesh_ranks()) {  // of the experts: nothing is mapped
      lay(rank, free_levels);
      chips.push_back(chip);
      continue;
    }
    std::int64_t unmapped = 0;
    std::int64_t unmapped_size = 1;
    for (const PlanAxis axis : mesh.order) {
      const std::int64_t at = coordinate(mesh, rank, axis);
      if (is_mapped[static_cast<std::size_t>(axis)]) {
        lay(at, levels_of[static_cast<std::size_t>(axis)]);
      } else {
        unmapped += at * unmapped_size;
        unmapped_size *= mesh.size_of(axis);
      }
    }
    lay(unmapped, free_levels);
    chips.push_back(chip);
  }
  return chips;
}

}  // namespace stepsim
