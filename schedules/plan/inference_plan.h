// A pass of inference as a plan: inference=prefill or decode, batch requests of `sequence` new
// tokens each, of which each then has `context` tokens. The pass is one micro-batch through all
// stages. With experts on chips of their own (ffn_chips) it may be several, which take turns.

#pragma once

#include <cstdint>

#include "schedules/plan/parallel_plan.h"
#include "schedules/plan/plan_rules.h"
#include "workload/inference.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Sets the keys that a pass of inference leaves no choice: one micro-batch of the whole batch, one
// new token where decode gives no other number, no context but its own tokens where prefill gives
// none, and experts divided over the tensor group, or over ffn_chips, where the plan does not
// divide them. Does nothing to plans of training.
void complete_inference(const ModelSpec& model, ParallelPlan& plan);

// Returns the requests of one replica. REQUIRES: plan.is_inference(), and no problem.
RequestBatch requests_of(const ParallelPlan& plan);

// Returns the micro-batches of a pass with at most `parts` of them, none of them empty. Requests
// that generate are divided as evenly as whole ones can be, prompts likewise if `parts` divides
// them. Other prompts are all cut along their tokens: each part attends to those before it, which
// its layer has computed by then. Of a prompt every part counts an output
// (RequestGroup::outputs()).
std::vector<RequestBatch> microbatches_of(const RequestBatch& batch, std::int64_t parts);

// Returns how many there are: 1 without ffn_chips. REQUIRES: as requests_of().
std::int64_t count_of_microbatches(const ParallelPlan& plan);

// Returns what a chip of a group of `tensor` keeps of the requests in the layers from `first` up to
// `end`: the fullest, where requests are divided. `context`: ranks that divide each request's
// tokens.
Bytes cache_of_layers(const ModelSpec& model, const RequestBatch& batch, std::int64_t tensor,
                      CacheSplit split, std::int64_t first, std::int64_t end,
                      std::int64_t context = 1);

// Checks the keys of inference, and that keys of training are left alone.
void check_inference(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);

}  // namespace stepsim
