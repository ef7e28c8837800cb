// What the constants of a communication library add to the time of one collective: the terms of the
// form in sim/collectives/library.h, read off the simulator. With them a time with other constants
// costs a dozen operations instead of a simulation.
//
//   time = rest + start a + hop h + network hop g + doubling d + x / copy
//        + fill y / (y + fill_bytes) + max(w / fraction, n / network_fraction, least)
//
// They hold for constants of the one timing (path and protocol) that the collective runs with, as
// long as it runs with that one.

#pragma once

#include <cstddef>
#include <optional>

#include "measured/predict_collectives.h"
#include "sim/collectives/library.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// CollectiveOnCluster simulates one collective on a cluster with any library.
class CollectiveOnCluster {
 public:
  // The cluster must live as long as this. Each run replaces its library.
  CollectiveOnCluster(const MeasuredCollective& measured, Cluster& cluster);

  // Returns seconds. Throws as simulate() does.
  double time(const CommunicationLibrary& library) const;

 private:
  OpGraph graph_;
  Cluster* cluster_;
};

// Constants of one timing that a fit may change. Durations are in seconds, rates in bytes/s.
struct TimingValues {
  double start = 0;
  double doubling = 0;
  double hop = 0;  // inside a node
  double network_hop = 0;
  double rate = 1;  // `most`, or the fraction of the links inside a node
  double network_fraction = 1;
  double copy = 0;  // 0: takes no time
  double fill = 0;
  double fill_bytes = 1;
};

// Whether `rate` stands for `most` or for a fraction of the links.
bool has_most(const ProtocolTiming& timing);

TimingValues values_of(const ProtocolTiming& timing, HopKind inside);
void set_values(const TimingValues& values, HopKind inside, ProtocolTiming& timing);

struct CollectiveTerms {
  double rest = 0;
  double start = 0;  // times that the constant is paid
  double doubling = 0;
  double hop = 0;
  double network_hop = 0;
  double inside = 0;  // seconds at a rate of 1
  double network = 0;
  double least = 0;  // seconds for which other limits hold it up
  double part = 0;   // bytes that are copied
  double piped = 0;  // bytes of which the pipeline fills

  double seconds(const TimingValues& values) const;
};

// Returns the index in library.timings of what a collective runs with; nullopt if it is none.
std::optional<std::size_t> timing_of(const CollectiveOnCluster& collective,
                                     const CommunicationLibrary& library);

CollectiveTerms terms_of(const CollectiveOnCluster& collective, const CommunicationLibrary& library,
                         std::size_t timing);

}  // namespace stepsim
