#include "proto/field_reader.h"
#include "proto/read_fields.h"
#include "proto/to_spec.h"
#include "sim/chips/chip_fields.h"
#include "sim/collectives/library_fields.h"
#include "sim/hardware/host_fields.h"

namespace stepsim {
namespace {

ChipSpec to_chip(const file::Chip& chip, ProblemList& problems) {
  ChipSpec spec{.name = "chip"};
  read_fields(chip, chip_fields(), spec, "cluster.chip.", problems);
  problems.add(under("cluster.chip", check(spec)));
  return spec;
}

CommunicationLibrary to_library(const file::Library& library, ProblemList& problems) {
  CommunicationLibrary spec;
  read_fields(library, library_fields(), spec, "cluster.library.", problems);
  problems.add(under("cluster.library", check(spec)));
  return spec;
}

// What the cluster says of its hosts goes over what the chip says.
HostSpec to_host(const file::Cluster& cluster, ProblemList& problems) {
  file::Host message = cluster.chip().host();
  message.MergeFrom(cluster.host());
  HostSpec spec;
  read_fields(message, host_fields(), spec, "cluster.host.", problems);
  problems.add(under("cluster.host", check(spec)));
  return spec;
}

}  // namespace

ClusterSpec to_cluster(const file::Cluster& cluster, ProblemList& problems) {
  ClusterSpec spec;
  spec.name = cluster.has_name() ? cluster.name() : "cluster";
  if (cluster.has_chip()) {
    spec.chip = to_chip(cluster.chip(), problems);
  } else {
    problems.add("cluster.chip", "must be given, as in chip { catalog: \"h100-sxm\" }");
  }
  spec.host = to_host(cluster, problems);
  const FieldReader own(cluster, "cluster.", problems);
  own.read("switch_adders", spec.switch_adders);
  if (cluster.has_sizes()) problems.add("cluster.sizes", "is for files of the catalog only");
  const std::optional<TopologySpec> topology = to_topology(cluster, problems);
  if (!topology) {
    problems.add("cluster", "must have a topology: " + topology_names());
    return spec;
  }
  spec.topology = *topology;
  spec.library = to_library(cluster.library(), problems);
  spec.library.inside = inside_of(spec.topology);
  spec.faults = to_faults(cluster, problems);
  problems.add(under("cluster", check(spec.topology, spec.faults)));
  return spec;
}

}  // namespace stepsim
