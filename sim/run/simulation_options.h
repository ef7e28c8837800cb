// SimulationOptions says how simulate() runs an op graph: the network model, the detail, the number
// of steps, when it gives up, and what it records in addition to totals.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/packets/packet_network.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

enum class Fidelity : std::uint8_t { kLatencyBandwidth, kFlow, kPacket };
enum class Granularity : std::uint8_t {
  kPipelined,  // a collective is one transfer over all its edges
  kStepped,    // every message of every step of the algorithm
};
std::string_view name_of(Fidelity fidelity);        // "latency-bandwidth", "flow", "packet"
std::string_view name_of(Granularity granularity);  // "pipelined", "stepped"

// A step that is not worth its end if it takes longer than `most`.
struct StepLimit {
  Duration most{};
  // By program, and by position on its compute stream: what is left of the step at least when that
  // op has ended on the first rank that runs the program; 0 where nothing is known. Programs, and
  // ops of one, may be missing at the end.
  std::vector<std::vector<Duration>> behind{};
};

struct SimulationOptions {
  Fidelity fidelity = Fidelity::kFlow;
  Granularity granularity = Granularity::kPipelined;  // kPacket: must be kStepped
  PacketOptions packets{};  // kPacket; a router of spraying that is not given is the cluster's
  // kPacket: what moves them on every link, in place of `packets`; every link needs one back.
  std::optional<TransportSpec> transport{};
  std::uint32_t steps = 1;
  std::vector<RankId> recorded_ranks{};  // ranks whose timelines are kept; empty: none
  // Keeps one timeline of all recorded ranks that a folded job simulates as one, so that recording
  // every rank of a large job costs no more memory than its classes. SimulationResult::recorded
  // says which is whose.
  bool share_timelines = false;
  bool record_links = false;  // keep link_series
  // Simulates one of all ranks that do the same at the same time, where that gives the same result
  // (docs/folding.md).
  bool fold = false;
  // Does not simulate periods in which the run would only repeat itself, for the same result
  // (docs/folding.md). Not where ranks or links are recorded.
  bool repeats = false;
  // Whether the result has a critical path.
  bool critical_path = true;
  // Ends the run with StepTooLong as soon as the step can't be within the limit. A run that ends by
  // itself is within it, and gives the result that it gives without one.
  std::optional<StepLimit> limit{};
  // For tests: starts simultaneous ops in an order shuffled by this seed. No number may change, but
  // for the last digits of what links carried, and which of several causes of one instant stands on
  // the critical path.
  std::optional<std::uint32_t> shuffle_seed{};
  // Called at the first instant, and regularly from then on, with the simulated time so far and the
  // ops of all ranks that are simulated: one of each class if they fold. Returning false ends the
  // run with SimulationInterrupted. May be empty.
  bool (*progress)(void* context, Time now, std::uint64_t ops_done,
                   std::uint64_t ops_total) = nullptr;
  void* progress_context = nullptr;
};

}  // namespace stepsim
