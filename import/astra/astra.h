// ASTRA-sim's files beside a Chakra trace: network.yml of its analytical backend and the JSON of
// its system, and the times that its ring collectives take with them.
//
// The times are the closed form of its congestion-unaware backend (astra-sim/astra-sim@518bd51 with
// a ring of one dimension), in cycles of 1 ns. A collective is cut into `preferred-dataset-splits`
// chunks, which follow one another. A message of m bytes takes t = floor(latency + m / bandwidth):
//
//   all-gather      chunks x ((n - 1) (t + 10) + 10)                         m = shard / chunks
//   reduce-scatter  chunks x ((n - 1) (t + r + 10) + 10)                     m = bytes / chunks / n
//   all-reduce      chunks x ((n - 1) (t + r + 10) + (n - 1) (t + 10) + 10)  m = bytes / chunks / n
//
// 10 is the delay of its endpoint's bus. A reduction reads two messages and writes one, each in
// floor(m / local-mem-bw): r = 3 floor(m / local-mem-bw). Its published outputs follow: 323560
// cycles of an all-gather on 16, 64440 of an all-reduce on 8 with a memory of 1600 GB/s and 117780
// with one of 50. "GB" of links is 2^30 bytes, that of memory 10^9.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/trace_job.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace stepsim {

struct AstraDimension {
  std::string topology;  // Ring, FullyConnected or Switch
  std::uint32_t size = 1;
  double bandwidth = 0;   // GiB/s of a link and direction
  double latency_ns = 0;  // of a hop
};

// Reads network.yml: lists `topology`, `npus_count`, `bandwidth` and `latency` of equal length.
std::vector<AstraDimension> read_astra_network(const std::string& path,
                                               std::vector<Problem>& problems);

struct AstraSystem {
  std::int64_t chunks = 1;  // preferred-dataset-splits
  std::optional<double> peak_tflops{};
  std::optional<double> memory_gb_per_s{};
  bool is_roofline = false;
  std::vector<std::string> notes;  // keys without a counterpart
};
AstraSystem read_astra_system(const std::string& path, std::vector<Problem>& problems);

// Returns the cluster of the network as a file of stepsim: links between chips, as the dimensions
// have them. Dimension 0 is the innermost.
std::string astra_cluster(const std::vector<AstraDimension>& dimensions, const AstraSystem& system);

// Returns what a collective takes in ASTRA-sim. REQUIRES: has_astra_time(node).
Duration astra_time(const TraceNode& node, std::uint32_t members, const AstraDimension& ring,
                    const AstraSystem& system);

// Adds a problem for everything of the job that these times don't cover.
void check_astra_times(const TraceJob& job, const std::vector<AstraDimension>& dimensions,
                       const AstraSystem& system, std::vector<Problem>& problems);

}  // namespace stepsim
