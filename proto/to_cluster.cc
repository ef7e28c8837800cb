#include <algorithm>
#include <array>
#include <limits>

#include "proto/to_spec.h"

namespace stepsim {
namespace {

// How a quantity is read, and what stands for one that could not be read.
template <typename Quantity>
struct Kind {
  std::optional<Quantity> (*parse)(std::string_view);
  std::string_view (*accepted)();
  Quantity stand_in;
};
constexpr Kind<Bandwidth> kBandwidth{parse_bandwidth, accepted_bandwidth, Bandwidth(1)};
constexpr Kind<Throughput> kThroughput{parse_throughput, accepted_throughput, Throughput(1)};
constexpr Kind<Duration> kDuration{parse_duration, accepted_duration, Duration(0)};
constexpr Kind<Bytes> kSize{parse_bytes, accepted_bytes, Bytes(0)};
constexpr Kind<Bytes> kCapacity{parse_bytes, accepted_bytes,
                                Bytes(std::numeric_limits<std::int64_t>::max())};

// What the fields of one message are read with.
class Fields {
 public:
  Fields(std::string prefix, ProblemList& problems)
      : prefix_(std::move(prefix)), problems_(problems) {}

  // Nothing where the field is absent; the stand-in, and a problem, where it can't be read.
  template <typename Quantity>
  std::optional<Quantity> read(const Kind<Quantity>& kind, bool has, const std::string& text,
                               const char* field) {
    if (!has) return std::nullopt;
    if (const auto value = kind.parse(text)) return value;
    problems_.add(prefix_ + field, "must be " + std::string(kind.accepted()) +
                                       ", not negative; is \"" + text + "\"");
    return kind.stand_in;
  }

  template <typename Quantity>
  Quantity required(const Kind<Quantity>& kind, bool has, const std::string& text,
                    const char* field) {
    if (!has) problems_.add(prefix_ + field, "must be given: " + std::string(kind.accepted()));
    return read(kind, has, text, field).value_or(kind.stand_in);
  }

  void add(const char* field, std::string message) {
    problems_.add(prefix_ + field, std::move(message));
  }

