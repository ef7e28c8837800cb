#include "experiment/explained/path_prices.h"

#include <algorithm>
#include <cmath>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/chip_route.h"
#include "sim/hardware/group_links.h"

namespace stepsim {
namespace {

double picoseconds(double seconds) {
  return seconds * kPicosecondsPerSecond;
}

}  // namespace

PathPrices::PathPrices(const OpGraph& graph, const Cluster& cluster)
    : graph_(graph),
      cluster_(cluster),
      plans_(graph, cluster, Granularity::kPipelined, Fidelity::kFlow) {}

const std::vector<KernelTime>& PathPrices::kernels(std::uint32_t work) {
  const auto [place, is_new] = kernels_.try_emplace(work);
  if (is_new) {
    for (const Kernel& kernel : graph_.compute_works[work].kernels) {
      place->second.push_back(time_of(kernel, cluster_.chip));
    }
  }
  return place->second;
}

double PathPrices::compute(const PathBill::Compute& compute) {
  HeldShare held;
  for (const PathBill::Collective& collective : compute.beside) {
    const HeldShare share = known(collective).taken;
    held.compute += share.compute;
    held.memory += share.memory;
  }
  const auto [place, is_new] =
      paces_.try_emplace(std::tuple(compute.work, held.compute, held.memory), 0.0);
  if (!is_new) return place->second;
  const CommunicationUnits& units = cluster_.chip.communication;
  const double margin =
      units.margin == 0 ? 0 : static_cast<double>(units.margin) / static_cast<double>(units.units);
  const double more =
      std::max(0.0, std::min(ChipShare::kMost, held.compute) - margin) / (1 - margin);
  const double compute_share = std::min(ChipShare::kMost, more);
  const double memory_share = std::min(ChipShare::kMost, held.memory);
  double sum = 0;
  for (const KernelTime& kernel : kernels(compute.work)) {
    sum += picoseconds(std::max(kernel.compute_s / (1 - compute_share),
                                kernel.memory_s / (1 - memory_share))) +
           static_cast<double>(kernel.overhead.count());
  }
  return place->second = sum;
}

PathPrices::HeldShare PathPrices::taken_by(const LibraryCost& cost) const {
  const CommunicationUnits& of = cluster_.chip.communication;
  if (of.fixed) return {.compute = of.fixed->compute_share, .memory = of.fixed->memory_share};
  if (of.units == 0) return {};
  const double compute = static_cast<double>(cost.channels) / static_cast<double>(of.units);
  const double memory = cost.memory.value() / cluster_.chip.memory_bandwidth.value();
  return {.compute = std::min(ChipShare::kMost, compute),
          .memory = std::min(ChipShare::kMost, memory)};
}

const PathPrices::Known& PathPrices::known(const PathBill::Collective& collective) {
  const auto [place, is_new] = collectives_.try_emplace(collective);
  if (!is_new) return place->second;
  const CollectivePlan plan = plans_.plan_of(collective.work, collective.group);
  double seconds = 0;
  for (const LinkUse& use : plan.uses) {
    seconds = std::max(
        seconds, static_cast<double>(plan.bytes.value()) / cluster_.fabric.width(use).value());
  }
  place->second = {.transfer = {.latency = static_cast<double>(plan.latency.count()),
                                .flowing = picoseconds(seconds)},
                   .taken = taken_by(plan.cost)};
  return place->second;
}

const PathTransfer& PathPrices::collective(const PathBill::Collective& collective) {
  return known(collective).transfer;
}

PathTransfer PathPrices::message(const PathBill::Message& message) {
  const auto [place, is_new] = messages_.try_emplace(message);
  if (!is_new) return place->second;
  std::vector<LinkId> links;
  const Duration of_links = route_of(cluster_, message.from_chip, message.to_chip, links);
  std::optional<Bandwidth> narrowest;
  for (const LinkId link : links) {
    const Bandwidth width = cluster_.fabric.width(cluster_.fabric.spread(link));
    narrowest = std::min(narrowest.value_or(width), width);
  }
  double latency = static_cast<double>(of_links.count());
  double wire = 1;
  if (!cluster_.library.ideal()) {
    const std::uint32_t of_node = chips_per_node(cluster_.places);
    const HopKind kind = message.from_chip / of_node == message.to_chip / of_node
                             ? cluster_.library.inside
                             : HopKind::kNetwork;
    const LibraryCost cost = cost_of_message(cluster_.library, Bytes(message.bytes), kind,
                                             narrowest.value_or(Bandwidth()));
    const auto of_kind = static_cast<std::size_t>(kind);
    latency += static_cast<double>((cost.start + cost.hop[of_kind]).count());
    wire = cost.wire[of_kind];
  }
  const double bytes = static_cast<double>(message.bytes) * wire;
  place->second = {.latency = latency,
                   .flowing = narrowest ? picoseconds(bytes / narrowest->value()) : 0};
  return place->second;
}

PathTransfer PathPrices::host(const PathBill::Host& host) const {
  const HostWork& work = graph_.host_works[host.work];
  if (work.action == HostAction::kOther) {
    return {.latency = static_cast<double>(work.time.count()), .flowing = 0};
  }
  const HostPath& path = cluster_.hosts.of_chip[host.chip];
  PathTransfer transfer;
  const auto use = [&](LinkId id) {
    const Link& link = cluster_.fabric.link(id);
    transfer.latency += static_cast<double>(link.latency.count());
    transfer.flowing =
        std::max(transfer.flowing,
                 picoseconds(static_cast<double>(work.bytes.value()) / link.bandwidth.value()));
  };
  if (work.action == HostAction::kUpdate) {
    use(path.memory);
  } else {
    for (const LinkId link : work.action == HostAction::kCopyOut ? path.out : path.in) use(link);
  }
  return transfer;
}

double PathPrices::lead(std::optional<std::uint32_t> work, Duration launch) {
  const auto of_launch = static_cast<double>(launch.count());
  if (!work) return of_launch;
  const std::vector<Kernel>& of_work = graph_.compute_works[*work].kernels;
  const std::vector<KernelTime>& times = kernels(*work);
  double lead = of_launch;
  double before = 0;
  std::int64_t launches = 0;
  for (std::size_t i = 0; i < of_work.size(); ++i) {
    launches += of_work[i].launches;
    lead = std::max(lead,
                    static_cast<double>(std::max<std::int64_t>(launches, 1)) * of_launch - before);
    before += picoseconds(std::max(times[i].compute_s, times[i].memory_s)) +
              static_cast<double>(times[i].overhead.count());
  }
  return lead;
}

}  // namespace stepsim
