#include "tests/fuzz/random/changed_cluster.h"

#include <functional>
#include <initializer_list>
#include <optional>

namespace stepsim {
namespace {

// Returns the fabric with each link replaced by what `change` returns.
Fabric changed(const Fabric& fabric, const std::function<Link(LinkId, Link)>& change) {
  Fabric result;
  for (const Node& node : fabric.nodes()) result.add(node.kind, node.name);
  for (std::uint32_t i = 0; i < fabric.links().size(); ++i) {
    const Link link = change(LinkId(i), fabric.links()[i]);
    result.connect_one_way(link.from, link.to, link.bandwidth, link.latency);
  }
  for (const LinkGroup& group : fabric.groups()) result.add_group(group.links, group.down);
  return result;
}

void slow(std::optional<Bandwidth>& bandwidth, int slower) {
  if (bandwidth) bandwidth = *bandwidth / slower;
}

void slow(ProtocolTiming& timing, int slower) {
  for (Duration* const time : {&timing.start, &timing.doubling, &timing.fill})
    *time = slower * *time;
  for (Duration& hop : timing.hop) hop = slower * hop;
  for (std::optional<Bandwidth>* const rate : {&timing.most, &timing.copy, &timing.channels.rate}) {
    slow(*rate, slower);
  }
}

void slow_times(std::initializer_list<Duration*> times, int slower) {
  for (Duration* const time : times) *time = slower * *time;
}
void slow_rates(std::initializer_list<Bandwidth*> rates, int slower) {
  for (Bandwidth* const rate : rates) *rate = *rate / slower;
}

void slow_serving(CommunicationLibrary& library, int slower) {
  if (auto& kernel = library.direct_all_reduce) {
    slow_times(
        {&kernel->one_start, &kernel->one_doubling, &kernel->two_start, &kernel->two_doubling},
        slower);
    slow_rates({&kernel->one_bandwidth, &kernel->two_bandwidth}, slower);
  }
  for (auto* const half : {&library.dispatch, &library.combine}) {
    if (!*half) continue;
    slow_times({&(*half)->start, &(*half)->expert_start, &(*half)->network_start}, slower);
    slow_rates({&(*half)->bandwidth, &(*half)->unit_rate}, slower);
  }
  for (auto* const half : {&library.bulk_dispatch, &library.bulk_combine}) {
    if (!*half) continue;
    slow_times({&(*half)->start, &(*half)->token_time, &(*half)->copy_time}, slower);
    slow_rates({&(*half)->token_rate, &(*half)->copy_rate, &(*half)->bandwidth}, slower);
  }
  if (library.host_launch) library.host_launch = slower * *library.host_launch;
}

void slow(MatmulEfficiency& matmul, int slower) {
  slow(matmul.operand_bandwidth, slower);
  if (matmul.start) matmul.start = slower * *matmul.start;
  if (matmul.split_start) matmul.split_start = slower * *matmul.split_start;
  matmul.step_time = slower * matmul.step_time;
}

void slow(ServingKernels& serving, int slower) {
  const auto slow_time = [slower](Duration& time) { time = slower * time; };
  if (serving.cache) serving.cache->bandwidth = serving.cache->bandwidth / slower;
  for (std::vector<DecodeEfficiency>* const kernels : {&serving.decode, &serving.latent_decode}) {
    for (DecodeEfficiency& kernel : *kernels) {
      if (kernel.start) slow_time(*kernel.start);
      slow_time(kernel.block_start);
      slow_time(kernel.split_start);
      slow(kernel.block_bandwidth, slower);
    }
  }
  for (ExpertEfficiency& kernel : serving.experts) {
    slow_time(kernel.start);
    slow_time(kernel.expert_start);
    slow(kernel.operand_bandwidth, slower);
  }
}

void slow(ChipSpec& chip, int slower) {
  slow(chip.serving, slower);
  slow(chip.efficiency.matmul, slower);
  for (MatmulEfficiency& matmul : chip.efficiency.matmul_of) slow(matmul, slower);
  if (chip.power) chip.power->joules_per_teraflop *= slower;  // the clock stays
  for (Peak& peak : chip.peak) peak.throughput = peak.throughput / slower;
  chip.memory_bandwidth = chip.memory_bandwidth / slower;
  chip.launch_overhead = slower * chip.launch_overhead;
  for (Reduction& reduction : chip.communication.reduction) {
    reduction.throughput = reduction.throughput / slower;
  }
}

}  // namespace

Cluster slowed(Cluster cluster, int slower) {
  cluster.fabric = changed(cluster.fabric, [slower](LinkId, Link link) {
    link.bandwidth = link.bandwidth / slower;
    link.latency = slower * link.latency;
    return link;
  });
  slow(cluster.chip, slower);
  for (ProtocolTiming& timing : cluster.library.timings) slow(timing, slower);
  slow_serving(cluster.library, slower);
  return cluster;
}

Cluster with_faster_link(Cluster cluster, LinkId link) {
  cluster.fabric = changed(cluster.fabric, [link](LinkId id, Link of_id) {
    if (id == link) of_id.bandwidth = 2.0 * of_id.bandwidth;
    return of_id;
  });
  return cluster;
}

Cluster with_longer_links(Cluster cluster, Duration more) {
  cluster.fabric = changed(cluster.fabric, [more](LinkId, Link link) {
    link.latency += more;
    return link;
  });
  return cluster;
}

Cluster with_ideal_library(Cluster cluster) {
  const HopKind inside = cluster.library.inside;
  cluster.library = {};
  cluster.library.inside = inside;
  return cluster;
}

}  // namespace stepsim