 private:
  std::string prefix_;
  ProblemList& problems_;
};

void read_peaks(const file::Chip& chip, ChipSpec& spec, ProblemList& problems) {
  if (chip.peak_size() == 0) {
    problems.add("cluster.chip.peak",
                 "must be given, one for each data type, as in type: \"bf16\" throughput: "
                 "\"989TFLOPS\"");
    problems.mark_reported("cluster.chip.peak.fp32");
  }
  for (int i = 0; i < chip.peak_size(); ++i) {
    const std::string prefix = "cluster.chip.peak[" + std::to_string(i) + "].";
    Fields fields(prefix, problems);
    const auto type = data_type_named(chip.peak(i).type());
    const Throughput value = fields.required(kThroughput, chip.peak(i).has_throughput(),
                                             chip.peak(i).throughput(), "throughput");
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

Efficiency to_efficiency(const file::Efficiency& efficiency, ProblemList& problems) {
  Efficiency spec;
  const file::MatmulEfficiency& matmul = efficiency.matmul();
  if (matmul.has_peak_fraction()) spec.matmul.peak_fraction = matmul.peak_fraction();
  if (matmul.has_tile_m()) spec.matmul.tile_m = matmul.tile_m();
  if (matmul.has_tile_n()) spec.matmul.tile_n = matmul.tile_n();
  if (matmul.has_compute_units()) spec.matmul.compute_units = matmul.compute_units();
  if (matmul.has_inner_ramp()) spec.matmul.inner_ramp = matmul.inner_ramp();
  if (efficiency.has_attention_forward_fraction()) {
    spec.attention_forward_fraction = efficiency.attention_forward_fraction();
  }
  if (efficiency.has_attention_backward_fraction()) {
    spec.attention_backward_fraction = efficiency.attention_backward_fraction();
  }
  if (efficiency.has_elementwise_fraction()) {
    spec.elementwise_fraction = efficiency.elementwise_fraction();
  }
  if (efficiency.has_memory_fraction()) spec.memory_fraction = efficiency.memory_fraction();
  Fields fields("cluster.chip.efficiency.", problems);
  spec.memory_ramp =
      fields.read(kSize, efficiency.has_memory_ramp(), efficiency.memory_ramp(), "memory_ramp")
          .value_or(Bytes(0));
  return spec;
}

ChipSpec to_chip(const file::Chip& chip, ProblemList& problems) {
  Fields fields("cluster.chip.", problems);
  ChipSpec spec;
  spec.name = chip.has_name() ? chip.name() : "chip";
  read_peaks(chip, spec, problems);
  spec.memory_bandwidth = fields.required(kBandwidth, chip.has_memory_bandwidth(),
                                          chip.memory_bandwidth(), "memory_bandwidth");
  spec.memory_capacity = fields.required(kCapacity, chip.has_memory_capacity(),
                                         chip.memory_capacity(), "memory_capacity");
  spec.launch_overhead =
      fields.read(kDuration, chip.has_launch_overhead(), chip.launch_overhead(), "launch_overhead")
          .value_or(Duration(0));
  spec.fixed_memory =
      fields.read(kSize, chip.has_fixed_memory(), chip.fixed_memory(), "fixed_memory")
          .value_or(Bytes(0));
  spec.efficiency = to_efficiency(chip.efficiency(), problems);
  spec.communication = {.compute_share = chip.communication().compute_share(),
                        .memory_share = chip.communication().memory_share()};
  problems.add(under("cluster.chip", check(spec)));
  return spec;
}

DgxSuperPodSpec to_superpod(const file::DgxSuperpod& superpod, ProblemList& problems) {
  Fields fields("cluster.dgx_superpod.", problems);
  DgxSuperPodSpec spec;
  if (!superpod.has_nodes()) fields.add("nodes", "must be given: a whole number of at least 1");
  if (superpod.has_nodes()) spec.nodes = superpod.nodes();
  if (superpod.has_gpus_per_node()) spec.gpus_per_node = superpod.gpus_per_node();
  if (superpod.has_nodes_per_scalable_unit()) {
    spec.nodes_per_scalable_unit = superpod.nodes_per_scalable_unit();
  }
  const auto bandwidth = [&fields](bool has, const std::string& text, const char* field,
                                   Bandwidth& value) {
    value = fields.read(kBandwidth, has, text, field).value_or(value);
  };
  const auto latency = [&fields](bool has, const std::string& text, const char* field,
                                 Duration& value) {
    value = fields.read(kDuration, has, text, field).value_or(value);
  };
  bandwidth(superpod.has_nvlink_bandwidth(), superpod.nvlink_bandwidth(), "nvlink_bandwidth",
            spec.nvlink_bandwidth);
  latency(superpod.has_nvlink_latency(), superpod.nvlink_latency(), "nvlink_latency",
          spec.nvlink_latency);
  bandwidth(superpod.has_nic_bandwidth(), superpod.nic_bandwidth(), "nic_bandwidth",
            spec.nic_bandwidth);
  latency(superpod.has_network_link_latency(), superpod.network_link_latency(),
          "network_link_latency", spec.network_link_latency);
  if (superpod.has_switch_ports()) spec.switch_ports = superpod.switch_ports();
  if (superpod.has_spines()) spec.spines = superpod.spines();
  if (superpod.has_oversubscription()) spec.oversubscription = superpod.oversubscription();
  if (superpod.has_cross_rail() && superpod.cross_rail() != "pxn" &&
      superpod.cross_rail() != "spine") {
    fields.add("cross_rail", "must be pxn or spine, is \"" + superpod.cross_rail() + "\"");
  }
  spec.cross_rail = superpod.cross_rail() == "spine" ? CrossRail::kSpine : CrossRail::kPxn;
  return spec;
}

TorusSpec to_torus(const file::Torus& torus, ProblemList& problems) {
  Fields fields("cluster.torus.", problems);
  TorusSpec spec;
  for (int i = 0; i < torus.axes_size(); ++i) {
    const file::Torus::Axis& axis = torus.axes(i);
    if (!axis.has_size()) {
      const std::string field = "axes[" + std::to_string(i) + "].size";
      fields.add(field.c_str(), "must be given: a whole number of at least 1");
    }
    spec.axes.push_back({.size = axis.size(), .wraps = axis.wraps()});
  }
  spec.link_bandwidth = fields.required(kBandwidth, torus.has_link_bandwidth(),
                                        torus.link_bandwidth(), "link_bandwidth");
  spec.link_latency =
      fields.read(kDuration, torus.has_link_latency(), torus.link_latency(), "link_latency")
          .value_or(Duration(0));
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
  if (cluster.has_sizes()) problems.add("cluster.sizes", "is for files of the catalog only");
  if (cluster.has_torus()) {
    spec.topology = to_torus(cluster.torus(), problems);
  } else if (cluster.has_dgx_superpod()) {
    spec.topology = to_superpod(cluster.dgx_superpod(), problems);
  } else {
    problems.add("cluster", "must have a topology: dgx_superpod or torus");
    return spec;
  }
  problems.add(under("cluster", check(spec.topology)));
  return spec;
}

}  // namespace stepsim
