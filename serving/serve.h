// simulate_serving() lets replicas of a model answer requests.
//
//   LinearStepTime cost({.base = 10ms});
//   const ServingResult result = simulate_serving(requests, options, {.replicas = cost});
//
// A router gives an arriving request to a replica. The replica's engine forms one step after the
// other, StepCost says how long each takes, and at its end the requests that it completes get a
// token. With `decode` set the system is disaggregated: `replicas` compute prompts and the first
// token, the KV cache goes to a decode replica as soon as that has the blocks, and the next tokens
// come from there. Further models have replicas, engines and a router of their own; a tenant asks
// one of the models, and what they share is the transport.
//
// Events of one instant: ends of steps, ends of transfers, arrivals, then scheduling; among
// replicas by number. Same input, same result, on any machine. O(tokens computed one by one +
// requests x log).

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "serving/engines/engine_options.h"
#include "serving/engines/engine_table.h"
#include "serving/kv_transport.h"
#include "serving/requests/request.h"
#include "serving/serving_result.h"
#include "serving/step_cost.h"
#include "sim/base/error.h"

namespace stepsim {

enum class RouterPolicy {
  kRoundRobin,
  kLeastTokens,  // fewest prompt tokens of requests that have not ended
  kPrefixAware,  // the same, less what the replica's prefix cache has of the request
};
inline constexpr std::size_t kRouterPolicies = 3;
std::string_view name_of(RouterPolicy policy);

// ReplicaGroup is a number of replicas with the same engine.
struct ReplicaGroup {
  const EngineRow* engine = &default_engine();
  EngineOptions options{};
  std::int64_t count = 1;
};

// Returns a replica of that engine with its defaults. REQUIRES: there is such an engine.
ReplicaGroup replica_of(std::string_view engine);

// ModelReplicas are all replicas of one model.
struct ModelReplicas {
  ReplicaGroup replicas{};
  std::optional<ReplicaGroup> decode{};  // set: disaggregated
  RouterPolicy router = RouterPolicy::kRoundRobin;
};

// Replicas are numbered model by model; of a model those of `replicas` come first.
struct ServingOptions {
  ReplicaGroup replicas{};
  std::optional<ReplicaGroup> decode{};  // set: disaggregated
  RouterPolicy router = RouterPolicy::kRoundRobin;
  std::uint64_t seed = 1;  // of the drafts that are accepted
  bool records_steps = false;
  std::vector<ModelReplicas> others{};  // further models, which tenants ask by Tenant::model

  std::size_t models() const { return 1 + others.size(); }
  ModelReplicas model(std::size_t number) const {
    return number > 0 ? others[number - 1] : ModelReplicas{replicas, decode, router};
  }
};

struct ModelCosts {
  StepCost* replicas = nullptr;
  StepCost* decode = nullptr;  // REQUIRES: set, if disaggregated
};

struct ServingCosts {
  StepCost& replicas;
  StepCost* decode = nullptr;  // REQUIRES: both, if disaggregated
  KvTransport* transport = nullptr;
  std::vector<ModelCosts> others{};  // REQUIRES: as many as the options have
  KvTransport* host = nullptr;       // REQUIRES: set, if an engine has host_blocks
};

// ServingStuck says that requests will never be answered: one that was preempted has grown too long
// for a step (chunked prefill off), or one starts again and again because its drafts need more
// blocks than there are.
struct ServingStuck : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns every reason why these requests can't be served: too long for the model, for the cache or
// for a step.
std::vector<Problem> check(const RequestList& requests, const ServingOptions& options);

// REQUIRES: check() finds nothing. Calls `progress` with the share of requests that have ended now
// and then, which may throw to end the run. Throws ServingStuck; std::logic_error if an always-on
// check fails.
ServingResult simulate_serving(const RequestList& requests, const ServingOptions& options,
                               const ServingCosts& costs,
                               const std::function<void(double)>& progress = {});

}  // namespace stepsim
