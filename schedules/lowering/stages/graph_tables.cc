#include "schedules/lowering/stages/graph_tables.h"

#include <utility>

namespace stepsim {

namespace {
std::uint32_t last_index(std::size_t size) {
  return static_cast<std::uint32_t>(size - 1);
}
}  // namespace

std::uint32_t GraphTables::compute(const std::vector<Kernel>& kernels, std::uint32_t path_label) {
  // A linear search is enough: layers and micro-batches are alike, so there are a few dozen works.
  for (std::uint32_t i = 0; i < graph_.compute_works.size(); ++i) {
    const ComputeWork& work = graph_.compute_works[i];
    if (work.path_label == path_label && work.kernels == kernels) return i;
  }
  graph_.compute_works.push_back({.kernels = kernels, .path_label = path_label});
  return last_index(graph_.compute_works.size());
}

std::uint32_t GraphTables::collective(const CollectiveWork& work) {
  for (std::uint32_t i = 0; i < graph_.collective_works.size(); ++i) {
    if (graph_.collective_works[i] == work) return i;
  }
  graph_.collective_works.push_back(work);
  return last_index(graph_.collective_works.size());
}

std::uint32_t GraphTables::message(const Message& message) {
  graph_.messages.push_back(message);
  return last_index(graph_.messages.size());
}

std::uint32_t GraphTables::host(const HostWork& work) {
  for (std::uint32_t i = 0; i < graph_.host_works.size(); ++i) {
    if (graph_.host_works[i] == work) return i;
  }
  graph_.host_works.push_back(work);
  return last_index(graph_.host_works.size());
}

std::uint32_t GraphTables::name(const std::string& name) {
  const auto [place, added] =
      names_.try_emplace(name, static_cast<std::uint32_t>(graph_.names.size()));
  if (added) graph_.names.push_back(name);
  return place->second;
}

CommunicatorId GraphTables::communicator(Communicator communicator) {
  graph_.communicators.push_back(std::move(communicator));
  return CommunicatorId(last_index(graph_.communicators.size()));
}

}  // namespace stepsim
