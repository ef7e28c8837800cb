#include "sim/program/op_graph.h"

#include <algorithm>

namespace stepsim {

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "parameters", "gradients",           "optimizer", "activations",
      "kv_cache",   "gathered_parameters", "buffers",   "fixed_overhead"};
  return kNames[static_cast<std::size_t>(category)];
}

std::string_view name_of(MessageKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"activation", "gradient", "state"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string name_of(const OpGraph& graph, Axis axis) {
  const auto number = static_cast<std::size_t>(axis);
  return number < graph.axes.size() ? graph.axes[number] : "axis " + std::to_string(number);
}

std::string name_of_stage(const OpGraph& graph, std::uint32_t stage) {
  if (stage < graph.stage_names.size()) return graph.stage_names[stage];
  return "stage " + std::to_string(stage);
}

std::uint32_t launches_of(const ComputeWork& work) {
  std::uint32_t sum = 0;
  for (const Kernel& kernel : work.kernels) sum += kernel.launches;
  return std::max(sum, 1U);
}

}  // namespace stepsim
