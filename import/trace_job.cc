#include "import/trace_job.h"

#include <array>
#include <numeric>

namespace stepsim {

std::string_view name_of(TraceNodeKind kind) {
  constexpr std::array<std::string_view, kTraceNodeKinds> kNames = {
      "nothing", "kernel", "gap", "other", "collective", "send", "receive"};
  return kNames[static_cast<std::size_t>(kind)];
}

void TraceRank::add(TraceNode node, std::span<const std::uint32_t> after) {
  dependencies.insert(dependencies.end(), after.begin(), after.end());
  node.dependencies_end = dependencies.size();
  nodes.push_back(node);
}

std::span<const std::uint32_t> TraceRank::dependencies_of(std::size_t node) const {
  const std::size_t begin = node == 0 ? 0 : nodes[node - 1].dependencies_end;
  return std::span(dependencies).subspan(begin, nodes[node].dependencies_end - begin);
}

std::size_t TraceJob::nodes() const {
  std::size_t count = 0;
  for (const TraceRank& program : programs) count += program.nodes.size();
  return count;
}

std::vector<std::uint32_t> all_ranks(std::uint32_t ranks) {
  std::vector<std::uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::uint32_t TraceNames::number(std::string_view name) {
  const auto [found, is_new] =
      numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
  if (is_new) names_.emplace_back(name);
  return found->second;
}

}  // namespace stepsim
