#include "experiment/pass_dispatch.h"

#include <algorithm>

#include "schedules/plan/expert_places.h"
#include "schedules/plan/inference_plan.h"
#include "schedules/plan/pass_exchange.h"

namespace stepsim {

namespace {

bool spans_nodes(const Ranks& mesh, const Places& places) {
  return ranks_of_expert_node(mesh, places) < mesh.ep;
}

// Returns whether the library's low-latency kernels take the tokens of a chip.
bool takes_low_latency(const Ranks& mesh, const RequestBatch& requests,
                       const CommunicationLibrary& library, const Places& places) {
  const bool over_nodes = spans_nodes(mesh, places);
  const std::int64_t tokens = tokens_of_chip(requests, mesh.cp, mesh.tp) / mesh.tp;
  for (const auto* const kernel : {&library.dispatch, &library.combine}) {
    if (!*kernel || (over_nodes && (*kernel)->network_fraction == 0)) return false;
    const std::int64_t most = (*kernel)->up_to_tokens;  // 0: any number
    if (most > 0 && tokens > most) return false;
  }
  return true;
}

}  // namespace

Dispatch dispatch_with_prompts(const Ranks& mesh, const CommunicationLibrary& library,
                               const Places& places) {
  const bool own_kernels = library.bulk_dispatch && library.bulk_combine;
  return own_kernels && !spans_nodes(mesh, places) ? Dispatch::kAllToAll : Dispatch::kTwoLevel;
}

Dispatch dispatch_of_pass(const ParallelPlan& plan, const CommunicationLibrary& library,
                          const Places& places) {
  if (plan.experts.dispatch != Dispatch::kAuto) return plan.experts.dispatch;
  const RequestBatch requests = requests_of(plan);
  const bool is_quick =
      !requests.has_prompts() && takes_low_latency(plan.mesh, requests, library, places);
  return is_quick ? Dispatch::kAllToAll : dispatch_with_prompts(plan.mesh, library, places);
}

ParallelPlan plan_of_pass(const ParallelPlan& plan, const CommunicationLibrary& library,
                          const Places& places) {
  ParallelPlan own = plan;
  own.experts.dispatch = dispatch_of_pass(plan, library, places);
  if (!plan.is_inference() || !sends_in_pass(plan.mesh)) return own;
  const RequestBatch requests = requests_of(plan);
  const bool quick = own.experts.dispatch == Dispatch::kAllToAll &&
                     takes_low_latency(plan.mesh, requests, library, places);
  const bool is_auto_prompt = plan.experts.dispatch == Dispatch::kAuto && requests.has_prompts();
  if (quick && !is_auto_prompt) {
    own.launches.host_reads_counts = false;
    return own;
  }
  const bool in_node =
      library.bulk_dispatch && library.bulk_combine && !spans_nodes(plan.mesh, places);
  const bool is_normal = own.experts.dispatch == Dispatch::kTwoLevel || in_node;
  if (!is_normal || !plan.launches.host_reads_counts) return own;
  if (!own.launches.host_launch_cost) own.launches.host_launch_cost = library.host_launch;
  if (own.launches.cuda_graphs == CudaGraphs::kStep) own.launches.cuda_graphs = CudaGraphs::kNone;
  return own;
}

bool has_quick_dispatch(const Ranks& mesh, const CommunicationLibrary& library) {
  return sends_in_pass(mesh) && library.dispatch && library.combine;
}

}  // namespace stepsim
