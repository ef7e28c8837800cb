#include "sim/program/op_graph.h"

namespace stepsim {

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, kAxes> kNames = {"tp", "cp",   "ep",   "dp",
                                                          "pp", "host", "other"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(MemoryCategory category) {
  constexpr std::array<std::string_view, kMemoryCategories> kNames = {
      "parameters",          "gradients", "optimizer",     "activations",
      "gathered_parameters", "buffers",   "fixed_overhead"};
  return kNames[static_cast<std::size_t>(category)];
}

std::string_view name_of(MessageKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"activation", "gradient", "state"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const Dependency> Program::dependencies_of(std::uint32_t op) const {
  const std::uint32_t begin = op == 0 ? 0 : ops[op - 1].dependencies_end;
  return std::span(dependencies).subspan(begin, ops[op].dependencies_end - begin);
}

std::span<const MemoryChange> Program::memory_changes_of(std::uint32_t op) const {
  const std::uint32_t begin = op == 0 ? 0 : ops[op - 1].memory_end;
  return std::span(memory_changes).subspan(begin, ops[op].memory_end - begin);
}

}  // namespace stepsim
