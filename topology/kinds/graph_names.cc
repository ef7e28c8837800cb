#include "topology/kinds/graph_names.h"

namespace stepsim {

std::string_view name_of(PathRule rule) {
  switch (rule) {
    case PathRule::kDestination:
      return "destination";
    case PathRule::kEcmp:
      return "ecmp";
    case PathRule::kAdaptive:
      break;
  }
  return "adaptive";
}

std::string_view name_of(CrossRail cross_rail) {
  return cross_rail == CrossRail::kPxn ? "pxn" : "spine";
}

std::string_view name_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::kChip:
      return "chip";
    case NodeKind::kSwitch:
      return "switch";
    case NodeKind::kHost:
      return "host";
    case NodeKind::kNic:
      break;
  }
  return "nic";
}

std::string_view name_of(PathMetric metric) {
  switch (metric) {
    case PathMetric::kHops:
      return "hops";
    case PathMetric::kLatency:
      return "latency";
    case PathMetric::kSpareHosts:
      break;
  }
  return "spare_hosts";
}

}  // namespace stepsim
