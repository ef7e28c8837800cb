#include "experiment/cluster_fields.h"
#include "proto/messages/read_fields.h"
#include "proto/to_spec.h"
#include "sim/base/suggestion.h"
#include "topology/topology_table.h"

namespace stepsim {
namespace {

// The cluster's data on its hosts goes over the chip's.
file::Cluster with_host_of_chip(const file::Cluster& cluster) {
  file::Cluster whole = cluster;
  *whole.mutable_host() = cluster.chip().host();
  whole.mutable_host()->MergeFrom(cluster.host());
  return whole;
}

void check_parts(const file::Cluster& cluster, const ClusterSpec& spec, ProblemList& problems) {
  if (cluster.has_chip()) problems.add(under("cluster.chip", check(spec.chip)));
  problems.add(under("cluster.host", check(spec.host)));
  problems.add(under("cluster.library", check(spec.library)));
}

}  // namespace

ClusterSpec to_cluster(const file::Cluster& cluster, ProblemList& problems) {
  ClusterSpec spec;
  spec.name = "cluster";
  spec.chip.name = "chip";
  read_fields(with_host_of_chip(cluster), cluster_fields(), spec, "cluster.", problems);
  if (cluster.has_sizes()) problems.add("cluster.sizes", "is for files of the catalog only");
  check_parts(cluster, spec, problems);
  if (cluster.topology_case() == file::Cluster::TOPOLOGY_NOT_SET) {
    problems.add("cluster",
                 "must have a topology: " + comma_separated(block_fields().names()) + ", composed");
    return spec;
  }
  spec.library.inside = inside_of(spec.topology);
  problems.add(under("cluster", check(spec.topology, spec.faults)));
  return spec;
}

}  // namespace stepsim
