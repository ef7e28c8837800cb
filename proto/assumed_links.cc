#include "proto/assumed_links.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "proto/cluster.pb.h"

namespace stepsim {
namespace {

using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;
using google::protobuf::Reflection;

struct LinkKind {
  std::string_view name;
  std::string_view latency;
};

// From GPU to GPU through an NVSwitch 0.5 us: what is left of the 0.8 us of a hop of nccl-tests'
// rings (NVIDIA/nccl-tests, all_gather_perf on one node) once NCCL's own hop is taken away
// (catalog/libraries/nccl-2.29-hopper.textproto).
constexpr LinkKind kNvlink = {"NVLink, to a switch or back", "0.25us"};
// Neugebauer and others, "Understanding PCIe performance for end host networking", SIGCOMM 2018,
// section 6: a DMA read of 64 bytes takes 0.5 to 1 us there and back.
constexpr LinkKind kPcie = {"PCIe", "0.5us"};
// About 1 us from card to card under one switch (ib_write_lat of NVIDIA's perftest; two links), of
// which a switch has 0.13 us to 0.3 us (data sheets of Quantum-2 and Spectrum) and 5 m of cable 25
// ns.
constexpr LinkKind kNetwork = {"a cable with its switch or card", "0.5us"};
// The same and 100 m of fibre, 5 ns a metre.
constexpr LinkKind kLongCable = {"a long cable with its switch", "1us"};
// "How to Scale Your Model", part 3 (Sharded Matrices): about 1 us a hop.
constexpr LinkKind kIci = {"ICI, a hop", "1us"};
// NVIDIA's "InfiniBand Cluster Bring-up Procedure" v1.0: adaptive routing is on by default.
constexpr LinkKind kAdaptive = {"InfiniBand of a SuperPOD", "adaptive"};

struct AssumedField {
  std::string_view message;
  std::string_view field;
  const LinkKind& kind;
  std::string_view only_with = {};  // a field that must be given
};

constexpr std::array kAssumed = {
    AssumedField{"DgxSuperpod", "nvlink_latency", kNvlink},
    AssumedField{"DgxSuperpod", "network_link_latency", kNetwork},
    AssumedField{"DgxSuperpod", "routing", kAdaptive},
    AssumedField{"NvlinkDomain", "link_latency", kNvlink},
    AssumedField{"PcieBox", "link_latency", kPcie},
    AssumedField{"FatTree", "link_latency", kNetwork},
    AssumedField{"LeafSpine", "link_latency", kNetwork},
    AssumedField{"RailFabric", "link_latency", kNetwork},
    AssumedField{"Dragonfly", "local_latency", kNetwork},
    AssumedField{"Dragonfly", "global_latency", kLongCable},
    AssumedField{"Torus", "link_latency", kIci},
    AssumedField{"TwistedTorus", "link_latency", kIci},
    AssumedField{"TpuSlice", "link_latency", kIci},
    AssumedField{"Hosts", "latency", kPcie},
    AssumedField{"Tier", "host_latency", kPcie, "host_bandwidth"},
    AssumedField{"Link", "latency", kNetwork, "bandwidth"},  // of an explicit_graph
};

class Assumer {
 public:
  void visit(ProtoMessage& message, const std::string& path) {
    const Reflection& reflection = *message.GetReflection();
    const auto field_named = [&](std::string_view name) {
      return message.GetDescriptor()->FindFieldByName(std::string(name));
    };
    for (const AssumedField& row : kAssumed) {
      if (message.GetDescriptor()->name() != row.message) continue;
      const FieldDescriptor* const field = field_named(row.field);
      if (field == nullptr || reflection.HasField(message, field)) continue;
      const FieldDescriptor* const other =
          row.only_with.empty() ? nullptr : field_named(row.only_with);
      if (!row.only_with.empty() && (other == nullptr || !reflection.HasField(message, other))) {
        continue;
      }
      reflection.SetString(&message, field, std::string(row.kind.latency));
      std::string line =
          fmt::format("assumed {}{}={} ({})", path, row.field, row.kind.latency, row.kind.name);
      if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
    }
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      const std::string inner = path + std::string(field->name()) + ".";
      if (!field->is_repeated()) {
        visit(*reflection.MutableMessage(&message, field), inner);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        visit(*reflection.MutableRepeatedMessage(&message, field, i), inner);
      }
    }
  }

  std::vector<std::string> lines;
};

}  // namespace

std::vector<std::string> assume_links(file::Cluster& cluster) {
  Assumer assumer;
  const Reflection& reflection = *cluster.GetReflection();
  const FieldDescriptor* const topology = reflection.GetOneofFieldDescriptor(
      cluster, cluster.GetDescriptor()->FindOneofByName("topology"));
  if (topology == nullptr) return {};
  assumer.visit(*reflection.MutableMessage(&cluster, topology),
                "cluster." + std::string(topology->name()) + ".");
  return std::move(assumer.lines);
}

}  // namespace stepsim
