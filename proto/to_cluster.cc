#include "proto/field_reader.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

void read_peaks(const file::Chip& chip, ChipSpec& spec, ProblemList& problems) {
  if (chip.peak_size() == 0) {
    problems.add("cluster.chip.peak",
                 "must be given, one for each data type, as in type: \"bf16\" throughput: "
                 "\"989TFLOPS\"");
    problems.mark_reported("cluster.chip.peak.fp32");
  }
  for (int i = 0; i < chip.peak_size(); ++i) {
    const std::string prefix = "cluster.chip.peak[" + std::to_string(i) + "].";
    const FieldReader fields(chip.peak(i), prefix, problems);
    const auto type = data_type_named(chip.peak(i).type());
    Throughput value;
    fields.require("throughput", value);
    if (!type) {
      fields.add("type",
                 "must be one of " + data_type_names() + "; is \"" + chip.peak(i).type() + "\"");
    } else if (spec.peak_of(*type) != Throughput(0)) {
      fields.add("type", "is given twice: " + chip.peak(i).type());
    } else {
      if (value == Throughput(0)) fields.add("throughput", "must be positive, is 0");
      spec.peak[static_cast<std::size_t>(*type)] = value;
    }
  }
}

void read_matmul(const FieldReader& fields, MatmulEfficiency& matmul) {
  fields.read("peak_fraction", matmul.peak_fraction);
  fields.read("tile_m", matmul.tile_m);
  fields.read("tile_n", matmul.tile_n);
  fields.read("compute_units", matmul.compute_units);
  fields.read("inner_ramp", matmul.inner_ramp);
  fields.read("least_split", matmul.least_split);
  fields.read("accumulating", matmul.accumulating);
}

Efficiency to_efficiency(const file::Efficiency& efficiency, ProblemList& problems) {
  Efficiency spec;
  const std::string prefix = "cluster.chip.efficiency.";
  const FieldReader matmul(efficiency.matmul(), prefix + "matmul.", problems);
  read_matmul(matmul, spec.matmul);
  for (int i = 0; i < efficiency.matmul_of_size(); ++i) {
    const file::MatmulEfficiency& of = efficiency.matmul_of(i);
    const FieldReader fields(of, prefix + "matmul_of[" + std::to_string(i) + "].", problems);
    const auto type = data_type_named(of.type());
    if (!type) {
      fields.add("type", "must be one of " + data_type_names() + "; is \"" + of.type() + "\"");
      continue;
    }
    read_matmul(fields, spec.matmul_of[static_cast<std::size_t>(*type)].emplace(spec.matmul));
  }
  const FieldReader fields(efficiency, prefix, problems);
  fields.read("attention_forward_fraction", spec.attention_forward_fraction);
  fields.read("attention_backward_fraction", spec.attention_backward_fraction);
  fields.read("attention_length_ramp", spec.attention_length_ramp);
  fields.read("attention_tile_ramp", spec.attention_tile_ramp);
  fields.read("attention_head_ramp", spec.attention_head_ramp);
  fields.read("elementwise_fraction", spec.elementwise_fraction);
  fields.read("memory_fraction", spec.memory_fraction);
  fields.read("memory_ramp", spec.memory_ramp);
  for (int i = 0; i < efficiency.elementwise_of_size(); ++i) {
    const file::ElementwiseEfficiency& of = efficiency.elementwise_of(i);
    const FieldReader reader(of, prefix + "elementwise_of[" + std::to_string(i) + "].", problems);
    std::size_t kind = 1;  // a plain one is what memory_fraction is for
    while (kind < kElementwiseKinds && name_of(static_cast<ElementwiseKind>(kind)) != of.kind()) {
      ++kind;
    }
    if (kind == kElementwiseKinds) {
      reader.add("kind", "must be norm, rope or rounding; is \"" + of.kind() + "\"");
      continue;
    }
    reader.read("memory_fraction", spec.elementwise_of[kind]);
    if (spec.elementwise_of[kind] == 0) {
      reader.add("memory_fraction", "must be given, above 0 and at most 1");
    }
  }
  return spec;
}

CommunicationUnits to_communication(const file::Communication& communication,
                                    ProblemList& problems) {
  CommunicationUnits spec;
  const std::string prefix = "cluster.chip.communication.";
  const FieldReader fields(communication, prefix, problems);
  fields.read("nvls", spec.nvls);
  fields.read("units", spec.units);
  if (fields.has("compute_share") || fields.has("memory_share")) {
    spec.fixed = {.compute_share = communication.compute_share(),
                  .memory_share = communication.memory_share()};
  }
  for (int i = 0; i < communication.reduction_size(); ++i) {
    const file::Reduction& reduction = communication.reduction(i);
    const FieldReader of(reduction, prefix + "reduction[" + std::to_string(i) + "].", problems);
    const auto type = data_type_named(reduction.type());
    Bandwidth throughput;
    of.require("throughput", throughput);
    if (!type) {
      of.add("type", "must be one of " + data_type_names() + "; is \"" + reduction.type() + "\"");
      continue;
    }
    spec.reduction[static_cast<std::size_t>(*type)] = throughput;
  }
  return spec;
}

ChipSpec to_chip(const file::Chip& chip, ProblemList& problems) {
  const FieldReader fields(chip, "cluster.chip.", problems);
  ChipSpec spec;
  spec.name = chip.has_name() ? chip.name() : "chip";
  read_peaks(chip, spec, problems);
  fields.require("memory_bandwidth", spec.memory_bandwidth);
  fields.require("memory_capacity", spec.memory_capacity);
  fields.read("launch_overhead", spec.launch_overhead);
  fields.read("fixed_memory", spec.fixed_memory);
  fields.read("sustained_clock", spec.sustained_clock);
  spec.efficiency = to_efficiency(chip.efficiency(), problems);
  spec.communication = to_communication(chip.communication(), problems);
  problems.add(under("cluster.chip", check(spec)));
  return spec;
}

// What the cluster says of its hosts goes over what the chip says.
HostSpec to_host(const file::Cluster& cluster, ProblemList& problems) {
  file::Host message = cluster.chip().host();
  message.MergeFrom(cluster.host());
  HostSpec spec;
  const FieldReader fields(message, "cluster.host.", problems);
  fields.read("link_bandwidth", spec.link_bandwidth);
  fields.read("link_latency", spec.link_latency);
  fields.read("chips", spec.chips);
  fields.read("uplink_chips", spec.uplink_chips);
  fields.read("uplink_bandwidth", spec.uplink_bandwidth);
  fields.read("memory_bandwidth", spec.memory_bandwidth);
  fields.read("memory_capacity", spec.memory_capacity);
  problems.add(under("cluster.host", check(spec)));
  return spec;
}

}  // namespace

std::optional<DataType> data_type_named(std::string_view name) {
  for (int type = 0; type < kDataTypes; ++type) {
    if (name_of(static_cast<DataType>(type)) == name) return static_cast<DataType>(type);
  }
  return std::nullopt;
}

std::string data_type_names() {
  std::string names;
  for (int type = 0; type < kDataTypes; ++type) {
    names += (type == 0 ? "" : ", ") + std::string(name_of(static_cast<DataType>(type)));
  }
  return names;
}

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
