// Checks the laws of collectives over clusters of the catalog and prints every one that is broken:
//
//   stepsim_laws [CLUSTER...]      names with a size, as of `stepsim collective --cluster`

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "experiment/build_cluster.h"
#include "proto/load_experiment.h"
#include "sim/base/error.h"
#include "sim/network/places.h"
#include "tests/laws/collective_laws.h"

namespace {

using namespace stepsim;

// Whole nodes, and within the first node its members.
LawScope scope_of(const ClusterSpec& spec) {
  const Cluster cluster = build_cluster(spec);
  const std::uint32_t per_node = chips_per_node(cluster.places);
  const auto chips = static_cast<std::uint32_t>(cluster.places.chips.size());
  LawScope scope;
  for (std::int64_t size = 1 << 10; size <= std::int64_t{1} << 33; size *= 2) {
    scope.sizes.push_back(size);
  }
  for (std::uint32_t members = 2; members < per_node; ++members) scope.members.push_back(members);
  if (per_node > 1) scope.members.push_back(per_node);
  const bool torus = cluster.places.levels.front().kind == LevelKind::kTorusAxis;
  if (torus) {
    scope.members = {chips};
    return scope;
  }
  for (std::uint32_t nodes = 2; nodes * per_node <= chips; nodes += std::max(1U, nodes / 10)) {
    scope.members.push_back(nodes * per_node);
  }
  return scope;
}

constexpr const char* kClusters[] = {
    "dgx-a100-64",    "dgx-h100-64",        "dgx-h100-1024",  "dgx-h200-32",     "dgx-b200-64",
    "dgx-b300-32",    "dgx-h800-32",        "dgx-h20-32",     "dgx2-v100-32",    "gb200-nvl72-144",
    "gb300-nvl72-72", "xgmi-mi300x-32",     "xgmi-mi350x-16", "xgmi-mi250x-16",  "pcie-a100-8",
    "pcie-l40s-8",    "leaf-spine-h100-64", "roce-gaudi2-16", "trn2-32",         "v5e-4x4",
    "v5p-4x4x8",      "v5p-4x4x8_twisted",  "v4-4x4x4",       "fat-tree-h100-64"};

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> names(arguments + 1, arguments + count);
  if (names.empty()) names.assign(std::begin(kClusters), std::end(kClusters));
  std::uint64_t checked = 0;
  std::uint64_t broken = 0;
  std::map<std::string, std::uint64_t> by_law;
  for (const std::string& name : names) {
    try {
      const ClusterSpec spec = load_cluster(name);
      const LawReport report = check_collective_laws(name, spec, scope_of(spec));
      checked += report.checked;
      broken += report.broken.size();
      for (const BrokenLaw& law : report.broken) {
        ++by_law[law.law];
        fmt::print("{:<12} {}: {:.3f} us, at most {:.3f} us\n", law.law, law.where, 1e6 * law.found,
                   1e6 * law.expected);
      }
      fmt::print("{}: {} of {} broken\n", name, report.broken.size(), report.checked);
    } catch (const ConfigError& error) {
      fmt::print(stderr, "{}: {}\n", name, error.what());
      return 2;
    }
    std::fflush(stdout);
  }
  for (const auto& [law, times] : by_law) fmt::print("{} {}\n", law, times);
  fmt::print("{} of {} broken\n", broken, checked);
  return broken > 0 ? 1 : 0;
}
