// Which way tokens travel to their experts in a pass of inference, where the plan says dispatch =
// auto, and what the host then does.
//
// SGLang's deepep-mode auto takes DeepEP's low-latency kernels for batches that decode and its
// normal kernels for all that have prompts (python/sglang/srt/layers/moe/utils.py,
// DeepEPMode.resolve). The low-latency kernels are those of all_to_all (library_choice.h), for as
// many tokens of a chip as they have room for. The normal ones are two_level over nodes, and those
// of all_to_all for more tokens in one node, where the library has them.
//
// Behind the normal dispatch the host waits until it has read how many tokens have come, by which
// it allocates what follows, so no CUDA graph can hold such a pass (deepseek-ai/DeepEP, README:
// "implicit CPU wait for GPU received count signal ... not compatible with CUDA graph, unless you
// specify num_worst_tokens"). Its kernels are launched one by one, at host_launch of the library or
// host_launch_cost of the plan, and the host waits in each layer with experts, before the tokens
// travel. The low-latency kernels need no counts.

#pragma once

#include "schedules/plan/parallel_plan.h"
#include "sim/collectives/library.h"
#include "sim/network/places.h"

namespace stepsim {

// Returns how tokens travel under kAuto in a pass that has prompts: by the normal kernels.
// REQUIRES: the plan has no problem and is of inference.
Dispatch dispatch_with_prompts(const Ranks& mesh, const CommunicationLibrary& library,
                               const Places& places);

// Returns how the tokens of the plan's pass travel: plan.dispatch, unless that is kAuto. REQUIRES:
// the plan has no problem; with kAuto it is of inference.
Dispatch dispatch_of_pass(const ParallelPlan& plan, const CommunicationLibrary& library,
                          const Places& places);

// Returns the plan with the dispatch of its pass and the launches that this leaves to the host.
// Does nothing to plans of training. REQUIRES: as dispatch_of_pass().
ParallelPlan plan_of_pass(const ParallelPlan& plan, const CommunicationLibrary& library,
                          const Places& places);

// Returns whether kAuto is what software with this library does in passes of inference that don't
// say how: the library has low-latency kernels, and tokens are sent (ep above 1, no tensor group
// that has them all, no experts on chips of their own, which have kernels of one kind).
bool has_quick_dispatch(const Ranks& mesh, const CommunicationLibrary& library);

}  // namespace stepsim
