// CollectiveRequest is the checked command line of `stepsim collective`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "sim/chips/kernel.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/step_list.h"
#include "sim/hardware/cluster.h"
#include "sim/run/simulate.h"

namespace stepsim {

struct MeasuredTime {
  Bytes bytes{};
  double seconds = 0;
};

struct CollectiveRequest {
  CollectiveOp op = CollectiveOp::kAllReduce;
  AlgorithmChoice algorithm = AlgorithmChoice::kAuto;
  DataType type = DataType::kBf16;
  std::string cluster_name;
  Cluster cluster;
  std::vector<std::uint32_t> chips;  // chips of the ranks, in rank order
  std::uint32_t root = 0;            // index in `chips`
  std::uint32_t shift = 1;
  std::vector<std::uint32_t> permutation;  // for permute; empty: by shift
  std::optional<ByteMatrix> matrix;        // for a ragged all-to-all
  std::optional<StepList> steps;           // for kCustom
  bool every = false;                      // all algorithms that can do it, and auto
  std::vector<Bytes> sizes;                // one size, or the sizes of a sweep
  bool sweep = false;
  Fidelity fidelity = Fidelity::kFlow;
  Granularity granularity = Granularity::kPipelined;
  std::optional<TransportSpec> transport;  // of packets
  bool yes = false;
  std::vector<MeasuredTime> measured;  // of --measured: this operation and number of ranks
  std::string plot;                    // SVG file of a sweep; empty: none
  std::string csv;                     // file; empty: none
  std::string json;                    // file, or "-" for standard output; empty: none
};

// Throws ConfigError with all problems of options, cluster, ranks and output files.
CollectiveRequest read_collective_request(const std::vector<std::string>& arguments);

// Returns the options, with the help on each.
OptionList collective_option_list();

}  // namespace stepsim
