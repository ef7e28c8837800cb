#include "calibration/collective_terms.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/hardware/group_links.h"
#include "sim/run/simulate.h"

namespace stepsim {
namespace {

constexpr std::size_t kAcross = static_cast<std::size_t>(HopKind::kNetwork);
constexpr double kLong = 1e-3;  // seconds added to see how often a constant is paid
constexpr double kSlow = 0.01;  // fraction of a link at which nothing else is in the way
constexpr double kNearby = 0.98;

// Runs a collective with changed values of one timing.
class TimingProbe {
 public:
  TimingProbe(const CollectiveOnCluster& collective, const CommunicationLibrary& library,
              std::size_t timing)
      : collective_(collective), library_(library), timing_(timing) {}

  TimingValues present() const { return values_of(library_.timings[timing_], library_.inside); }

  double time(const TimingValues& values) const {
    CommunicationLibrary changed = library_;
    set_values(values, library_.inside, changed.timings[timing_]);
    return collective_.time(changed);
  }

  // Returns how often a duration is paid.
  double count(double TimingValues::*duration) const {
    TimingValues more = present();
    const double before = time(more);
    more.*duration += kLong;
    return (time(more) - before) / kLong;
  }

 private:
  const CollectiveOnCluster& collective_;
  const CommunicationLibrary& library_;
  std::size_t timing_;
};

// Returns the bytes of which the pipeline fills, from the share of `fill` that is paid.
double piped_of(const TimingProbe& probe) {
  constexpr double kBytes = 1 << 20;
  TimingValues values = probe.present();
  values.fill = 0;
  const double before = probe.time(values);
  values.fill = 1;
  values.fill_bytes = kBytes;
  const double paid = std::clamp(probe.time(values) - before, 0.0, 1 - 1e-9);
  return kBytes * paid / (1 - paid);
}

// Returns the member's shard, from what its copy takes.
double part_of(const TimingProbe& probe) {
  TimingValues values = probe.present();
  values.copy = 0;
  const double before = probe.time(values);
  values.copy = 1e9;
  return (probe.time(values) - before) * values.copy;
}

// Sets what depends on rates. Slow links inside a node show what they carry, and then what holds up
// the collective if they are fast. The network's fraction also decides which protocol is taken, so
// only a nearby one is tried.
void add_rates(const TimingProbe& probe, bool is_most, CollectiveTerms& terms) {
  const TimingValues now = probe.present();
  const double time_now = probe.time(now);
  TimingValues values = now;
  const double fastest = is_most ? 1e15 : 1;
  const double slow = is_most ? 1e8 : kSlow;
  values.rate = fastest;
  const double fast_time = probe.time(values);
  values.rate = slow;
  const double slow_time = probe.time(values);
  values.rate = slow / 2;
  terms.inside = (probe.time(values) - slow_time) * slow;
  const double without_rates = slow_time - terms.inside / slow;
  terms.least = fast_time - without_rates;
  values = now;
  values.network_fraction *= kNearby;
  const double nearby = (probe.time(values) - time_now) * now.network_fraction / (1 / kNearby - 1);
  if (nearby > 0) {
    terms.network = nearby;
    terms.least = 0;
  }
}

}  // namespace

CollectiveOnCluster::CollectiveOnCluster(const MeasuredCollective& measured, Cluster& cluster)
    : graph_(graph_of(measured, cluster.places)), cluster_(&cluster) {}

double CollectiveOnCluster::time(const CommunicationLibrary& library) const {
  cluster_->library = library;
  return to_seconds(simulate(graph_, *cluster_, {}).end.since_start);
}

bool has_most(const ProtocolTiming& timing) {
  return timing.most.has_value();
}

TimingValues values_of(const ProtocolTiming& timing, HopKind inside) {
  const auto local = static_cast<std::size_t>(inside);
  return {.start = to_seconds(timing.start),
          .doubling = to_seconds(timing.doubling),
          .hop = to_seconds(timing.hop[local]),
          .network_hop = to_seconds(timing.hop[kAcross]),
          .rate = timing.most ? timing.most->value() : timing.link_fraction[local],
          .network_fraction = timing.link_fraction[kAcross],
          .copy = timing.copy ? timing.copy->value() : 0,
          .fill = to_seconds(timing.fill),
          .fill_bytes = static_cast<double>(timing.fill_bytes.value())};
}

void set_values(const TimingValues& values, HopKind inside, ProtocolTiming& timing) {
  const auto local = static_cast<std::size_t>(inside);
  timing.start = duration_from_seconds(values.start);
  timing.doubling = duration_from_seconds(values.doubling);
  timing.hop[local] = duration_from_seconds(values.hop);
  timing.hop[kAcross] = duration_from_seconds(values.network_hop);
  if (timing.most) {
    timing.most = Bandwidth(values.rate);
  } else {
    timing.link_fraction[local] = values.rate;
  }
  timing.link_fraction[kAcross] = values.network_fraction;
  timing.copy = values.copy > 0 ? std::optional(Bandwidth(values.copy)) : std::nullopt;
  timing.fill = duration_from_seconds(values.fill);
  timing.fill_bytes = Bytes(std::max<std::int64_t>(1, std::llround(values.fill_bytes)));
}

double CollectiveTerms::seconds(const TimingValues& values) const {
  const double moving = std::max({inside / values.rate, network / values.network_fraction, least});
  const double copying = values.copy > 0 ? part / values.copy : 0;
  return rest + values.start * start + values.doubling * doubling + values.hop * hop +
         values.network_hop * network_hop + copying +
         values.fill * piped / (piped + values.fill_bytes) + moving;
}

std::optional<std::size_t> timing_of(const CollectiveOnCluster& collective,
                                     const CommunicationLibrary& library) {
  const double before = collective.time(library);
  for (std::size_t i = 0; i < library.timings.size(); ++i) {
    TimingValues longer = values_of(library.timings[i], library.inside);
    longer.start += kLong;
    if (TimingProbe(collective, library, i).time(longer) > before) return i;
  }
  return std::nullopt;
}

CollectiveTerms terms_of(const CollectiveOnCluster& collective, const CommunicationLibrary& library,
                         std::size_t timing) {
  // Alone, so that no other way is taken where this one is made slow.
  CommunicationLibrary alone = library;
  alone.timings = {library.timings[timing]};
  const TimingProbe probe(collective, alone, 0);
  CollectiveTerms terms{.start = probe.count(&TimingValues::start),
                        .doubling = probe.count(&TimingValues::doubling),
                        .hop = probe.count(&TimingValues::hop),
                        .network_hop = probe.count(&TimingValues::network_hop),
                        .part = part_of(probe),
                        .piped = piped_of(probe)};
  add_rates(probe, has_most(library.timings[timing]), terms);
  terms.rest = probe.time(probe.present()) - terms.seconds(probe.present());
  return terms;
}

}  // namespace stepsim
