// FailureTable says how the machines of a cluster fail, and how its jobs recover: classes of
// failures with their rates, planned maintenance, checkpoints and restarts. The entries of
// catalog/failures are FailureTables.
//
//   A class is counted on units (chips, nodes, leaves, pods or the whole job). Its rate is what a
//   published table has: a count over an observation, or failures in 1,000 days of a unit.
//   A failure stops the job, makes a node slow, or corrupts the result silently. It takes nothing,
//   a node, or all nodes of a leaf or a pod out of the job until they are repaired.
//
// Not modelled: failures that cause others, rates that depend on load, repair crews that are busy.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/fields/field.h"

namespace stepsim {

// What a rate counts.
enum class FailureUnit : std::uint8_t { kChip, kNode, kLeaf, kPod, kJob };
inline constexpr std::size_t kFailureUnits = 5;
std::string_view name_of(FailureUnit unit);  // "chip"

// What leaves the job until it is repaired. Host memory of it is lost.
enum class FailureScope : std::uint8_t { kNothing, kNode, kLeaf, kPod };
inline constexpr std::size_t kFailureScopes = 4;
std::string_view name_of(FailureScope scope);  // "node"

enum class FailureEffect : std::uint8_t {
  kStop,  // the job stands still until the failure is detected, then restarts
  kSlow,  // the job goes on at the pace of a slow unit until that is found; one that loses nothing
          // recovers by itself then
  kSilent,  // results are wrong from here on; found later, back to a checkpoint of before
};
inline constexpr std::size_t kFailureEffects = 3;
std::string_view name_of(FailureEffect effect);  // "stop"

enum class FailureTimes : std::uint8_t {
  kExponential,  // at a constant rate
  kWeibull,      // a rate that falls (shape < 1) or rises (shape > 1) with the age of a unit
  kLemons,       // a few units fail often, until they are taken out
};
inline constexpr std::size_t kFailureTimes = 3;
std::string_view name_of(FailureTimes times);  // "weibull"

struct FailureClass {
  std::string name{};
  std::optional<double> count{};  // seen in the table's observation
  std::optional<double> rate{};   // in 1,000 days of a unit
  FailureUnit per = FailureUnit::kChip;
  FailureScope loses = FailureScope::kNode;
  FailureEffect effect = FailureEffect::kStop;
  Duration detection{};
  Duration repair{};
  FailureTimes times = FailureTimes::kExponential;
  double shape = 1;           // kWeibull
  double lemon_share = 0.01;  // kLemons: of the units
  double lemon_failures = 0.5;
  std::int64_t lemon_limit = 3;
  double slowdown = 1.2;  // kSlow

  friend bool operator==(const FailureClass&, const FailureClass&) = default;
};

struct Observation {
  double days = 0;
  std::int64_t chips = 0;
  std::int64_t chips_per_node = 8;
};

struct Maintenance {
  Duration every{};
  Duration time{};
};

// Where a checkpoint is kept. Each place outlives more than the one before.
enum class CheckpointPlace : std::uint8_t {
  kHost,     // memory of the node: outlives the processes of a job
  kPeer,     // memory of another node: outlives a node
  kStorage,  // outlives everything
};
inline constexpr std::size_t kCheckpointPlaces = 3;
std::string_view name_of(CheckpointPlace place);  // "storage"

struct CheckpointPolicy {
  std::vector<CheckpointPlace> to{CheckpointPlace::kStorage};
  std::optional<Duration> every{};          // unset: the best for the first place
  std::optional<Duration> storage_every{};  // unset: the best for storage
  bool async = false;
  std::optional<Duration> stall{};  // of a checkpoint; unset: from its size
  std::optional<Duration> flush{};  // until one in storage is safe; unset: from its size
  std::optional<Bytes> bytes{};     // of a checkpoint of the whole job; unset: the model's
  std::optional<Bandwidth> host_bandwidth{};          // a chip to its host
  std::optional<Bandwidth> storage_bandwidth{};       // of all nodes together
  std::optional<Bandwidth> node_storage_bandwidth{};  // of a node
  bool shares_network = false;  // storage traffic goes through the cards of the training network

  bool has(CheckpointPlace place) const;
};

struct RestartPolicy {
  Duration scheduling{};
  Duration compile{};
  Duration warmup{};
  std::optional<Duration> loading{};  // unset: from the checkpoint's size
};

// A figure that its source publishes, for what the table describes.
struct PublishedGoodput {
  std::string experiment{};
  double days = 0;     // of productive time
  double goodput = 0;  // share of the time that was productive
  bool at_least = false;
  std::string source{};
};

struct FailureTable {
  std::string name{};
  std::string source{};
  Observation observed{};
  std::vector<FailureClass> classes{};
  std::optional<Maintenance> maintenance{};
  CheckpointPolicy checkpoint{};
  RestartPolicy restart{};
  std::int64_t spares = 0;
  std::optional<PublishedGoodput> published{};
};

// Returns failures of a unit in a day. REQUIRES: the class has a rate or a count.
double failures_per_day(const FailureClass& failure, const Observation& observed,
                        std::int64_t chips_per_leaf, std::int64_t chips_per_pod);

// Returns what the limits of single fields don't say: "class[2].count".
std::vector<Problem> check(const FailureTable& table);

const FieldTable<FailureTable>& failure_fields();
const FieldTable<CheckpointPolicy>& checkpoint_fields();
const FieldTable<RestartPolicy>& restart_fields();

}  // namespace stepsim
