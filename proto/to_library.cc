#include <array>
#include <string>
#include <utility>
#include <vector>

#include "proto/field_reader.h"
#include "proto/to_spec.h"

namespace stepsim {
namespace {

const std::vector<std::pair<std::string, LibraryPath>> kPaths = {
    {"ring", LibraryPath::kRing},
    {"tree", LibraryPath::kTree},
    {"nvls", LibraryPath::kNvls},
    {"messages", LibraryPath::kMessages},
    {"relay", LibraryPath::kRelay}};
const std::vector<std::pair<std::string, Protocol>> kProtocolNames = {
    {"LL", Protocol::kLl}, {"LL128", Protocol::kLl128}, {"Simple", Protocol::kSimple}};
constexpr std::array<const char*, kHopKinds> kHops = {"nvlink_hop", "pcie_hop", "network_hop"};
constexpr std::array<const char*, kHopKinds> kFractions = {"nvlink_fraction", "pcie_fraction",
                                                           "network_fraction"};

std::string numbered(const std::string& field, int i) {
  return field + "[" + std::to_string(i) + "].";
}

// Of timings and tunings alike: which path and protocol, and the hops.
template <typename Row>
void read_row(const FieldReader& fields, Row& row) {
  for (const char* field : {"path", "protocol"}) {
    if (!fields.has(field)) fields.add(field, "must be given");
  }
  fields.read("path", row.path, kPaths);
  fields.read("protocol", row.protocol, kProtocolNames);
  for (std::size_t kind = 0; kind < kHopKinds; ++kind) fields.read(kHops[kind], row.hop[kind]);
}

ByNodes read_by_nodes(const file::ByNodes& message, const std::string& prefix,
                      ProblemList& problems) {
  ByNodes rates;
  const FieldReader fields(message, prefix, problems);
  fields.read("one", rates[0]);
  fields.read("two", rates[1]);
  fields.read("more", rates[2]);
  return rates;
}

ProtocolChannels to_channels(const file::ProtocolChannels& message, const std::string& prefix,
                             ProblemList& problems) {
  ProtocolChannels channels;
  const FieldReader fields(message, prefix, problems);
  fields.read("most", channels.most);
  fields.read("network", channels.network);
  fields.read("network_most", channels.network_most);
  fields.read("bytes", channels.bytes);
  fields.read("member_bytes", channels.member_bytes);
  fields.read("rate", channels.rate);
  fields.read("accesses", channels.accesses);
  return channels;
}

LibraryTuner to_tuner(const file::LibraryTuner& message, const std::string& prefix,
                      ProblemList& problems) {
  LibraryTuner tuner;
  for (int i = 0; i < message.protocol_size(); ++i) {
    const FieldReader fields(message.protocol(i), numbered(prefix + "protocol", i), problems);
    read_row(fields, tuner.protocols.emplace_back());
    fields.read("base", tuner.protocols.back().base);
  }
  const FieldReader fields(message, prefix, problems);
  fields.read("search_fraction", tuner.search_fraction);
  fields.read("channels", tuner.channels);
  tuner.ll_most = read_by_nodes(message.ll_most(), prefix + "ll_most.", problems);
  tuner.ring_ll128_channel =
      read_by_nodes(message.ring_ll128_channel(), prefix + "ring_ll128_channel.", problems);
  tuner.tree_ll128_channel =
      read_by_nodes(message.tree_ll128_channel(), prefix + "tree_ll128_channel.", problems);
  tuner.tree_channel = read_by_nodes(message.tree_channel(), prefix + "tree_channel.", problems);
  fields.read("nvls_efficiency", tuner.nvls_efficiency);
  fields.read("messages_ll_up_to", tuner.messages_ll_up_to);
  return tuner;
}

}  // namespace

CommunicationLibrary to_library(const file::Library& library, ProblemList& problems) {
  const std::string prefix = "cluster.library.";
  CommunicationLibrary spec;
  if (library.has_name()) spec.name = library.name();
  const FieldReader own(library, prefix, problems);
  own.read("most_channels", spec.most_channels);
  own.read("copy_engines", spec.copy_engines);
  for (int i = 0; i < library.timing_size(); ++i) {
    ProtocolTiming& timing = spec.timings.emplace_back();
    const FieldReader fields(library.timing(i), numbered(prefix + "timing", i), problems);
    read_row(fields, timing);
    for (std::size_t kind = 0; kind < kHopKinds; ++kind) {
      fields.read(kFractions[kind], timing.link_fraction[kind]);
    }
    fields.read("start", timing.start);
    fields.read("doubling", timing.doubling);
    fields.read("most", timing.most);
    fields.read("copy", timing.copy);
    fields.read("fill", timing.fill);
    fields.read("fill_bytes", timing.fill_bytes);
    timing.channels = to_channels(library.timing(i).channels(),
                                  numbered(prefix + "timing", i) + "channels.", problems);
  }
  spec.tuner = to_tuner(library.tuner(), prefix + "tuner.", problems);
  problems.add(under("cluster.library", check(spec)));
  return spec;
}

}  // namespace stepsim
